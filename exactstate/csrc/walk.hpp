// Follow tables in memory, several pieces of a word at once, writing outputs on the way.
//
// A lookup waits for the one before it, which costs the latency of the cache; pieces that do not depend on each other
// wait together.
#pragma once
#include <cstdint>
#include <cstring>

namespace exactstate {
namespace {

// Rows of 1 << shift states, and beside them rows of entries to write.
template <class State>
struct Tables {
    const State* next;
    const uint8_t* outputs;
    int shift, entry;  // bytes of an entry, 0 to write nothing
};

template <int pieces, int entry, class Letter, class State>
__attribute__((noinline)) void walk_writing(const Tables<State>& tables, const Letter* letters, int64_t piece,
                                            uint32_t* states, uint8_t* out) {
    const State* const next = tables.next;
    const uint8_t* const outputs = tables.outputs;
    const int shift = tables.shift;
    uint64_t state[pieces];
    for (int i = 0; i < pieces; ++i) state[i] = states[i];
    for (int64_t t = 0; t < piece; ++t)
        for (int i = 0; i < pieces; ++i) {
            const uint64_t at = (uint64_t(letters[i * piece + t]) << shift) + state[i];
            if (entry) std::memcpy(out + (i * piece + t) * entry, outputs + at * entry, entry);
            state[i] = next[at];
        }
    for (int i = 0; i < pieces; ++i) states[i] = uint32_t(state[i]);
}

// Read `pieces` pieces of the letters, each from its own state on; leave the states at their ends.
template <int pieces, class Letter, class State>
void walk(const Tables<State>& tables, const Letter* letters, int64_t piece, uint32_t* states, uint8_t* out) {
    switch (tables.entry) {
        case 0: return walk_writing<pieces, 0>(tables, letters, piece, states, out);
        case 1: return walk_writing<pieces, 1>(tables, letters, piece, states, out);
        case 2: return walk_writing<pieces, 2>(tables, letters, piece, states, out);
        case 4: return walk_writing<pieces, 4>(tables, letters, piece, states, out);
        case 8: return walk_writing<pieces, 8>(tables, letters, piece, states, out);
    }
}

}  // namespace
}  // namespace exactstate
