// Trajectories without noise: at every step, compute only the column that the state is in.
//
// d logits a step and head instead of d x d. Sums run over the inputs in the same order as everywhere else, so
// the states are bit for bit those of the tables. GROUP segments advance together to hide the latency of a sum.
// Rearranging the weights pays from a few rows on; a single step reads them in place.
#include <atomic>

#include "logits.hpp"
#include "segments.hpp"

using namespace exactstate;

namespace {

constexpr int GROUP = 4;

// Weights of one head, a column after the other, each as [input][entry of the column, padded to whole vectors].
template <class T>
struct Columns {
    Head head;
    int64_t padded;
    std::vector<T> weight, bias;
    const T *plain_weight, *plain_bias;  // as they came: entries x inputs
};

template <class T>
std::vector<Columns<T>> by_column(const T* weight, const T* bias, int64_t m, const std::vector<Head>& heads,
                                  bool rearrange) {
    constexpr int64_t W = Lane<T>::width;
    std::vector<Columns<T>> all;
    for (const Head& head : heads) {
        Columns<T> columns{head, (head.size + W - 1) / W * W, {}, {}, weight + head.entry * m, bias + head.entry};
        if (!rearrange) {
            all.push_back(std::move(columns));
            continue;
        }
        columns.weight.assign(size_t(head.size * m * columns.padded), T(0));
        columns.bias.assign(size_t(head.size * columns.padded), T(0));
        for (int64_t k = 0; k < head.size; ++k)
            for (int64_t j = 0; j < head.size; ++j) {
                const int64_t entry = head.entry + k * head.size + j;
                columns.bias[k * columns.padded + j] = bias[entry];
                for (int64_t i = 0; i < m; ++i)
                    columns.weight[(k * m + i) * columns.padded + j] = weight[entry * m + i];
            }
        all.push_back(std::move(columns));
    }
    return all;
}

template <class T>
struct Pass {
    const T* input;
    int64_t m, head_count, segment_count;
    const std::vector<Columns<T>>* heads;
    const Segment* segments;
    const int64_t* starts;
    int64_t* states;  // rows x heads
    int64_t* finals;  // segments x heads
    std::atomic<int64_t>* bad;
};

// One step of `group` states of one head: sums for V vectors of the column at a time.
template <class T, int group, int V>
EXACTSTATE_INLINE void sums(const Columns<T>& head, int64_t m, const T* const* rows, const int64_t* at, int64_t vector,
                        T (*logits)[4 * Lane<T>::width]) {
    typedef typename Lane<T>::Vector Vector;
    constexpr int W = Lane<T>::width;
    Vector sum[group][V];
    const T* weight[group];
    for (int f = 0; f < group; ++f) {
        weight[f] = head.weight.data() + at[f] * m * head.padded + vector * W;
        for (int v = 0; v < V; ++v) sum[f][v] = load(head.bias.data() + at[f] * head.padded + (vector + v) * W);
    }
    for (int64_t i = 0; i < m; ++i)
        for (int f = 0; f < group; ++f)
            for (int v = 0; v < V; ++v) sum[f][v] = sum[f][v] + rows[f][i] * load(weight[f] + i * head.padded + v * W);
    for (int f = 0; f < group; ++f)
        for (int v = 0; v < V; ++v) store(logits[f] + v * W, sum[f][v]);
}

template <class T, int group>
EXACTSTATE_INLINE void step(const Pass<T>& pass, const Columns<T>& head, const T* const* rows, const int64_t* places,
                        int64_t* at) {
    constexpr int W = Lane<T>::width;
    T logits[group][4 * W], best[group];
    int64_t where[group];
    bool finite[group];
    for (int f = 0; f < group; ++f) best[f] = -std::numeric_limits<T>::infinity(), where[f] = 0, finite[f] = true;
    for (int64_t vector = 0, vectors = head.padded / W; vector < vectors; vector += 4) {
        const int64_t count = std::min<int64_t>(4, vectors - vector);
        const int64_t stop = std::min<int64_t>(count * W, head.head.size - vector * W);
        if (head.weight.empty())
            for (int f = 0; f < group; ++f)
                plain_sums(rows[f], pass.m, head.plain_weight + (at[f] * head.head.size + vector * W) * pass.m,
                           head.plain_bias + at[f] * head.head.size + vector * W, stop, logits[f]);
        else switch (count) {
            case 1: sums<T, group, 1>(head, pass.m, rows, at, vector, logits); break;
            case 2: sums<T, group, 2>(head, pass.m, rows, at, vector, logits); break;
            case 3: sums<T, group, 3>(head, pass.m, rows, at, vector, logits); break;
            default: sums<T, group, 4>(head, pass.m, rows, at, vector, logits); break;
        }
        for (int f = 0; f < group; ++f)
            for (int64_t j = 0; j < stop; ++j) {
                const T theta = logits[f][j];
                finite[f] = finite[f] && (theta - theta == T(0));
                if (theta > best[f]) best[f] = theta, where[f] = vector * W + j;
            }
    }
    for (int f = 0; f < group; ++f) {
        at[f] = where[f];
        if (!finite[f]) {
            int64_t known = pass.bad->load();
            while (places[f] < known && !pass.bad->compare_exchange_weak(known, places[f])) {}
        }
    }
}

// Rows [begin, end) of `group` consecutive segments.
template <class T, int group>
EXACTSTATE_INLINE void advance(const Pass<T>& pass, int64_t first, int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
        const T* rows[group];
        int64_t places[group];
        for (int f = 0; f < group; ++f) {
            places[f] = pass.segments[first + f].row + t;
            rows[f] = pass.input + places[f] * pass.m;
        }
        for (int64_t h = 0; h < pass.head_count; ++h) {
            int64_t at[group];
            for (int f = 0; f < group; ++f) at[f] = pass.finals[(first + f) * pass.head_count + h];
            step<T, group>(pass, (*pass.heads)[h], rows, places, at);
            for (int f = 0; f < group; ++f) {
                pass.finals[(first + f) * pass.head_count + h] = at[f];
                pass.states[places[f] * pass.head_count + h] = at[f];
            }
        }
    }
}

