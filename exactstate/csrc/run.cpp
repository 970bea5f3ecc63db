// Run many words through one machine: states after every symbol, or only the last.
//
// A table lookup depends on the one before it, so a single word is bound by the latency of the
// cache. Words are independent: LANES of them are run side by side, which hides that latency.
#include "parallel.hpp"

namespace {

constexpr int LANES = 8;
constexpr int64_t BLOCK = 2048;  // symbols checked, then run, while they are in the cache

struct Words {
    int64_t count, length;
    const int32_t* starts;
    int32_t* finals;
};

// The first symbol of [begin, end) that is not below `symbols`, or -1. Negative numbers wrap to huge ones.
template <class Symbol>
int64_t first_unknown(const Symbol* word, int64_t begin, int64_t end, uint64_t symbols) {
    uint64_t any = 0;
    for (int64_t t = begin; t < end; ++t) any |= uint64_t(uint64_t(int64_t(word[t])) >= symbols);
    if (!any) return -1;
    for (int64_t t = begin; t < end; ++t)
        if (uint64_t(int64_t(word[t])) >= symbols) return t;
    return -1;
}

template <class State, class Symbol, int lanes>
int64_t run_lanes(const State* tables, int64_t symbols, int64_t states, const Symbol* words, State* path,
                  const Words& all, int64_t first) {
    const Symbol* word[lanes];
    State* out[lanes];
    uint32_t state[lanes];
    for (int i = 0; i < lanes; ++i) {
        word[i] = words + (first + i) * all.length;
        out[i] = path ? path + (first + i) * all.length : nullptr;
        state[i] = uint32_t(all.starts[first + i]);
    }
    for (int64_t begin = 0; begin < all.length; begin += BLOCK) {
        const int64_t end = std::min(all.length, begin + BLOCK);
        for (int i = 0; i < lanes; ++i) {
            const int64_t bad = first_unknown(word[i], begin, end, uint64_t(symbols));
            if (bad >= 0) return (first + i) * all.length + bad;
        }
        for (int64_t t = begin; t < end; ++t)
            for (int i = 0; i < lanes; ++i) {
                state[i] = tables[int64_t(word[i][t]) * states + state[i]];
                if (path) out[i][t] = State(state[i]);
            }
    }
    for (int i = 0; i < lanes; ++i) all.finals[first + i] = int32_t(state[i]);
    return -1;
}

template <class State, class Symbol>
int64_t run_words(const State* tables, int64_t symbols, int64_t states, const Symbol* words, State* path,
                  const Words& all, int threads) {
    std::vector<int64_t> bad(std::max<int64_t>(all.count, 1), -1);
    exactstate::parallel_ranges(all.count, threads, [&](int64_t begin, int64_t end) {
        int64_t first = begin;
        for (; first + LANES <= end; first += LANES)
            bad[first] = run_lanes<State, Symbol, LANES>(tables, symbols, states, words, path, all, first);
        for (; first < end; ++first)
            bad[first] = run_lanes<State, Symbol, 1>(tables, symbols, states, words, path, all, first);
    });
    for (int64_t place : bad)
        if (place >= 0) return place;
    return -1;
}

template <class State>
int64_t run_symbols(const State* tables, int64_t symbols, int64_t states, const void* words, int symbol_bytes,
                    State* path, const Words& all, int threads) {
    switch (symbol_bytes) {
        case 1: return run_words(tables, symbols, states, static_cast<const uint8_t*>(words), path, all, threads);
        case 2: return run_words(tables, symbols, states, static_cast<const uint16_t*>(words), path, all, threads);
        case 4: return run_words(tables, symbols, states, static_cast<const int32_t*>(words), path, all, threads);
        case 8: return run_words(tables, symbols, states, static_cast<const int64_t*>(words), path, all, threads);
    }
    return -2;
}

// The same with the output at every symbol, which belongs to the symbol and the state before it.
template <class State, class Symbol, class Output, int lanes>
int64_t output_lanes(const State* tables, const Output* readout, int64_t symbols, int64_t states, const Symbol* words,
                     Output* outputs, const Words& all, int64_t first) {
    const Symbol* word[lanes];
    Output* out[lanes];
    uint32_t state[lanes];
    for (int i = 0; i < lanes; ++i) {
        word[i] = words + (first + i) * all.length;
        out[i] = outputs + (first + i) * all.length;
        state[i] = uint32_t(all.starts[first + i]);
    }
    for (int64_t begin = 0; begin < all.length; begin += BLOCK) {
        const int64_t end = std::min(all.length, begin + BLOCK);
        for (int i = 0; i < lanes; ++i) {
            const int64_t bad = first_unknown(word[i], begin, end, uint64_t(symbols));
            if (bad >= 0) return (first + i) * all.length + bad;
        }
        for (int64_t t = begin; t < end; ++t)
            for (int i = 0; i < lanes; ++i) {
                const int64_t entry = int64_t(word[i][t]) * states + state[i];
                out[i][t] = readout[entry];
                state[i] = tables[entry];
            }
    }
    for (int i = 0; i < lanes; ++i) all.finals[first + i] = int32_t(state[i]);
    return -1;
}

template <class State, class Symbol, class Output>
int64_t output_words(const State* tables, const Output* readout, int64_t symbols, int64_t states, const Symbol* words,
                     Output* outputs, const Words& all, int threads) {
    std::vector<int64_t> bad(std::max<int64_t>(all.count, 1), -1);
    exactstate::parallel_ranges(all.count, threads, [&](int64_t begin, int64_t end) {
        int64_t first = begin;
        for (; first + LANES <= end; first += LANES)
            bad[first] = output_lanes<State, Symbol, Output, LANES>(tables, readout, symbols, states, words, outputs, all, first);
        for (; first < end; ++first)
            bad[first] = output_lanes<State, Symbol, Output, 1>(tables, readout, symbols, states, words, outputs, all, first);
    });
    for (int64_t place : bad)
        if (place >= 0) return place;
    return -1;
}

template <class State, class Output>
int64_t output_symbols(const State* tables, const void* readout, int64_t symbols, int64_t states, const void* words,
                       int symbol_bytes, void* outputs, const Words& all, int threads) {
    const auto* read = static_cast<const Output*>(readout);
    auto* out = static_cast<Output*>(outputs);
    switch (symbol_bytes) {
        case 1: return output_words(tables, read, symbols, states, static_cast<const uint8_t*>(words), out, all, threads);
        case 2: return output_words(tables, read, symbols, states, static_cast<const uint16_t*>(words), out, all, threads);
        case 4: return output_words(tables, read, symbols, states, static_cast<const int32_t*>(words), out, all, threads);
        case 8: return output_words(tables, read, symbols, states, static_cast<const int64_t*>(words), out, all, threads);
    }
    return -2;
}

template <class State>
int64_t output_any(const void* tables, const void* readout, int output_bytes, int64_t symbols, int64_t states,
                   const void* words, int symbol_bytes, void* outputs, const Words& all, int threads) {
    const auto* next = static_cast<const State*>(tables);
    switch (output_bytes) {
        case 1: return output_symbols<State, uint8_t>(next, readout, symbols, states, words, symbol_bytes, outputs, all, threads);
        case 2: return output_symbols<State, uint16_t>(next, readout, symbols, states, words, symbol_bytes, outputs, all, threads);
        case 4: return output_symbols<State, uint32_t>(next, readout, symbols, states, words, symbol_bytes, outputs, all, threads);
    }
    return -2;
}

}  // namespace

