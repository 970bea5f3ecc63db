// The backward pass of a sampled step: gradient only to the column that was used.
//
// For every row and head, with k the index before the step, u = theta / temperature and p = softmax((u + G)[:, k]):
//     g = p * (lambda - <p, lambda>) / temperature
// From g: the gradient of the row, sum_j g[j] w[k, j], and of the weights of column k, g x^T. Rows are grouped by
// the column they used, so both are products with d x m weights. No d x d gradient exists anywhere.
//
// Blocks of rows come first, heads within them, so that inputs and their gradients stay in the second cache for all
// heads. The rows of a column are worked through in strips: logits again, g, then the sums of weight, bias and input
// while all of it is at hand. Every sum over time runs in the order of time, for any block and any number of threads. No
// table depends on these sums, so multiplications and additions are fused where the processor can; not those of the
// noise, which is the forward pass's.
#include "gradient_products.hpp"
#include "gumbel.hpp"
#include "logits.hpp"
#include "segments.hpp"

using namespace exactstate;

namespace {

// Noise of d entries for a block of rows: d x ROWS.
template <class T>
EXACTSTATE_INLINE void fill_noise(const Keys<T>& keys, int64_t entry, int64_t d, T* noise) {
    for (int64_t j = 0; j < d; ++j) {
        typename Lane<T>::Vector rows[PAIR];
        gumbel_rows(keys, uint32_t(entry + j), rows);
        for (int v = 0; v < PAIR; ++v) store(noise + j * ROWS<T> + v * Lane<T>::width, rows[v]);
    }
}

EXACTSTATE_CLONES void fill_noise_of(const Keys<float>& keys, int64_t entry, int64_t d, float* noise) {
    fill_noise(keys, entry, d, noise);
}
EXACTSTATE_CLONES void fill_noise_of(const Keys<double>& keys, int64_t entry, int64_t d, double* noise) {
    fill_noise(keys, entry, d, noise);
}

}  // namespace

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=fast")  // from here on
#endif

namespace {

constexpr int64_t BLOCK_NUMBERS = 3 << 14;  // inputs of a block of rows: with their gradients they fill the second cache
constexpr int64_t BLOCK_ROWS = 16;          // rows of a block for each index of the largest head, at least
constexpr int64_t STRIP = 48;               // rows of a group that are handled at once
constexpr int64_t TURNED_WIDTH = 64;        // inputs up to which turning a strip is cheaper than adding up lanes

template <class T>
struct Job {
    const T *input, *weight, *bias;  // rows x m, entries x width, entries; input null when logits are given, and with
                                     // these weight is for the gradient of the input alone
    int64_t m, width, pitch;         // width: m and zeros up to whole vectors; pitch: from row to row in a block
    const T* logits;                 // distinct rows x entries, or null
    const int64_t* index;
    int64_t entries, indices;
    bool noisy;
    T scale;                         // 1 / temperature
    T* lambda;                       // local rows x indices; overwritten by g where other threads need it
    T *input_gradient, *weight_gradient, *bias_gradient;  // rows x m, or null; entries x width; entries
    const int64_t* place;            // local row -> row
    const uint64_t* keys;            // local row -> noise
};

// The rows of a block that used one column of one head: [begin, end) of `Block::order`.
struct Group {
    const Head* head;
    int64_t column, begin, end;
};

// Up to STRIP of them.
struct Strip {
    int64_t group, first, rows;
};

// Local rows [from, to), their inputs and the gradients of these, `pitch` apart: where rows lie a power of two apart,
// the first cache holds only a few of them.
template <class T>
struct Block {
    int64_t from, to;
    Lines<T> x, x_gradient;
    std::vector<int32_t> order;  // rows, head by head, sorted by column, in time order within a column
    std::vector<Group> groups;
    std::vector<Strip> strips;
};

// `columns`: heads x rows, the column that each row of the block used.
template <class T>
void group(const std::vector<Head>& heads, const std::vector<int32_t>& columns, Block<T>& block) {
    const int64_t rows = block.to - block.from;
    block.order.resize(columns.size()), block.groups.clear(), block.strips.clear();
    std::vector<int64_t> next;
    for (size_t h = 0; h < heads.size(); ++h) {
        const int32_t* column = columns.data() + int64_t(h) * rows;
        next.assign(size_t(heads[h].size + 1), 0);
        for (int64_t n = 0; n < rows; ++n) ++next[column[n] + 1];
        next[0] = int64_t(h) * rows;
        for (int64_t k = 0; k < heads[h].size; ++k) {
            next[k + 1] += next[k];
            if (next[k + 1] > next[k]) block.groups.push_back({&heads[h], k, next[k], next[k + 1]});
        }
        for (int64_t n = 0; n < rows; ++n) block.order[next[column[n]]++] = int32_t(n);
    }
    for (size_t g = 0; g < block.groups.size(); ++g)
        for (int64_t first = block.groups[g].begin; first < block.groups[g].end; first += STRIP)
            block.strips.push_back({int64_t(g), first, std::min(STRIP, block.groups[g].end - first)});
}

// Rows [begin, end) of the block, with zeros behind their m inputs.
template <class T>
void copy_inputs(const Job<T>& job, Block<T>& block, int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
        T* to = block.x.data() + n * job.pitch;
        std::copy_n(job.input + job.place[block.from + n] * job.m, job.m, to);
        std::fill(to + job.m, to + job.width, T(0));
    }
}

