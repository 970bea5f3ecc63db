// Compose tables that fit in a register: the whole function of a stretch of letters, for the price of one state.
//
// A function of up to 16 states is 16 bytes, and one shuffle composes two of them. Four pieces of the stretch are
// composed side by side, so that no piece waits for the one before it.
#pragma once
#include <cstdint>
#include <cstring>

#include "program.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#define EXACTSTATE_REGISTERS 1
#include <immintrin.h>
#else
#define EXACTSTATE_REGISTERS 0
#endif

namespace exactstate {
namespace {

constexpr int PIECES = 4;
constexpr int ROW = 32;  // bytes kept for the function of a piece

enum Features : int { HAS_16 = 1, HAS_32 = 2 };

// What this processor can keep in a register: functions of 16 states (SSSE3), of 32 or twice 16 (AVX2).
inline int register_features() {
#if EXACTSTATE_REGISTERS
    return (__builtin_cpu_supports("ssse3") ? HAS_16 : 0) | (__builtin_cpu_supports("avx2") ? HAS_32 : 0);
#else
    return 0;
#endif
}

#if EXACTSTATE_REGISTERS

// Named variables, not arrays: gcc keeps arrays of vectors in memory.
template <class Letter>
__attribute__((target("ssse3"), noinline)) void compose_16(const uint8_t* rows, const Letter* groups, int64_t piece,
                                                           uint8_t (*functions)[ROW]) {
    const __m128i identity = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const Letter *second = groups + piece, *third = second + piece, *fourth = third + piece;
    __m128i f = identity, g = identity, h = identity, k = identity;
#define EXACTSTATE_THEN(letters, f) \
    f = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + 16 * uint64_t(letters[t]))), f)
    for (int64_t t = 0; t < piece; ++t) {
        EXACTSTATE_THEN(groups, f);
        EXACTSTATE_THEN(second, g);
        EXACTSTATE_THEN(third, h);
        EXACTSTATE_THEN(fourth, k);
    }
#undef EXACTSTATE_THEN
    const __m128i all[PIECES] = {f, g, h, k};
    for (int i = 0; i < PIECES; ++i) std::memcpy(functions[i], &all[i], 16);
}

// Two functions of 16 states in one register.
template <class Letter>
__attribute__((target("avx2"), noinline)) void compose_two(const uint8_t* rows, const Letter* groups, int64_t piece,
                                                           uint8_t (*functions)[ROW]) {
    const __m256i identity =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    const Letter *second = groups + piece, *third = second + piece, *fourth = third + piece;
    __m256i f = identity, g = identity, h = identity, k = identity;
#define EXACTSTATE_THEN(letters, f)                                                                                       \
    f = _mm256_shuffle_epi8(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows + 32 * uint64_t(letters[t]))), f)
    for (int64_t t = 0; t < piece; ++t) {
        EXACTSTATE_THEN(groups, f);
        EXACTSTATE_THEN(second, g);
        EXACTSTATE_THEN(third, h);
        EXACTSTATE_THEN(fourth, k);
    }
#undef EXACTSTATE_THEN
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(functions[0]), f);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(functions[1]), g);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(functions[2]), h);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(functions[3]), k);
}

// A shuffle answers 0 where the top bit of the index is set: adding 112 sets it from 16 on, subtracting 16 below 16.
__attribute__((target("avx2"), always_inline)) inline __m256i then_32(const uint8_t* row, __m256i f) {
    const __m256i low = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row)));
    const __m256i high = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 16)));
    return _mm256_or_si256(_mm256_shuffle_epi8(low, _mm256_add_epi8(f, _mm256_set1_epi8(112))),
                           _mm256_shuffle_epi8(high, _mm256_sub_epi8(f, _mm256_set1_epi8(16))));
}

// One function of up to 32 states.
template <class Letter>
__attribute__((target("avx2"), noinline)) void compose_32(const uint8_t* rows, const Letter* groups, int64_t piece,
                                                          uint8_t (*functions)[ROW]) {
    const __m256i identity =
        _mm256_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
                         26, 27, 28, 29, 30, 31);
    const Letter *second = groups + piece, *third = second + piece, *fourth = third + piece;
    __m256i f = identity, g = identity, h = identity, k = identity;
    for (int64_t t = 0; t < piece; ++t) {
        f = then_32(rows + 32 * uint64_t(groups[t]), f);
        g = then_32(rows + 32 * uint64_t(second[t]), g);
        h = then_32(rows + 32 * uint64_t(third[t]), h);
        k = then_32(rows + 32 * uint64_t(fourth[t]), k);
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(functions[0]), f);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(functions[1]), g);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(functions[2]), h);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(functions[3]), k);
}

template <class Letter>
void compose(const Program& program, const uint8_t* rows, const Letter* groups, int64_t piece,
             uint8_t (*functions)[ROW]) {
    if (program.wide) compose_32(rows, groups, piece, functions);
    else if (program.row_bytes == 32) compose_two(rows, groups, piece, functions);
    else compose_16(rows, groups, piece, functions);
}

#else

// Never reached: nothing fits in a register here, and such a program is not made.
template <class Letter>
void compose(const Program&, const uint8_t*, const Letter*, int64_t, uint8_t (*)[ROW]) {}

#endif

}  // namespace
}  // namespace exactstate