// tables and readout: symbols x states, words and outputs: count x length, all C-contiguous. Returns as below.
EXACTSTATE_API int64_t exactstate_output_words(const void* tables, int state_bytes, const void* readout, int output_bytes,
                                       int64_t symbols, int64_t states, const void* words, int symbol_bytes,
                                       int64_t count, int64_t length, const int32_t* starts, void* outputs,
                                       int32_t* finals, int threads) {
    const Words all{count, length, starts, finals};
    switch (state_bytes) {
        case 1: return output_any<uint8_t>(tables, readout, output_bytes, symbols, states, words, symbol_bytes, outputs, all, threads);
        case 2: return output_any<uint16_t>(tables, readout, output_bytes, symbols, states, words, symbol_bytes, outputs, all, threads);
        case 4: return output_any<uint32_t>(tables, readout, output_bytes, symbols, states, words, symbol_bytes, outputs, all, threads);
    }
    return -2;
}

// tables: symbols x states, words: count x length, path: count x length or null, all C-contiguous.
// Returns -1, or the flat position of a symbol that the machine does not have, or -2 for a type it does not take.
EXACTSTATE_API int64_t exactstate_run_words(const void* tables, int state_bytes, int64_t symbols, int64_t states,
                                    const void* words, int symbol_bytes, int64_t count, int64_t length,
                                    const int32_t* starts, void* path, int32_t* finals, int threads) {
    const Words all{count, length, starts, finals};
    switch (state_bytes) {
        case 1:
            return run_symbols(static_cast<const uint8_t*>(tables), symbols, states, words, symbol_bytes,
                               static_cast<uint8_t*>(path), all, threads);
        case 2:
            return run_symbols(static_cast<const uint16_t*>(tables), symbols, states, words, symbol_bytes,
                               static_cast<uint16_t*>(path), all, threads);
        case 4:
            return run_symbols(static_cast<const uint32_t*>(tables), symbols, states, words, symbol_bytes,
                               static_cast<uint32_t*>(path), all, threads);
    }
    return -2;
}
