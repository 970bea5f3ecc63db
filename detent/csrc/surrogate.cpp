// The backward pass of a sampled step: gradient only to the column that was used.
//
// For every row and head, with k the index before the step, u = theta / temperature and p = softmax((u + G)[:, k]):
//     g = p * (lambda - <p, lambda>) / temperature
// From g: the gradient of the row, sum_j g[j] w[k, j], and of the weights of column k, g x^T. Rows are grouped by
// the column they used, so both are products with d x m weights. No d x d gradient exists anywhere.
//
// Blocks of rows come first, heads within them, so that inputs stay in the cache for all heads: lambda becomes g and
// is summed into the gradients of weight and bias, then the block's input gradients are summed head by head. Every
// sum over time runs in the order of time, for any block and any number of threads. No table depends on these sums, so
// multiplications and additions are fused where the processor can; not those of the noise, which is the forward pass's.
#include "logits.hpp"
#include "gumbel.hpp"
#include "segments.hpp"

using namespace detent;

namespace {

// Noise of d entries for a block of rows: d x ROWS.
template <class T>
DETENT_INLINE void fill_noise(const Keys<T>& keys, int64_t entry, int64_t d, T* noise) {
    for (int64_t j = 0; j < d; ++j) {
        typename Lane<T>::Vector rows[PAIR];
        gumbel_rows(keys, uint32_t(entry + j), rows);
        for (int v = 0; v < PAIR; ++v) store(noise + j * ROWS<T> + v * Lane<T>::width, rows[v]);
    }
}

DETENT_CLONES void fill_noise_of(const Keys<float>& keys, int64_t entry, int64_t d, float* noise) {
    fill_noise(keys, entry, d, noise);
}
DETENT_CLONES void fill_noise_of(const Keys<double>& keys, int64_t entry, int64_t d, double* noise) {
    fill_noise(keys, entry, d, noise);
}

}  // namespace

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=fast")  // from here on
#endif

