// Which arg maxes are certain already in sixteen-bit integers; twice as fast as floats, and the tables are the same.
//
// An arg max compares the leads of entries over the first entry of their column: bias and weights w are differences.
// Every row x is scaled by a and rounded to integers x', the differences of a column by c to w', so that both have a
// norm of about NORM. The integer lead x' w' + (a c bias) then differs from a c times that of the floats by at most
//     E = |a x| |c w - w'| + |a x - x'| |w'| + rounding of the floats,
// norms being Euclidean (Cauchy and Schwarz). Where the best of a column is ahead of the second by more than 2 E, it is
// the arg max of the floats. Elsewhere those that are close enough to the best are candidates: their logits are
// computed in floats, in the order of the definition.
//
// With noise n the scores are s x w + n, with s = 1 / temperature. A lead times s / (a c), plus the noise, differs from
// them by that much of E, and by roundings: those of two logits scaled and added to noise, and of the lead's own way to
// a score, are together below 34 of the largest logit times s, and below 68 of the noise's range, in units of 2^-24.
#pragma once
#include "gumbel.hpp"
#include "logits.hpp"

#ifdef EXACTSTATE_AVX2
namespace exactstate {

constexpr float NORM = 30000;              // of scaled rows and weights: a product of two stays below 2^30
constexpr float BIAS_LIMIT = 1 << 27;      // of a scaled bias
constexpr float SCALE_LIMIT = 0x1p60f;     // of a and c: underflow in the floats stays far below one
constexpr float SIZE_LIMIT = 1e18f;        // of norms and biases: no logit overflows
constexpr float NOISE_ROUNDING = 1e-5f;    // twice 68 units of 2^-24, and more
constexpr float SLACK = 1.005f;            // for the rounding of the bounds themselves
constexpr int64_t SCREEN_WIDTH = 4096;     // inputs up to which SLACK is enough
constexpr int LANES = ROWS<float>;
constexpr int ALL = (1 << LANES) - 1;      // of them, as a mask: gcc 12 warns of intrinsics without one

// 2 E of a column is x_norm |a x| + x_error |a x - x'| + x_scale a + 4.
struct ColumnBound {
    float x_norm, x_error, x_scale;
};

// The differences of all columns of all heads in integers.
struct Screen {
    const bool wide = has_avx512();
    int64_t m, pairs;                 // inputs, and pairs of them
    std::vector<int32_t> packed;      // pairs of sixteen-bit integers, panel by panel as `pack_entries` lays them out
    std::vector<float> bias;          // times c
    std::vector<int64_t> begin;       // the first difference of every panel
    std::vector<ColumnBound> bounds;  // of every column of every head
    std::vector<float> scales;        // c of every column
    float row_limit = SCALE_LIMIT;    // of a, so that no bias is too large
};

// A block of rows in integers: pairs x LANES.
struct ScreenBlock {
    explicit ScreenBlock(const Screen& screen) : columns(screen.pairs * LANES) {}
    Lines<int32_t> columns;
    float scale[LANES], norm[LANES], error[LANES];  // a, |a x|, |a x - x'|; all zero for a row that floats decide
};

EXACTSTATE_AVX2_INLINE float sum_of_lanes(__m256 v) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

EXACTSTATE_AVX2_INLINE float norm_of(const float* x, int64_t m) {
    __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    int64_t i = 0;
    for (; i + 16 <= m; i += 16)
        for (int v = 0; v < 2; ++v) {
            const __m256 x_v = _mm256_loadu_ps(x + i + 8 * v);
            sum[v] = _mm256_add_ps(sum[v], _mm256_mul_ps(x_v, x_v));
        }
    float total = sum_of_lanes(_mm256_add_ps(sum[0], sum[1]));
    for (; i < m; ++i) total += x[i] * x[i];
    return std::sqrt(total);
}

// rounded[i] = x[i] scale to the nearest integer, for m inputs and one zero more if m is odd; returns the norm of what
// was rounded off.
EXACTSTATE_AVX2_INLINE float round_scaled(const float* x, int64_t m, float scale, int16_t* rounded) {
    const __m256 a = _mm256_set1_ps(scale);
    __m256 squares = _mm256_setzero_ps();
    int64_t i = 0;
    for (; i + 16 <= m; i += 16) {
        __m256i whole[2];
        for (int v = 0; v < 2; ++v) {
            const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + i + 8 * v), a);
            whole[v] = _mm256_cvtps_epi32(scaled);
            const __m256 off = _mm256_sub_ps(scaled, _mm256_cvtepi32_ps(whole[v]));
            squares = _mm256_add_ps(squares, _mm256_mul_ps(off, off));
        }
        const __m256i both = _mm256_permute4x64_epi64(_mm256_packs_epi32(whole[0], whole[1]), 0xD8);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(rounded + i), both);
    }
    float total = sum_of_lanes(squares);
    for (; i < m; ++i) {
        const float scaled = x[i] * scale, whole = std::nearbyint(scaled);
        rounded[i] = int16_t(whole);
        total += (scaled - whole) * (scaled - whole);
    }
    if (m % 2) rounded[m] = 0;
    // the products were rounded before the integers were: to 2^-10 at most
    return std::sqrt(total) + 0x1p-9f * std::sqrt(float(m));
}

