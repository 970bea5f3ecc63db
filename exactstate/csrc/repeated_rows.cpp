// Which rows of an input are the same, to the bit: embedded symbols, for example, are few distinct rows.
//
// Rows are numbered in the order of their first occurrence. The search ends as soon as there are more distinct rows than
// the caller can use, so that an input without repetitions costs little.
#include <cstring>
#include <vector>

#include "parallel.hpp"

namespace {

constexpr int64_t PROBES = 8;  // places looked at for each row, on average; more means that hashes collide on purpose

uint64_t mixed(uint64_t value) {
    value *= 0x9E3779B97F4A7C15u;
    return value ^ (value >> 29);
}

// Of the bytes of a row, a multiple of four; four chains side by side.
uint64_t hash_of(const char* row, int64_t bytes) {
    uint64_t chains[4] = {1, 2, 3, 4}, word;
    int64_t at = 0;
    for (; at + 32 <= bytes; at += 32)
        for (int c = 0; c < 4; ++c) {
            std::memcpy(&word, row + at + 8 * c, sizeof word);
            chains[c] = mixed(chains[c] ^ word);
        }
    for (; at < bytes; at += 4) {
        uint32_t half;
        std::memcpy(&half, row + at, sizeof half);
        chains[0] = mixed(chains[0] ^ half);
    }
    return mixed(mixed(mixed(chains[0]) ^ chains[1]) ^ mixed(mixed(chains[2]) ^ chains[3]));
}

}  // namespace

// first: `most` places for the number of the row in which each distinct row occurs first; index: rows, which of them
// each row is. Returns the number of distinct rows, or -1 if there are more than `most`.
EXACTSTATE_API int64_t exactstate_repeated_rows(const void* input, int64_t bytes, int64_t rows, int64_t most, int64_t* first,
                                        int64_t* index) {
    const char* from = static_cast<const char*>(input);
    uint64_t size = 16;
    while (size < uint64_t(most) * 2) size *= 2;
    std::vector<int64_t> slots(size, -1);
    std::vector<uint64_t> hashes(static_cast<size_t>(most));
    int64_t distinct = 0, probes = rows * PROBES;
    for (int64_t n = 0; n < rows; ++n) {
        const char* row = from + n * bytes;
        const uint64_t hash = hash_of(row, bytes);
        uint64_t slot = (hash >> 20) & (size - 1);
        for (;; slot = (slot + 1) & (size - 1)) {
            if (--probes < 0) return -1;
            const int64_t known = slots[slot];
            if (known < 0) {
                if (distinct == most) return -1;
                slots[slot] = distinct, hashes[distinct] = hash, first[distinct] = n, index[n] = distinct++;
                break;
            }
            if (hashes[known] == hash && std::memcmp(from + first[known] * bytes, row, size_t(bytes)) == 0) {
                index[n] = known;
                break;
            }
        }
    }
    return distinct;
}
