// Follow tables in memory, in several lanes at once, writing what is said on the way.
//
// A lookup waits for the one before it, which costs the latency of the cache; lanes that do not depend on each other
// wait together.
#pragma once
#include <cstdint>
#include <cstring>

namespace detent {
namespace {

// Rows of 1 << shift states, and beside them rows of entries to write.
template <class State>
struct Tables {
    const State* next;
    const uint8_t* said;
    int shift, entry;  // bytes of an entry, 0 to write nothing
};

template <class Letter>
struct Strand {
    const Letter* letters;
    uint32_t state;
    uint8_t* out;
};

template <int lanes, int entry, class Letter, class State>
void walk_entries(const Tables<State>& tables, Strand<Letter>* lane, int64_t count) {
    const Letter* letters[lanes];
    uint8_t* out[lanes];
    uint64_t state[lanes];
    for (int i = 0; i < lanes; ++i) letters[i] = lane[i].letters, out[i] = lane[i].out, state[i] = lane[i].state;
    const State* next = tables.next;
    const uint8_t* said = tables.said;
    const int shift = tables.shift;
    for (int64_t t = 0; t < count; ++t)
        for (int i = 0; i < lanes; ++i) {
            const uint64_t at = (uint64_t(letters[i][t]) << shift) + state[i];
            if (entry) std::memcpy(out[i] + t * entry, said + at * entry, entry);
            state[i] = next[at];
        }
    for (int i = 0; i < lanes; ++i) lane[i].state = uint32_t(state[i]);
}

// Advance `lanes` lanes by `count` letters each.
template <int lanes, class Letter, class State>
void walk(const Tables<State>& tables, Strand<Letter>* lane, int64_t count) {
    switch (tables.entry) {
        case 0: return walk_entries<lanes, 0>(tables, lane, count);
        case 1: return walk_entries<lanes, 1>(tables, lane, count);
        case 2: return walk_entries<lanes, 2>(tables, lane, count);
        case 4: return walk_entries<lanes, 4>(tables, lane, count);
        case 8: return walk_entries<lanes, 8>(tables, lane, count);
    }
}

}  // namespace
}  // namespace detent
