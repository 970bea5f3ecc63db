// From inputs to transition tables: logits, noise if there is any, and the arg max of every column.
//
// The logits of a block live in the first cache just long enough for their arg max; a d x d array per step is
// never written. Two sources: rows of inputs, or an index into rows whose logits were computed once.
#include <atomic>

#include "logits.hpp"
#include "gumbel.hpp"
#include "screen.hpp"
#include "segments.hpp"

using namespace exactstate;

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

// Remember the first row whose logits are not finite.
template <class T>
void report_bad(const Job<T>& job, int64_t place) {
    int64_t known = job.bad->load();
    while (place < known && !job.bad->compare_exchange_weak(known, place)) {}
}

// Whether a lane of `entries` logits holds a NaN or an infinity.
template <class T>
bool is_odd(const T* logits, int64_t entries, int lane) {
    for (int64_t e = 0; e < entries; ++e)
        if (!std::isfinite(logits[e * ROWS<T> + lane])) return true;
    return false;
}

// Cells of up to as many columns as an integer holds, one integer per lane.
template <class Integer, class Cell>
EXACTSTATE_INLINE void put_cells(const Integer* lanes, int cells, int rows, int64_t indices, Cell* tables) {
    constexpr int CELLS = sizeof(Integer) / sizeof(Cell);
    if (LITTLE_ENDIAN_CELLS && cells == CELLS)
        for (int lane = 0; lane < rows; ++lane) std::memcpy(tables + lane * indices, lanes + lane, sizeof(Integer));
    else
        for (int lane = 0; lane < rows; ++lane)
            for (int cell = 0; cell < cells; ++cell)
                tables[lane * indices + cell] = Cell(lanes[lane] >> (8 * sizeof(Cell) * cell));
}

template <class L, class Cell, class T>
EXACTSTATE_INLINE void arg_max(const Job<T>& job, const Panel& panel, const Block<T>& block, const T* logits,
                           int64_t first) {
    typedef typename L::Vector Vector;
    typedef typename L::Index Index;
    typedef typename std::remove_reference<decltype(Index{}[0])>::type Integer;
    constexpr int W = L::width, V = L::vectors;
    constexpr int CELLS = sizeof(Integer) / sizeof(Cell);  // columns whose cells one integer of a lane holds
    const int64_t d = panel.head->size;
    Cell* tables = static_cast<Cell*>(job.tables) + first * job.indices + panel.head->index + panel.column;
    Vector total[V] = {};
    for (int64_t column = 0; column < panel.columns; column += CELLS) {
        const int cells = int(std::min<int64_t>(CELLS, panel.columns - column));
        Index row[V] = {};
        for (int cell = 0; cell < cells; ++cell) {
            Vector best[V];
            Index where[V] = {};
            for (int v = 0; v < V; ++v) best[v] = Vector{} - std::numeric_limits<T>::infinity();
            for (int64_t j = 0; j < d; ++j) {
                const int64_t entry = (column + cell) * d + j;
                Vector noise[V] = {};
                if (job.noisy) gumbel_rows(block.keys, uint32_t(panel.begin + entry), noise);
                for (int v = 0; v < V; ++v) {
                    const Vector theta = take<Vector>(logits + entry * ROWS<T> + v * W);
                    total[v] = total[v] + theta;
                    const Vector score = job.noisy ? theta * job.scale + noise[v] : theta;
                    const Index better = (Index)(score > best[v]);  // strictly: the lowest index wins a tie
                    best[v] = better ? score : best[v];
                    where[v] = better ? Index{} + Integer(j) : where[v];
                }
            }
            for (int v = 0; v < V; ++v) row[v] |= where[v] << Integer(8 * sizeof(Cell) * cell);
        }
        Integer lanes[ROWS<T>];
        for (int v = 0; v < V; ++v) std::memcpy(lanes + v * W, &row[v], sizeof row[v]);
        put_cells(lanes, cells, block.rows, job.indices, tables + column);
    }
    // a sum is NaN or infinite if a term is; large finite terms can do it too, so these lanes are looked at closely
    for (int lane = 0; lane < block.rows; ++lane)
        if (!std::isfinite(total[lane / W][lane % W]) && is_odd(logits, panel.columns * d, lane))
            report_bad(job, block.place[lane]);
}

