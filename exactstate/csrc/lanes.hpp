// Sixteen floats (or eight doubles) side by side: one lane per row of the input.
//
// Everything is plain IEEE multiplication and addition in a fixed order, never fused, so that a logit has the
// same bits on every machine, for every block, chunk and number of threads.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

#include "parallel.hpp"

#if defined(__x86_64__) && defined(__ELF__) && defined(__GNUC__)
// one body, two translations, chosen when the library is loaded
#define EXACTSTATE_CLONES __attribute__((target_clones("avx2", "default"), noinline, flatten))
#else
#define EXACTSTATE_CLONES __attribute__((noinline))
#endif
#if defined(__x86_64__) && defined(__ELF__) && defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__)
// for gradients, whose multiplications and additions may be fused
#define EXACTSTATE_FUSED_CLONES __attribute__((target_clones("arch=x86-64-v3", "default"), noinline, flatten))
#else
#define EXACTSTATE_FUSED_CLONES EXACTSTATE_CLONES
#endif
#define EXACTSTATE_INLINE __attribute__((always_inline)) inline

#if defined(__x86_64__) && defined(__GNUC__)
// for instructions that vectors of the language do not name; callers ask __builtin_cpu_supports("avx2")
#include <immintrin.h>
#define EXACTSTATE_AVX2 __attribute__((target("avx2")))
#define EXACTSTATE_AVX2_INLINE __attribute__((target("avx2"), always_inline)) inline
#define EXACTSTATE_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#endif

namespace exactstate {

typedef float Floats __attribute__((vector_size(32)));
typedef double Doubles __attribute__((vector_size(32)));
typedef int32_t Ints32 __attribute__((vector_size(32)));
typedef int64_t Ints64 __attribute__((vector_size(32)));

template <class T>
struct Lane;
template <>
struct Lane<float> {
    typedef Floats Vector;
    typedef Ints32 Index;
    typedef uint32_t Words __attribute__((vector_size(32)));
    static constexpr int width = 8;
};
template <>
struct Lane<double> {
    typedef Doubles Vector;
    typedef Ints64 Index;
    static constexpr int width = 4;
};

// Vectors per block: two, so that six columns of logits fill twelve registers.
constexpr int PAIR = 2;
template <class T>
constexpr int ROWS = PAIR * Lane<T>::width;

// How the rows of a block lie in registers: in two vectors, or in one where there is AVX-512. The operations in a lane
// are the same ones.
template <class T>
struct Pair : Lane<T> {
    typedef T Type;
    static constexpr int vectors = PAIR;
};
struct Whole {
    typedef float Type;
    typedef float Vector __attribute__((vector_size(64)));
    typedef int32_t Index __attribute__((vector_size(64)));
    typedef uint32_t Words __attribute__((vector_size(64)));
    static constexpr int width = 16, vectors = 1;
};

#ifdef EXACTSTATE_AVX2
// Whether blocks of floats can be `Whole`; EXACTSTATE_AVX512=0 says no.
inline bool has_avx512() {
    static const bool found = [] {
        const char* asked = std::getenv("EXACTSTATE_AVX512");
        return !(asked && std::strcmp(asked, "0") == 0) && __builtin_cpu_supports("avx512vnni") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
    }();
    return found;
}
#endif

template <class T>
EXACTSTATE_INLINE typename Lane<T>::Vector spread(T value) {
    return typename Lane<T>::Vector{} + value;
}

// Memory that begins with a cache line, so that no vector of a row lies in two; not initialized.
template <class T>
class Lines {
  public:
    explicit Lines(int64_t size)
        : held_(new char[size_t(size) * sizeof(T) + LINE]),
          data_(reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(held_.get()) + LINE - 1) / LINE * LINE)) {}
    T* data() const { return data_; }

  private:
    static constexpr uintptr_t LINE = 64;
    std::unique_ptr<char[]> held_;
    T* data_;
};

