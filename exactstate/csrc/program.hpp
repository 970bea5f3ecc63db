// A machine prepared for running: what exactstate/runtime/programs.py hands over, field by field.
//
// A letter is the number of a symbol. A group is `pack` letters read as one number, the first letter counting most;
// it has a table of its own, so that one lookup does the work of `pack`.
#pragma once
#include <cstdint>

namespace exactstate {

enum Strategy : int64_t { PLAIN, PACKED, LOOKBACK, REGISTERS };

struct Program {
    int64_t strategy;
    int64_t symbols, states;

    // tables in memory: rows of 1 << shift states, one row per letter (step) or per group (next)
    int64_t state_bytes, shift, pack;
    const void *step, *next;

    // tables in registers: for every bundle of functions, a row of bytes per group of `register_pack` letters
    int64_t register_pack, row_bytes, bundles;
    const uint8_t* rows;
    int64_t wide;                // a row is one function of up to 32 states, not two of up to 16
    int64_t heads;               // how many indices are tracked
    const int32_t* function_of;  // which function moves the head
    const int32_t* strides;      // the indices' number is the sum of index * stride
    const uint8_t* indices;      // states x heads: indices that stand for a state
    const int32_t* decode;       // the indices' number -> state
};

// The output of every symbol: an entry of `bytes` per letter, `pack * bytes` per group, laid out as step and next.
struct Outputs {
    int64_t bytes;
    const void *step, *next;
};

}  // namespace exactstate