// The differences of one column: (d - 1) x m; returns the largest norm among them, infinite if floats must decide.
EXACTSTATE_AVX2_INLINE float subtract_first(const float* weight, const float* bias, int64_t m, int64_t d, float* differences,
                                        float& largest_weight, float& largest_bias) {
    largest_weight = norm_of(weight, m), largest_bias = std::fabs(bias[0]);
    bool finite = largest_weight < SIZE_LIMIT && largest_bias < SIZE_LIMIT;
    float top = 0;
    for (int64_t j = 1; j < d; ++j) {
        float* out = differences + (j - 1) * m;
        for (int64_t i = 0; i < m; ++i) out[i] = weight[j * m + i] - weight[i];
        const float size = norm_of(weight + j * m, m);
        finite = finite && size < SIZE_LIMIT && std::fabs(bias[j]) < SIZE_LIMIT;
        largest_weight = std::max(largest_weight, size), largest_bias = std::max(largest_bias, std::fabs(bias[j]));
        top = std::max(top, std::max(norm_of(out, m), std::fabs(bias[j] - bias[0]) / std::sqrt(float(m))));
    }
    return finite ? top : std::numeric_limits<float>::infinity();
}

EXACTSTATE_AVX2 inline Screen make_screen(const float* weight, const float* bias, int64_t m, const std::vector<Panel>& panels) {
    Screen screen;
    screen.m = m, screen.pairs = (m + 1) / 2;
    const float unit = float(m + 8 + 16) * 0x1p-24f;  // sixteen for the scores with noise, four of each in a bound
    float largest = 0;
    std::vector<float> differences;
    std::vector<int32_t> rounded;
    for (const Panel& panel : panels) {
        const int64_t d = panel.head->size, count = panel.columns * (d - 1), begin = int64_t(screen.bias.size());
        screen.begin.push_back(begin);
        screen.bias.resize(size_t(begin + count)), screen.packed.resize(size_t((begin + count) * screen.pairs));
        differences.resize(size_t((d - 1) * m)), rounded.assign(size_t(count * screen.pairs), 0);
        for (int64_t k = 0; k < panel.columns; ++k) {
            const float *w = weight + (panel.begin + k * d) * m, *b = bias + panel.begin + k * d;
            float w_norm, b_size, error = 0;
            const float top = subtract_first(w, b, m, d, differences.data(), w_norm, b_size);
            const float c = std::min(NORM / top, SCALE_LIMIT);  // zero where floats must decide
            for (int64_t j = 1; c > 0 && j < d; ++j) {
                const int64_t place = k * (d - 1) + j - 1;
                int16_t* row = reinterpret_cast<int16_t*>(rounded.data() + place * screen.pairs);
                error = std::max(error, round_scaled(differences.data() + (j - 1) * m, m, c, row));
                screen.bias[begin + place] = (b[j] - b[0]) * c;
            }
            // a lead is the difference of two logits, each with one rounding per operation
            const float w_float = 2 * unit * w_norm * c, b_float = 2 * unit * b_size * c;
            screen.scales.push_back(c);
            screen.bounds.push_back(c > 0 ? ColumnBound{2 * SLACK * (error + w_float), 2 * SLACK * (top * c + error),
                                                        2 * SLACK * b_float}
                                          : ColumnBound{0, 0, 0});
            largest = std::max(largest, c > 0 ? 2 * b_size * c : 0.0f);
        }
        pack_entries(rounded.data(), screen.pairs, 0, count, screen.packed.data() + begin * screen.pairs);
    }
    screen.row_limit = std::min(SCALE_LIMIT, BIAS_LIMIT / largest);
    return screen;
}