template <class L, class Cell, class T>
EXACTSTATE_INLINE void make_tables(const Job<T>& job, int64_t begin, int64_t end) {
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
                if (from.input) {
                    product<L>(columns.data() + b * from.m * ROWS<T>, from.weight + panel.begin * from.m, from.m,
                            from.bias + panel.begin, entries, logits.data());
                } else {
                    const T* rows[ROWS<T>];
                    for (int lane = 0; lane < ROWS<T>; ++lane)
                        rows[lane] = from.logits + from.index[block.place[std::min(lane, block.rows - 1)]] * from.entries + panel.begin;
                    put_rows(rows, entries, logits.data());
                }
                arg_max<L, Cell>(job, panel, block, logits.data(), (group + b) * ROWS<T>);
            }
    }
}

#ifdef EXACTSTATE_AVX2
constexpr int64_t SCREEN_ROWS = 2 * BLOCKS * ROWS<float>;  // rows from which rounding the weights pays
constexpr int64_t SCREEN_SIZES[] = {4, 256};               // smallest and largest head
constexpr int64_t RARE = 8;                                // candidates are rare if every eighth entry is one, or fewer

template <class Cell>
EXACTSTATE_AVX2_INLINE void screened_arg_max(const Job<float>& job, const Screen& screen, const Panel& panel,
                                         const Block<float>& block, const ScreenBlock& rounded, const int32_t* leads,
                                         int64_t first, Ties<Cell>& ties) {
    constexpr int CELLS = sizeof(int32_t) / sizeof(Cell);
    const int64_t d = panel.head->size, index = panel.head->index + panel.column;
    Cell* tables = static_cast<Cell*>(job.tables) + first * job.indices + index;
    for (int64_t column = 0; column < panel.columns; column += CELLS) {
        const int cells = int(std::min<int64_t>(CELLS, panel.columns - column));
        __m256i row[PAIR] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
        int32_t lanes[LANES], best[CELLS][LANES], trail[CELLS][LANES];
        int uncertain[CELLS];
        for (int cell = 0; cell < cells; ++cell) {
            __m256i where[PAIR];
            const ColumnBound& bound = screen.bounds[index + column + cell];
            const int32_t* here = leads + (column + cell) * (d - 1) * LANES;
            uncertain[cell] = screen.wide ? screen_arg_max_wide(rounded, bound, here, d, where, best[cell], trail[cell])
                                          : screen_arg_max(rounded, bound, here, d, where, best[cell], trail[cell]);
            for (int v = 0; v < PAIR; ++v)
                row[v] = _mm256_or_si256(row[v], _mm256_slli_epi32(where[v], int(8 * sizeof(Cell)) * cell));
        }
        for (int v = 0; v < PAIR; ++v) _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes + 8 * v), row[v]);
        put_cells(lanes, cells, block.rows, job.indices, tables + column);
        for (int cell = 0; cell < cells; ++cell)
            for (int left = uncertain[cell] & ((1 << block.rows) - 1); left; left &= left - 1) {
                const int lane = __builtin_ctz(left);
                ties.add(job.source.input + block.place[lane] * screen.m, block.place[lane],
                         panel.begin + (column + cell) * d, d, leads + (column + cell) * (d - 1) * LANES + lane,
                         best[cell][lane] - trail[cell][lane], tables + lane * job.indices + column + cell);
            }
    }
}

// The same with noise. `scratch`: twice the largest head times LANES.
template <class Cell>
EXACTSTATE_AVX2_INLINE void noisy_screened_arg_max(const Job<float>& job, const Screen& screen, const Panel& panel,
                                         const Block<float>& block, const ScreenBlock& rounded, const int32_t* leads,
                                         int64_t first, float* scratch, Ties<Cell>& ties) {
    const int64_t d = panel.head->size, index = panel.head->index + panel.column;
    Cell* tables = static_cast<Cell*>(job.tables) + first * job.indices + index;
    float *scores = scratch, *noise = scratch + d * LANES;
    for (int64_t column = 0; column < panel.columns; ++column) {
        const int64_t entry = panel.begin + column * d;
        int32_t where[LANES];
        float least[LANES];
        const ColumnBound& bound = screen.bounds[index + column];
        const float c = screen.scales[index + column];
        const int32_t* here = leads + column * (d - 1) * LANES;
        const int uncertain =
            screen.wide ? noisy_arg_max_wide(rounded, bound, c, job.scale, block.keys, uint32_t(entry), here, d, where,
                                             scores, noise, least)
                        : noisy_arg_max<Pair<float>>(rounded, bound, c, job.scale, block.keys, uint32_t(entry), here, d,
                                                     where, scores, noise, least);
        for (int lane = 0; lane < block.rows; ++lane) tables[lane * job.indices + column] = Cell(where[lane]);
        for (int left = uncertain & ((1 << block.rows) - 1); left; left &= left - 1) {
            const int lane = __builtin_ctz(left);
            ties.add(job.source.input + block.place[lane] * screen.m, block.place[lane], entry, d, scores + lane,
                     noise + lane, least[lane], tables + lane * job.indices + column);
        }
    }
}

