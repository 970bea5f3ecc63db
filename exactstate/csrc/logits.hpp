// Logits of a block of rows: theta[e] = bias[e] + x[0] w[e][0] + x[1] w[e][1] + ..., summed in that order.
//
// Entries are numbered head by head, column by column: entry k * d + j of a head scores the move from k to j.
#pragma once
#include "lanes.hpp"

namespace exactstate {

constexpr int TILE = 6;            // entries per tile: 6 entries x 2 vectors of sums stay in registers
constexpr int PANEL_ENTRIES = 256;  // entries whose logits stay in the first cache before their arg max is taken

struct Head {
    int64_t size;    // d
    int64_t index;   // its first place among the indices of all heads
    int64_t entry;   // its first place among the entries of all heads
};

inline std::vector<Head> layout(const int64_t* sizes, int64_t heads) {
    std::vector<Head> all;
    int64_t index = 0, entry = 0;
    for (int64_t h = 0; h < heads; ++h) {
        all.push_back({sizes[h], index, entry});
        index += sizes[h];
        entry += sizes[h] * sizes[h];
    }
    return all;
}

// A run of whole columns: `columns` columns of one head from `column`, entries [begin, end).
struct Panel {
    const Head* head;
    int64_t column, columns, begin, end;
};

inline std::vector<Panel> panels(const std::vector<Head>& heads) {
    std::vector<Panel> all;
    for (const Head& head : heads) {
        const int64_t step = std::max<int64_t>(1, PANEL_ENTRIES / head.size);
        for (int64_t k = 0; k < head.size; k += step) {
            const int64_t columns = std::min(step, head.size - k);
            const int64_t begin = head.entry + k * head.size;
            all.push_back({&head, k, columns, begin, begin + columns * head.size});
        }
    }
    return all;
}

// Weights of entries [begin, end), rearranged so that a tile reads them in order: [tile][input][entry of tile].
template <class T>
void pack_entries(const T* weight, int64_t m, int64_t begin, int64_t end, T* packed) {
    for (int64_t e = begin; e < end; e += TILE) {
        const int64_t tile = std::min<int64_t>(TILE, end - e);
        for (int64_t i = 0; i < m; ++i)
            for (int64_t c = 0; c < tile; ++c) packed[i * tile + c] = weight[(e + c) * m + i];
        packed += tile * m;
    }
}

// N tiles of C entries that lie one behind the other.
template <class L, int C, int N = 1, class T>
EXACTSTATE_INLINE void product_tile(const T* columns, const T* packed, int64_t m, const T* bias, T* logits) {
    typedef typename L::Vector Vector;
    constexpr int W = L::width, V = L::vectors;
    Vector sum[N * C][V];
    for (int c = 0; c < N * C; ++c)
        for (int v = 0; v < V; ++v) sum[c][v] = Vector{} + bias[c];
    for (int64_t i = 0; i < m; ++i) {
        Vector x[V];
        for (int v = 0; v < V; ++v) x[v] = take<Vector>(columns + i * ROWS<T> + v * W);
        for (int n = 0; n < N; ++n)
            for (int c = 0; c < C; ++c)
                for (int v = 0; v < V; ++v)
                    sum[n * C + c][v] = sum[n * C + c][v] + x[v] * packed[(n * m + i) * C + c];
    }
    for (int c = 0; c < N * C; ++c)
        for (int v = 0; v < V; ++v) std::memcpy(logits + c * ROWS<T> + v * W, &sum[c][v], sizeof(Vector));
}

// columns: m x ROWS, the block transposed; logits: entries x ROWS.
template <class L, class T>
EXACTSTATE_INLINE void product(const T* columns, const T* packed, int64_t m, const T* bias, int64_t entries, T* logits) {
    constexpr int N = L::vectors == 1 ? 3 : 1;  // as many sums as there are registers for
    int64_t e = 0;
    for (; N > 1 && e + N * TILE <= entries; e += N * TILE)
        product_tile<L, TILE, N>(columns, packed + e * m, m, bias + e, logits + e * ROWS<T>);
    for (; e + TILE <= entries; e += TILE)
        product_tile<L, TILE>(columns, packed + e * m, m, bias + e, logits + e * ROWS<T>);
    packed += e * m, bias += e, logits += e * ROWS<T>;
    switch (entries - e) {
        case 1: return product_tile<L, 1>(columns, packed, m, bias, logits);
        case 2: return product_tile<L, 2>(columns, packed, m, bias, logits);
        case 3: return product_tile<L, 3>(columns, packed, m, bias, logits);
        case 4: return product_tile<L, 4>(columns, packed, m, bias, logits);
        case 5: return product_tile<L, 5>(columns, packed, m, bias, logits);
    }
}

// Transpose rows of m values into columns `stride` apart, one lane per row; lanes come in eights.
template <class T>
EXACTSTATE_INLINE void put_lanes(const T* const* rows, int64_t lanes, int64_t m, int64_t stride, T* columns) {
    for (int64_t lane = 0; lane < lanes; ++lane)
        for (int64_t i = 0; i < m; ++i) columns[i * stride + lane] = rows[lane][i];
}

template <>
EXACTSTATE_INLINE void put_lanes<float>(const float* const* rows, int64_t lanes, int64_t m, int64_t stride, float* columns) {
    for (int64_t i = 0; m >= 8 && i < m; i += 8) {
        const int64_t from = std::min(i, m - 8);  // the last eight overlap those before
        for (int64_t lane = 0; lane < lanes; lane += 8)
            transpose_eight(rows + lane, from, columns + from * stride + lane, stride);
    }
    for (int64_t lane = 0; m < 8 && lane < lanes; ++lane)
        for (int64_t i = 0; i < m; ++i) columns[i * stride + lane] = rows[lane][i];
}

// Transpose a whole block: rows[0 .. ROWS) of m values each.
template <class T>
EXACTSTATE_INLINE void put_rows(const T* const* rows, int64_t m, T* columns) {
    put_lanes(rows, ROWS<T>, m, ROWS<T>, columns);
}

// The logits of one row and a few entries, eight sums side by side.
template <class T>
EXACTSTATE_INLINE void plain_sums(const T* row, int64_t m, const T* weight, const T* bias, int64_t entries, T* logits) {
    constexpr int SIDE = 8;
    for (int64_t j = 0; j < entries; j += SIDE) {
        const T* from[SIDE];
        T sum[SIDE];
        for (int c = 0; c < SIDE; ++c) {
            const int64_t entry = std::min(j + c, entries - 1);
            from[c] = weight + entry * m;
            sum[c] = bias[entry];
        }
        for (int64_t i = 0; i < m; ++i)
            for (int c = 0; c < SIDE; ++c) sum[c] = sum[c] + row[i] * from[c][i];
        for (int64_t c = 0; c < std::min<int64_t>(SIDE, entries - j); ++c) logits[j + c] = sum[c];
    }
}

// In floats, eight entries are turned into the lanes of a vector, eight inputs at a time.
template <>
EXACTSTATE_INLINE void plain_sums<float>(const float* row, int64_t m, const float* weight, const float* bias, int64_t entries,
                                         float* logits) {
    constexpr int W = 8;
    float turned[W * ROWS<float>] = {}, sums[ROWS<float>];
    for (int64_t j = 0; j < entries; j += ROWS<float>) {
        const int64_t left = std::min<int64_t>(ROWS<float>, entries - j);
        const float* from[ROWS<float>];
        for (int64_t lane = 0; lane < ROWS<float>; ++lane) {
            const int64_t entry = j + std::min(lane, left - 1);
            from[lane] = weight + entry * m;
            sums[lane] = bias[entry];
        }
        Floats sum[PAIR];
        for (int v = 0; v < PAIR; ++v) sum[v] = load(sums + v * W);
        int64_t i = 0;
        for (; i + W <= m; i += W) {
            for (int v = 0; v < PAIR && v * W < left; ++v) transpose_eight(from + v * W, i, turned + v * W, ROWS<float>);
            for (int c = 0; c < W; ++c)
                for (int v = 0; v < PAIR; ++v) sum[v] = sum[v] + load(turned + c * ROWS<float> + v * W) * row[i + c];
        }
        for (int v = 0; v < PAIR; ++v) store(sums + v * W, sum[v]);
        for (; i < m; ++i)
            for (int64_t lane = 0; lane < left; ++lane) sums[lane] = sums[lane] + row[i] * from[lane][i];
        std::copy_n(sums, left, logits + j);
    }
}

// The way back: columns are m x ROWS, and rows lie `stride` apart.
template <class T>
EXACTSTATE_INLINE void take_rows(const T* columns, int64_t m, int64_t stride, T* rows) {
    for (int lane = 0; lane < ROWS<T>; ++lane)
        for (int64_t i = 0; i < m; ++i) rows[lane * stride + i] = columns[i * ROWS<T> + lane];
}

template <>
EXACTSTATE_INLINE void take_rows<float>(const float* columns, int64_t m, int64_t stride, float* rows) {
    constexpr int R = ROWS<float>;
    for (int64_t i = 0; m >= 8 && i < m; i += 8) {
        const int64_t from = std::min(i, m - 8);
        const float* eight[8];
        for (int c = 0; c < 8; ++c) eight[c] = columns + (from + c) * R;
        for (int lane = 0; lane < R; lane += 8) transpose_eight(eight, lane, rows + lane * stride + from, stride);
    }
    for (int64_t i = 0; m < 8 && i < m; ++i)
        for (int lane = 0; lane < R; ++lane) rows[lane * stride + i] = columns[i * R + lane];
}

}  // namespace exactstate