// `scratch`: LANES x pairs.
EXACTSTATE_AVX2_INLINE void screen_rows(const Screen& screen, const float* const* rows, std::vector<int32_t>& scratch,
                                    ScreenBlock& block) {
    const float* rounded[LANES];
    for (int lane = 0; lane < LANES; ++lane) {
        int32_t* row = scratch.data() + lane * screen.pairs;
        const float norm = norm_of(rows[lane], screen.m);
        const float scale = norm < SIZE_LIMIT ? std::min(NORM / norm, screen.row_limit) : 0.0f;
        if (scale > 0) {
            block.error[lane] = round_scaled(rows[lane], screen.m, scale, reinterpret_cast<int16_t*>(row));
        } else {  // NaN, infinite or too large
            std::fill(row, row + screen.pairs, 0);
            block.error[lane] = 0;
        }
        block.scale[lane] = scale, block.norm[lane] = scale > 0 ? scale * norm : 0.0f;
        rounded[lane] = reinterpret_cast<const float*>(row);  // bits to be moved, nothing else
    }
    put_rows(rounded, screen.pairs, reinterpret_cast<float*>(block.columns.data()));
}

template <int C>
EXACTSTATE_AVX2_INLINE void screen_tile(const ScreenBlock& block, const int32_t* packed, int64_t pairs, const float* bias,
                                    int32_t* leads) {
    __m256i sum[C][PAIR];
    for (int c = 0; c < C; ++c)
        for (int v = 0; v < PAIR; ++v)
            sum[c][v] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_set1_ps(bias[c]), _mm256_loadu_ps(block.scale + 8 * v)));
    const int32_t* x = block.columns.data();
#pragma GCC unroll 4
    for (int64_t i = 0; i < pairs; ++i, x += LANES, packed += C) {
        __m256i x_v[PAIR];
        for (int v = 0; v < PAIR; ++v) x_v[v] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + 8 * v));
        for (int c = 0; c < C; ++c) {
            const __m256i w = _mm256_set1_epi32(packed[c]);
            for (int v = 0; v < PAIR; ++v) sum[c][v] = _mm256_add_epi32(sum[c][v], _mm256_madd_epi16(x_v[v], w));
        }
    }
    for (int c = 0; c < C; ++c)
        for (int v = 0; v < PAIR; ++v)
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(leads + c * LANES + 8 * v), sum[c][v]);
}

// The same for T tiles that lie one behind the other, with all lanes in one register.
template <int C, int T>
EXACTSTATE_AVX512 inline void screen_tiles_wide(const ScreenBlock& block, const int32_t* packed, int64_t pairs,
                                                const float* bias, int32_t* leads) {
    __m512i sum[T][C];
    const __m512 scale = _mm512_loadu_ps(block.scale);
    for (int t = 0; t < T; ++t)
        for (int c = 0; c < C; ++c)
            sum[t][c] = _mm512_maskz_cvtps_epi32(ALL, _mm512_mul_ps(_mm512_set1_ps(bias[t * C + c]), scale));
    const int32_t* x = block.columns.data();
#pragma GCC unroll 2
    for (int64_t i = 0; i < pairs; ++i, x += LANES, packed += C) {
        const __m512i x_v = _mm512_loadu_si512(x);
        for (int t = 0; t < T; ++t)
            for (int c = 0; c < C; ++c)
                sum[t][c] = _mm512_dpwssd_epi32(sum[t][c], x_v, _mm512_set1_epi32(packed[t * C * pairs + c]));
    }
    for (int t = 0; t < T; ++t)
        for (int c = 0; c < C; ++c) _mm512_storeu_si512(leads + (t * C + c) * LANES, sum[t][c]);
}

EXACTSTATE_AVX512 inline void screen_product_wide(const ScreenBlock& block, const int32_t* packed, int64_t pairs,
                                                  const float* bias, int64_t count, int32_t* leads) {
    constexpr int T = 3;
    for (; count >= T * TILE; count -= T * TILE, packed += T * TILE * pairs, bias += T * TILE, leads += T * TILE * LANES)
        screen_tiles_wide<TILE, T>(block, packed, pairs, bias, leads);
    for (; count >= TILE; count -= TILE, packed += TILE * pairs, bias += TILE, leads += TILE * LANES)
        screen_tiles_wide<TILE, 1>(block, packed, pairs, bias, leads);
    switch (count) {
        case 1: return screen_tiles_wide<1, 1>(block, packed, pairs, bias, leads);
        case 2: return screen_tiles_wide<2, 1>(block, packed, pairs, bias, leads);
        case 3: return screen_tiles_wide<3, 1>(block, packed, pairs, bias, leads);
        case 4: return screen_tiles_wide<4, 1>(block, packed, pairs, bias, leads);
        case 5: return screen_tiles_wide<5, 1>(block, packed, pairs, bias, leads);
    }
}