template <class T>
EXACTSTATE_INLINE void run_range(const Pass<T>& pass, int64_t begin, int64_t end) {
    const int64_t r = pass.head_count;
    for (int64_t i = begin * r; i < end * r; ++i) pass.finals[i] = pass.starts[i];
    for (int64_t g = begin; g < end;) {
        const int64_t group = end - g >= GROUP ? GROUP : 1;
        int64_t together = pass.segments[g].length;
        for (int64_t f = 1; f < group; ++f) together = std::min(together, pass.segments[g + f].length);
        if (group == GROUP) advance<T, GROUP>(pass, g, 0, together);
        for (int64_t f = 0; f < group; ++f) {
            const Segment& segment = pass.segments[g + f];
            advance<T, 1>(pass, g + f, group == GROUP ? together : 0, segment.length);
            for (int64_t t = segment.length; t < segment.length + segment.padding; ++t)
                for (int64_t h = 0; h < r; ++h)
                    pass.states[(segment.row + t) * r + h] = pass.finals[(g + f) * r + h];
        }
        g += group;
    }
}

EXACTSTATE_CLONES void run_range_of(const Pass<float>& pass, int64_t begin, int64_t end) {
    run_range<float>(pass, begin, end);
}
EXACTSTATE_CLONES void run_range_of(const Pass<double>& pass, int64_t begin, int64_t end) {
    run_range<double>(pass, begin, end);
}

template <class T>
int64_t argmax_trajectories(const T* input, const T* weight, const T* bias, int64_t m, const int64_t* sizes, int64_t heads,
               const Segment* segments, int64_t segment_count, const int64_t* starts, int64_t* states,
               int64_t* finals, int threads) {
    for (int64_t i = 0; i < segment_count * heads; ++i)
        if (starts[i] < 0 || starts[i] >= sizes[i % heads]) return -2;
    int64_t rows = 0, widest = 0;
    for (int64_t g = 0; g < segment_count; ++g) rows += segments[g].length;
    for (int64_t h = 0; h < heads; ++h) widest = std::max(widest, sizes[h]);
    const std::vector<Columns<T>> columns = by_column(weight, bias, m, layout(sizes, heads), rows > 2 * widest);
    const int64_t none = std::numeric_limits<int64_t>::max();
    std::atomic<int64_t> bad(none);
    const Pass<T> pass{input, m, heads, segment_count, &columns, segments, starts, states, finals, &bad};
    const int64_t groups = (segment_count + GROUP - 1) / GROUP;
    parallel_ranges(groups, threads, [&](int64_t begin, int64_t end) {
        run_range_of(pass, begin * GROUP, std::min(end * GROUP, segment_count));
    });
    return bad == none ? -1 : bad.load();
}

}  // namespace

// states: rows x heads, finals: segments x heads. Returns -1, or a row whose logits are not finite, or -2 for a start
// that its head does not have.
#define EXACTSTATE_ARGMAX_TRAJECTORIES(NAME, T)                                                                                     \
    EXACTSTATE_API int64_t NAME(const T* input, const T* weight, const T* bias, int64_t m, const int64_t* sizes,       \
                            int64_t heads, const Segment* segments, int64_t segment_count, const int64_t* starts,  \
                            int64_t* states, int64_t* finals, int threads) {                                       \
        return argmax_trajectories<T>(input, weight, bias, m, sizes, heads, segments, segment_count, starts, states, finals,    \
                         threads);                                                                                 \
    }
EXACTSTATE_ARGMAX_TRAJECTORIES(exactstate_argmax_trajectories_f32, float)
EXACTSTATE_ARGMAX_TRAJECTORIES(exactstate_argmax_trajectories_f64, double)