namespace {

constexpr int64_t BLOCK_NUMBERS = 1 << 16;  // inputs of a block of rows: they stay in the second cache for all heads
constexpr int64_t BLOCK_ROWS = 64;          // rows of a block for each index of the largest head: tiles are full
constexpr int64_t STRIP = 4;                 // tiles of a group that are summed into the gradients at once
constexpr int SIDE = 6;                     // sums of PAIR vectors that run side by side: twelve registers

template <class T>
struct Job {
    const T *input, *weight, *bias;  // rows x m, entries x m, entries; input null when logits are given
    const T* packed;                 // the weights, column by column, as `product` reads them
    int64_t m;
    const T* logits;                 // distinct rows x entries, or null
    const int64_t* index;
    int64_t entries, indices;
    bool noisy;
    T scale;                         // 1 / temperature
    T* lambda;                       // local rows x indices: lambda comes in, g goes out
    T *input_gradient, *weight_gradient, *bias_gradient;  // rows x m, or null; entries x m; entries
    const int64_t* place;            // local row -> row
    const uint64_t* keys;            // local row -> noise
};

// The rows that used one column of one head: [begin, end) of `Grouped::order`.
struct Group {
    const Head* head;
    int64_t column, begin, end;
};

// Up to ROWS of them.
struct Tile {
    int64_t group, first, rows;
};

struct Grouped {
    std::vector<int64_t> order;  // local rows, head by head, sorted by column, in time order within a column
    std::vector<Group> groups;
    std::vector<Tile> tiles;
};

// Local rows [from, to); `columns`: heads x rows, the column that each of them used.
Grouped group(const std::vector<Head>& heads, const std::vector<int32_t>& columns, int64_t from, int64_t to,
              int64_t tile_rows) {
    const int64_t rows = to - from;
    Grouped grouped;
    grouped.order.resize(columns.size());
    std::vector<int64_t> next;
    for (size_t h = 0; h < heads.size(); ++h) {
        const int32_t* column = columns.data() + int64_t(h) * rows;
        next.assign(size_t(heads[h].size + 1), 0);
        for (int64_t n = 0; n < rows; ++n) ++next[column[n] + 1];
        next[0] = int64_t(h) * rows;
        for (int64_t k = 0; k < heads[h].size; ++k) {
            next[k + 1] += next[k];
            if (next[k + 1] > next[k]) grouped.groups.push_back({&heads[h], k, next[k], next[k + 1]});
        }
        for (int64_t n = 0; n < rows; ++n) grouped.order[next[column[n]]++] = from + n;
    }
    for (size_t g = 0; g < grouped.groups.size(); ++g)
        for (int64_t first = grouped.groups[g].begin; first < grouped.groups[g].end; first += tile_rows)
            grouped.tiles.push_back({int64_t(g), first, std::min(tile_rows, grouped.groups[g].end - first)});
    return grouped;
}

// Turn the logits of a tile into g, in place: d x ROWS.
template <class T>
DETENT_INLINE void soften(const Job<T>& job, const Head& head, const T* noise, const T* lambda, T* logits) {
    typedef typename Lane<T>::Vector Vector;
    typedef typename Lane<T>::Index Index;
    constexpr int W = Lane<T>::width;
    Vector top[PAIR], total[PAIR] = {}, mean[PAIR] = {};
    for (int v = 0; v < PAIR; ++v) top[v] = spread<T>(-std::numeric_limits<T>::infinity());
    for (int64_t j = 0; j < head.size; ++j) {
        for (int v = 0; v < PAIR; ++v) {
            Vector score = load(logits + j * ROWS<T> + v * W) * job.scale;
            if (job.noisy) score = score + load(noise + j * ROWS<T> + v * W);
            store(logits + j * ROWS<T> + v * W, score);
            const Index higher = (Index)(score > top[v]);
            top[v] = (Vector)((higher & (Index)score) | (~higher & (Index)top[v]));
        }
    }
    for (int64_t j = 0; j < head.size; ++j)
        for (int v = 0; v < PAIR; ++v) {
            const Vector weight = exponential(load(logits + j * ROWS<T> + v * W) - top[v]);
            store(logits + j * ROWS<T> + v * W, weight);
            total[v] += weight;
            mean[v] += weight * load(lambda + j * ROWS<T> + v * W);
        }
    for (int64_t j = 0; j < head.size; ++j)
        for (int v = 0; v < PAIR; ++v) {
            const Vector p = load(logits + j * ROWS<T> + v * W) / total[v];
            const Vector rise = load(lambda + j * ROWS<T> + v * W) - mean[v] / total[v];
            store(logits + j * ROWS<T> + v * W, p * rise * job.scale);
        }
}

// One row of g, to where it belongs; whole vectors where d allows it, the last one overlapping the one before.
template <class T>
DETENT_INLINE void copy_row(const T* from, int64_t d, T* to) {
    constexpr int W = Lane<T>::width;
    if (d < W) {
        for (int64_t j = 0; j < d; ++j) to[j] = from[j];
        return;
    }
    for (int64_t j = 0; j + W <= d; j += W) store(to + j, load(from + j));
    store(to + d - W, load(from + d - W));
}

// PAIR vectors of what is left of a row, and zeros where there is less.
template <class T>
DETENT_INLINE void copy_wide(const T* from, int64_t left, T* to) {
    constexpr int W = Lane<T>::width;
    if (left >= PAIR * W)
        for (int v = 0; v < PAIR; ++v) store(to + v * W, load(from + v * W));
    else
        std::fill(std::copy_n(from, left, to), to + PAIR * W, T(0));
}

// C sums of PAIR vectors: sum[c] += g[n][c] x[n] for n = 0, 1, ..., from what `gradient` holds.
template <class T, int C>
DETENT_INLINE void outer_tile(const T* x, int64_t x_stride, const T* g, int64_t g_stride, int64_t rows, T* gradient,
                              int64_t m, int64_t left) {
    typedef typename Lane<T>::Vector Vector;
    constexpr int W = Lane<T>::width, WIDE = PAIR * W;
    Vector sum[C][PAIR];
    const bool whole = left >= WIDE;
    T part[WIDE];
    for (int c = 0; c < C; ++c) {
        if (!whole) copy_wide(gradient + c * m, left, part);
        for (int v = 0; v < PAIR; ++v) sum[c][v] = load((whole ? gradient + c * m : part) + v * W);
    }
    for (int64_t n = 0; n < rows; ++n, x += x_stride, g += g_stride) {
        Vector row[PAIR];
        for (int v = 0; v < PAIR; ++v) row[v] = load(x + v * W);
        for (int c = 0; c < C; ++c)
            for (int v = 0; v < PAIR; ++v) sum[c][v] = sum[c][v] + row[v] * g[c];
    }
    for (int c = 0; c < C; ++c) {
        for (int v = 0; v < PAIR; ++v) store((whole ? gradient + c * m : part) + v * W, sum[c][v]);
        if (!whole) std::copy_n(part, left, gradient + c * m);
    }
}

// gradient[j] += sum over rows of g[j] x, for `width` inputs; x: rows x x_stride, padded with zeros to whole vectors.
template <class T>
DETENT_INLINE void outer(const T* x, int64_t x_stride, const T* g, int64_t g_stride, int64_t rows, int64_t d,
                         T* gradient, int64_t m, int64_t width) {
    constexpr int WIDE = PAIR * Lane<T>::width;
    for (int64_t i = 0; i < width; i += WIDE)
        for (int64_t j = 0; j < d; j += SIDE) {
            T* out = gradient + j * m + i;
            switch (std::min<int64_t>(SIDE, d - j)) {
                case 1: outer_tile<T, 1>(x + i, x_stride, g + j, g_stride, rows, out, m, width - i); break;
                case 2: outer_tile<T, 2>(x + i, x_stride, g + j, g_stride, rows, out, m, width - i); break;
                case 3: outer_tile<T, 3>(x + i, x_stride, g + j, g_stride, rows, out, m, width - i); break;
                case 4: outer_tile<T, 4>(x + i, x_stride, g + j, g_stride, rows, out, m, width - i); break;
                case 5: outer_tile<T, 5>(x + i, x_stride, g + j, g_stride, rows, out, m, width - i); break;
                default: outer_tile<T, SIDE>(x + i, x_stride, g + j, g_stride, rows, out, m, width - i);
            }
        }
}

// Rows of inputs [from, to) side by side: in their own array rows lie a power of two apart, where the cache holds
// only a few of them.
template <class T>
DETENT_INLINE void copy_inputs(const Job<T>& job, const int64_t* order, int64_t rows, int64_t from, int64_t to,
                               int64_t stride, T* x) {
    constexpr int WIDE = PAIR * Lane<T>::width;
    for (int64_t n = 0; n < rows; ++n) {
        const T* row = job.input + job.place[order[n]] * job.m;
        for (int64_t i = from; i < to; i += WIDE) copy_wide(row + i, to - i, x + n * stride + i - from);
    }
}

// out[c] += g[c][0] w[0] + g[c][1] w[1] + ..., for C rows.
template <class T, int C>
DETENT_INLINE void pull_back_rows(const T* weight, int64_t m, int64_t d, const T* const* g, T* const* out) {
    typedef typename Lane<T>::Vector Vector;
    constexpr int W = Lane<T>::width;
    int64_t i = 0;
    for (; i + PAIR * W <= m; i += PAIR * W) {
        Vector sum[C][PAIR];
        for (int c = 0; c < C; ++c)
            for (int v = 0; v < PAIR; ++v) sum[c][v] = load(out[c] + i + v * W);
        const T* row = weight + i;
        for (int64_t j = 0; j < d; ++j, row += m) {
            Vector w[PAIR];
            for (int v = 0; v < PAIR; ++v) w[v] = load(row + v * W);
            for (int c = 0; c < C; ++c)
                for (int v = 0; v < PAIR; ++v) sum[c][v] = sum[c][v] + w[v] * g[c][j];
        }
        for (int c = 0; c < C; ++c)
            for (int v = 0; v < PAIR; ++v) store(out[c] + i + v * W, sum[c][v]);
    }
    for (; i < m; ++i)
        for (int c = 0; c < C; ++c)
            for (int64_t j = 0; j < d; ++j) out[c][i] += weight[j * m + i] * g[c][j];
}

// The same for up to SIDE rows.
template <class T>
DETENT_INLINE void pull_back_some(int many, const T* weight, int64_t m, int64_t d, const T* const* g, T* const* out) {
    switch (many) {
        case 1: return pull_back_rows<T, 1>(weight, m, d, g, out);
        case 2: return pull_back_rows<T, 2>(weight, m, d, g, out);
        case 3: return pull_back_rows<T, 3>(weight, m, d, g, out);
        case 4: return pull_back_rows<T, 4>(weight, m, d, g, out);
        case 5: return pull_back_rows<T, 5>(weight, m, d, g, out);
        default: return pull_back_rows<T, SIDE>(weight, m, d, g, out);
    }
}

// lambda of the tiles becomes g; with `summing`, their gradients of weight and bias are added while the inputs are
// in the cache, and with `pulling` those of the inputs.
template <class T>
DETENT_INLINE void soften_tiles(const Job<T>& job, const Grouped& grouped, bool summing, bool pulling, int64_t begin,
                                int64_t end) {
    constexpr int WIDE = PAIR * Lane<T>::width, R = ROWS<T>;
    int64_t most = 0;
    for (int64_t number = begin; number < end; ++number)
        most = std::max(most, grouped.groups[grouped.tiles[number].group].head->size);
    const int64_t stride = (job.m + WIDE - 1) / WIDE * WIDE;
    std::vector<T> strip_x(job.input ? size_t(STRIP * R * stride) : 0), columns(job.input ? size_t(job.m * R) : 0);
    std::vector<T> noise(job.noisy ? size_t(most * R) : 0), logits(size_t(most * R)), lambda(size_t(most * R));
    std::vector<T> strip_g(size_t(STRIP * most * R));
    int64_t held = 0;  // rows of the group that were not summed yet
    for (int64_t number = begin; number < end; ++number) {
        const Tile& tile = grouped.tiles[number];
        const Group& group = grouped.groups[tile.group];
        const Head& head = *group.head;
        const int64_t d = head.size, entry = head.entry + group.column * d;
        const int64_t* order = grouped.order.data() + tile.first;
        if (number + 1 < end) {
            const Tile& next = grouped.tiles[number + 1];
            const int64_t index = grouped.groups[next.group].head->index;
            for (int64_t n = next.first; n < next.first + next.rows; ++n) {
                const int64_t local = grouped.order[n];
                if (job.input) fetch(job.input + job.place[local] * job.m, job.input + (job.place[local] + 1) * job.m);
                fetch(job.lambda + local * job.indices + index, job.lambda + local * job.indices + index + d);
            }
        }
        T *x = strip_x.data() + held * stride, *g = strip_g.data() + held * d;
        Keys<T> keys;
        const T *rows[R], *lambda_rows[R];
        for (int lane = 0; lane < R; ++lane) {
            // lanes beyond the tile repeat its last row: harmless, and never written back
            const int n = int(std::min<int64_t>(lane, tile.rows - 1));
            const int64_t local = order[n];
            if (job.noisy) keys.set(lane, job.keys[local]);
            lambda_rows[lane] = job.lambda + local * job.indices + head.index;
            rows[lane] = job.input ? x + n * stride
                                   : job.logits + job.index[job.place[local]] * job.entries + entry;
        }
        put_rows(lambda_rows, d, lambda.data());
        if (job.input) {
            copy_inputs(job, order, tile.rows, 0, job.m, stride, x);
            put_rows(rows, job.m, columns.data());
            product(columns.data(), job.packed + entry * job.m, job.m, job.bias + entry, d, logits.data());
        } else {
            put_rows(rows, d, logits.data());
        }
        if (job.noisy) fill_noise_of(keys, entry, d, noise.data());
        soften(job, head, noise.data(), lambda.data(), logits.data());
        take_rows(logits.data(), d, d, g);
        for (int64_t n = 0; n < tile.rows; ++n)
            copy_row(g + n * d, d, job.lambda + order[n] * job.indices + head.index);
        held += summing ? tile.rows : 0;
        const bool last = number + 1 == end || grouped.tiles[number + 1].group != tile.group;
        if (held && (last || held == STRIP * R)) {
            x = strip_x.data(), g = strip_g.data();
            outer(x, stride, g, d, held, d, job.weight_gradient + entry * job.m, job.m, job.m);
            for (int64_t n = 0; n < held; ++n)
                for (int64_t j = 0; j < d; ++j) job.bias_gradient[entry + j] += g[n * d + j];
            const int64_t* first = order + tile.rows - held;
            for (int64_t n = 0; pulling && n < held; n += SIDE) {
                const int many = int(std::min<int64_t>(SIDE, held - n));
                const T* g_rows[SIDE];
                T* out[SIDE];
                for (int c = 0; c < many; ++c) {
                    g_rows[c] = g + (n + c) * d;
                    out[c] = job.input_gradient + job.place[first[n + c]] * job.m;
                }
                pull_back_some(many, job.weight + entry * job.m, job.m, d, g_rows, out);
            }
            held = 0;
        }
    }
}

// weight_gradient[k, j] += sum over the rows that used column k of g[j] x, for inputs [from, to); with the first of
// them the bias too.
template <class T>
DETENT_INLINE void sum_outer(const Job<T>& job, const Grouped& grouped, int64_t from, int64_t to) {
    constexpr int WIDE = PAIR * Lane<T>::width;
    const int64_t stride = (to - from + WIDE - 1) / WIDE * WIDE;
    std::vector<T> x(size_t(ROWS<T> * stride)), g;
    for (const Tile& tile : grouped.tiles) {
        const Group& group = grouped.groups[tile.group];
        const int64_t d = group.head->size, entry = group.head->entry + group.column * d;
        const int64_t* order = grouped.order.data() + tile.first;
        g.resize(std::max(g.size(), size_t(ROWS<T> * d)));
        copy_inputs(job, order, tile.rows, from, to, stride, x.data());
        for (int64_t n = 0; n < tile.rows; ++n)
            copy_row(job.lambda + order[n] * job.indices + group.head->index, d, g.data() + n * d);
        outer(x.data(), stride, g.data(), d, tile.rows, d, job.weight_gradient + entry * job.m + from, job.m,
              to - from);
        for (int64_t n = 0; n < (from ? 0 : tile.rows); ++n)
            for (int64_t j = 0; j < d; ++j) job.bias_gradient[entry + j] += g[size_t(n * d + j)];
    }
}

// input_gradient[row] += sum_j g[j] w[k, j], head by head, for local rows [begin, end).
template <class T>
DETENT_INLINE void pull_back(const Job<T>& job, const Grouped& grouped, int64_t begin, int64_t end) {
    for (const Group& group : grouped.groups) {
        const int64_t d = group.head->size;
        const T* weight = job.weight + (group.head->entry + group.column * d) * job.m;
        const int64_t* last = grouped.order.data() + group.end;
        const int64_t* row = std::lower_bound(grouped.order.data() + group.begin, last, begin);
        last = std::lower_bound(row, last, end);
        while (row < last) {
            const int many = int(std::min<int64_t>(SIDE, last - row));
            const T* g[SIDE];
            T* out[SIDE];
            for (int c = 0; c < many; ++c, ++row) {
                g[c] = job.lambda + *row * job.indices + group.head->index;
                out[c] = job.input_gradient + job.place[*row] * job.m;
            }
            pull_back_some(many, weight, job.m, d, g, out);
        }
    }
}

#define DETENT_SURROGATE_CLONES(T)                                                                                   \
    DETENT_FUSED_CLONES void soften_tiles_of(const Job<T>& job, const Grouped& grouped, bool summing, bool pulling, int64_t begin,       \
                                       int64_t end) {                                                                \
        soften_tiles<T>(job, grouped, summing, pulling, begin, end);                                                          \
    }                                                                                                                \
    DETENT_FUSED_CLONES void sum_outer_of(const Job<T>& job, const Grouped& grouped, int64_t from, int64_t to) {           \
        sum_outer<T>(job, grouped, from, to);                                                                        \
    }                                                                                                                \
    DETENT_FUSED_CLONES void pull_back_of(const Job<T>& job, const Grouped& grouped, int64_t begin, int64_t end) {         \
        pull_back<T>(job, grouped, begin, end);                                                                      \
    }
DETENT_SURROGATE_CLONES(float)
DETENT_SURROGATE_CLONES(double)

// Shares of the tiles, one per worker, that cut no group; empty if that would leave the work to a few of them.
std::vector<int64_t> whole_groups(const Grouped& grouped, int64_t workers) {
    const int64_t count = int64_t(grouped.tiles.size());
    std::vector<int64_t> cuts;
    for (int64_t worker = 0; worker <= workers; ++worker) {
        int64_t cut = count * worker / workers;
        while (cut > 0 && cut < count && grouped.tiles[cut].group == grouped.tiles[cut - 1].group) --cut;
        cuts.push_back(cut);
        if (worker && cuts[worker] - cuts[worker - 1] > 1 + count * 5 / (workers * 4)) return {};
    }
    return cuts;
}

// The column that each of the local rows [from, to) used: heads x rows.
template <class Cell>
std::vector<int32_t> used_columns(const Segment* segments, int64_t segment_count, const int64_t* starts,
                                  const Cell* states, int64_t heads, int64_t from, int64_t to) {
    std::vector<int32_t> columns(static_cast<size_t>(heads * (to - from)));
    auto later = [](int64_t value, const Segment& segment) { return value < segment.local; };
    const Segment* first = std::upper_bound(segments, segments + segment_count, from, later) - 1;
    for (int64_t g = std::max<int64_t>(0, first - segments); g < segment_count && segments[g].local < to; ++g) {
        const int64_t begin = std::max<int64_t>(0, from - segments[g].local);
        const int64_t end = std::min(segments[g].length, to - segments[g].local);
        for (int64_t t = begin; t < end; ++t) {
            const Cell* before = states + (segments[g].row + t - 1) * heads;
            int32_t* column = columns.data() + segments[g].local + t - from;
            for (int64_t h = 0; h < heads; ++h)
                column[h * (to - from)] = int32_t(t ? int64_t(before[h]) : starts[g * heads + h]);
        }
    }
    return columns;
}

template <class T, class Cell>
void surrogate(const T* input, const T* weight, const T* bias, int64_t m, const T* logits, const int64_t* index,
               const int64_t* sizes, int64_t head_count, const Segment* segments, int64_t segment_count,
               const int64_t* starts, const Cell* states, bool noisy, double temperature, uint64_t seed, T* lambda,
               T* input_gradient, T* weight_gradient, T* bias_gradient, int threads) {
    const std::vector<Head> heads = layout(sizes, head_count);
    const int64_t entries = heads.back().entry + heads.back().size * heads.back().size;
    const int64_t indices = heads.back().index + heads.back().size;
    const int64_t rows = local_rows(segments, segment_count);
    std::vector<int64_t> place(static_cast<size_t>(rows));
    std::vector<uint64_t> keys(static_cast<size_t>(noisy ? rows : 0));
    Cursor cursor(segments, segment_count, 0);
    for (int64_t n = 0; n < rows; ++n, cursor.next()) {
        place[n] = cursor.row();
        if (noisy) keys[n] = step_key(seed, cursor.sequence(), cursor.time());
    }
    std::vector<T> packed(input ? size_t(entries * m) : 0);
    int64_t most = 0;
    for (const Head& head : heads) {
        most = std::max(most, head.size);
        for (int64_t entry = head.entry; input && entry < head.entry + head.size * head.size; entry += head.size)
            pack_entries(weight, m, entry, entry + head.size, packed.data() + entry * m);
    }
    const Job<T> job{input, weight, bias, packed.data(), m, logits, index, entries, indices, noisy,
                     T(1.0 / temperature), lambda, input_gradient, weight_gradient, bias_gradient, place.data(),
                     keys.data()};
    const int64_t block = std::max(BLOCK_ROWS * most, BLOCK_NUMBERS / std::max<int64_t>(1, m));
    for (int64_t from = 0; from < rows; from += block) {
        const int64_t to = std::min(from + block, rows);
        const std::vector<int32_t> columns =
            used_columns(segments, segment_count, starts, states, head_count, from, to);
        const Grouped grouped = group(heads, columns, from, to, ROWS<T>);
        const int workers = useful_threads((to - from) * indices * (input ? 4 + m / 4 : 4), threads);
        const std::vector<int64_t> cuts = input ? whole_groups(grouped, workers) : std::vector<int64_t>();
        // a sum over time has one order for any number of threads: they share the columns, else the inputs, not rows
        const bool pulling = !cuts.empty() && workers == 1 && input_gradient;  // rows of the inputs belong to one thread
        if (!cuts.empty())
            parallel_ranges(workers, workers, [&](int64_t begin, int64_t end) {
                soften_tiles_of(job, grouped, true, pulling, cuts[begin], cuts[end]);
            });
        else
            parallel_ranges(int64_t(grouped.tiles.size()), workers, [&](int64_t begin, int64_t end) {
                soften_tiles_of(job, grouped, false, false, begin, end);
            });
        if (input && cuts.empty())
            parallel_ranges((m + 15) / 16, workers, [&](int64_t begin, int64_t end) {
                sum_outer_of(job, grouped, begin * 16, std::min(end * 16, m));
            });
        if (input && input_gradient && !pulling)
            parallel_ranges(to - from, workers, [&](int64_t begin, int64_t end) {
                
                pull_back_of(job, grouped, from + begin, from + end);
            });
        for (int64_t n = from; n < (input ? from : to); ++n)  // with an index, summed per distinct row
            for (int64_t h = 0; h < head_count; ++h) {
                const int64_t d = heads[h].size;
                const T* g = lambda + n * indices + heads[h].index;
                T* out = bias_gradient + index[place[n]] * entries + heads[h].entry +
                         columns[h * (to - from) + n - from] * d;
                for (int64_t j = 0; j < d; ++j) out[j] += g[j];
            }
    }
}

}  // namespace

