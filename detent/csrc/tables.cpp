// From inputs to transition tables: logits, noise if there is any, and the arg max of every column.
//
// The logits of a block live in the first cache just long enough for their arg max; a d x d array per step is
// never written. Two sources: rows of inputs, or an index into rows whose logits were computed once.
#include <atomic>

#include "logits.hpp"
#include "gumbel.hpp"
#include "segments.hpp"

using namespace detent;

namespace {

constexpr int BLOCKS = 16;  // blocks of rows that share one pass over the weights
constexpr bool LITTLE_ENDIAN_CELLS = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

template <class T>
struct Source {
    const T* input;        // rows x m, or null
    const T* weight;       // packed entries
    const T* bias;
    int64_t m;
    const T* logits;       // distinct rows x entries, or null
    const int64_t* index;  // which of them each row of the input is
    int64_t entries;       // of all heads
};

template <class T>
struct Job {
    Source<T> source;
    const std::vector<Panel>* panels;
    const Segment* segments;
    int64_t segment_count, rows, indices;
    bool noisy;
    T scale;        // 1 / temperature
    uint64_t seed;
    void* tables;   // local rows x indices
    std::atomic<int64_t>* bad;
};

template <class T>
struct Block {
    int rows = 0;
    int64_t place[ROWS<T>];  // rows of the input
    Keys<T> keys;
};

// Whether a lane of `entries` logits holds a NaN or an infinity.
template <class T>
bool is_odd(const T* logits, int64_t entries, int lane) {
    for (int64_t e = 0; e < entries; ++e)
        if (!std::isfinite(logits[e * ROWS<T> + lane])) return true;
    return false;
}

template <class T, class Cell>
DETENT_INLINE void arg_max(const Job<T>& job, const Panel& panel, const Block<T>& block, const T* logits,
                           int64_t first) {
    typedef typename Lane<T>::Vector Vector;
    typedef typename Lane<T>::Index Index;
    typedef typename std::remove_reference<decltype(Index{}[0])>::type Integer;
    constexpr int W = Lane<T>::width;
    constexpr int CELLS = sizeof(Integer) / sizeof(Cell);  // columns whose cells one integer of a lane holds
    const int64_t d = panel.head->size;
    Cell* tables = static_cast<Cell*>(job.tables) + first * job.indices + panel.head->index + panel.column;
    Vector total[PAIR] = {};
    for (int64_t column = 0; column < panel.columns; column += CELLS) {
        const int cells = int(std::min<int64_t>(CELLS, panel.columns - column));
        Index row[PAIR] = {};
        for (int cell = 0; cell < cells; ++cell) {
            Vector best[PAIR];
            Index where[PAIR] = {};
            for (int v = 0; v < PAIR; ++v) best[v] = spread<T>(-std::numeric_limits<T>::infinity());
            for (int64_t j = 0; j < d; ++j) {
                const int64_t entry = (column + cell) * d + j;
                Vector noise[PAIR] = {};
                if (job.noisy) gumbel_rows(block.keys, uint32_t(panel.begin + entry), noise);
                for (int v = 0; v < PAIR; ++v) {
                    const Vector theta = load(logits + entry * ROWS<T> + v * W);
                    total[v] = total[v] + theta;
                    const Vector score = job.noisy ? theta * job.scale + noise[v] : theta;
                    const Index better = (Index)(score > best[v]);  // strictly: the lowest index wins a tie
                    best[v] = (Vector)((better & (Index)score) | (~better & (Index)best[v]));
                    where[v] = (better & Integer(j)) | (~better & where[v]);
                }
            }
            for (int v = 0; v < PAIR; ++v) row[v] |= where[v] << Integer(8 * sizeof(Cell) * cell);
        }
        Integer lanes[ROWS<T>];
        for (int v = 0; v < PAIR; ++v) std::memcpy(lanes + v * W, &row[v], sizeof row[v]);
        if (LITTLE_ENDIAN_CELLS && cells == CELLS)
            for (int lane = 0; lane < block.rows; ++lane)
                std::memcpy(tables + lane * job.indices + column, lanes + lane, sizeof(Integer));
        else
            for (int lane = 0; lane < block.rows; ++lane)
                for (int cell = 0; cell < cells; ++cell)
                    tables[lane * job.indices + column + cell] = Cell(lanes[lane] >> (8 * sizeof(Cell) * cell));
    }
    // a sum is NaN or infinite if a term is; large finite terms can do it too, so these lanes are looked at closely
    for (int lane = 0; lane < block.rows; ++lane)
        if (!std::isfinite(total[lane / W][lane % W]) && is_odd(logits, panel.columns * d, lane)) {
            int64_t known = job.bad->load();
            while (block.place[lane] < known && !job.bad->compare_exchange_weak(known, block.place[lane])) {}
        }
}

template <class T, class Cell>
DETENT_INLINE void make_tables(const Job<T>& job, int64_t begin, int64_t end) {
    const Source<T>& from = job.source;
    std::vector<T> columns(from.input ? size_t(BLOCKS * from.m * ROWS<T>) : 0);
    std::vector<T> logits;
    for (const Panel& panel : *job.panels)
        logits.resize(std::max(logits.size(), size_t((panel.end - panel.begin) * ROWS<T>)));
    std::vector<Block<T>> blocks(BLOCKS);
    Cursor cursor(job.segments, job.segment_count, begin * ROWS<T>);
    for (int64_t group = begin; group < end; group += BLOCKS) {
        const int count = int(std::min<int64_t>(BLOCKS, end - group));
        for (int b = 0; b < count; ++b) {
            Block<T>& block = blocks[b];
            for (block.rows = 0; block.rows < ROWS<T> && !cursor.done(); cursor.next(), ++block.rows) {
                block.place[block.rows] = cursor.row();
                block.keys.set(block.rows, step_key(job.seed, cursor.sequence(), cursor.time()));
            }
            if (from.input) {
                const T* rows[ROWS<T>];  // lanes beyond the last row repeat it, and are never written
                for (int lane = 0; lane < ROWS<T>; ++lane)
                    rows[lane] = from.input + block.place[std::min(lane, block.rows - 1)] * from.m;
                put_rows(rows, from.m, columns.data() + b * from.m * ROWS<T>);
            }
        }
        for (const Panel& panel : *job.panels)
            for (int b = 0; b < count; ++b) {
                const Block<T>& block = blocks[b];
                const int64_t entries = panel.end - panel.begin;
                if (from.input)
                    product(columns.data() + b * from.m * ROWS<T>, from.weight + panel.begin * from.m, from.m,
                            from.bias + panel.begin, entries, logits.data());
                else
                    for (int lane = 0; lane < block.rows; ++lane)
                        put_lane(from.logits + from.index[block.place[lane]] * from.entries + panel.begin, entries,
                                 lane, logits.data());
                arg_max<T, Cell>(job, panel, block, logits.data(), (group + b) * ROWS<T>);
            }
    }
}

DETENT_CLONES void make_tables_of(const Job<float>& job, uint8_t, int64_t begin, int64_t end) {
    make_tables<float, uint8_t>(job, begin, end);
}
DETENT_CLONES void make_tables_of(const Job<float>& job, uint16_t, int64_t begin, int64_t end) {
    make_tables<float, uint16_t>(job, begin, end);
}
DETENT_CLONES void make_tables_of(const Job<double>& job, uint8_t, int64_t begin, int64_t end) {
    make_tables<double, uint8_t>(job, begin, end);
}
DETENT_CLONES void make_tables_of(const Job<double>& job, uint16_t, int64_t begin, int64_t end) {
    make_tables<double, uint16_t>(job, begin, end);
}

template <class T>
int64_t tables(const T* input, const T* weight, const T* bias, int64_t m, const T* logits, const int64_t* index,
               const int64_t* sizes, int64_t heads, const Segment* segments, int64_t segment_count, int noisy,
               double temperature, uint64_t seed, void* tables, int cell_bytes, int threads) {
    const std::vector<Head> all = layout(sizes, heads);
    const std::vector<Panel> parts = panels(all);
    int64_t entries = 0, indices = 0;
    for (const Head& head : all) entries += head.size * head.size, indices += head.size;
    std::vector<T> packed(input ? size_t(entries * m) : 0);
    if (input)
        for (const Panel& panel : parts)
            pack_entries(weight, m, panel.begin, panel.end, packed.data() + panel.begin * m);
    const int64_t none = std::numeric_limits<int64_t>::max();
    std::atomic<int64_t> bad(none);
    const int64_t rows = local_rows(segments, segment_count);
    const Job<T> job{{input, packed.data(), bias, m, logits, index, entries}, &parts, segments, segment_count, rows,
                     indices, noisy != 0, T(1.0 / temperature), seed, tables, &bad};
    const int64_t numbers = rows * entries * (input ? 1 + m / 8 : 1);
    parallel_ranges((rows + ROWS<T> - 1) / ROWS<T>, useful_threads(numbers, threads), [&](int64_t begin, int64_t end) {
        if (cell_bytes == 1)
            make_tables_of(job, uint8_t{}, begin, end);
        else
            make_tables_of(job, uint16_t{}, begin, end);
    });
    return bad == none ? -1 : bad.load();
}

// logits: rows x entries; row n is computed from input row place[n], or n where there is no place.
template <class T>
DETENT_INLINE void write_logits(const T* input, const int64_t* place, const T* packed, const T* bias, int64_t m,
                                int64_t entries, int64_t rows, T* logits, int64_t begin, int64_t end) {
    std::vector<T> columns(size_t(m * ROWS<T>)), block(size_t(entries * ROWS<T>));
    for (int64_t b = begin; b < end; ++b) {
        const int64_t first = b * ROWS<T>;
        const T* block_rows[ROWS<T>];
        for (int lane = 0; lane < ROWS<T>; ++lane) {
            const int64_t n = std::min(first + lane, rows - 1);
            block_rows[lane] = input + (place ? place[n] : n) * m;
        }
        put_rows(block_rows, m, columns.data());
        product(columns.data(), packed, m, bias, entries, block.data());
        if (first + ROWS<T> <= rows)
            take_rows(block.data(), entries, entries, logits + first * entries);
        else
            for (int64_t lane = 0; lane < rows - first; ++lane)
                for (int64_t e = 0; e < entries; ++e) logits[(first + lane) * entries + e] = block[e * ROWS<T> + lane];
    }
}

DETENT_CLONES void write_logits_of(const float* input, const int64_t* place, const float* packed, const float* bias,
                                   int64_t m, int64_t entries, int64_t rows, float* logits, int64_t begin,
                                   int64_t end) {
    write_logits<float>(input, place, packed, bias, m, entries, rows, logits, begin, end);
}
DETENT_CLONES void write_logits_of(const double* input, const int64_t* place, const double* packed, const double* bias,
                                   int64_t m, int64_t entries, int64_t rows, double* logits, int64_t begin,
                                   int64_t end) {
    write_logits<double>(input, place, packed, bias, m, entries, rows, logits, begin, end);
}

template <class T>
void logits(const T* input, const int64_t* place, const T* weight, const T* bias, int64_t m, int64_t entries,
            int64_t rows, T* out, int threads) {
    std::vector<T> packed(static_cast<size_t>(entries * m));
    pack_entries(weight, m, 0, entries, packed.data());
    const int64_t numbers = rows * (entries * m / 8 + m);
    parallel_ranges((rows + ROWS<T> - 1) / ROWS<T>, useful_threads(numbers, threads), [&](int64_t begin, int64_t end) {
        write_logits_of(input, place, packed.data(), bias, m, entries, rows, out, begin, end);
    });
}

template <class T>
void index_gains(const T* gradient, const T* vectors, int64_t m, int64_t indices, const Segment* segments, int64_t count,
           T* out, int threads) {
    const std::vector<T> nothing(static_cast<size_t>(indices), T(0));
    std::vector<int64_t> place(static_cast<size_t>(local_rows(segments, count)));
    Cursor cursor(segments, count, 0);
    for (int64_t& row : place) {
        row = cursor.row();
        cursor.next();
    }
    logits(gradient, place.data(), vectors, nothing.data(), m, indices, int64_t(place.size()), out, threads);
}

template <class T>
DETENT_INLINE void fill_noise(const Segment* segments, int64_t count, int64_t entries, uint64_t seed, T* noise,
                              int64_t begin, int64_t end) {
    Cursor cursor(segments, count, begin);
    for (int64_t n = begin; n < end; ++n, cursor.next()) {
        Keys<float> keys;
        keys.set(0, step_key(seed, cursor.sequence(), cursor.time()));
        for (int64_t e = 0; e < entries; ++e) noise[n * entries + e] = T(gumbel(keys.low[0], keys.high[0], uint32_t(e))[0]);
    }
}

}  // namespace

