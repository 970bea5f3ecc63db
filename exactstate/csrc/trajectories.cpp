// Composing tables, and running states and adjoints through them: gathers of integers, nothing else.
#include <vector>

#include "logits.hpp"
#include "segments.hpp"

using namespace exactstate;

namespace {

// composite[t][k] = tables[t][composite[t - 1][k]], for steps [begin, end) of one sequence, from the identity.
template <class Cell>
void compose_steps(const Cell* tables, Cell* composite, const std::vector<Head>& heads, int64_t indices,
                   int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
        for (const Head& head : heads) {
            const Cell* table = tables + t * indices + head.index;
            const Cell* before = composite + (t - 1) * indices + head.index;
            Cell* after = composite + t * indices + head.index;
            for (int64_t k = 0; k < head.size; ++k) after[k] = t == begin ? table[k] : table[before[k]];
        }
}

template <class Cell>
void prefix(const Cell* tables, int64_t batch, int64_t length, const int64_t* sizes, int64_t head_count,
            Cell* composite, int threads) {
    const std::vector<Head> heads = layout(sizes, head_count);
    const int64_t indices = heads.back().index + heads.back().size;
    // a few long sequences are cut into one piece per thread; composition does not mind where
    const int64_t pieces = batch >= threads ? 1 : std::max<int64_t>(1, std::min<int64_t>(threads, length / 4096));
    auto edge = [&](int64_t piece) { return length * piece / pieces; };
    parallel_ranges(batch * pieces, threads, [&](int64_t first, int64_t last) {
        for (int64_t work = first; work < last; ++work) {
            const int64_t from = work / pieces * length * indices, piece = work % pieces;
            compose_steps(tables + from, composite + from, heads, indices, edge(piece), edge(piece + 1));
        }
    });
    if (pieces == 1) return;
    std::vector<Cell> carried(size_t(batch * pieces * indices));
    for (int64_t b = 0; b < batch; ++b)
        for (int64_t piece = 1; piece < pieces; ++piece)
            for (const Head& head : heads) {
                const Cell* end = composite + (b * length + edge(piece) - 1) * indices + head.index;
                const Cell* before = carried.data() + (b * pieces + piece - 1) * indices + head.index;
                Cell* carry = carried.data() + (b * pieces + piece) * indices + head.index;
                for (int64_t k = 0; k < head.size; ++k) carry[k] = end[piece == 1 ? k : before[k]];
            }
    parallel_ranges(batch * pieces, threads, [&](int64_t first, int64_t last) {
        std::vector<Cell> row(static_cast<size_t>(indices));
        for (int64_t work = first; work < last; ++work) {
            const int64_t b = work / pieces, piece = work % pieces;
            if (piece == 0) continue;
            const Cell* carry = carried.data() + work * indices;
            for (int64_t t = edge(piece); t < edge(piece + 1); ++t) {
                Cell* here = composite + (b * length + t) * indices;
                std::copy(here, here + indices, row.begin());
                for (const Head& head : heads)
                    for (int64_t k = 0; k < head.size; ++k) here[head.index + k] = row[head.index + carry[head.index + k]];
            }
        }
    });
}

// states[row][h] after every row of every segment, held through its padding rows; finals[segment][h].
// With an index, row n reads table index[row]; without, table n (a local row).
template <class Cell>
void trajectories(const Cell* tables, const int64_t* index, const int64_t* sizes, int64_t head_count,
           const Segment* segments, int64_t segment_count, const int64_t* starts, Cell* states, int64_t* finals,
           int threads) {
    const std::vector<Head> heads = layout(sizes, head_count);
    const int64_t indices = heads.back().index + heads.back().size;
    const int64_t rows = local_rows(segments, segment_count);
    parallel_ranges(segment_count, useful_threads(rows * head_count, threads), [&](int64_t first, int64_t last) {
        for (int64_t g = first; g < last; ++g) {
            const Segment& segment = segments[g];
            int64_t* at = finals + g * head_count;
            std::copy(starts + g * head_count, starts + (g + 1) * head_count, at);
            Cell* out = states + segment.row * head_count;
            for (int64_t t = 0; t < segment.length; ++t, out += head_count) {  // heads side by side: none waits for another
                const Cell* table = tables + (index ? index[segment.row + t] : segment.local + t) * indices;
                for (int64_t h = 0; h < head_count; ++h) out[h] = Cell(at[h] = table[heads[h].index + at[h]]);
            }
            for (int64_t t = 0; t < segment.padding; ++t, out += head_count)
                for (int64_t h = 0; h < head_count; ++h) out[h] = Cell(at[h]);
        }
    });
}

// here[k] += ahead[table[k]] for every head.
template <class T, class Cell>
inline void add_ahead(const std::vector<Head>& heads, int64_t indices, const T* ahead, const Cell* table, T* here) {
    for (const Head& head : heads)
        for (int64_t k = 0; k < head.size; ++k) here[head.index + k] += ahead[head.index + table[head.index + k]];
}

#ifdef EXACTSTATE_AVX2
// Sixteen floats of `ahead` fill two registers, in which eight cells at a time are looked up.
EXACTSTATE_AVX2 inline void add_ahead_in_registers(const std::vector<Head>& heads, int64_t indices, const float* ahead,
                                               const uint8_t* table, float* here) {
    constexpr int64_t MOST = 16;
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (const Head& head : heads) {
        const float* from = ahead + head.index;
        const uint8_t* cells = table + head.index;
        float* to = here + head.index;
        if (head.size > MOST || head.index + MOST > indices) {  // the last heads have nothing behind them to read
            for (int64_t k = 0; k < head.size; ++k) to[k] += from[cells[k]];
            continue;
        }
        const __m256 low = _mm256_loadu_ps(from), high = _mm256_loadu_ps(from + 8);
        for (int64_t k = 0; k < head.size; k += 8) {
            const __m256i cell = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(cells + k)));
            const __m256 above = _mm256_castsi256_ps(_mm256_slli_epi32(cell, 28));  // the sign: eight or more
            const __m256 found = _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, cell),
                                                  _mm256_permutevar8x32_ps(high, cell), above);
            const __m256 before = _mm256_loadu_ps(to + k);
            const __m256 ours = _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(int(head.size - k)), lanes));
            _mm256_storeu_ps(to + k, _mm256_blendv_ps(before, _mm256_add_ps(before, found), ours));
        }
    }
}

