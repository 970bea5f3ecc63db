// Products of small matrices for gradients, where rows are visited through pointers.
//
// A tile keeps twelve sums in registers. No table depends on these sums, so multiplications and additions may be fused;
// the order of every sum over rows is the order of the rows. Widths are whole vectors: callers pad with zeros.
#pragma once
#include "lanes.hpp"

namespace exactstate {

constexpr int THREE = 3, FOUR = 4, SIX = 6;  // sides of a tile

// How many of what is left a tile takes: never a single one where it can be avoided, for one alone waits for itself.
EXACTSTATE_INLINE int up_to_three(int64_t left) { return int(left == 4 ? 2 : std::min<int64_t>(left, THREE)); }
EXACTSTATE_INLINE int up_to_four(int64_t left) { return int(left == 5 ? 3 : std::min<int64_t>(left, FOUR)); }

// The sums of the lanes of four vectors.
EXACTSTATE_INLINE void sums_of_lanes(const Floats (&a)[FOUR], float* sums) {
    Floats pair[2];
    for (int i = 0; i < 2; ++i)
        pair[i] = __builtin_shufflevector(a[2 * i], a[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13) +
                  __builtin_shufflevector(a[2 * i], a[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    const Floats halves = __builtin_shufflevector(pair[0], pair[1], 0, 1, 8, 9, 4, 5, 12, 13) +
                          __builtin_shufflevector(pair[0], pair[1], 2, 3, 10, 11, 6, 7, 14, 15);
    typedef float Four __attribute__((vector_size(16)));
    const Four sum = __builtin_shufflevector(halves, halves, 0, 1, 2, 3) +
                     __builtin_shufflevector(halves, halves, 4, 5, 6, 7);
    std::memcpy(sums, &sum, sizeof sum);
}

EXACTSTATE_INLINE void sums_of_lanes(const Doubles (&a)[FOUR], double* sums) {
    Doubles pair[2];
    for (int i = 0; i < 2; ++i)
        pair[i] = __builtin_shufflevector(a[2 * i], a[2 * i + 1], 0, 4, 2, 6) +
                  __builtin_shufflevector(a[2 * i], a[2 * i + 1], 1, 5, 3, 7);
    store(sums, __builtin_shufflevector(pair[0], pair[1], 0, 1, 4, 5) +
                    __builtin_shufflevector(pair[0], pair[1], 2, 3, 6, 7));
}

// out[c][n] = bias[c] + <x[n], w[c]> for four rows and C entries.
template <class T, int C>
EXACTSTATE_INLINE void dot_tile(const T* const* x, const T* w, int64_t stride, int64_t m, const T* bias, T* out,
                            int64_t out_stride) {
    typedef typename Lane<T>::Vector Vector;
    const T *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
    Vector sum[C][FOUR] = {};
    for (int64_t i = 0; i < m; i += Lane<T>::width) {
        Vector entry[C];
        for (int c = 0; c < C; ++c) entry[c] = load(w + c * stride + i);
        const Vector a = load(x0 + i);
        for (int c = 0; c < C; ++c) sum[c][0] += a * entry[c];
        const Vector b = load(x1 + i);
        for (int c = 0; c < C; ++c) sum[c][1] += b * entry[c];
        const Vector e = load(x2 + i);
        for (int c = 0; c < C; ++c) sum[c][2] += e * entry[c];
        const Vector f = load(x3 + i);
        for (int c = 0; c < C; ++c) sum[c][3] += f * entry[c];
    }
    for (int c = 0; c < C; ++c) {
        T sums[FOUR];
        sums_of_lanes(sum[c], sums);
        for (int n = 0; n < FOUR; ++n) out[c * out_stride + n] = bias[c] + sums[n];
    }
}

// out[j][n] = bias[j] + <x[n], w[j]> for d entries; rows come in fours.
template <class T>
EXACTSTATE_INLINE void dots(const T* const* x, int64_t rows, const T* w, int64_t stride, int64_t m, const T* bias, int64_t d,
                        T* out, int64_t out_stride) {
    for (int64_t n = 0; n < rows; n += FOUR)
        for (int64_t j = 0; j < d;) {
            const int many = up_to_three(d - j);
            const T* entry = w + j * stride;
            T* to = out + j * out_stride + n;
            switch (many) {
                case 1: dot_tile<T, 1>(x + n, entry, stride, m, bias + j, to, out_stride); break;
                case 2: dot_tile<T, 2>(x + n, entry, stride, m, bias + j, to, out_stride); break;
                default: dot_tile<T, 3>(x + n, entry, stride, m, bias + j, to, out_stride);
            }
            j += many;
        }
}

// out[c] = bias[c] + x[0] w[c][0] + x[1] w[c][1] + ..., for V vectors of rows and C entries; x: m x stride, a lane per row.
template <class T, int C, int V>
EXACTSTATE_INLINE void lane_dot_tile(const T* x, int64_t stride, const T* w, int64_t w_stride, int64_t m, const T* bias, T* out) {
    typedef typename Lane<T>::Vector Vector;
    constexpr int W = Lane<T>::width;
    Vector sum[C][V];
    for (int c = 0; c < C; ++c)
        for (int v = 0; v < V; ++v) sum[c][v] = spread<T>(bias[c]);
#pragma GCC unroll 4
    for (int64_t i = 0; i < m; ++i, x += stride) {
        Vector rows[V];
        for (int v = 0; v < V; ++v) rows[v] = load(x + v * W);
        for (int c = 0; c < C; ++c)
            for (int v = 0; v < V; ++v) sum[c][v] += rows[v] * w[c * w_stride + i];
    }
    for (int c = 0; c < C; ++c)
        for (int v = 0; v < V; ++v) store(out + c * stride + v * W, sum[c][v]);
}

template <class T, int V>
EXACTSTATE_INLINE void lane_dot_vectors(const T* x, int64_t stride, const T* w, int64_t w_stride, int64_t m, const T* bias,
                                    int64_t d, T* out) {
    for (int64_t j = 0; j < d;) {
        const int many = V < THREE && d - j >= SIX && d - j != SIX + 1 ? SIX : up_to_four(d - j);
        const T* entry = w + j * w_stride;
        T* to = out + j * stride;
        switch (many) {
            case 1: lane_dot_tile<T, 1, V>(x, stride, entry, w_stride, m, bias + j, to); break;
            case 2: lane_dot_tile<T, 2, V>(x, stride, entry, w_stride, m, bias + j, to); break;
            case 3: lane_dot_tile<T, 3, V>(x, stride, entry, w_stride, m, bias + j, to); break;
            case 4: lane_dot_tile<T, 4, V>(x, stride, entry, w_stride, m, bias + j, to); break;
            default: lane_dot_tile<T, V < THREE ? SIX : FOUR, V>(x, stride, entry, w_stride, m, bias + j, to);
        }
        j += many;
    }
}

// out[j][n] = bias[j] + <x[n], w[j]> for d entries; x is m x stride and out d x stride, with a lane per row.
template <class T>
EXACTSTATE_INLINE void lane_dots(const T* x, int64_t stride, int64_t rows, const T* w, int64_t w_stride, int64_t m, const T* bias,
                             int64_t d, T* out) {
    constexpr int W = Lane<T>::width;
    for (int64_t n = 0; n < rows;) {
        const int vectors = up_to_three((rows - n + W - 1) / W);
        switch (vectors) {
            case 1: lane_dot_vectors<T, 1>(x + n, stride, w, w_stride, m, bias, d, out + n); break;
            case 2: lane_dot_vectors<T, 2>(x + n, stride, w, w_stride, m, bias, d, out + n); break;
            default: lane_dot_vectors<T, 3>(x + n, stride, w, w_stride, m, bias, d, out + n);
        }
        n += vectors * W;
    }
}

// sum[c] += g[c][n] x[n] for n = 0, 1, ..., from inputs i on: C entries, V vectors.
template <class T, int C, int V>
EXACTSTATE_INLINE void outer_tile(const T* const* x, int64_t rows, int64_t i, const T* g, int64_t g_stride, T* sums,
                              int64_t stride) {
    typedef typename Lane<T>::Vector Vector;
    constexpr int W = Lane<T>::width;
    Vector sum[C][V];
    for (int c = 0; c < C; ++c)
        for (int v = 0; v < V; ++v) sum[c][v] = load(sums + c * stride + v * W);
    for (int64_t n = 0; n < rows; ++n) {
        const T* row = x[n] + i;
        T factor[C];
        for (int c = 0; c < C; ++c) factor[c] = g[c * g_stride + n];
        for (int v = 0; v < V; ++v) {
            const Vector part = load(row + v * W);
            for (int c = 0; c < C; ++c) sum[c][v] += part * factor[c];
        }
    }
    for (int c = 0; c < C; ++c)
        for (int v = 0; v < V; ++v) store(sums + c * stride + v * W, sum[c][v]);
}

template <class T, int V>
EXACTSTATE_INLINE void outer_vectors(const T* const* x, int64_t rows, int64_t i, const T* g, int64_t g_stride, int64_t d,
                                 T* sums, int64_t stride) {
    for (int64_t j = 0; j < d;) {
        const int many = up_to_three(d - j);
        const T* factors = g + j * g_stride;
        T* to = sums + j * stride + i;
        switch (many) {
            case 1: outer_tile<T, 1, V>(x, rows, i, factors, g_stride, to, stride); break;
            case 2: outer_tile<T, 2, V>(x, rows, i, factors, g_stride, to, stride); break;
            default: outer_tile<T, 3, V>(x, rows, i, factors, g_stride, to, stride);
        }
        j += many;
    }
}

// sums[j] += sum over rows of g[j][n] x[n], for inputs [from, to) and d entries.
template <class T>
EXACTSTATE_INLINE void outer(const T* const* x, int64_t rows, int64_t from, int64_t to, const T* g, int64_t g_stride,
                         int64_t d, T* sums, int64_t stride) {
    constexpr int W = Lane<T>::width;
    for (int64_t i = from; i < to;) {
        const int vectors = up_to_four((to - i) / W);
        switch (vectors) {
            case 1: outer_vectors<T, 1>(x, rows, i, g, g_stride, d, sums, stride); break;
            case 2: outer_vectors<T, 2>(x, rows, i, g, g_stride, d, sums, stride); break;
            case 3: outer_vectors<T, 3>(x, rows, i, g, g_stride, d, sums, stride); break;
            default: outer_vectors<T, 4>(x, rows, i, g, g_stride, d, sums, stride);
        }
        i += vectors * W;
    }
}

// Where the factors of a combination lie: that of row n and entry j at j * entry + n * row.
struct Factors {
    int64_t entry, row;
};

// out[c] += g[0][c] w[0] + g[1][c] w[1] + ..., from inputs i on: C rows, V vectors. With `fresh`, out held nothing.
template <class T, int C, int V, bool fresh = false>
EXACTSTATE_INLINE void combine_tile(const T* w, int64_t stride, int64_t d, const T* g, Factors at, T* const* out,
                                int64_t i) {
    typedef typename Lane<T>::Vector Vector;
    constexpr int W = Lane<T>::width;
    Vector sum[C][V] = {};
    for (int c = 0; !fresh && c < C; ++c)
        for (int v = 0; v < V; ++v) sum[c][v] = load(out[c] + i + v * W);
    for (int64_t j = 0; j < d; ++j, w += stride, g += at.entry) {
        T factor[C];
        for (int c = 0; c < C; ++c) factor[c] = g[c * at.row];
        for (int v = 0; v < V; ++v) {
            const Vector part = load(w + v * W);
            for (int c = 0; c < C; ++c) sum[c][v] += part * factor[c];
        }
    }
    for (int c = 0; c < C; ++c)
        for (int v = 0; v < V; ++v) store(out[c] + i + v * W, sum[c][v]);
}

// The same for V vectors of every row.
template <class T, int V, bool fresh = false>
EXACTSTATE_INLINE void combine_vectors(const T* w, int64_t stride, int64_t d, const T* g, Factors at, int64_t rows,
                                   T* const* out, int64_t i) {
    for (int64_t n = 0; n < rows;) {
        const int many = up_to_three(rows - n);
        const T* factors = g + n * at.row;
        switch (many) {
            case 1: combine_tile<T, 1, V, fresh>(w, stride, d, factors, at, out + n, i); break;
            case 2: combine_tile<T, 2, V, fresh>(w, stride, d, factors, at, out + n, i); break;
            default: combine_tile<T, 3, V, fresh>(w, stride, d, factors, at, out + n, i);
        }
        n += many;
    }
}

// out[n] += g[0][n] w[0] + g[1][n] w[1] + ... for every row.
template <class T>
EXACTSTATE_INLINE void combine(const T* w, int64_t stride, int64_t m, int64_t d, const T* g, Factors at, int64_t rows,
                           T* const* out) {
    constexpr int W = Lane<T>::width;
    for (int64_t i = 0; i < m;) {
        const int vectors = up_to_four((m - i) / W);
        switch (vectors) {
            case 1: combine_vectors<T, 1>(w + i, stride, d, g, at, rows, out, i); break;
            case 2: combine_vectors<T, 2>(w + i, stride, d, g, at, rows, out, i); break;
            case 3: combine_vectors<T, 3>(w + i, stride, d, g, at, rows, out, i); break;
            default: combine_vectors<T, 4>(w + i, stride, d, g, at, rows, out, i);
        }
        i += vectors * W;
    }
}

}  // namespace exactstate