// Add the gradients of rows [begin, end) of the block to where they belong.
template <class T>
EXACTSTATE_INLINE void add_input_gradients(const Job<T>& job, const Block<T>& block, int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
        const T* from = block.x_gradient.data() + n * job.pitch;
        T* to = job.input_gradient + job.place[block.from + n] * job.m;
        for (int64_t i = 0; i < job.m; ++i) to[i] += from[i];
    }
}

// Turn the logits of a vector of rows into g, in place; all d x STRIP.
template <class T>
EXACTSTATE_INLINE void soften(const Job<T>& job, int64_t d, const T* noise, const T* lambda, T* logits) {
    typedef typename Lane<T>::Vector Vector;
    typedef typename Lane<T>::Index Index;
    Vector top = spread<T>(-std::numeric_limits<T>::infinity()), total = {}, mean = {};
    for (int64_t j = 0; j < d; ++j) {
        Vector score = load(logits + j * STRIP) * job.scale;
        if (job.noisy) score = score + load(noise + j * STRIP);
        store(logits + j * STRIP, score);
        const Index higher = (Index)(score > top);
        top = (Vector)((higher & (Index)score) | (~higher & (Index)top));
    }
    for (int64_t j = 0; j < d; ++j) {
        const Vector weight = exponential(load(logits + j * STRIP) - top);
        store(logits + j * STRIP, weight);
        total += weight;
        mean += weight * load(lambda + j * STRIP);
    }
    const Vector scale = job.scale / total;
    mean = mean / total;
    for (int64_t j = 0; j < d; ++j)
        store(logits + j * STRIP, load(logits + j * STRIP) * (load(lambda + j * STRIP) - mean) * scale);
}

// What a strip is worked out in.
template <class T>
struct Scratch {
    Lines<T> logits, lambda, noise;  // d x STRIP
    Lines<T> turned;                 // inputs x STRIP
    const T *x[STRIP], *lambda_rows[STRIP], *logit_rows[STRIP];
    T* x_gradient[STRIP];
    Scratch(const Job<T>& job, int64_t d)
        : logits(d * STRIP), lambda(d * STRIP), noise(job.noisy ? d * STRIP : 0),
          turned(job.input && job.width <= TURNED_WIDTH ? job.width * STRIP : 0) {
        std::fill_n(logits.data(), d * STRIP, T(0));  // lanes without a row stay finite
    }
};

// Where the rows of a strip lie; beyond its end the last one is repeated, up to whole vectors: harmless, never written.
template <class T>
EXACTSTATE_INLINE void find_rows(const Job<T>& job, Block<T>& block, const Strip& strip, Scratch<T>& scratch) {
    const Group& group = block.groups[strip.group];
    const int64_t entry = group.head->entry + group.column * group.head->size;
    const int32_t* order = block.order.data() + strip.first;
    for (int64_t lane = 0; lane < STRIP && (lane < strip.rows || lane % 8); ++lane) {
        const int64_t n = order[std::min(lane, strip.rows - 1)];
        scratch.lambda_rows[lane] = job.lambda + (block.from + n) * job.indices + group.head->index;
        if (job.input)
            scratch.x[lane] = block.x.data() + n * job.pitch;
        else
            scratch.logit_rows[lane] = job.logits + job.index[job.place[block.from + n]] * job.entries + entry;
        if (job.input_gradient) scratch.x_gradient[lane] = block.x_gradient.data() + n * job.pitch;
    }
}