// The same tables as `make_tables`; `job.source.weight` is not packed.
template <class Cell>
EXACTSTATE_AVX2_INLINE void make_screened_tables(const Job<float>& job, const Screen& screen, int64_t begin, int64_t end) {
    const Source<float>& from = job.source;
    const std::vector<Panel>& panels = *job.panels;
    int64_t most = 0;
    for (const Panel& panel : panels) most = std::max(most, panel.end - panel.begin);
    std::vector<int32_t> scratch(size_t(LANES * screen.pairs));
    const Lines<int32_t> leads(most * LANES);
    std::vector<float> columns, logits(size_t(most * LANES));
    std::vector<std::vector<float>> packed(panels.size());  // weights of panels in which candidates are not rare
    std::vector<Block<float>> blocks(BLOCKS);
    std::vector<ScreenBlock> rounded;
    for (int b = 0; b < BLOCKS; ++b) rounded.emplace_back(screen);
    const Lines<float> scores(2 * SCREEN_SIZES[1] * LANES);
    Ties<Cell> ties(from.weight, from.bias, from.m, job.noisy, job.scale);
    Cursor cursor(job.segments, job.segment_count, begin * LANES);
    for (int64_t group = begin; group < end; group += BLOCKS) {
        const int count = int(std::min<int64_t>(BLOCKS, end - group));
        for (int b = 0; b < count; ++b) {
            Block<float>& block = blocks[b];
            for (block.rows = 0; block.rows < LANES && !cursor.done(); cursor.next()) {
                if (job.noisy) block.keys.set(block.rows, step_key(job.seed, cursor.sequence(), cursor.time()));
                block.place[block.rows++] = cursor.row();
            }
            const float* rows[LANES];  // lanes beyond the last row repeat it, and are never written
            for (int lane = 0; lane < LANES; ++lane)
                rows[lane] = from.input + block.place[std::min(lane, block.rows - 1)] * from.m;
            screen_rows(screen, rows, scratch, rounded[b]);
            if (!columns.empty()) put_rows(rows, from.m, columns.data() + b * from.m * LANES);
        }
        for (size_t p = 0; p < panels.size(); ++p) {
            const Panel& panel = panels[p];
            const int64_t entries = panel.end - panel.begin;
            for (int b = 0; b < count; ++b) {
                const int64_t first = (group + b) * LANES;
                if (packed[p].empty()) {
                    screen_product(screen, rounded[b], int64_t(p), entries - panel.columns, leads.data());
                    if (job.noisy)
                        noisy_screened_arg_max<Cell>(job, screen, panel, blocks[b], rounded[b], leads.data(), first,
                                                     scores.data(), ties);
                    else
                        screened_arg_max<Cell>(job, screen, panel, blocks[b], rounded[b], leads.data(), first, ties);
                } else {
                    product<Pair<float>>(columns.data() + b * from.m * LANES, packed[p].data(), from.m, from.bias + panel.begin,
                            entries, logits.data());
                    arg_max<Pair<float>, Cell>(job, panel, blocks[b], logits.data(), first);
                }
            }
            if (ties.candidates() * RARE > count * LANES * entries) {
                packed[p].resize(size_t(entries * from.m));
                pack_entries(from.weight, from.m, panel.begin, panel.end, packed[p].data());
                columns.resize(size_t(BLOCKS * from.m * LANES));
            }
            ties.settle([&](int64_t place) { report_bad(job, place); });
        }
    }
}

EXACTSTATE_AVX2 __attribute__((noinline)) void make_screened_tables_of(const Job<float>& job, const Screen& screen, uint8_t, int64_t begin, int64_t end) {
    make_screened_tables<uint8_t>(job, screen, begin, end);
}

