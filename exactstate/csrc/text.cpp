// Text to symbol numbers and back: words are looked up in a hash table, symbols of several words in a trie of words.
#include <cstring>

#include "parallel.hpp"

namespace {

// A dictionary of words and the symbols that they make, laid out by exactstate/runtime/tokenizer.py.
struct Dictionary {
    const uint8_t* letters;  // of all words
    const int64_t* begins;   // words + 1: where each begins among them
    const int32_t* slots;    // hash table of words, -1 where empty
    int64_t slot_mask;
    const int32_t* first;    // words: the node that the word leads to from the root, -1 for none
    const int64_t* edges;    // hash table of (node, word), -1 where empty
    const int32_t* children; // the nodes they lead to
    int64_t edge_mask, words;
    const int32_t* symbols;  // nodes: the symbol that ends there, -1 for none
    const uint8_t* inner;    // nodes: whether words may follow
};

inline bool blank(uint8_t letter) { return letter == ' ' || (letter >= 9 && letter <= 13); }

inline uint64_t mixed(uint64_t x) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ull;
    x ^= x >> 32;
    return x;
}

inline uint64_t hash_of(const uint8_t* word, int64_t length) {
    uint64_t hash = 1469598103934665603ull;
    for (int64_t i = 0; i < length; ++i) hash = (hash ^ word[i]) * 1099511628211ull;
    return mixed(hash);
}

inline int32_t find_word(const Dictionary& all, const uint8_t* word, int64_t length) {
    for (uint64_t at = hash_of(word, length);; ++at) {
        const int32_t found = all.slots[at & uint64_t(all.slot_mask)];
        if (found < 0) return -1;
        const int64_t begin = all.begins[found];
        if (all.begins[found + 1] - begin == length && !std::memcmp(all.letters + begin, word, size_t(length))) return found;
    }
}

inline int32_t follow(const Dictionary& all, int32_t node, int32_t word) {
    if (node == 0) return all.first[word];
    const int64_t key = int64_t(node) * all.words + word;
    for (uint64_t at = mixed(uint64_t(key));; ++at) {
        const int64_t found = all.edges[at & uint64_t(all.edge_mask)];
        if (found == key) return all.children[at & uint64_t(all.edge_mask)];
        if (found < 0) return -1;
    }
}

}  // namespace

// The hash of a word, and of a pair of a node and a word: the tables are filled with these.
EXACTSTATE_API uint64_t exactstate_word_hash(const uint8_t* word, int64_t length) { return hash_of(word, length); }
EXACTSTATE_API uint64_t exactstate_edge_hash(int64_t key) { return mixed(uint64_t(key)); }

// Reads symbols, the longest that fits first, as long as it is decided which they are; a symbol does not go beyond its
// line. `numbers` has room for a symbol for every two letters, `breaks` for an end of line for every letter. Writes to
// `counts`: symbols, ends of lines, letters consumed. Returns 0, or 1 if an unknown word follows.
EXACTSTATE_API int exactstate_tokenize(const Dictionary* dictionary, const uint8_t* text, int64_t length, int final,
                               int32_t* numbers, int64_t* breaks, int64_t* counts) {
    const Dictionary& all = *dictionary;
    int64_t symbols = 0, ends = 0, at = 0;
    int unknown = 0;
    while (at < length) {
        if (text[at] == '\n') {
            breaks[ends++] = symbols;
            ++at;
            continue;
        }
        if (blank(text[at])) {
            ++at;
            continue;
        }
        int64_t from = at, end = at;
        int32_t node = 0, best = -1;
        bool decided = true;
        for (;;) {
            int64_t stop = from;
            while (stop < length && !blank(text[stop])) ++stop;
            if (stop == length && !final) {
                decided = false;
                break;
            }
            const int32_t word = find_word(all, text + from, stop - from);
            const int32_t child = word < 0 ? -1 : follow(all, node, word);
            if (child < 0) break;
            node = child;
            if (all.symbols[node] >= 0) {
                best = all.symbols[node];
                end = stop;
            }
            if (!all.inner[node]) break;
            from = stop;
            while (from < length && text[from] != '\n' && blank(text[from])) ++from;
            if (from == length) {
                decided = final;
                break;
            }
            if (text[from] == '\n') break;
        }
        if (!decided) break;
        if (best < 0) {
            unknown = 1;
            break;
        }
        numbers[symbols++] = best;
        at = end;
    }
    counts[0] = symbols;
    counts[1] = ends;
    counts[2] = at;
    return unknown;
}

// Writes the names of numbers, `between` them, a line end after every line that has any; empty names are not written.
// `ends` says before how many numbers each end of line stands. *begun says whether the line has something already.
// Returns how many bytes were written.
EXACTSTATE_API int64_t exactstate_write_names(const int32_t* numbers, int64_t count, const int64_t* ends, int64_t lines,
                                      const uint8_t* letters, const int64_t* begins, const uint8_t* between,
                                      int64_t between_length, int* begun, uint8_t* out) {
    uint8_t* const start = out;
    int64_t at = 0;
    for (int64_t line = 0; line <= lines; ++line) {
        const int64_t end = line < lines ? ends[line] : count;
        for (; at < end; ++at) {
            const int64_t begin = begins[numbers[at]], length = begins[numbers[at] + 1] - begin;
            if (!length) continue;
            if (*begun)
                for (int64_t i = 0; i < between_length; ++i) *out++ = between[i];
            for (int64_t i = 0; i < length; ++i) *out++ = letters[begin + i];
            *begun = 1;
        }
        if (line < lines && *begun) {
            *out++ = '\n';
            *begun = 0;
        }
    }
    return out - start;
}