const bool HAS_AVX2 = __builtin_cpu_supports("avx2");

inline void add_ahead(const std::vector<Head>& heads, int64_t indices, const float* ahead, const uint8_t* table,
                      float* here) {
    if (HAS_AVX2)
        add_ahead_in_registers(heads, indices, ahead, table, here);
    else
        add_ahead<float, uint8_t>(heads, indices, ahead, table, here);
}
#endif

// In place: gains[t] becomes lambda[t][k] = gains[t][k] + lambda[t + 1][tables[t + 1][k]], and after the last row
// lambda is `last`. firsts[segment][k] is lambda before the segment's first row.
template <class T, class Cell>
void adjoint(const Cell* tables, const int64_t* sizes, int64_t head_count, const Segment* segments,
             int64_t segment_count, T* gains, const T* lasts, T* firsts, int threads) {
    const std::vector<Head> heads = layout(sizes, head_count);
    const int64_t indices = heads.back().index + heads.back().size;
    const int64_t rows = local_rows(segments, segment_count);
    parallel_ranges(segment_count, useful_threads(rows * indices, threads), [&](int64_t first, int64_t last) {
        for (int64_t g = first; g < last; ++g) {
            const Segment& segment = segments[g];
            const T* ahead = lasts + g * indices;
            for (int64_t t = segment.length - 1; t >= 0; --t) {
                T* here = gains + (segment.local + t) * indices;
                const Cell* table = tables + (segment.local + t + 1) * indices;
                if (t == segment.length - 1)
                    for (int64_t k = 0; k < indices; ++k) here[k] += ahead[k];
                else
                    add_ahead(heads, indices, ahead, table, here);
                ahead = here;
            }
            const Cell* table = tables + segment.local * indices;
            for (const Head& head : heads)
                for (int64_t k = 0; k < head.size; ++k)
                    firsts[g * indices + head.index + k] =
                        segment.length ? ahead[head.index + table[head.index + k]] : ahead[head.index + k];
        }
    });
}

}  // namespace

#define EXACTSTATE_BY_CELL(BYTES, CALL)      \
    switch (BYTES) {                     \
        case 1: { typedef uint8_t Cell; CALL; return 0; }  \
        case 2: { typedef uint16_t Cell; CALL; return 0; } \
        case 4: { typedef uint32_t Cell; CALL; return 0; } \
        case 8: { typedef uint64_t Cell; CALL; return 0; } \
    }                                    \
    return -2

EXACTSTATE_API int64_t exactstate_prefix(const void* tables, int cell_bytes, int64_t batch, int64_t length,
                                 const int64_t* sizes, int64_t heads, void* composite, int threads) {
    EXACTSTATE_BY_CELL(cell_bytes, prefix(static_cast<const Cell*>(tables), batch, length, sizes, heads,
                                      static_cast<Cell*>(composite), threads));
}

EXACTSTATE_API int64_t exactstate_trajectories(const void* tables, int cell_bytes, const int64_t* index, const int64_t* sizes,
                                int64_t heads, const Segment* segments, int64_t segment_count, const int64_t* starts,
                                void* states, int64_t* finals, int threads) {
    EXACTSTATE_BY_CELL(cell_bytes, trajectories(static_cast<const Cell*>(tables), index, sizes, heads, segments, segment_count,
                                     starts, static_cast<Cell*>(states), finals, threads));
}

EXACTSTATE_API int64_t exactstate_adjoint_f32(const void* tables, int cell_bytes, const int64_t* sizes, int64_t heads,
                                      const Segment* segments, int64_t segment_count, float* gains, const float* lasts,
                                      float* firsts, int threads) {
    EXACTSTATE_BY_CELL(cell_bytes, (adjoint<float, Cell>(static_cast<const Cell*>(tables), sizes, heads, segments,
                                                     segment_count, gains, lasts, firsts, threads)));
}

EXACTSTATE_API int64_t exactstate_adjoint_f64(const void* tables, int cell_bytes, const int64_t* sizes, int64_t heads,
                                      const Segment* segments, int64_t segment_count, double* gains,
                                      const double* lasts, double* firsts, int threads) {
    EXACTSTATE_BY_CELL(cell_bytes, (adjoint<double, Cell>(static_cast<const Cell*>(tables), sizes, heads, segments,
                                                      segment_count, gains, lasts, firsts, threads)));
}
