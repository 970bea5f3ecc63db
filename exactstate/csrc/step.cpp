// One step of many sequences: only the column that each state is in, then the read-out of the new states.
//
// Sequences whose head is in the same column share its weights, and are lanes; weights are read as they came. Sums run
// in the order of every other pass, so that a step has the bits of a long call.
#include <atomic>

#include "gradient_products.hpp"
#include "logits.hpp"

using namespace exactstate;

namespace {

constexpr int64_t STRIP = 24;  // sequences that pass the weights of a column together

template <class T>
struct Job {
    const T *input, *weight, *bias;  // rows x m, entries x m, entries
    int64_t m;
    const std::vector<Head>* heads;
    int64_t indices;
    const T *values, *out_weight, *out_bias;  // indices x value_width, width x (heads x value_width), width
    int64_t value_width, width;
    const int64_t* starts;  // rows x heads
    int64_t* states;        // rows x heads
    T* output;              // rows x width
    std::atomic<int64_t>* bad;
};

template <class T>
void report_bad(const Job<T>& job, int64_t row) {
    int64_t known = job.bad->load();
    while (row < known && !job.bad->compare_exchange_weak(known, row)) {}
}

// From the logits of one row: where its state goes.
template <class T>
EXACTSTATE_INLINE int64_t arg_max(const T* logits, int64_t d, bool& finite) {
    int64_t where = 0;
    for (int64_t j = 0; j < d; ++j) {
        finite = finite && logits[j] - logits[j] == T(0);
        if (logits[j] > logits[where]) where = j;
    }
    return where;
}

// The same for a vector of rows; logits: d x STRIP.
template <class T>
EXACTSTATE_INLINE void arg_max(const T* logits, int64_t d, typename Lane<T>::Index& where, typename Lane<T>::Index& finite) {
    typedef typename Lane<T>::Vector Vector;
    typedef typename Lane<T>::Index Index;
    Vector best = load(logits), nothing = best - best;
    where = Index{};
    for (int64_t j = 1; j < d; ++j) {
        const Vector theta = load(logits + j * STRIP);
        const Index higher = (Index)(theta > best);  // strictly: the lowest index wins a tie
        nothing = nothing + (theta - theta);
        best = higher ? theta : best;
        where = higher ? Index{} + decltype(where[0] + 0)(j) : where;
    }
    finite = (Index)(nothing == Vector{});
}

// All rows that are in one column: `order` says which.
template <class T>
EXACTSTATE_INLINE void move_together(const Job<T>& job, const Head& head, size_t h, int64_t column, const int64_t* order,
                                     int64_t count, T* turned, T* logits) {
    typedef typename Lane<T>::Index Index;
    constexpr int W = Lane<T>::width;
    const int64_t d = head.size, r = int64_t(job.heads->size()), entry = head.entry + column * d;
    const T *weight = job.weight + entry * job.m, *bias = job.bias + entry;
    for (int64_t first = 0; first < count; first += STRIP) {
        const int64_t rows = std::min(STRIP, count - first);
        if (rows == 1) {
            bool finite = true;
            plain_sums(job.input + order[first] * job.m, job.m, weight, bias, d, logits);
            job.states[order[first] * r + int64_t(h)] = arg_max(logits, d, finite);
            if (!finite) report_bad(job, order[first]);
            continue;
        }
        const T* from[STRIP];
        const int64_t lanes = (rows + 7) / 8 * 8;
        for (int64_t lane = 0; lane < lanes; ++lane) from[lane] = job.input + order[first + std::min(lane, rows - 1)] * job.m;
        put_lanes(from, lanes, job.m, STRIP, turned);
        lane_dots(turned, STRIP, rows, weight, job.m, job.m, bias, d, logits);
        for (int64_t lane = 0; lane < rows; lane += W) {
            Index where, finite;
            arg_max(logits + lane, d, where, finite);
            for (int64_t n = 0; n < std::min<int64_t>(W, rows - lane); ++n) {
                job.states[order[first + lane + n] * r + int64_t(h)] = where[n];
                if (!finite[n]) report_bad(job, order[first + lane + n]);
            }
        }
    }
}

template <class T>
EXACTSTATE_INLINE void move(const Job<T>& job, int64_t begin, int64_t end) {
    const int64_t r = int64_t(job.heads->size());
    int64_t most = 0;
    for (const Head& head : *job.heads) most = std::max(most, head.size);
    const Lines<T> turned(job.m * STRIP), logits((most + STRIP) * STRIP);
    std::vector<int64_t> order(size_t(end - begin)), next;
    for (int64_t h = 0; h < r; ++h) {
        const Head& head = (*job.heads)[size_t(h)];
        if (end - begin == 1) {
            move_together(job, head, size_t(h), job.starts[begin * r + h], &begin, 1, turned.data(), logits.data());
            continue;
        }
        next.assign(size_t(head.size + 1), 0);
        for (int64_t n = begin; n < end; ++n) ++next[size_t(job.starts[n * r + h] + 1)];
        for (int64_t k = 0; k < head.size; ++k) next[size_t(k + 1)] += next[size_t(k)];
        for (int64_t n = begin; n < end; ++n) order[size_t(next[size_t(job.starts[n * r + h])]++)] = n;
        for (int64_t k = 0, first = 0; k < head.size; first = next[size_t(k++)])
            if (next[size_t(k)] > first)
                move_together(job, head, size_t(h), k, order.data() + first, next[size_t(k)] - first, turned.data(), logits.data());
    }
}

// Of a block of outputs: a value vector times its head's share of the projection, in order.
template <class T>
EXACTSTATE_INLINE void project(const T* value, int64_t width, const T* weight, typename Lane<T>::Vector (&sum)[PAIR]) {
    constexpr int W = Lane<T>::width;
    for (int p = 0; p < PAIR; ++p) sum[p] = typename Lane<T>::Vector{};
    for (int64_t j = 0; j < width; ++j)
        for (int p = 0; p < PAIR; ++p) sum[p] = sum[p] + load(weight + j * ROWS<T> + p * W) * value[j];
}

// The bias, then what every head adds, head by head, for a block of outputs at a time. Where most indices are read, all of
// them are projected first.
template <class T>
EXACTSTATE_INLINE void read_out(const Job<T>& job, int64_t begin, int64_t end) {
    typedef typename Lane<T>::Vector Vector;
    constexpr int W = Lane<T>::width, R = ROWS<T>;
    const int64_t r = int64_t(job.heads->size()), v = job.value_width;
    const bool all = (end - begin) * r > job.indices;
    const Lines<T> turned(r * v * R), projected(all ? job.indices * R : 0);
    for (int64_t i = 0; i < job.width; i += R) {
        const T* from[R];
        T offset[R], sums[R];
        for (int lane = 0; lane < R; ++lane) {
            const int64_t at = std::min(i + lane, job.width - 1);
            from[lane] = job.out_weight + at * r * v;
            offset[lane] = job.out_bias[at];
        }
        put_rows(from, r * v, turned.data());
        Vector sum[PAIR];
        for (int64_t h = 0; all && h < r; ++h)
            for (int64_t k = (*job.heads)[size_t(h)].index; k < (*job.heads)[size_t(h)].index + (*job.heads)[size_t(h)].size; ++k) {
                project(job.values + k * v, v, turned.data() + h * v * R, sum);
                for (int p = 0; p < PAIR; ++p) store(projected.data() + k * R + p * W, sum[p]);
            }
        for (int64_t n = begin; n < end; ++n) {
            Vector total[PAIR];
            for (int p = 0; p < PAIR; ++p) total[p] = load(offset + p * W);
            for (int64_t h = 0; h < r; ++h) {
                const int64_t k = (*job.heads)[size_t(h)].index + job.states[n * r + h];
                if (all)
                    for (int p = 0; p < PAIR; ++p) sum[p] = load(projected.data() + k * R + p * W);
                else
                    project(job.values + k * v, v, turned.data() + h * v * R, sum);
                for (int p = 0; p < PAIR; ++p) total[p] = total[p] + sum[p];
            }
            for (int p = 0; p < PAIR; ++p) store(sums + p * W, total[p]);
            std::copy_n(sums, std::min<int64_t>(R, job.width - i), job.output + n * job.width + i);
        }
    }
}

EXACTSTATE_CLONES void step_of(const Job<float>& job, int64_t begin, int64_t end) {
    move<float>(job, begin, end);
    read_out<float>(job, begin, end);
}
EXACTSTATE_CLONES void step_of(const Job<double>& job, int64_t begin, int64_t end) {
    move<double>(job, begin, end);
    read_out<double>(job, begin, end);
}

}  // namespace