bool can_screen(const std::vector<Head>& heads, int64_t m, int64_t rows) {
    for (const Head& head : heads)
        if (head.size < SCREEN_SIZES[0] || head.size > SCREEN_SIZES[1]) return false;
    return rows >= SCREEN_ROWS && m <= SCREEN_WIDTH && __builtin_cpu_supports("avx2");
}
#endif

#ifdef EXACTSTATE_AVX2
EXACTSTATE_AVX512 __attribute__((noinline, flatten)) void make_whole_tables_of(const Job<float>& job, uint8_t, int64_t begin, int64_t end) {
    make_tables<Whole, uint8_t>(job, begin, end);
}
EXACTSTATE_AVX512 __attribute__((noinline, flatten)) void make_whole_tables_of(const Job<float>& job, uint16_t, int64_t begin, int64_t end) {
    make_tables<Whole, uint16_t>(job, begin, end);
}
#endif
EXACTSTATE_CLONES void make_tables_of(const Job<float>& job, uint8_t, int64_t begin, int64_t end) {
    make_tables<Pair<float>, uint8_t>(job, begin, end);
}
EXACTSTATE_CLONES void make_tables_of(const Job<float>& job, uint16_t, int64_t begin, int64_t end) {
    make_tables<Pair<float>, uint16_t>(job, begin, end);
}
EXACTSTATE_CLONES void make_tables_of(const Job<double>& job, uint8_t, int64_t begin, int64_t end) {
    make_tables<Pair<double>, uint8_t>(job, begin, end);
}
EXACTSTATE_CLONES void make_tables_of(const Job<double>& job, uint16_t, int64_t begin, int64_t end) {
    make_tables<Pair<double>, uint16_t>(job, begin, end);
}

template <class T>
int64_t tables(const T* input, const T* weight, const T* bias, int64_t m, const T* logits, const int64_t* index,
               const int64_t* sizes, int64_t heads, const Segment* segments, int64_t segment_count, int noisy,
               double temperature, uint64_t seed, void* tables, int cell_bytes, int threads) {
    const std::vector<Head> all = layout(sizes, heads);
    const std::vector<Panel> parts = panels(all);
    int64_t entries = 0, indices = 0;
    for (const Head& head : all) entries += head.size * head.size, indices += head.size;
    const int64_t none = std::numeric_limits<int64_t>::max();
    std::atomic<int64_t> bad(none);
    const int64_t rows = local_rows(segments, segment_count);
    Job<T> job{{input, weight, bias, m, logits, index, entries}, &parts, segments, segment_count, rows,
               indices, noisy != 0, T(1.0 / temperature), seed, tables, &bad};
    const int64_t numbers = rows * entries * (input ? 1 + m / 8 : 1), blocks = (rows + ROWS<T> - 1) / ROWS<T>;
    const int workers = useful_threads(numbers, threads);
#ifdef EXACTSTATE_AVX2
    if constexpr (std::is_same<T, float>::value)
        if (input && cell_bytes == 1 && can_screen(all, m, rows)) {
            const Screen screen = make_screen(weight, bias, m, parts);
            parallel_ranges(blocks, workers, [&](int64_t begin, int64_t end) {
                make_screened_tables_of(job, screen, uint8_t{}, begin, end);
            });
            return bad == none ? -1 : bad.load();
        }
#endif
    std::vector<T> packed(input ? size_t(entries * m) : 0);
    if (input)
        for (const Panel& panel : parts)
            pack_entries(weight, m, panel.begin, panel.end, packed.data() + panel.begin * m);
    job.source.weight = packed.data();
    parallel_ranges(blocks, workers, [&](int64_t begin, int64_t end) {
#ifdef EXACTSTATE_AVX2
        if constexpr (std::is_same<T, float>::value)
            if (has_avx512())
                return cell_bytes == 1 ? make_whole_tables_of(job, uint8_t{}, begin, end)
                                       : make_whole_tables_of(job, uint16_t{}, begin, end);
#endif
        if (cell_bytes == 1)
            make_tables_of(job, uint8_t{}, begin, end);
        else
            make_tables_of(job, uint16_t{}, begin, end);
    });
    return bad == none ? -1 : bad.load();
}

