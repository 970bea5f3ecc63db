// Reading out: each head adds the vector of the index it is in.
#include "logits.hpp"

using namespace exactstate;

namespace {

// V vectors of one row: the offset, then the vector of every head, in that order.
template <class T, int V>
EXACTSTATE_INLINE void sum_vectors(const T* const* vectors, size_t heads, const T* offset, int64_t i, T* out) {
    constexpr int W = Lane<T>::width;
    typename Lane<T>::Vector sum[V];
    for (int v = 0; v < V; ++v) sum[v] = load(offset + i + v * W);
    for (size_t h = 0; h < heads; ++h)
        for (int v = 0; v < V; ++v) sum[v] += load(vectors[h] + i + v * W);
    for (int v = 0; v < V; ++v) store(out + i + v * W, sum[v]);
}

// output[row] = offset + vectors[head 0, its index] + vectors[head 1, its index] + ..., in that order.
template <class T, class Cell>
EXACTSTATE_INLINE void read_out_rows(const T* vectors, const T* offset, int64_t m, const std::vector<Head>& heads,
                             const Cell* states, T* output, int64_t begin, int64_t end) {
    constexpr int W = Lane<T>::width, MANY = 8;
    std::vector<const T*> of_head(heads.size());
    for (int64_t n = begin; n < end; ++n) {
        T* out = output + n * m;
        for (size_t h = 0; h < heads.size(); ++h)
            of_head[h] = vectors + (heads[h].index + int64_t(states[n * heads.size() + h])) * m;
        int64_t i = 0;
        for (; i + MANY * W <= m; i += MANY * W) sum_vectors<T, MANY>(of_head.data(), heads.size(), offset, i, out);
        for (; i + W <= m; i += W) sum_vectors<T, 1>(of_head.data(), heads.size(), offset, i, out);
        for (; i < m; ++i) {
            T sum = offset[i];
            for (const T* vector : of_head) sum += vector[i];
            out[i] = sum;
        }
    }
}

// gradient[index of head h in row n] += output_gradient[row n], for inputs [from, to), rows in order. The sums of a few
// inputs lie side by side, so that those of all indices stay in the first cache.
template <class T, class Cell>
EXACTSTATE_INLINE void read_out_backward_rows(const T* output_gradient, int64_t m, const std::vector<Head>& heads, const Cell* states,
                                int64_t rows, T* gradient, int64_t from, int64_t to) {
    constexpr int W = Lane<T>::width;
    constexpr int64_t WIDE = 4 * W, BLOCK = 512;  // inputs, and rows whose gradients stay in the second cache
    const int64_t indices = heads.back().index + heads.back().size, strips = (to - from + WIDE - 1) / WIDE;
    std::vector<T> sums(size_t(strips * indices * WIDE), T(0));
    for (int64_t first = 0; first < rows; first += BLOCK)
        for (int64_t strip = 0; strip < strips; ++strip) {
            T* sum = sums.data() + strip * indices * WIDE;
            const int64_t left = std::min(WIDE, to - from - strip * WIDE);
            for (int64_t n = first; n < std::min(first + BLOCK, rows); ++n) {
                const T* in = output_gradient + n * m + from + strip * WIDE;
                T padded[WIDE] = {};
                if (left < WIDE) in = std::copy_n(in, left, padded) - left;
                typename Lane<T>::Vector row[4];
                for (int v = 0; v < 4; ++v) row[v] = load(in + v * W);
                for (size_t h = 0; h < heads.size(); ++h) {
                    T* out = sum + (heads[h].index + int64_t(states[n * heads.size() + h])) * WIDE;
                    for (int v = 0; v < 4; ++v) store(out + v * W, load(out + v * W) + row[v]);
                }
            }
        }
    for (int64_t k = 0; k < indices; ++k)
        for (int64_t i = from; i < to; ++i)
            gradient[k * m + i] += sums[size_t(((i - from) / WIDE * indices + k) * WIDE + (i - from) % WIDE)];
}

// The projected value vector of every index: S x m.
template <class T>
EXACTSTATE_INLINE void project_values(const T* values, int64_t width, const T* weight, int64_t m, const std::vector<Head>& heads,
                        T* vectors) {
    const int64_t stride = width * int64_t(heads.size());
    std::vector<T> columns(size_t(width * ROWS<T>)), packed, nothing, block;
    for (size_t h = 0; h < heads.size(); ++h) {
        const int64_t d = heads[h].size, first = heads[h].index;
        packed.resize(size_t(d * width)), nothing.resize(size_t(d)), block.resize(size_t(d * ROWS<T>));
        pack_entries(values, width, first, first + d, packed.data());
        for (int64_t i = 0; i < m; i += ROWS<T>) {
            const T* rows[ROWS<T>];  // lanes beyond the last row repeat it, and are never written
            for (int lane = 0; lane < ROWS<T>; ++lane)
                rows[lane] = weight + std::min(i + lane, m - 1) * stride + int64_t(h) * width;
            put_rows(rows, width, columns.data());
            product<Pair<T>>(columns.data(), packed.data(), width, nothing.data(), d, block.data());
            for (int64_t k = 0; k < d; ++k)
                std::copy_n(block.data() + k * ROWS<T>, std::min<int64_t>(ROWS<T>, m - i), vectors + (first + k) * m + i);
        }
    }
}

// A matrix whose entry (a, b) lies at a * row + b * column.
template <class T>
struct Strided {
    const T* at;
    int64_t row, column;
};

// out[a][v] = left(a, 0) right[0][v] + left(a, 1) right[1][v] + ..., in that order; both `stride` from row to row.
template <class T>
EXACTSTATE_INLINE void multiply(Strided<T> left, int64_t rows, int64_t terms, const T* right, int64_t right_stride,
                            int64_t width, T* out, int64_t out_stride) {
    typedef typename Lane<T>::Vector Vector;
    constexpr int W = Lane<T>::width, FOUR = 4;
    for (int64_t first = 0; first < rows; first += FOUR) {
        const int many = int(std::min<int64_t>(FOUR, rows - first));
        const T* from[FOUR];
        for (int a = 0; a < FOUR; ++a) from[a] = left.at + (first + std::min(a, many - 1)) * left.row;
        int64_t v = 0;
        for (; v + PAIR * W <= width; v += PAIR * W) {
            Vector sum[FOUR][PAIR] = {};
            for (int64_t j = 0; j < terms; ++j)
                for (int p = 0; p < PAIR; ++p) {
                    const Vector term = load(right + j * right_stride + v + p * W);
                    for (int a = 0; a < FOUR; ++a) sum[a][p] = sum[a][p] + term * from[a][j * left.column];
                }
            for (int a = 0; a < many; ++a)
                for (int p = 0; p < PAIR; ++p) store(out + (first + a) * out_stride + v + p * W, sum[a][p]);
        }
        for (; v < width; ++v)
            for (int a = 0; a < many; ++a) {
                T sum = 0;
                for (int64_t j = 0; j < terms; ++j) sum += right[j * right_stride + v] * from[a][j * left.column];
                out[(first + a) * out_stride + v] = sum;
            }
    }
}

// The adjoint of `project_values`: from the gradient of the vectors to those of the values and of the projection.
template <class T>
EXACTSTATE_INLINE void project_values_backward(const T* gradient, const T* values, int64_t width, const T* weight, int64_t m,
                          const std::vector<Head>& heads, T* of_values, T* of_weight) {
    const int64_t stride = width * int64_t(heads.size());
    for (size_t h = 0; h < heads.size(); ++h) {
        const int64_t d = heads[h].size, first = heads[h].index, shift = int64_t(h) * width;
        const T* g = gradient + first * m;
        multiply<T>({g, m, 1}, d, m, weight + shift, stride, width, of_values + first * width, width);
        multiply<T>({g, 1, m}, m, d, values + first * width, width, width, of_weight + shift, stride);
    }
}

#define EXACTSTATE_PROJECT_CLONES(T)                                                                                          \
    EXACTSTATE_CLONES void project_values_of(const T* values, int64_t width, const T* weight, int64_t m,                         \
                               const std::vector<Head>& heads, T* vectors) {                                       \
        project_values<T>(values, width, weight, m, heads, vectors);                                                         \
    }                                                                                                              \
    EXACTSTATE_CLONES void project_values_backward_of(const T* gradient, const T* values, int64_t width, const T* weight, int64_t m,    \
                                 const std::vector<Head>& heads, T* of_values, T* of_weight) {                     \
        project_values_backward<T>(gradient, values, width, weight, m, heads, of_values, of_weight);                                \
    }
EXACTSTATE_PROJECT_CLONES(float)
EXACTSTATE_PROJECT_CLONES(double)

#define EXACTSTATE_READ_CLONES(T, CELL)                                                                                       \
    EXACTSTATE_CLONES void read_out_rows_of(const T* vectors, const T* offset, int64_t m, const std::vector<Head>& heads,  \
                                    const CELL* states, T* output, int64_t begin, int64_t end) {                   \
        read_out_rows<T, CELL>(vectors, offset, m, heads, states, output, begin, end);                                 \
    }                                                                                                              \
    EXACTSTATE_CLONES void read_out_backward_rows_of(const T* gradient, int64_t m, const std::vector<Head>& heads,               \
                                       const CELL* states, int64_t rows, T* out, int64_t from, int64_t to) {       \
        read_out_backward_rows<T, CELL>(gradient, m, heads, states, rows, out, from, to);                                    \
    }
EXACTSTATE_READ_CLONES(float, uint8_t)
EXACTSTATE_READ_CLONES(float, uint16_t)
EXACTSTATE_READ_CLONES(float, int64_t)
EXACTSTATE_READ_CLONES(double, uint8_t)
EXACTSTATE_READ_CLONES(double, uint16_t)
EXACTSTATE_READ_CLONES(double, int64_t)

}  // namespace

