// Soft states: a head is a distribution over its indices, and a step multiplies it by a matrix of columns that sum to one.
//
// With logits per step, sequences are lanes: a block of sequences is transposed, its softmax taken, and its matrices kept
// for the backward pass. With few distinct rows their matrices are given, and the indices of a head are lanes. No table
// depends on these sums, so multiplications and additions are fused where the processor can; their order does not depend
// on threads.
#include "gradient_products.hpp"
#include "logits.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=fast")  // from here on
#endif

using namespace exactstate;

namespace {

// Where a pass begins, and which of its steps are special; `lengths` and `resets` may be null.
struct Steps {
    int64_t batch, length;
    const int64_t* start;    // batch x heads: the index before the first step
    const int64_t* initial;  // heads: the index after a reset
    const int64_t* lengths;  // batch: steps from here on hold the state
    const uint8_t* resets;   // batch x length
    bool taken(int64_t b, int64_t t) const { return !lengths || t < lengths[b]; }
    bool reset(int64_t b, int64_t t) const { return resets && resets[b * length + t] && taken(b, t); }
};

// ---- one matrix of logits per step: lanes are sequences ----

template <class T>
struct Dense {
    Steps steps;
    const std::vector<Head>& heads;
    int64_t indices, entries;
    const T* logits;  // batch x length x entries; in the backward pass where their gradient goes
    T* moves;         // block x length x entries x ROWS
    T* states;        // batch x length x indices
};

// The rows of a block at step t of an array batch x length x width; lanes behind the last sequence repeat it.
template <class T>
EXACTSTATE_INLINE void read_block(const T* from, const Steps& steps, int64_t first, int64_t t, int64_t width, T* columns) {
    const T* rows[ROWS<T>];
    for (int lane = 0; lane < ROWS<T>; ++lane)
        rows[lane] = from + (std::min(first + lane, steps.batch - 1) * steps.length + t) * width;
    put_rows<T>(rows, width, columns);
}

template <class T>
EXACTSTATE_INLINE void write_block(const T* columns, const Steps& steps, int64_t first, int64_t t, int64_t width, T* spare,
                               T* to) {
    T* rows = to + (first * steps.length + t) * width;
    if (first + ROWS<T> <= steps.batch) return take_rows<T>(columns, width, steps.length * width, rows);
    take_rows<T>(columns, width, width, spare);
    for (int64_t lane = 0; first + lane < steps.batch; ++lane)
        std::copy_n(spare + lane * width, width, rows + lane * steps.length * width);
}

// Lanes whose head has its initial state before step t.
template <class T>
EXACTSTATE_INLINE void reset_lanes(const Dense<T>& job, int64_t first, int64_t t, T* held) {
    for (int64_t lane = 0; lane < std::min<int64_t>(ROWS<T>, job.steps.batch - first); ++lane) {
        if (!job.steps.reset(first + lane, t)) continue;
        for (size_t h = 0; h < job.heads.size(); ++h)
            for (int64_t k = 0; k < job.heads[h].size; ++k)
                held[(job.heads[h].index + k) * ROWS<T> + lane] = T(k == job.steps.initial[h]);
    }
}

// The softmax of a column of d entries, in place.
template <class T>
EXACTSTATE_INLINE void softmax(T* column, int64_t d) {
    typedef typename Lane<T>::Vector Vector;
    constexpr int W = Lane<T>::width;
    for (int v = 0; v < PAIR; ++v) {
        T* at = column + v * W;
        Vector most = load(at), sum = {};
        for (int64_t j = 1; j < d; ++j) {
            const Vector here = load(at + j * ROWS<T>);
            most = here > most ? here : most;
        }
        for (int64_t j = 0; j < d; ++j) {
            const Vector power = exponential(load(at + j * ROWS<T>) - most);
            store(at + j * ROWS<T>, power);
            sum += power;
        }
        const Vector share = spread<T>(T(1)) / sum;
        for (int64_t j = 0; j < d; ++j) store(at + j * ROWS<T>, load(at + j * ROWS<T>) * share);
    }
}

template <class T>
EXACTSTATE_INLINE void dense_forward(const Dense<T>& job, int64_t block) {
    typedef typename Lane<T>::Vector Vector;
    constexpr int W = Lane<T>::width, R = ROWS<T>;
    const int64_t first = block * R, L = job.steps.length;
    Lines<T> held(job.indices * R), after(job.indices * R), spare(job.indices * R);
    std::fill_n(held.data(), job.indices * R, T(0));
    for (int64_t lane = 0; lane < R; ++lane)
        for (size_t h = 0; h < job.heads.size(); ++h) {
            const int64_t b = std::min(first + lane, job.steps.batch - 1);
            held.data()[(job.heads[h].index + job.steps.start[b * int64_t(job.heads.size()) + int64_t(h)]) * R + lane] = T(1);
        }
    for (int64_t t = 0; t < L; ++t) {
        T* moves = job.moves + (block * L + t) * job.entries * R;
        read_block(job.logits, job.steps, first, t, job.entries, moves);
        reset_lanes(job, first, t, held.data());
        for (const Head& head : job.heads) {
            const int64_t d = head.size;
            T *p = moves + head.entry * R, *s = held.data() + head.index * R, *to = after.data() + head.index * R;
            for (int64_t k = 0; k < d; ++k) {
                T* column = p + k * d * R;
                softmax<T>(column, d);
                for (int v = 0; v < PAIR; ++v) {
                    const Vector weight = load(s + k * R + v * W);
                    for (int64_t j = 0; j < d; ++j) {
                        const Vector part = load(column + j * R + v * W) * weight;
                        store(to + j * R + v * W, k ? load(to + j * R + v * W) + part : part);
                    }
                }
            }
        }
        for (int64_t lane = 0; lane < std::min<int64_t>(R, job.steps.batch - first); ++lane)
            for (int64_t k = 0; !job.steps.taken(first + lane, t) && k < job.indices; ++k)
                after.data()[k * R + lane] = held.data()[k * R + lane];
        std::copy_n(after.data(), job.indices * R, held.data());
        write_block(held.data(), job.steps, first, t, job.indices, spare.data(), job.states);
    }
}

// From the gradient of the states to that of the logits, which `to` receives.
template <class T>
EXACTSTATE_INLINE void dense_backward(const Dense<T>& job, const T* gradient, T* to, int64_t block) {
    typedef typename Lane<T>::Vector Vector;
    constexpr int W = Lane<T>::width, R = ROWS<T>;
    const int64_t first = block * R, L = job.steps.length, heads = int64_t(job.heads.size());
    Lines<T> adjoint(job.indices * R), before(job.indices * R), mean(job.indices * R), gain(job.indices * R);
    Lines<T> grads(job.entries * R), spare(job.entries * R);
    std::fill_n(adjoint.data(), job.indices * R, T(0));
    const int64_t lanes = std::min<int64_t>(R, job.steps.batch - first);
    for (int64_t t = L - 1; t >= 0; --t) {
        const T* moves = job.moves + (block * L + t) * job.entries * R;
        read_block(gradient, job.steps, first, t, job.indices, gain.data());
        for (int64_t i = 0; i < job.indices * R; i += W)
            store(adjoint.data() + i, load(adjoint.data() + i) + load(gain.data() + i));
        if (t > 0) {
            read_block(static_cast<const T*>(job.states), job.steps, first, t - 1, job.indices, before.data());
        } else {
            std::fill_n(before.data(), job.indices * R, T(0));
            for (int64_t lane = 0; lane < lanes; ++lane)
                for (int64_t h = 0; h < heads; ++h)
                    before.data()[(job.heads[size_t(h)].index + job.steps.start[(first + lane) * heads + h]) * R + lane] = T(1);
        }
        reset_lanes(job, first, t, before.data());
        for (const Head& head : job.heads) {
            const int64_t d = head.size;
            const T *p = moves + head.entry * R, *a = adjoint.data() + head.index * R, *s = before.data() + head.index * R;
            T *g = grads.data() + head.entry * R, *m = mean.data() + head.index * R;
            for (int64_t k = 0; k < d; ++k, p += d * R, g += d * R)
                for (int v = 0; v < PAIR; ++v) {
                    Vector sum = {};
                    for (int64_t j = 0; j < d; ++j) sum += load(p + j * R + v * W) * load(a + j * R + v * W);
                    store(m + k * R + v * W, sum);
                    const Vector weight = load(s + k * R + v * W);
                    for (int64_t j = 0; j < d; ++j)
                        store(g + j * R + v * W, (load(a + j * R + v * W) - sum) * (load(p + j * R + v * W) * weight));
                }
        }
        for (int64_t lane = 0; lane < lanes; ++lane) {
            if (!job.steps.taken(first + lane, t)) {  // the identity
                for (int64_t e = 0; e < job.entries; ++e) grads.data()[e * R + lane] = T(0);
                for (int64_t k = 0; k < job.indices; ++k) mean.data()[k * R + lane] = adjoint.data()[k * R + lane];
            } else if (job.steps.reset(first + lane, t)) {  // nothing before it matters
                for (int64_t k = 0; k < job.indices; ++k) mean.data()[k * R + lane] = T(0);
            }
        }
        std::copy_n(mean.data(), job.indices * R, adjoint.data());
        write_block(grads.data(), job.steps, first, t, job.entries, spare.data(), to);
    }
}

EXACTSTATE_FUSED_CLONES void forward_of(const Dense<float>& job, int64_t block) { dense_forward<float>(job, block); }
EXACTSTATE_FUSED_CLONES void forward_of(const Dense<double>& job, int64_t block) { dense_forward<double>(job, block); }
EXACTSTATE_FUSED_CLONES void backward_of(const Dense<float>& job, const float* gradient, float* to, int64_t block) {
    dense_backward<float>(job, gradient, to, block);
}
EXACTSTATE_FUSED_CLONES void backward_of(const Dense<double>& job, const double* gradient, double* to, int64_t block) {
    dense_backward<double>(job, gradient, to, block);
}

// ---- the matrices of few distinct rows: lanes are indices ----

template <class T>
struct Indexed {
    Steps steps;
    const std::vector<Head>& heads;
    int64_t indices, entries, rows;
    const T* moves;            // rows x entries
    const int64_t* row_index;  // batch x length
    T* states;                 // batch x length x indices
};

template <class T>
EXACTSTATE_INLINE int64_t padded(int64_t d) {
    return (d + Lane<T>::width - 1) / Lane<T>::width * Lane<T>::width;
}

// The matrices of a head, d x d each, with columns of whole vectors; `turned` exchanges the two indices.
template <class T>
Lines<T> head_moves(const Indexed<T>& job, const Head& head, bool turned) {
    const int64_t d = head.size, D = padded<T>(d);
    Lines<T> made(job.rows * d * D);
    std::fill_n(made.data(), job.rows * d * D, T(0));
    for (int64_t n = 0; n < job.rows; ++n)
        for (int64_t k = 0; k < d; ++k)
            for (int64_t j = 0; j < d; ++j)
                made.data()[(n * d + (turned ? j : k)) * D + (turned ? k : j)] = job.moves[n * job.entries + head.entry + k * d + j];
    return made;
}

// out = sum over k < d of s[k] p[k], vectors of D entries.
template <class T, int V>
EXACTSTATE_INLINE void mix_vectors(const T* p, const T* s, int64_t d, int64_t D, T* out) {
    typedef typename Lane<T>::Vector Vector;
    constexpr int W = Lane<T>::width;
    Vector even[V] = {}, odd[V] = {};
    int64_t k = 0;
    for (; k + 1 < d; k += 2)
        for (int v = 0; v < V; ++v) {
            even[v] += load(p + k * D + v * W) * s[k];
            odd[v] += load(p + (k + 1) * D + v * W) * s[k + 1];
        }
    for (int v = 0; k < d && v < V; ++v) even[v] += load(p + k * D + v * W) * s[k];
    for (int v = 0; v < V; ++v) store(out + v * W, even[v] + odd[v]);
}

template <class T>
EXACTSTATE_INLINE void mix(const T* p, const T* s, int64_t d, int64_t D, T* out) {
    constexpr int W = Lane<T>::width;
    for (int64_t i = 0; i < D;) {
        const int vectors = up_to_four((D - i) / W);
        switch (vectors) {
            case 1: mix_vectors<T, 1>(p + i, s, d, D, out + i); break;
            case 2: mix_vectors<T, 2>(p + i, s, d, D, out + i); break;
            case 3: mix_vectors<T, 3>(p + i, s, d, D, out + i); break;
            default: mix_vectors<T, 4>(p + i, s, d, D, out + i);
        }
        i += vectors * W;
    }
}

template <class T>
EXACTSTATE_INLINE void indexed_forward(const Indexed<T>& job, int64_t h) {
    const Head& head = job.heads[size_t(h)];
    const int64_t d = head.size, D = padded<T>(d), L = job.steps.length;
    const Lines<T> moves = head_moves(job, head, false);
    Lines<T> held(D), after(D);
    for (int64_t b = 0; b < job.steps.batch; ++b) {
        std::fill_n(held.data(), D, T(0));
        held.data()[job.steps.start[b * int64_t(job.heads.size()) + h]] = T(1);
        for (int64_t t = 0; t < L; ++t) {
            if (job.steps.reset(b, t))
                for (int64_t k = 0; k < d; ++k) held.data()[k] = T(k == job.steps.initial[h]);
            if (job.steps.taken(b, t)) {
                mix<T>(moves.data() + job.row_index[b * L + t] * d * D, held.data(), d, D, after.data());
                std::copy_n(after.data(), D, held.data());
            }
            std::copy_n(held.data(), d, job.states + (b * L + t) * job.indices + head.index);
        }
    }
}

// From the gradient of the states to that of the matrices, which `to` (rows x entries) receives.
template <class T>
EXACTSTATE_INLINE void indexed_backward(const Indexed<T>& job, const T* gradient, T* to, int64_t h) {
    constexpr int W = Lane<T>::width;
    const Head& head = job.heads[size_t(h)];
    const int64_t d = head.size, D = padded<T>(d), L = job.steps.length;
    const Lines<T> moves = head_moves(job, head, true);
    Lines<T> sums(job.rows * d * D), adjoint(D), mean(D), before(D);
    std::fill_n(sums.data(), job.rows * d * D, T(0));
    for (int64_t b = 0; b < job.steps.batch; ++b) {
        std::fill_n(adjoint.data(), D, T(0));
        for (int64_t t = L - 1; t >= 0; --t) {
            const T* gain = gradient + (b * L + t) * job.indices + head.index;
            for (int64_t j = 0; j < d; ++j) adjoint.data()[j] += gain[j];
            if (!job.steps.taken(b, t)) continue;
            const bool reset = job.steps.reset(b, t);
            if (reset || t == 0) {
                const int64_t from = reset ? job.steps.initial[h] : job.steps.start[b * int64_t(job.heads.size()) + h];
                for (int64_t k = 0; k < d; ++k) before.data()[k] = T(k == from);
            } else {
                std::copy_n(job.states + (b * L + t - 1) * job.indices + head.index, d, before.data());
            }
            const int64_t row = job.row_index[b * L + t];
            T* sum = sums.data() + row * d * D;
            for (int64_t k = 0; k < d; ++k, sum += D)
                for (int64_t j = 0; j < D; j += W) store(sum + j, load(sum + j) + load(adjoint.data() + j) * before.data()[k]);
            mix<T>(moves.data() + row * d * D, adjoint.data(), d, D, mean.data());
            if (reset)
                std::fill_n(adjoint.data(), D, T(0));
            else
                std::copy_n(mean.data(), D, adjoint.data());
        }
    }
    for (int64_t n = 0; n < job.rows; ++n)
        for (int64_t k = 0; k < d; ++k) std::copy_n(sums.data() + (n * d + k) * D, d, to + n * job.entries + head.entry + k * d);
}

EXACTSTATE_FUSED_CLONES void forward_of(const Indexed<float>& job, int64_t h) { indexed_forward<float>(job, h); }
EXACTSTATE_FUSED_CLONES void forward_of(const Indexed<double>& job, int64_t h) { indexed_forward<double>(job, h); }
EXACTSTATE_FUSED_CLONES void backward_of(const Indexed<float>& job, const float* gradient, float* to, int64_t h) {
    indexed_backward<float>(job, gradient, to, h);
}
EXACTSTATE_FUSED_CLONES void backward_of(const Indexed<double>& job, const double* gradient, double* to, int64_t h) {
    indexed_backward<double>(job, gradient, to, h);
}

template <class Job, class Work>
void over_parts(const Job& job, int64_t parts, int threads, Work work) {
    const int64_t written = job.steps.batch * job.steps.length * job.entries;
    parallel_ranges(parts, useful_threads(written, threads), [&](int64_t begin, int64_t end) {
        for (int64_t part = begin; part < end; ++part) work(part);
    });
}

}  // namespace