// logits: rows x entries.
template <class T>
EXACTSTATE_INLINE void write_logits(const T* input, const T* packed, const T* bias, int64_t m,
                                int64_t entries, int64_t rows, T* logits, int64_t begin, int64_t end) {
    std::vector<T> columns(size_t(m * ROWS<T>)), block(size_t(entries * ROWS<T>));
    for (int64_t b = begin; b < end; ++b) {
        const int64_t first = b * ROWS<T>;
        const T* block_rows[ROWS<T>];
        for (int lane = 0; lane < ROWS<T>; ++lane) block_rows[lane] = input + std::min(first + lane, rows - 1) * m;
        put_rows(block_rows, m, columns.data());
        product<Pair<T>>(columns.data(), packed, m, bias, entries, block.data());
        if (first + ROWS<T> <= rows)
            take_rows(block.data(), entries, entries, logits + first * entries);
        else
            for (int64_t lane = 0; lane < rows - first; ++lane)
                for (int64_t e = 0; e < entries; ++e) logits[(first + lane) * entries + e] = block[e * ROWS<T> + lane];
    }
}

EXACTSTATE_CLONES void write_logits_of(const float* input, const float* packed, const float* bias, int64_t m,
                                   int64_t entries, int64_t rows, float* logits, int64_t begin,
                                   int64_t end) {
    write_logits<float>(input, packed, bias, m, entries, rows, logits, begin, end);
}
EXACTSTATE_CLONES void write_logits_of(const double* input, const double* packed, const double* bias, int64_t m,
                                   int64_t entries, int64_t rows, double* logits, int64_t begin,
                                   int64_t end) {
    write_logits<double>(input, packed, bias, m, entries, rows, logits, begin, end);
}

template <class T>
void logits(const T* input, const T* weight, const T* bias, int64_t m, int64_t entries,
            int64_t rows, T* out, int threads) {
    std::vector<T> packed(static_cast<size_t>(entries * m));
    pack_entries(weight, m, 0, entries, packed.data());
    const int64_t numbers = rows * (entries * m / 8 + m);
    parallel_ranges((rows + ROWS<T> - 1) / ROWS<T>, useful_threads(numbers, threads), [&](int64_t begin, int64_t end) {
        write_logits_of(input, packed.data(), bias, m, entries, rows, out, begin, end);
    });
}

template <class T>
EXACTSTATE_INLINE void fill_noise(const Segment* segments, int64_t count, int64_t entries, uint64_t seed, T* noise,
                              int64_t begin, int64_t end) {
    Cursor cursor(segments, count, begin);
    for (int64_t n = begin; n < end; ++n, cursor.next()) {
        Keys<float> keys;
        keys.set(0, step_key(seed, cursor.sequence(), cursor.time()));
        for (int64_t e = 0; e < entries; ++e) noise[n * entries + e] = T(gumbel<Pair<float>>(keys.low, keys.high, uint32_t(e))[0]);
    }
}

}  // namespace

// Tables of every row of the segments, local rows x indices. Returns -1, or a row whose logits are not finite.
#define EXACTSTATE_TABLES(NAME, T)                                                                                     \
    EXACTSTATE_API int64_t NAME(const T* input, const T* weight, const T* bias, int64_t m, const T* logits,            \
                            const int64_t* index, const int64_t* sizes, int64_t heads, const Segment* segments,    \
                            int64_t segment_count, int noisy, double temperature, uint64_t seed, void* out,        \
                            int cell_bytes, int threads) {                                                         \
        return tables<T>(input, weight, bias, m, logits, index, sizes, heads, segments, segment_count, noisy,      \
                         temperature, seed, out, cell_bytes, threads);                                             \
    }
EXACTSTATE_TABLES(exactstate_tables_f32, float)
EXACTSTATE_TABLES(exactstate_tables_f64, double)

// The logits themselves, rows x entries: for inputs that many positions share.
EXACTSTATE_API void exactstate_logits_f32(const float* input, const float* weight, const float* bias, int64_t m,
                                  int64_t entries, int64_t rows, float* out, int threads) {
    logits<float>(input, weight, bias, m, entries, rows, out, threads);
}
EXACTSTATE_API void exactstate_logits_f64(const double* input, const double* weight, const double* bias, int64_t m,
                                  int64_t entries, int64_t rows, double* out, int threads) {
    logits<double>(input, weight, bias, m, entries, rows, out, threads);
}

// The noise itself, local rows x entries, for tests.
EXACTSTATE_API void exactstate_gumbel(const Segment* segments, int64_t count, int64_t entries, uint64_t seed, float* noise) {
    fill_noise(segments, count, entries, seed, noise, 0, local_rows(segments, count));
}