// Prefetch rows that are visited in no particular order.
template <class T>
EXACTSTATE_INLINE void fetch(const T* from, const T* to) {
    for (; from < to; from += 64 / sizeof(T)) __builtin_prefetch(from);
}

template <class T>
EXACTSTATE_INLINE typename Lane<T>::Vector load(const T* from) {
    typename Lane<T>::Vector vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}

template <class T>
EXACTSTATE_INLINE void store(T* to, typename Lane<T>::Vector vector) {
    std::memcpy(to, &vector, sizeof vector);
}

// The same with a vector of any width.
template <class Vector, class T>
EXACTSTATE_INLINE Vector take(const T* from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}

// The natural logarithm of positive normal floats, to about one unit in the last place: x = 2^k (1 + f) with
// 1 + f in [sqrt 1/2, sqrt 2], and the series of log(1 + f) as fitted by Moshier (Cephes). exactstate.ops.gumbel
// performs the same operations in the same order in torch.
template <class L>
EXACTSTATE_INLINE typename L::Vector natural_log(typename L::Vector x) {
    typedef typename L::Vector Vector;
    typedef typename L::Index Index;
    const Index bits = (Index)x;
    const Index exponent = (bits - 0x3f3504f3) >> 23;
    const Vector f = (Vector)(bits - (exponent << 23)) - 1.0f;
    const Vector k = __builtin_convertvector(exponent, Vector);
    // evaluated in pairs (Estrin): a short chain of operations, so that several logarithms overlap
    const Vector square = f * f, fourth = square * square;
    const Vector a = f * -2.4999993993e-1f + 3.3333331174e-1f, b = f * -1.6668057665e-1f + 2.0000714765e-1f;
    const Vector c = f * -1.2420140846e-1f + 1.4249322787e-1f, d = f * -1.1514610310e-1f + 1.1676998740e-1f;
    const Vector p = ((a + b * square) + (c + d * square) * fourth) + (fourth * fourth) * 7.0376836292e-2f;
    return (f - 0.5f * square + square * f * p) + k * 0.69314718056f;
}

// exp(x) for x <= 0, flushed to zero below -87; the same splitting, to about two units in the last place.
EXACTSTATE_INLINE Floats exponential(Floats x) {
    const Floats kept = (Floats)((Ints32)x & (Ints32)(x > -87.0f)) + (Floats)((Ints32)spread<float>(-87.0f) & (Ints32)(x <= -87.0f));
    const Floats scaled = kept * 1.44269504f - 0.5f;
    const Ints32 k = __builtin_convertvector(scaled, Ints32);  // truncates, and scaled is negative: rounds to nearest
    const Floats whole = __builtin_convertvector(k, Floats);
    const Floats r = (kept - whole * 0.693359375f) - whole * -2.12194440e-4f;
    Floats p = spread<float>(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    const Floats power = (Floats)((k + 127) << 23);
    const Floats result = ((p * r * r + r) + 1.0f) * power;
    return (Floats)((Ints32)result & (Ints32)(x > -87.0f));
}

EXACTSTATE_INLINE Doubles exponential(Doubles x) {
    Doubles result;
    for (int i = 0; i < Lane<double>::width; ++i) result[i] = std::exp(x[i]);
    return result;
}

// Eight rows of eight, turned into eight columns.
EXACTSTATE_INLINE void transpose_eight(const float* const* rows, int64_t from, float* columns, int64_t stride) {
    Floats r[8], t[8];
    for (int i = 0; i < 8; ++i) r[i] = load(rows[i] + from);
    for (int i = 0; i < 8; i += 2) {
        t[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        t[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; i += 4)
        for (int half = 0; half < 2; ++half) {
            r[i + 2 * half] = __builtin_shufflevector(t[i + half], t[i + half + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            r[i + 2 * half + 1] = __builtin_shufflevector(t[i + half], t[i + half + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int i = 0; i < 4; ++i) {
        store(columns + i * stride, __builtin_shufflevector(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11));
        store(columns + (i + 4) * stride, __builtin_shufflevector(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15));
    }
}

}  // namespace exactstate