// Noise of a strip: d x STRIP.
template <class T>
EXACTSTATE_INLINE void put_noise(const Job<T>& job, const Block<T>& block, const Strip& strip, int64_t entry, int64_t d,
                             T* noise) {
    std::vector<T> some(size_t(d * ROWS<T>));
    for (int64_t lane = 0; lane < strip.rows; lane += ROWS<T>) {
        Keys<T> keys;
        const int64_t many = std::min<int64_t>(ROWS<T>, strip.rows - lane);
        for (int n = 0; n < many; ++n) keys.set(n, job.keys[block.from + block.order[strip.first + lane + n]]);
        fill_noise_of(keys, entry, d, some.data());
        for (int64_t j = 0; j < d; ++j) std::copy_n(some.data() + j * ROWS<T>, ROWS<T>, noise + j * STRIP + lane);
    }
}

// g of a strip, in scratch.logits.
template <class T>
EXACTSTATE_INLINE void soften_strip(const Job<T>& job, Block<T>& block, const Strip& strip, Scratch<T>& scratch) {
    constexpr int W = Lane<T>::width;
    const Group& group = block.groups[strip.group];
    const int64_t d = group.head->size, entry = group.head->entry + group.column * d;
    find_rows(job, block, strip, scratch);
    const int64_t lanes = (strip.rows + 7) / 8 * 8;
    put_lanes(scratch.lambda_rows, lanes, d, STRIP, scratch.lambda.data());
    if (job.input && job.width <= TURNED_WIDTH) {
        put_lanes(scratch.x, lanes, job.width, STRIP, scratch.turned.data());
        lane_dots(scratch.turned.data(), STRIP, strip.rows, job.weight + entry * job.width, job.width, job.width,
                  job.bias + entry, d, scratch.logits.data());
    } else if (job.input)
        dots(scratch.x, (strip.rows + FOUR - 1) / FOUR * FOUR, job.weight + entry * job.width, job.width, job.width,
             job.bias + entry, d, scratch.logits.data(), STRIP);
    else
        put_lanes(scratch.logit_rows, lanes, d, STRIP, scratch.logits.data());
    if (job.noisy) put_noise(job, block, strip, entry, d, scratch.noise.data());
    for (int64_t lane = 0; lane < strip.rows; lane += W)
        soften(job, d, scratch.noise.data() + (job.noisy ? lane : 0), scratch.lambda.data() + lane,
               scratch.logits.data() + lane);
}

// The gradient of the bias, row after row.
template <class T>
EXACTSTATE_INLINE void sum_bias(const T* g, int64_t rows, int64_t d, T* sums) {
    int64_t j = 0;
    for (; j + FOUR <= d; j += FOUR) {
        T sum[FOUR];
        for (int c = 0; c < FOUR; ++c) sum[c] = sums[j + c];
        for (int64_t n = 0; n < rows; ++n)
            for (int c = 0; c < FOUR; ++c) sum[c] += g[(j + c) * STRIP + n];
        for (int c = 0; c < FOUR; ++c) sums[j + c] = sum[c];
    }
    for (; j < d; ++j)
        for (int64_t n = 0; n < rows; ++n) sums[j] += g[j * STRIP + n];
}

// Strips [begin, end); with `summing` the gradients of weight and bias are added while the inputs are in the cache, and
// with `pulling` those of the inputs. Without, lambda becomes g.
template <class T>
EXACTSTATE_INLINE void soften_strips(const Job<T>& job, Block<T>& block, bool summing, bool pulling, int64_t most,
                                 int64_t begin, int64_t end) {
    Scratch<T> scratch(job, most);
    const T* g = scratch.logits.data();
    for (int64_t number = begin; number < end; ++number) {
        const Strip& strip = block.strips[number];
        const Group& group = block.groups[strip.group];
        const int64_t d = group.head->size, entry = group.head->entry + group.column * d;
        if (number + 1 < end) {
            const Strip& next = block.strips[number + 1];
            const T* lambda = job.lambda + block.groups[next.group].head->index;
            for (int64_t n = next.first; n < next.first + next.rows; ++n) {
                const T* row = lambda + (block.from + block.order[n]) * job.indices;
                fetch(row, row + block.groups[next.group].head->size);
            }
        }
        soften_strip(job, block, strip, scratch);
        if (summing) {
            outer(scratch.x, strip.rows, 0, job.width, g, STRIP, d, job.weight_gradient + entry * job.width, job.width);
            sum_bias(g, strip.rows, d, job.bias_gradient + entry);
        }
        if (pulling)
            combine(job.weight + entry * job.width, job.width, job.width, d, g, {STRIP, 1}, strip.rows, scratch.x_gradient);
        for (int64_t n = 0; n < (summing && (pulling || !job.input_gradient) ? 0 : strip.rows); ++n) {
            T* to = job.lambda + (block.from + block.order[strip.first + n]) * job.indices + group.head->index;
            for (int64_t j = 0; j < d; ++j) to[j] = g[j * STRIP + n];
        }
    }
}

