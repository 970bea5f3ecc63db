// Gumbel noise from counters: entry e of step t of sequence s has the same noise in every call that has the same
// seed, whatever the chunk, the thread or the neighbours. Nothing is stored. Defined in torch by exactstate.ops.gumbel.
#pragma once
#include "lanes.hpp"

namespace exactstate {

EXACTSTATE_INLINE uint64_t scramble(uint64_t z) {  // the finalizer of splitmix64 (Steele, Lea and Flood 2014)
    z += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

EXACTSTATE_INLINE uint64_t step_key(uint64_t seed, uint64_t sequence, uint64_t step) {
    // the seed is scrambled on its own, or seed 1 would be seed 0 with its sequences shifted by one
    return scramble(scramble(scramble(seed) + sequence) + step);
}

// The keys of a block of rows, split into halves as the lanes want them.
template <class T>
struct Keys {
    static constexpr int vectors = (ROWS<T> + 7) / 8;
    Words low[vectors] = {}, high[vectors] = {};
    EXACTSTATE_INLINE void set(int lane, uint64_t key) {
        low[lane / 8][lane % 8] = uint32_t(key);
        high[lane / 8][lane % 8] = uint32_t(key >> 32);
    }
};

// -log(-log(U)) with U one of 2^23 midpoints of (0, 1): never 0, never 1, so the noise is never infinite.
EXACTSTATE_INLINE Floats gumbel(Words low, Words high, uint32_t entry) {
    Words x = low ^ (entry * 0x9E3779B9u);
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= high;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    const Floats uniform = (__builtin_convertvector((Ints32)(x >> 9), Floats) + 0.5f) * 0x1p-23f;
    return -natural_log(-natural_log(uniform));
}

// Noise of one entry for every row of a block, in the block's own type.
EXACTSTATE_INLINE void gumbel_rows(const Keys<float>& keys, uint32_t entry, Floats (&noise)[PAIR]) {
    for (int v = 0; v < PAIR; ++v) noise[v] = gumbel(keys.low[v], keys.high[v], entry);
}

EXACTSTATE_INLINE void gumbel_rows(const Keys<double>& keys, uint32_t entry, Doubles (&noise)[PAIR]) {
    const Floats both = gumbel(keys.low[0], keys.high[0], entry);
    for (int i = 0; i < 8; ++i) noise[i / 4][i % 4] = double(both[i]);
}

}  // namespace exactstate