// states: rows x heads, output: rows x width. Returns -1, or a row whose logits are not finite, or -2 for a start that its
// head does not have.
#define EXACTSTATE_STEP(NAME, T)                                                                                      \
    EXACTSTATE_API int64_t NAME(const T* input, const T* weight, const T* bias, int64_t m, const int64_t* sizes,       \
                                int64_t heads, const T* values, int64_t value_width, const T* out_weight,             \
                                const T* out_bias, int64_t width, const int64_t* starts, int64_t rows,                \
                                int64_t* states, T* output, int threads) {                                            \
        for (int64_t n = 0; n < rows; ++n)                                                                            \
            for (int64_t h = 0; h < heads; ++h)                                                                       \
                if (starts[n * heads + h] < 0 || starts[n * heads + h] >= sizes[h]) return -2;                        \
        const std::vector<Head> all = layout(sizes, heads);                                                           \
        const int64_t none = std::numeric_limits<int64_t>::max(), indices = all.back().index + all.back().size;       \
        std::atomic<int64_t> bad(none);                                                                               \
        const Job<T> job{input, weight, bias, m, &all, indices, values, out_weight, out_bias, value_width, width,     \
                         starts, states, output, &bad};                                                               \
        const int64_t work = rows * (indices * m + heads * value_width * width) / 8;                                  \
        parallel_ranges(rows, useful_threads(work, threads), [&](int64_t begin, int64_t end) { step_of(job, begin, end); }); \
        return bad == none ? -1 : bad.load();                                                                         \
    }
EXACTSTATE_STEP(exactstate_step_f32, float)
EXACTSTATE_STEP(exactstate_step_f64, double)
