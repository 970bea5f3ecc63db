// Decode symbols (any integer type, or text) to letters that are in range, and letters to groups of letters.
#pragma once
#include <algorithm>
#include <cstdint>

#include "lanes.hpp"
#include "program.hpp"

namespace exactstate {
namespace {

// A word as it came: `bytes` of a symbol, and for text the letter that every byte stands for.
struct Word {
    const void* symbols;
    int bytes;
    const uint8_t* letter_of;
};

// Copies every symbol, cut to a letter; whether all are below `known`. Negative numbers wrap to huge ones.
#define EXACTSTATE_NARROW(Symbol, Unsigned, Letter)                                                          \
    EXACTSTATE_CLONES bool narrow(const Symbol* word, int64_t count, Unsigned known, Letter* letters) {      \
        Unsigned any = 0;                                                                                \
        for (int64_t t = 0; t < count; ++t) {                                                            \
            any |= Unsigned(Unsigned(word[t]) >= known);                                                 \
            letters[t] = Letter(word[t]);                                                                \
        }                                                                                                \
        return !any;                                                                                     \
    }
EXACTSTATE_NARROW(uint16_t, uint32_t, uint8_t)
EXACTSTATE_NARROW(uint16_t, uint32_t, uint16_t)
EXACTSTATE_NARROW(int32_t, uint32_t, uint8_t)
EXACTSTATE_NARROW(int32_t, uint32_t, uint16_t)
EXACTSTATE_NARROW(int64_t, uint64_t, uint8_t)
EXACTSTATE_NARROW(int64_t, uint64_t, uint16_t)
#undef EXACTSTATE_NARROW

EXACTSTATE_CLONES uint8_t largest(const uint8_t* letters, int64_t count) {
    uint8_t found = 0;
    for (int64_t t = 0; t < count; ++t) found = std::max(found, letters[t]);
    return found;
}

EXACTSTATE_CLONES void pairs(const uint8_t* letters, int64_t groups, int symbols, uint8_t* out) {
    for (int64_t g = 0; g < groups; ++g) out[g] = uint8_t(letters[2 * g] * symbols + letters[2 * g + 1]);
}

EXACTSTATE_CLONES void fours(const uint8_t* letters, int64_t groups, int symbols, uint8_t* out) {
    for (int64_t g = 0; g < groups; ++g) {
        const uint8_t* four = letters + 4 * g;
        out[g] = uint8_t(((four[0] * symbols + four[1]) * symbols + four[2]) * symbols + four[3]);
    }
}

// Groups of `pack` letters (1, 2 or 4) as one number each; `out` is only used when there is something to do.
inline const uint8_t* grouped(const uint8_t* letters, int64_t count, int64_t symbols, int64_t pack, uint8_t* out) {
    if (pack == 1) return letters;
    if (pack == 2) pairs(letters, count / 2, int(symbols), out);
    else fours(letters, count / 4, int(symbols), out);
    return out;
}

inline const uint16_t* grouped(const uint16_t* letters, int64_t, int64_t, int64_t, uint16_t*) { return letters; }

// The letters of [begin, begin + count), in place or in `out`; null when one of them is unknown.
inline const uint8_t* read_letters(const Word& word, int64_t begin, int64_t count, int64_t known, uint8_t* out) {
    bool good = false;
    switch (word.bytes) {
        case 1: {
            const uint8_t* here = static_cast<const uint8_t*>(word.symbols) + begin;
            if (word.letter_of) {
                for (int64_t t = 0; t < count; ++t) out[t] = word.letter_of[here[t]];
                here = out;
            }
            return largest(here, count) < known ? here : nullptr;
        }
        case 2: good = narrow(static_cast<const uint16_t*>(word.symbols) + begin, count, uint32_t(known), out); break;
        case 4: good = narrow(static_cast<const int32_t*>(word.symbols) + begin, count, uint32_t(known), out); break;
        case 8: good = narrow(static_cast<const int64_t*>(word.symbols) + begin, count, uint64_t(known), out); break;
    }
    return good ? out : nullptr;
}

inline const uint16_t* read_letters(const Word& word, int64_t begin, int64_t count, int64_t known, uint16_t* out) {
    bool good = false;
    switch (word.bytes) {
        case 1:
            for (int64_t t = 0; t < count; ++t) out[t] = static_cast<const uint8_t*>(word.symbols)[begin + t];
            return out;
        case 2: good = narrow(static_cast<const uint16_t*>(word.symbols) + begin, count, uint32_t(known), out); break;
        case 4: good = narrow(static_cast<const int32_t*>(word.symbols) + begin, count, uint32_t(known), out); break;
        case 8: good = narrow(static_cast<const int64_t*>(word.symbols) + begin, count, uint64_t(known), out); break;
    }
    return good ? out : nullptr;
}

// Where the first unknown symbol of [begin, begin + count) is.
inline int64_t first_unknown(const Word& word, int64_t begin, int64_t count, int64_t known) {
    for (int64_t t = begin; t < begin + count; ++t) {
        int64_t symbol = 0;
        switch (word.bytes) {
            case 1: symbol = static_cast<const uint8_t*>(word.symbols)[t]; break;
            case 2: symbol = static_cast<const uint16_t*>(word.symbols)[t]; break;
            case 4: symbol = static_cast<const int32_t*>(word.symbols)[t]; break;
            case 8: symbol = static_cast<const int64_t*>(word.symbols)[t]; break;
        }
        if (word.letter_of) symbol = word.letter_of[symbol];
        if (uint64_t(symbol) >= uint64_t(known)) return t;
    }
    return -1;
}

}  // namespace
}  // namespace exactstate