// From g in lambda: the gradient of the weights for inputs [from, to), and with the first of them that of the bias.
template <class T>
EXACTSTATE_INLINE void sum_outer(const Job<T>& job, Block<T>& block, int64_t most, int64_t from, int64_t to) {
    Scratch<T> scratch(job, most);
    T* g = scratch.lambda.data();
    for (const Strip& strip : block.strips) {
        const Group& group = block.groups[strip.group];
        const int64_t d = group.head->size, entry = group.head->entry + group.column * d;
        find_rows(job, block, strip, scratch);
        put_lanes(scratch.lambda_rows, (strip.rows + 7) / 8 * 8, d, STRIP, g);
        outer(scratch.x, strip.rows, from, to, g, STRIP, d, job.weight_gradient + entry * job.width, job.width);
        if (from == 0) sum_bias(g, strip.rows, d, job.bias_gradient + entry);
    }
}

// From g in lambda: the gradient of rows [begin, end) of the block, head by head.
template <class T>
EXACTSTATE_INLINE void pull_back(const Job<T>& job, Block<T>& block, int64_t most, int64_t begin, int64_t end) {
    Scratch<T> scratch(job, most);
    T* g = scratch.lambda.data();
    std::fill(block.x_gradient.data() + begin * job.pitch, block.x_gradient.data() + end * job.pitch, T(0));
    for (size_t number = 0; number < block.groups.size(); ++number) {
        const Group& group = block.groups[number];
        const int64_t d = group.head->size;
        const T* weight = job.weight + (group.head->entry + group.column * d) * job.width;
        const int32_t* order = block.order.data();
        int64_t first = std::lower_bound(order + group.begin, order + group.end, begin) - order;
        const int64_t last = std::lower_bound(order + first, order + group.end, end) - order;
        for (; first < last; first += STRIP) {
            const Strip strip{int64_t(number), first, std::min(STRIP, last - first)};
            find_rows(job, block, strip, scratch);
            put_lanes(scratch.lambda_rows, (strip.rows + 7) / 8 * 8, d, STRIP, g);
            combine(weight, job.width, job.width, d, g, {STRIP, 1}, strip.rows, scratch.x_gradient);
        }
    }
    add_input_gradients(job, block, begin, end);
}

#define EXACTSTATE_SURROGATE_CLONES(T)                                                                                     \
    EXACTSTATE_FUSED_CLONES void soften_strips_of(const Job<T>& job, Block<T>& block, bool summing, bool pulling,           \
                                              int64_t most, int64_t begin, int64_t end) {                              \
        soften_strips<T>(job, block, summing, pulling, most, begin, end);                                              \
    }                                                                                                                  \
    EXACTSTATE_FUSED_CLONES void sum_outer_of(const Job<T>& job, Block<T>& block, int64_t most, int64_t from, int64_t to) { \
        sum_outer<T>(job, block, most, from, to);                                                                      \
    }                                                                                                                  \
    EXACTSTATE_FUSED_CLONES void pull_back_of(const Job<T>& job, Block<T>& block, int64_t most, int64_t begin,              \
                                          int64_t end) {                                                               \
        pull_back<T>(job, block, most, begin, end);                                                                    \
    }
EXACTSTATE_SURROGATE_CLONES(float)
EXACTSTATE_SURROGATE_CLONES(double)

