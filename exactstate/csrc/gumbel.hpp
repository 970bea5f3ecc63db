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
    static constexpr int lanes = ROWS<T>;
    uint32_t low[lanes] = {}, high[lanes] = {};
    EXACTSTATE_INLINE void set(int lane, uint64_t key) {
        low[lane] = uint32_t(key);
        high[lane] = uint32_t(key >> 32);
    }
};

// -log(-log(U)) with U one of 2^23 midpoints of (0, 1): never 0, never 1, so the noise is never infinite.
template <class L>
EXACTSTATE_INLINE typename L::Vector gumbel(const uint32_t* low, const uint32_t* high, uint32_t entry) {
    typedef typename L::Vector Vector;
    typedef typename L::Words Words;
    Words x = take<Words>(low) ^ (entry * 0x9E3779B9u);
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= take<Words>(high);
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    const Vector uniform = (__builtin_convertvector((typename L::Index)(x >> 9), Vector) + 0.5f) * 0x1p-23f;
    return -natural_log<L>(-natural_log<L>(uniform));
}

// Noise of one entry for every row of a block, in the block's own type.
EXACTSTATE_INLINE void gumbel_rows(const Keys<float>& keys, uint32_t entry, Floats (&noise)[PAIR]) {
    for (int v = 0; v < PAIR; ++v) noise[v] = gumbel<Pair<float>>(keys.low + 8 * v, keys.high + 8 * v, entry);
}

EXACTSTATE_INLINE void gumbel_rows(const Keys<float>& keys, uint32_t entry, Whole::Vector (&noise)[1]) {
    noise[0] = gumbel<Whole>(keys.low, keys.high, entry);
}

EXACTSTATE_INLINE void gumbel_rows(const Keys<double>& keys, uint32_t entry, Doubles (&noise)[PAIR]) {
    const Floats both = gumbel<Pair<float>>(keys.low, keys.high, entry);
    for (int i = 0; i < 8; ++i) noise[i / 4][i % 4] = double(both[i]);
}

}  // namespace exactstate
