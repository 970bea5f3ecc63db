// Reading out: each head adds the vector of the index it is in.
#include "logits.hpp"

using namespace detent;

namespace {

// output[row] = offset + vectors[head 0, its index] + vectors[head 1, its index] + ..., in that order.
template <class T, class Cell>
DETENT_INLINE void read_rows(const T* vectors, const T* offset, int64_t m, const std::vector<Head>& heads,
                             const Cell* states, T* output, int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
        T* out = output + n * m;
        for (int64_t i = 0; i < m; ++i) out[i] = offset[i];
        for (size_t h = 0; h < heads.size(); ++h) {
            const T* vector = vectors + (heads[h].index + int64_t(states[n * heads.size() + h])) * m;
            for (int64_t i = 0; i < m; ++i) out[i] += vector[i];
        }
    }
}

// gradient[index of head h in row n] += output_gradient[row n], for inputs [from, to), rows in order.
template <class T, class Cell>
DETENT_INLINE void collect_rows(const T* output_gradient, int64_t m, const std::vector<Head>& heads, const Cell* states,
                                int64_t rows, T* gradient, int64_t from, int64_t to) {
    for (int64_t n = 0; n < rows; ++n)
        for (size_t h = 0; h < heads.size(); ++h) {
            T* out = gradient + (heads[h].index + int64_t(states[n * heads.size() + h])) * m;
            const T* in = output_gradient + n * m;
            for (int64_t i = from; i < to; ++i) out[i] += in[i];
        }
}

#define DETENT_READ(T, CELL)                                                                                       \
    DETENT_CLONES void read_rows_of(const T* vectors, const T* offset, int64_t m, const std::vector<Head>& heads,  \
                                    const CELL* states, T* output, int64_t begin, int64_t end) {                   \
        read_rows<T, CELL>(vectors, offset, m, heads, states, output, begin, end);                                 \
    }                                                                                                              \
    DETENT_CLONES void collect_rows_of(const T* gradient, int64_t m, const std::vector<Head>& heads,               \
                                       const CELL* states, int64_t rows, T* out, int64_t from, int64_t to) {       \
        collect_rows<T, CELL>(gradient, m, heads, states, rows, out, from, to);                                    \
    }
DETENT_READ(float, uint8_t)
DETENT_READ(float, uint16_t)
DETENT_READ(float, int64_t)
DETENT_READ(double, uint8_t)
DETENT_READ(double, uint16_t)
DETENT_READ(double, int64_t)

}  // namespace

#define DETENT_BY_CELL(BYTES, CALL)                                 \
    switch (BYTES) {                                                \
        case 1: { typedef const uint8_t* Cells; CALL; return 0; }   \
        case 2: { typedef const uint16_t* Cells; CALL; return 0; }  \
        case 8: { typedef const int64_t* Cells; CALL; return 0; }   \
    }                                                               \
    return -2

#define DETENT_READOUT(SUFFIX, T)                                                                                  \
    DETENT_API int64_t detent_read_##SUFFIX(const T* vectors, const T* offset, int64_t m, const int64_t* sizes,    \
                                            int64_t head_count, const void* states, int cell_bytes, int64_t rows,  \
                                            T* output, int threads) {                                              \
        const std::vector<Head> heads = layout(sizes, head_count);                                                 \
        DETENT_BY_CELL(cell_bytes, parallel_ranges(rows, rows < 256 ? 1 : threads, [&](int64_t begin, int64_t end) { \
            read_rows_of(vectors, offset, m, heads, static_cast<Cells>(states), output, begin, end);               \
        }));                                                                                                       \
    }                                                                                                              \
    DETENT_API int64_t detent_collect_##SUFFIX(const T* gradient, int64_t m, const int64_t* sizes,                 \
                                               int64_t head_count, const void* states, int cell_bytes,             \
                                               int64_t rows, T* out, int threads) {                                \
        const std::vector<Head> heads = layout(sizes, head_count);                                                 \
        const int64_t strips = (m + 15) / 16;                                                                      \
        DETENT_BY_CELL(cell_bytes, parallel_ranges(strips, rows < 256 ? 1 : threads, [&](int64_t begin, int64_t end) { \
            collect_rows_of(gradient, m, heads, static_cast<Cells>(states), rows, out, begin * 16,                 \
                            std::min(end * 16, m));                                                                \
        }));                                                                                                       \
    }
DETENT_READOUT(f32, float)
DETENT_READOUT(f64, double)