#define EXACTSTATE_STEPS                                                                                                     \
    const int64_t *sizes, int64_t heads, int64_t batch, int64_t length, const int64_t *start, const int64_t *initial, \
        const int64_t *lengths, const uint8_t *resets
#define EXACTSTATE_LAYOUT                                                          \
    const std::vector<Head> all = layout(sizes, heads);                        \
    const int64_t indices = all.empty() ? 0 : all.back().index + all.back().size, \
                  entries = all.empty() ? 0 : all.back().entry + all.back().size * all.back().size; \
    const Steps steps{batch, length, start, initial, lengths, resets};

// Logits batch x length x entries -> states batch x length x indices, and the matrices for the backward pass.
#define EXACTSTATE_SOFT_FORWARD(NAME, T)                                                                             \
    EXACTSTATE_API void NAME(const T* logits, EXACTSTATE_STEPS, T* moves, T* states, int threads) {                      \
        EXACTSTATE_LAYOUT                                                                                            \
        const Dense<T> job{steps, all, indices, entries, logits, moves, states};                                 \
        over_parts(job, (batch + ROWS<T> - 1) / ROWS<T>, threads, [&](int64_t block) { forward_of(job, block); }); \
    }
EXACTSTATE_SOFT_FORWARD(exactstate_soft_forward_f32, float)
EXACTSTATE_SOFT_FORWARD(exactstate_soft_forward_f64, double)