// Integer leads of a panel over the first entries of its columns: columns x (d - 1) x LANES.
EXACTSTATE_AVX2_INLINE void screen_product(const Screen& screen, const ScreenBlock& block, int64_t panel, int64_t count,
                                       int32_t* leads) {
    const int32_t* packed = screen.packed.data() + screen.begin[panel] * screen.pairs;
    const float* bias = screen.bias.data() + screen.begin[panel];
    if (screen.wide) return screen_product_wide(block, packed, screen.pairs, bias, count, leads);
    for (; count >= TILE; count -= TILE, packed += TILE * screen.pairs, bias += TILE, leads += TILE * LANES)
        screen_tile<TILE>(block, packed, screen.pairs, bias, leads);
    switch (count) {
        case 1: return screen_tile<1>(block, packed, screen.pairs, bias, leads);
        case 2: return screen_tile<2>(block, packed, screen.pairs, bias, leads);
        case 3: return screen_tile<3>(block, packed, screen.pairs, bias, leads);
        case 4: return screen_tile<4>(block, packed, screen.pairs, bias, leads);
        case 5: return screen_tile<5>(block, packed, screen.pairs, bias, leads);
    }
}

// The arg max of one column, d - 1 leads of LANES each; returns the lanes in which it is uncertain, and for these the
// best lead and by how much a candidate may trail it.
EXACTSTATE_AVX2_INLINE int screen_arg_max(const ScreenBlock& block, const ColumnBound& bound, const int32_t* leads, int64_t d,
                                      __m256i (&where)[PAIR], int32_t* best_of, int32_t* trail) {
    __m256i best[PAIR], second[PAIR];
    for (int v = 0; v < PAIR; ++v) {
        best[v] = where[v] = _mm256_setzero_si256();  // the first entry leads itself by nothing
        second[v] = _mm256_set1_epi32(std::numeric_limits<int32_t>::min());
    }
    for (int64_t j = 1; j < d; ++j, leads += LANES) {
        const __m256i here = _mm256_set1_epi32(int32_t(j));
        for (int v = 0; v < PAIR; ++v) {
            const __m256i s = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(leads + 8 * v));
            where[v] = _mm256_blendv_epi8(where[v], here, _mm256_cmpgt_epi32(s, best[v]));
            second[v] = _mm256_max_epi32(second[v], _mm256_min_epi32(best[v], s));
            best[v] = _mm256_max_epi32(best[v], s);
        }
    }
    int uncertain = 0;
    for (int v = 0; v < PAIR; ++v) {
        const __m256 by_norm = _mm256_mul_ps(_mm256_set1_ps(bound.x_norm), _mm256_loadu_ps(block.norm + 8 * v));
        const __m256 by_error = _mm256_mul_ps(_mm256_set1_ps(bound.x_error), _mm256_loadu_ps(block.error + 8 * v));
        const __m256 by_scale = _mm256_mul_ps(_mm256_set1_ps(bound.x_scale), _mm256_loadu_ps(block.scale + 8 * v));
        const __m256 total = _mm256_add_ps(_mm256_add_ps(by_norm, by_error), _mm256_add_ps(by_scale, _mm256_set1_ps(4)));
        const __m256i may_trail = _mm256_cvtps_epi32(_mm256_min_ps(total, _mm256_set1_ps(0x1p30f)));
        const __m256i certain = _mm256_cmpgt_epi32(_mm256_sub_epi32(best[v], second[v]), may_trail);
        const int lanes = ~_mm256_movemask_ps(_mm256_castsi256_ps(certain)) & 0xFF;
        if (lanes) {
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(best_of + 8 * v), best[v]);
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(trail + 8 * v), may_trail);
        }
        uncertain |= lanes << (8 * v);
    }
    return uncertain;
}