// lambda (local rows x indices) becomes g. input_gradient may be null; bias_gradient is entries, or with an index
// distinct rows x entries. Gradients are added to what is there. Returns -2 for a cell type it does not take.
#define DETENT_SURROGATE(NAME, T)                                                                                  \
    DETENT_API int64_t NAME(const T* input, const T* weight, const T* bias, int64_t m, const T* logits,            \
                            const int64_t* index, const int64_t* sizes, int64_t heads, const Segment* segments,    \
                            int64_t segment_count, const int64_t* starts, const void* states, int cell_bytes,      \
                            int noisy, double temperature, uint64_t seed, T* lambda, T* input_gradient, T* weight_gradient,   \
                            T* bias_gradient, int threads) {                                                       \
        if (cell_bytes == 1)                                                                                       \
            surrogate<T, uint8_t>(input, weight, bias, m, logits, index, sizes, heads, segments, segment_count,    \
                                  starts, static_cast<const uint8_t*>(states), noisy, temperature, seed, lambda,          \
                                  input_gradient, weight_gradient, bias_gradient, threads);                        \
        else if (cell_bytes == 2)                                                                                  \
            surrogate<T, uint16_t>(input, weight, bias, m, logits, index, sizes, heads, segments, segment_count,   \
                                   starts, static_cast<const uint16_t*>(states), noisy, temperature, seed, lambda,        \
                                   input_gradient, weight_gradient, bias_gradient, threads);                       \
        else                                                                                                       \
            return -2;                                                                                             \
        return 0;                                                                                                  \
    }
DETENT_SURROGATE(detent_surrogate_backward_f32, float)
DETENT_SURROGATE(detent_surrogate_backward_f64, double)