// Shares of the strips, one per worker, that cut no group; empty if that would leave the work to a few of them.
template <class T>
std::vector<int64_t> whole_groups(const Block<T>& block, int64_t workers) {
    const int64_t count = int64_t(block.strips.size());
    std::vector<int64_t> cuts;
    for (int64_t worker = 0; worker <= workers; ++worker) {
        int64_t cut = count * worker / workers;
        while (cut > 0 && cut < count && block.strips[cut].group == block.strips[cut - 1].group) --cut;
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

// One block: a sum over time has one order for any number of threads, which share the columns, else the inputs, not rows.
template <class T>
void surrogate_block(const Job<T>& job, Block<T>& block, int64_t most, int workers) {
    const int64_t rows = block.to - block.from;
    const std::vector<int64_t> cuts = job.input ? whole_groups(block, workers) : std::vector<int64_t>();
    const bool pulling = job.input_gradient && workers == 1 && (!job.input || !cuts.empty());  // one thread has all rows
    if (job.input)
        parallel_ranges(rows, workers, [&](int64_t begin, int64_t end) { copy_inputs(job, block, begin, end); });
    if (pulling) std::fill_n(block.x_gradient.data(), rows * job.pitch, T(0));
    if (!cuts.empty())
        parallel_ranges(workers, workers, [&](int64_t begin, int64_t end) {
            soften_strips_of(job, block, true, pulling, most, cuts[begin], cuts[end]);
        });
    else
        parallel_ranges(int64_t(block.strips.size()), workers, [&](int64_t begin, int64_t end) {
            soften_strips_of(job, block, false, pulling, most, begin, end);
        });
    if (job.input && cuts.empty())
        parallel_ranges(job.width / Lane<T>::width, workers, [&](int64_t begin, int64_t end) {
            sum_outer_of(job, block, most, begin * Lane<T>::width, end * Lane<T>::width);
        });
    if (pulling)
        add_input_gradients(job, block, 0, rows);
    else if (job.input_gradient)
        parallel_ranges(rows, workers, [&](int64_t begin, int64_t end) { pull_back_of(job, block, most, begin, end); });
}

template <class T, class Cell>
void surrogate(const T* input, const T* weight, const T* bias, int64_t m, const T* logits, const int64_t* index,
               const int64_t* sizes, int64_t head_count, const Segment* segments, int64_t segment_count,
               const int64_t* starts, const Cell* states, bool noisy, double temperature, uint64_t seed, T* lambda,
               T* input_gradient, T* weight_gradient, T* bias_gradient, int threads) {
    constexpr int64_t W = Lane<T>::width, LINE = 64 / sizeof(T);
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
    int64_t most = 0;
    for (const Head& head : heads) most = std::max(most, head.size);
    // widths that are no whole vectors get zeros behind them, in copies
    const int64_t width = (m + W - 1) / W * W, lines = (width + LINE - 1) / LINE;
    const bool padded = (input || input_gradient) && width != m;
    std::vector<T> wide(padded ? size_t(entries * width) : 0), wide_gradient(input ? wide.size() : 0);
    for (int64_t e = 0; padded && e < entries; ++e) std::copy_n(weight + e * m, m, wide.data() + e * width);
    const Job<T> job{input, padded ? wide.data() : weight, bias, m, width, (lines + (lines + 1) % 2) * LINE, logits, index,
                     entries, indices, noisy, T(1.0 / temperature), lambda, input_gradient,
                     padded ? wide_gradient.data() : weight_gradient, bias_gradient, place.data(), keys.data()};
    const int64_t inputs = input || input_gradient ? std::max<int64_t>(1, m) : 1;
    const int64_t most_rows = std::min(rows, std::max(BLOCK_ROWS * most, BLOCK_NUMBERS / inputs));
    Block<T> block{0, 0, Lines<T>(input ? most_rows * job.pitch : 0),
                   Lines<T>(job.input_gradient ? most_rows * job.pitch : 0), {}, {}, {}};
    for (int64_t from = 0; from < rows; from = block.to) {
        block.from = from, block.to = std::min(from + most_rows, rows);
        const std::vector<int32_t> columns =
            used_columns(segments, segment_count, starts, states, head_count, block.from, block.to);
        group(heads, columns, block);
        const int64_t numbers = (block.to - from) * indices * (input ? 4 + m / 4 : input_gradient ? 4 + m / 8 : 4);
        surrogate_block(job, block, most, useful_threads(numbers, threads));
        for (int64_t n = from; n < (input ? from : block.to); ++n)  // with an index, summed per distinct row
            for (int64_t h = 0; h < head_count; ++h) {
                const int64_t d = heads[h].size;
                const T* g = lambda + n * indices + heads[h].index;
                T* out = bias_gradient + index[place[n]] * entries + heads[h].entry +
                         columns[h * (block.to - from) + n - from] * d;
                for (int64_t j = 0; j < d; ++j) out[j] += g[j];
            }
    }
    for (int64_t e = 0; padded && input && e < entries; ++e)
        for (int64_t i = 0; i < m; ++i) weight_gradient[e * m + i] += wide_gradient[e * width + i];
}

}  // namespace

// lambda (local rows x indices) is overwritten. input_gradient (rows x m) may be null; bias_gradient is entries, or with
// an index distinct rows x entries. Gradients are added to what is there. Returns -2 for a cell type it does not take.
#define EXACTSTATE_SURROGATE(NAME, T)                                                                                  \
    EXACTSTATE_API int64_t NAME(const T* input, const T* weight, const T* bias, int64_t m, const T* logits,            \
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
EXACTSTATE_SURROGATE(exactstate_surrogate_backward_f32, float)
EXACTSTATE_SURROGATE(exactstate_surrogate_backward_f64, double)