// The same with all lanes in one register.
EXACTSTATE_AVX512 inline int screen_arg_max_wide(const ScreenBlock& block, const ColumnBound& bound,
                                                 const int32_t* leads, int64_t d, __m256i (&where_of)[PAIR],
                                                 int32_t* best_of, int32_t* trail) {
    __m512i best = _mm512_setzero_si512(), where = best;
    __m512i second = _mm512_set1_epi32(std::numeric_limits<int32_t>::min());
    for (int64_t j = 1; j < d; ++j, leads += LANES) {
        const __m512i s = _mm512_loadu_si512(leads);
        where = _mm512_mask_mov_epi32(where, _mm512_cmpgt_epi32_mask(s, best), _mm512_set1_epi32(int32_t(j)));
        second = _mm512_maskz_max_epi32(ALL, second, _mm512_maskz_min_epi32(ALL, best, s));
        best = _mm512_maskz_max_epi32(ALL, best, s);
    }
    std::memcpy(where_of, &where, sizeof where);
    const __m512 by_norm = _mm512_mul_ps(_mm512_set1_ps(bound.x_norm), _mm512_loadu_ps(block.norm));
    const __m512 by_error = _mm512_mul_ps(_mm512_set1_ps(bound.x_error), _mm512_loadu_ps(block.error));
    const __m512 by_scale = _mm512_mul_ps(_mm512_set1_ps(bound.x_scale), _mm512_loadu_ps(block.scale));
    const __m512 total = _mm512_add_ps(_mm512_add_ps(by_norm, by_error), _mm512_add_ps(by_scale, _mm512_set1_ps(4)));
    const __m512i may_trail = _mm512_maskz_cvtps_epi32(ALL, _mm512_maskz_min_ps(ALL, total, _mm512_set1_ps(0x1p30f)));
    const int uncertain = ALL & ~_mm512_cmpgt_epi32_mask(_mm512_sub_epi32(best, second), may_trail);
    if (uncertain) _mm512_storeu_si512(best_of, best), _mm512_storeu_si512(trail, may_trail);
    return uncertain;
}

// The arg max of one column with noise, likewise; `scores` and `noise` get the d x LANES of both.
template <class L>
EXACTSTATE_INLINE int noisy_arg_max(const ScreenBlock& block, const ColumnBound& bound, float c, float scale,
                                    const Keys<float>& keys, uint32_t entry, const int32_t* leads, int64_t d,
                                    int32_t* where_of, float* scores, float* noise, float* least) {
    typedef typename L::Vector Vector;
    typedef typename L::Index Index;
    const Vector none = Vector{} + std::numeric_limits<float>::infinity();
    int uncertain = 0;
    for (int at = 0; at < LANES; at += L::width) {
        const Vector rate = scale / (take<Vector>(block.scale + at) * c);  // from a lead to a score
        Vector best = -none, second = best;
        Index where = {};
        for (int64_t j = 0; j < d; ++j) {
            const Vector n = gumbel<L>(keys.low + at, keys.high + at, entry + uint32_t(j));
            Vector s = n;
            if (j) s = __builtin_convertvector(take<Index>(leads + (j - 1) * LANES + at), Vector) * rate + n;
            std::memcpy(noise + j * LANES + at, &n, sizeof n), std::memcpy(scores + j * LANES + at, &s, sizeof s);
            const Vector lower = best < s ? best : s;
            second = second > lower ? second : lower;
            where = s > best ? Index{} + int32_t(j) : where;
            best = s > best ? s : best;
        }
        const Vector total = bound.x_norm * take<Vector>(block.norm + at) +
                             bound.x_error * take<Vector>(block.error + at) +
                             bound.x_scale * take<Vector>(block.scale + at) + 4.0f;
        // floats decide everything outside this range of rates, as for rows and columns without a scale, and where a
        // score might overflow: the bound holds each logit times a hundred units of 2^-24
        const Vector known = total * rate * 1.01f + NOISE_ROUNDING;
        const Vector trail = (rate > 1e-30f) & (rate < 1e20f) & (known < 1e30f) ? known : none;
        const Index certain = best - second > trail;
        const Vector from = best - trail;
        std::memcpy(where_of + at, &where, sizeof where), std::memcpy(least + at, &from, sizeof from);
        for (int lane = 0; lane < L::width; ++lane) uncertain |= certain[lane] ? 0 : 1 << (at + lane);
    }
    return uncertain;
}

EXACTSTATE_AVX512 inline int noisy_arg_max_wide(const ScreenBlock& block, const ColumnBound& bound, float c,
                                                float scale, const Keys<float>& keys, uint32_t entry,
                                                const int32_t* leads, int64_t d, int32_t* where, float* scores,
                                                float* noise, float* least) {
    return noisy_arg_max<Whole>(block, bound, c, scale, keys, entry, leads, d, where, scores, noise, least);
}