// Tables of every row of the segments, local rows x indices. Returns -1, or a row whose logits are not finite.
#define DETENT_TABLES(NAME, T)                                                                                     \
    DETENT_API int64_t NAME(const T* input, const T* weight, const T* bias, int64_t m, const T* logits,            \
                            const int64_t* index, const int64_t* sizes, int64_t heads, const Segment* segments,    \
                            int64_t segment_count, int noisy, double temperature, uint64_t seed, void* out,        \
                            int cell_bytes, int threads) {                                                         \
        return tables<T>(input, weight, bias, m, logits, index, sizes, heads, segments, segment_count, noisy,      \
                         temperature, seed, out, cell_bytes, threads);                                             \
    }
DETENT_TABLES(detent_tables_f32, float)
DETENT_TABLES(detent_tables_f64, double)

// The logits themselves, rows x entries: for inputs that many positions share.
DETENT_API void detent_logits_f32(const float* input, const float* weight, const float* bias, int64_t m,
                                  int64_t entries, int64_t rows, float* out, int threads) {
    logits<float>(input, nullptr, weight, bias, m, entries, rows, out, threads);
}
DETENT_API void detent_logits_f64(const double* input, const double* weight, const double* bias, int64_t m,
                                  int64_t entries, int64_t rows, double* out, int threads) {
    logits<double>(input, nullptr, weight, bias, m, entries, rows, out, threads);
}

// The derivative of the loss by reading out each index, local rows x indices: output gradient times vector.
#define DETENT_INDEX_GAINS(NAME, T)                                                                              \
    DETENT_API void NAME(const T* gradient, const T* vectors, int64_t m, int64_t indices,                  \
                         const Segment* segments, int64_t segment_count, T* out, int threads) {            \
        index_gains<T>(gradient, vectors, m, indices, segments, segment_count, out, threads);                    \
    }
DETENT_INDEX_GAINS(detent_index_gains_f32, float)
DETENT_INDEX_GAINS(detent_index_gains_f64, double)

// The noise itself, local rows x entries, for tests.
DETENT_API void detent_gumbel(const Segment* segments, int64_t count, int64_t entries, uint64_t seed, float* noise) {
    fill_noise(segments, count, entries, seed, noise, 0, local_rows(segments, count));
}
