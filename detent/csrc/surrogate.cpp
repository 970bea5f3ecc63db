// The backward pass of a sampled step: gradient only to the column that was used.
//
// For every row and head, with k the index before the step, u = theta / temperature and p = softmax((u + G)[:, k]):
//     g = p * (lambda - <p, lambda>) / temperature
// From g: the gradient of the row, sum_j g[j] w[k, j], and of the weights of column k, g x^T. Rows are grouped by
// the column they used, so both are products with d x m weights. No d x d gradient exists anywhere.
#include "logits.hpp"
#include "gumbel.hpp"
#include "segments.hpp"

using namespace detent;

namespace {

constexpr int64_t STRIP = 64;  // rows whose inputs stay in the cache while the weights' gradient is summed
constexpr int64_t AHEAD = 16;  // rows prefetched before they are needed

template <class T>
struct Job {
    const T *input, *weight, *bias;  // rows x m, entries x m, entries; input null when logits are given
    int64_t m;
    const T* logits;                 // distinct rows x entries, or null
    const int64_t* index;
    int64_t entries, indices;
    bool noisy;
    T scale;                         // 1 / temperature
    T* lambda;                       // local rows x indices: lambda comes in, g goes out
    T* input_gradient;               // rows x m, or null
    const int64_t* place;            // local row -> row
    const uint64_t* keys;            // local row -> noise
};

// Up to ROWS local rows that used the same column of one head.
struct Tile {
    int64_t column, first, rows;
};

struct Grouped {
    std::vector<int64_t> order;  // local rows, sorted by column, in time order within a column
    std::vector<int64_t> begin;  // column -> its first place in `order`
    std::vector<Tile> tiles;
};

Grouped group(const std::vector<int32_t>& column, int64_t d, int64_t tile_rows) {
    Grouped grouped;
    grouped.begin.assign(size_t(d + 1), 0);
    for (int32_t c : column) ++grouped.begin[c + 1];
    for (int64_t c = 0; c < d; ++c) grouped.begin[c + 1] += grouped.begin[c];
    std::vector<int64_t> next(grouped.begin.begin(), grouped.begin.end() - 1);
    grouped.order.resize(column.size());
    for (size_t n = 0; n < column.size(); ++n) grouped.order[next[column[n]]++] = int64_t(n);
    for (int64_t c = 0; c < d; ++c)
        for (int64_t first = grouped.begin[c]; first < grouped.begin[c + 1]; first += tile_rows)
            grouped.tiles.push_back({c, first, std::min(tile_rows, grouped.begin[c + 1] - first)});
    return grouped;
}

// Turn the logits of a tile into g, in place: d x ROWS.
template <class T>
DETENT_INLINE void soften(const Job<T>& job, const Head& head, int64_t column, const Keys<T>& keys, const T* lambda,
                          T* logits) {
    typedef typename Lane<T>::Vector Vector;
    typedef typename Lane<T>::Index Index;
    constexpr int W = Lane<T>::width;
    Vector top[PAIR], total[PAIR] = {}, mean[PAIR] = {};
    for (int v = 0; v < PAIR; ++v) top[v] = spread<T>(-std::numeric_limits<T>::infinity());
    for (int64_t j = 0; j < head.size; ++j) {
        Vector noise[PAIR] = {};
        if (job.noisy) gumbel_rows(keys, uint32_t(head.entry + column * head.size + j), noise);
        for (int v = 0; v < PAIR; ++v) {
            const Vector score = load(logits + j * ROWS<T> + v * W) * job.scale + noise[v];
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

// input_gradient[row] += sum_j g[j] w[k, j], four rows at a time.
template <class T>
DETENT_INLINE void pull_back(const Job<T>& job, const T* weight, int64_t d, const Tile& tile, const int64_t* order,
                             const T* g) {
    typedef typename Lane<T>::Vector Vector;
    constexpr int W = Lane<T>::width, FOUR = 4;
    for (int64_t first = 0; first < tile.rows; first += FOUR) {
        const int rows = int(std::min<int64_t>(FOUR, tile.rows - first));
        T* out[FOUR];
        for (int a = 0; a < FOUR; ++a)
            out[a] = job.input_gradient + job.place[order[tile.first + first + std::min(a, rows - 1)]] * job.m;
        int64_t i = 0;
        for (; i + PAIR * W <= job.m; i += PAIR * W) {
            Vector sum[FOUR][PAIR] = {};
            for (int64_t j = 0; j < d; ++j) {
                Vector w[PAIR];
                for (int v = 0; v < PAIR; ++v) w[v] = load(weight + j * job.m + i + v * W);
                for (int a = 0; a < FOUR; ++a)
                    for (int v = 0; v < PAIR; ++v) sum[a][v] = sum[a][v] + w[v] * g[j * ROWS<T> + first + a];
            }
            for (int a = 0; a < rows; ++a)
                for (int v = 0; v < PAIR; ++v) store(out[a] + i + v * W, load(out[a] + i + v * W) + sum[a][v]);
        }
        for (; i < job.m; ++i)
            for (int a = 0; a < rows; ++a) {
                T sum = 0;
                for (int64_t j = 0; j < d; ++j) sum += weight[j * job.m + i] * g[j * ROWS<T> + first + a];
                out[a][i] += sum;
            }
    }
}

template <class T>
DETENT_INLINE void work_tiles(const Job<T>& job, const Head& head, const Grouped& grouped, const T* packed,
                              int64_t begin, int64_t end) {
    const int64_t d = head.size;
    std::vector<T> columns(job.input ? size_t(job.m * ROWS<T>) : 0);
    std::vector<T> logits(size_t(d * ROWS<T>)), lambda(size_t(d * ROWS<T>));
    const int64_t* order = grouped.order.data();
    for (int64_t number = begin; number < end; ++number) {
        const Tile& tile = grouped.tiles[number];
        const int64_t entry = head.entry + tile.column * d;
        if (job.input && number + 1 < end)
            for (int64_t n = 0; n < grouped.tiles[number + 1].rows; ++n) {
                const T* x = job.input + job.place[order[grouped.tiles[number + 1].first + n]] * job.m;
                fetch(x, x + job.m);
            }
        Keys<T> keys;
        const T *rows[ROWS<T>], *lambda_rows[ROWS<T>];
        for (int lane = 0; lane < ROWS<T>; ++lane) {
            // lanes beyond the tile repeat its last row: harmless, and never written back
            const int64_t local = order[tile.first + std::min<int64_t>(lane, tile.rows - 1)];
            const int64_t row = job.place[local];
            keys.set(lane, job.keys[local]);
            lambda_rows[lane] = job.lambda + local * job.indices + head.index;
            rows[lane] = job.input ? job.input + row * job.m : job.logits + job.index[row] * job.entries + entry;
        }
        put_rows(lambda_rows, d, lambda.data());
        put_rows(rows, job.input ? job.m : d, job.input ? columns.data() : logits.data());
        if (job.input)
            product(columns.data(), packed + tile.column * d * job.m, job.m, job.bias + entry, d, logits.data());
        soften(job, head, tile.column, keys, lambda.data(), logits.data());
        for (int64_t lane = 0; lane < tile.rows; ++lane) {
            T* g = job.lambda + order[tile.first + lane] * job.indices + head.index;
            for (int64_t j = 0; j < d; ++j) g[j] = logits[j * ROWS<T> + lane];
        }
        if (job.input && job.input_gradient)
            pull_back(job, job.weight + entry * job.m, d, tile, order, logits.data());
    }
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

// weight_gradient[k, j] += sum over the rows that used column k of g[j] x, for inputs [from, to).
template <class T>
DETENT_INLINE void sum_outer(const Job<T>& job, const Head& head, const Grouped& grouped, T* weight_gradient,
                             int64_t from, int64_t to) {
    typedef typename Lane<T>::Vector Vector;
    constexpr int W = Lane<T>::width, WIDE = PAIR * W, FOUR = 4;
    const int64_t d = head.size;
    const int64_t pieces = (to - from + WIDE - 1) / WIDE;
    std::vector<T> strip_g(size_t(STRIP * d)), strip_x(size_t(pieces * STRIP * WIDE));
    auto row = [&](int64_t n) { return job.input + job.place[grouped.order[n]] * job.m; };
    auto lambda_row = [&](int64_t n) { return job.lambda + grouped.order[n] * job.indices + head.index; };
    for (int64_t k = 0; k < d; ++k)
        for (int64_t first = grouped.begin[k]; first < grouped.begin[k + 1]; first += STRIP) {
            const int64_t rows = std::min(STRIP, grouped.begin[k + 1] - first);
            for (int64_t n = 0; n < rows; ++n) {
                // rows lie a power of two apart, where the cache holds only a few of them: here they lie side by side
                const T* x = row(first + n);
                for (int64_t i = from, piece = 0; i < to; i += WIDE, ++piece)
                    copy_wide(x + i, to - i, strip_x.data() + (piece * STRIP + n) * WIDE);
                std::copy_n(lambda_row(first + n), d, strip_g.data() + n * d);
                const int64_t later = first + n + AHEAD;
                if (later < int64_t(grouped.order.size())) {
                    fetch(row(later) + from, row(later) + to);
                    fetch(lambda_row(later), lambda_row(later) + d);
                }
            }
            T* gradient = weight_gradient + (head.entry + k * d) * job.m;
            for (int64_t i = from; i < to; i += WIDE) {
                const T* strip = strip_x.data() + (i - from) * STRIP;
                for (int64_t j = 0; j < d; j += FOUR) {
                    const int many = int(std::min<int64_t>(FOUR, d - j));
                    T sums[FOUR * WIDE] = {};
                    Vector sum[FOUR][PAIR];
                    for (int a = 0; a < many; ++a) copy_wide(gradient + (j + a) * job.m + i, to - i, sums + a * WIDE);
                    for (int a = 0; a < FOUR; ++a)
                        for (int v = 0; v < PAIR; ++v) sum[a][v] = load(sums + std::min(a, many - 1) * WIDE + v * W);
                    const T* g = strip_g.data() + j;
                    for (int64_t n = 0; n < rows; ++n, g += d)
                        for (int a = 0; a < FOUR; ++a)
                            for (int v = 0; v < PAIR; ++v)
                                sum[a][v] = sum[a][v] + load(strip + n * WIDE + v * W) * g[a < many ? a : 0];
                    for (int a = 0; a < many; ++a) {
                        for (int v = 0; v < PAIR; ++v) store(sums + v * W, sum[a][v]);
                        std::copy_n(sums, std::min<int64_t>(WIDE, to - i), gradient + (j + a) * job.m + i);
                    }
                }
            }
        }
}

DETENT_CLONES void work_tiles_of(const Job<float>& job, const Head& head, const Grouped& grouped, const float* packed,
                                 int64_t begin, int64_t end) {
    work_tiles<float>(job, head, grouped, packed, begin, end);
}
DETENT_CLONES void work_tiles_of(const Job<double>& job, const Head& head, const Grouped& grouped,
                                 const double* packed, int64_t begin, int64_t end) {
    work_tiles<double>(job, head, grouped, packed, begin, end);
}
DETENT_CLONES void sum_outer_of(const Job<float>& job, const Head& head, const Grouped& grouped, float* gradient,
                                int64_t from, int64_t to) {
    sum_outer<float>(job, head, grouped, gradient, from, to);
}
DETENT_CLONES void sum_outer_of(const Job<double>& job, const Head& head, const Grouped& grouped, double* gradient,
                                int64_t from, int64_t to) {
    sum_outer<double>(job, head, grouped, gradient, from, to);
}

template <class T, class Cell>
std::vector<int32_t> used_columns(const Segment* segments, int64_t segment_count, const int64_t* starts,
                                  const Cell* states, int64_t heads, int64_t h, int64_t rows) {
    std::vector<int32_t> column(static_cast<size_t>(rows));
    for (int64_t g = 0; g < segment_count; ++g)
        for (int64_t t = 0; t < segments[g].length; ++t)
            column[segments[g].local + t] =
                int32_t(t ? int64_t(states[(segments[g].row + t - 1) * heads + h]) : starts[g * heads + h]);
    return column;
}

template <class T, class Cell>
void surrogate(const T* input, const T* weight, const T* bias, int64_t m, const T* logits, const int64_t* index,
               const int64_t* sizes, int64_t head_count, const Segment* segments, int64_t segment_count,
               const int64_t* starts, const Cell* states, bool noisy, double temperature, uint64_t seed, T* lambda,
               T* input_gradient, T* weight_gradient, T* bias_gradient, int threads) {
    const std::vector<Head> heads = layout(sizes, head_count);
    const Head& final = heads.back();
    const int64_t rows = local_rows(segments, segment_count);
    std::vector<int64_t> place(static_cast<size_t>(rows));
    std::vector<uint64_t> keys(static_cast<size_t>(rows));
    Cursor cursor(segments, segment_count, 0);
    for (int64_t n = 0; n < rows; ++n, cursor.next()) {
        place[n] = cursor.row();
        keys[n] = step_key(seed, cursor.sequence(), cursor.time());
    }
    const Job<T> job{input, weight, bias, m, logits, index, final.entry + final.size * final.size,
                     final.index + final.size, noisy, T(1.0 / temperature), lambda, input_gradient, place.data(), keys.data()};
    for (int64_t h = 0; h < head_count; ++h) {
        const Head& head = heads[h];
        const std::vector<int32_t> column =
            used_columns<T, Cell>(segments, segment_count, starts, states, head_count, h, rows);
        const Grouped grouped = group(column, head.size, ROWS<T>);
        std::vector<T> packed(input ? size_t(head.size * head.size * m) : 0);
        for (int64_t k = 0; k < head.size && input; ++k) {
            const int64_t entry = head.entry + k * head.size;
            pack_entries(weight, m, entry, entry + head.size, packed.data() + k * head.size * m);
        }
        const int workers = useful_threads(rows * head.size * (input ? 4 + m / 4 : 4), threads);
        parallel_ranges(int64_t(grouped.tiles.size()), workers, [&](int64_t begin, int64_t end) {
            work_tiles_of(job, head, grouped, packed.data(), begin, end);
        });
        if (input) {
            // threads share the inputs, not the rows: every sum runs over time in one order
            const int64_t strips = (m + 15) / 16;
            parallel_ranges(strips, workers, [&](int64_t begin, int64_t end) {
                sum_outer_of(job, head, grouped, weight_gradient, begin * 16, std::min(end * 16, m));
            });
        }
        for (int64_t n = 0; n < rows; ++n) {
            const T* g = lambda + n * job.indices + head.index;
            // with an index the gradient of the logits is summed per distinct row, else the bias alone
            T* out = bias_gradient + (input ? 0 : index[place[n]] * job.entries) + head.entry + column[n] * head.size;
            for (int64_t j = 0; j < head.size; ++j) out[j] += g[j];
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