// Logits in floats, as defined, of eight pairs of a row and an entry's weights.
EXACTSTATE_AVX2_INLINE void exact_logits(const float* const* rows, const float* const* weights, const float* bias, int64_t m,
                                     float* logits) {
    float x[64], w[64];
    __m256 sum = _mm256_loadu_ps(bias);
    int64_t i = 0;
    for (; i + 8 <= m; i += 8) {
        transpose_eight(rows, i, x, 8);
        transpose_eight(weights, i, w, 8);
        for (int c = 0; c < 8; ++c)
            sum = _mm256_add_ps(sum, _mm256_mul_ps(_mm256_loadu_ps(x + 8 * c), _mm256_loadu_ps(w + 8 * c)));
    }
    _mm256_storeu_ps(logits, sum);
    for (; i < m; ++i)
        for (int lane = 0; lane < 8; ++lane) logits[lane] = logits[lane] + rows[lane][i] * weights[lane][i];
}

// Columns whose arg max is uncertain, and the candidates for it.
template <class Cell>
class Ties {
  public:
    // With `noisy`, scores are logits times `scale` plus the noise that comes with a candidate.
    Ties(const float* weight, const float* bias, int64_t m, bool noisy, float scale)
        : weight_(weight), bias_(bias), m_(m), noisy_(noisy), scale_(scale) {}

    // `entry`: the first of the column; the scores and the noise of the lane lie LANES apart.
    void add(const float* row, int64_t place, int64_t entry, int64_t d, const float* scores, const float* noise,
             float least, Cell* cell) {
        const size_t begin = moves_.size();
        for (int64_t j = 0; j < d; ++j)
            if (!(scores[j * LANES] < least)) {
                push(row, entry + j, Cell(j));
                noise_.push_back(noise[j * LANES]);
            }
        columns_.push_back({cell, place, begin, moves_.size()});
    }

    // `entry`: the first of the column; the d - 1 leads of the lane lie LANES apart.
    void add(const float* row, int64_t place, int64_t entry, int64_t d, const int32_t* leads, int32_t least, Cell* cell) {
        const size_t begin = moves_.size();
        for (int64_t j = 0; j < d; ++j)
            if ((j ? leads[(j - 1) * LANES] : 0) >= least) push(row, entry + j, Cell(j));
        columns_.push_back({cell, place, begin, moves_.size()});
    }

    int64_t candidates() const { return int64_t(moves_.size()); }

    // Decide all of them; calls bad(place) for rows with logits that are not finite.
    template <class Bad>
    EXACTSTATE_AVX2 void settle(Bad bad) {
        const size_t count = moves_.size();
        if (!count) return;
        for (; rows_.size() % 8;) rows_.push_back(rows_[0]), weights_.push_back(weights_[0]), biases_.push_back(0);
        logits_.resize(rows_.size());
        for (size_t n = 0; n < count; n += 8)
            exact_logits(rows_.data() + n, weights_.data() + n, biases_.data() + n, m_, logits_.data() + n);
        for (const Column& column : columns_) {
            float best = -std::numeric_limits<float>::infinity();
            *column.cell = moves_[column.begin];  // scores may all be minus infinity
            for (size_t n = column.begin; n < column.end; ++n) {
                if (!std::isfinite(logits_[n])) bad(column.place);
                const float score = noisy_ ? logits_[n] * scale_ + noise_[n] : logits_[n];
                if (score > best) best = score, *column.cell = moves_[n];
            }
        }
        rows_.clear(), weights_.clear(), biases_.clear(), noise_.clear(), moves_.clear(), columns_.clear();
    }

  private:
    void push(const float* row, int64_t entry, Cell move) {
        const float* weights = weight_ + entry * m_;
        fetch(weights, weights + m_);
        rows_.push_back(row), weights_.push_back(weights), biases_.push_back(bias_[entry]), moves_.push_back(move);
    }

    struct Column {
        Cell* cell;
        int64_t place;
        size_t begin, end;
    };
    const float *weight_, *bias_;
    int64_t m_;
    bool noisy_;
    float scale_;
    std::vector<const float*> rows_, weights_;
    std::vector<float> biases_, noise_, logits_;
    std::vector<Cell> moves_;
    std::vector<Column> columns_;
};

}  // namespace exactstate
#endif