// The gradient of the states -> that of the logits.
#define EXACTSTATE_SOFT_BACKWARD(NAME, T)                                                                                 \
    EXACTSTATE_API void NAME(const T* gradient, EXACTSTATE_STEPS, const T* moves, const T* states, T* to, int threads) {      \
        EXACTSTATE_LAYOUT                                                                                                 \
        const Dense<T> job{steps, all, indices, entries, nullptr, const_cast<T*>(moves), const_cast<T*>(states)};     \
        over_parts(job, (batch + ROWS<T> - 1) / ROWS<T>, threads,                                                     \
                   [&](int64_t block) { backward_of(job, gradient, to, block); });                                    \
    }
EXACTSTATE_SOFT_BACKWARD(exactstate_soft_backward_f32, float)
EXACTSTATE_SOFT_BACKWARD(exactstate_soft_backward_f64, double)

// Matrices rows x entries, and which of them a step has -> states batch x length x indices.
#define EXACTSTATE_SOFT_INDEXED(NAME, T)                                                                                \
    EXACTSTATE_API void NAME(const T* moves, int64_t rows, const int64_t* row_index, EXACTSTATE_STEPS, T* states, int threads) { \
        EXACTSTATE_LAYOUT                                                                                               \
        const Indexed<T> job{steps, all, indices, entries, rows, moves, row_index, states};                         \
        over_parts(job, heads, threads, [&](int64_t h) { forward_of(job, h); });                                    \
    }
EXACTSTATE_SOFT_INDEXED(exactstate_soft_indexed_f32, float)
EXACTSTATE_SOFT_INDEXED(exactstate_soft_indexed_f64, double)

// The gradient of the states -> that of the matrices.
#define EXACTSTATE_SOFT_INDEXED_BACKWARD(NAME, T)                                                                     \
    EXACTSTATE_API void NAME(const T* gradient, const T* moves, int64_t rows, const int64_t* row_index, EXACTSTATE_STEPS, \
                         const T* states, T* to, int threads) {                                                   \
        EXACTSTATE_LAYOUT                                                                                             \
        const Indexed<T> job{steps, all, indices, entries, rows, moves, row_index, const_cast<T*>(states)};       \
        over_parts(job, heads, threads, [&](int64_t h) { backward_of(job, gradient, to, h); });                   \
    }
EXACTSTATE_SOFT_INDEXED_BACKWARD(exactstate_soft_indexed_backward_f32, float)
EXACTSTATE_SOFT_INDEXED_BACKWARD(exactstate_soft_indexed_backward_f64, double)