#define EXACTSTATE_BY_CELL(BYTES, CALL)                                 \
    switch (BYTES) {                                                \
        case 1: { typedef const uint8_t* Cells; CALL; return 0; }   \
        case 2: { typedef const uint16_t* Cells; CALL; return 0; }  \
        case 8: { typedef const int64_t* Cells; CALL; return 0; }   \
    }                                                               \
    return -2

#define EXACTSTATE_READOUT(SUFFIX, T)                                                                                  \
    EXACTSTATE_API int64_t exactstate_read_out_##SUFFIX(const T* vectors, const T* offset, int64_t m, const int64_t* sizes,    \
                                            int64_t head_count, const void* states, int cell_bytes, int64_t rows,  \
                                            T* output, int threads) {                                              \
        const std::vector<Head> heads = layout(sizes, head_count);                                                 \
        EXACTSTATE_BY_CELL(cell_bytes, parallel_ranges(rows, useful_threads(rows * m * head_count, threads), [&](int64_t begin, int64_t end) { \
            read_out_rows_of(vectors, offset, m, heads, static_cast<Cells>(states), output, begin, end);               \
        }));                                                                                                       \
    }                                                                                                              \
    EXACTSTATE_API int64_t exactstate_read_out_backward_##SUFFIX(const T* gradient, int64_t m, const int64_t* sizes,                 \
                                               int64_t head_count, const void* states, int cell_bytes,             \
                                               int64_t rows, T* out, int threads) {                                \
        const std::vector<Head> heads = layout(sizes, head_count);                                                 \
        const int64_t strips = (m + 15) / 16;                                                                      \
        EXACTSTATE_BY_CELL(cell_bytes, parallel_ranges(strips, useful_threads(rows * m * head_count, threads), [&](int64_t begin, int64_t end) { \
            read_out_backward_rows_of(gradient, m, heads, static_cast<Cells>(states), rows, out, begin * 16,                 \
                            std::min(end * 16, m));                                                                \
        }));                                                                                                       \
    }
#define EXACTSTATE_PROJECT(SUFFIX, T)                                                                                     \
    EXACTSTATE_API void exactstate_project_values_##SUFFIX(const T* values, int64_t width, const T* weight, int64_t m,               \
                                         const int64_t* sizes, int64_t heads, T* vectors) {                        \
        project_values_of(values, width, weight, m, layout(sizes, heads), vectors);                                          \
    }                                                                                                              \
    EXACTSTATE_API void exactstate_project_values_backward_##SUFFIX(const T* gradient, const T* values, int64_t width, const T* weight,     \
                                           int64_t m, const int64_t* sizes, int64_t heads, T* of_values,           \
                                           T* of_weight) {                                                         \
        project_values_backward_of(gradient, values, width, weight, m, layout(sizes, heads), of_values, of_weight);                 \
    }
EXACTSTATE_PROJECT(f32, float)
EXACTSTATE_PROJECT(f64, double)
EXACTSTATE_READOUT(f32, float)
EXACTSTATE_READOUT(f64, double)
