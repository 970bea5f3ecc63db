// The derivative of the loss by reading out each index: output gradient times projected vector.
//
// A panel of vectors, turned so that indices are lanes, stays in the first cache while a block of rows passes it. No
// table depends on these sums, so multiplications and additions are fused where the processor can.
#include "gradient_products.hpp"
#include "logits.hpp"
#include "segments.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=fast")  // from here on
#endif

using namespace exactstate;

namespace {

constexpr int64_t BLOCK = 48;  // rows that pass a panel together

template <class T>
constexpr int64_t PANEL = FOUR* Lane<T>::width;  // indices of a panel

template <class T>
struct Job {
    const T* gradient;       // rows x m
    int64_t m, indices;
    const T* panels;       // panel after panel: m x PANEL, with zeros behind the last index
    const int64_t* place;    // local row -> row
    T* out;                  // local rows x indices
};

template <class T>
Lines<T> pack(const T* vectors, int64_t m, int64_t indices) {
    const int64_t panels = (indices + PANEL<T> - 1) / PANEL<T>;
    Lines<T> packed(panels * PANEL<T> * m);
    for (int64_t k = 0; k < panels * PANEL<T>; ++k) {
        T* to = packed.data() + k / PANEL<T> * PANEL<T> * m + k % PANEL<T>;
        for (int64_t i = 0; i < m; ++i) to[i * PANEL<T>] = k < indices ? vectors[k * m + i] : T(0);
    }
    return packed;
}

// Local rows [begin, end).
template <class T>
EXACTSTATE_INLINE void multiply(const Job<T>& job, int64_t begin, int64_t end) {
    std::vector<T> x(size_t(BLOCK * job.m)), part(size_t(BLOCK * PANEL<T>));
    T* out[BLOCK];
    for (int64_t first = begin; first < end; first += BLOCK) {
        const int64_t rows = std::min(BLOCK, end - first);
        for (int64_t n = 0; n < rows; ++n) std::copy_n(job.gradient + job.place[first + n] * job.m, job.m, x.data() + n * job.m);
        for (int64_t k = 0; k < job.indices; k += PANEL<T>) {
            const int64_t left = std::min(PANEL<T>, job.indices - k);
            for (int64_t n = 0; n < rows; ++n)
                out[n] = left == PANEL<T> ? job.out + (first + n) * job.indices + k : part.data() + n * PANEL<T>;
            combine_vectors<T, FOUR, true>(job.panels + k * job.m, PANEL<T>, job.m, x.data(), {1, job.m}, rows, out, 0);
            for (int64_t n = 0; n < (left == PANEL<T> ? 0 : rows); ++n)
                std::copy_n(out[n], left, job.out + (first + n) * job.indices + k);
        }
    }
}

EXACTSTATE_FUSED_CLONES void multiply_of(const Job<float>& job, int64_t begin, int64_t end) {
    multiply<float>(job, begin, end);
}
EXACTSTATE_FUSED_CLONES void multiply_of(const Job<double>& job, int64_t begin, int64_t end) {
    multiply<double>(job, begin, end);
}

template <class T>
void index_gains(const T* gradient, const T* vectors, int64_t m, int64_t indices, const Segment* segments, int64_t count,
                 T* out, int threads) {
    std::vector<int64_t> place(static_cast<size_t>(local_rows(segments, count)));
    Cursor cursor(segments, count, 0);
    for (int64_t& row : place) {
        row = cursor.row();
        cursor.next();
    }
    const Lines<T> packed = pack(vectors, m, indices);
    const Job<T> job{gradient, m, indices, packed.data(), place.data(), out};
    const int64_t rows = int64_t(place.size());
    parallel_ranges(rows, useful_threads(rows * (indices * m / 8 + m), threads),
                    [&](int64_t begin, int64_t end) { multiply_of(job, begin, end); });
}

}  // namespace

// local rows x indices.
#define EXACTSTATE_INDEX_GAINS(NAME, T)                                                                                \
    EXACTSTATE_API void NAME(const T* gradient, const T* vectors, int64_t m, int64_t indices, const Segment* segments, \
                         int64_t segment_count, T* out, int threads) {                                             \
        index_gains<T>(gradient, vectors, m, indices, segments, segment_count, out, threads);                      \
    }
EXACTSTATE_INDEX_GAINS(exactstate_index_gains_f32, float)
EXACTSTATE_INDEX_GAINS(exactstate_index_gains_f64, double)
