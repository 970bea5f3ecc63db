// A prefix tree of traces: a node for every prefix, and how often each output was seen there.
//
// Node 0 is the empty word. Children are found in one hash table with open addressing, keyed by parent and symbol.
// Nodes are numbered in the order in which traces reach them, so that the tree does not depend on the hash table.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int32_t NONE = -1;

struct Observation {
    int32_t node, output;
    int64_t count, line;
    int32_t next;  // of the same node
};

struct Tree {
    std::vector<int32_t> parent{NONE}, symbol{NONE}, first{NONE}, last{NONE};
    std::vector<int64_t> visits{0};
    std::vector<Observation> observations;
    std::vector<int32_t> slots = std::vector<int32_t>(1024, NONE);

    static uint64_t hash(int32_t node, int32_t letter) {
        uint64_t key = (uint64_t(uint32_t(node)) << 32) | uint32_t(letter);
        key ^= key >> 31;
        key *= 0x9E3779B97F4A7C15ull;
        return key ^ (key >> 29);
    }

    void grow() {
        slots.assign(slots.size() * 2, NONE);
        for (size_t node = 1; node < parent.size(); ++node) {
            uint64_t at = hash(parent[node], symbol[node]) & (slots.size() - 1);
            while (slots[at] != NONE) at = (at + 1) & (slots.size() - 1);
            slots[at] = int32_t(node);
        }
    }

    int32_t child(int32_t node, int32_t letter) {
        uint64_t at = hash(node, letter) & (slots.size() - 1);
        for (; slots[at] != NONE; at = (at + 1) & (slots.size() - 1)) {
            const int32_t found = slots[at];
            if (parent[found] == node && symbol[found] == letter) return found;
        }
        const int32_t made = int32_t(parent.size());
        slots[at] = made;
        parent.push_back(node);
        symbol.push_back(letter);
        first.push_back(NONE);
        last.push_back(NONE);
        visits.push_back(0);
        if (parent.size() * 2 > slots.size()) grow();
        return made;
    }

    void observe(int32_t node, int32_t output, int64_t count, int64_t line) {
        if (output == NONE) return;
        for (int32_t o = first[node]; o != NONE; o = observations[o].next)
            if (observations[o].output == output) {
                observations[o].count += count;
                if (line < observations[o].line) observations[o].line = line;
                return;
            }
        const int32_t made = int32_t(observations.size());
        observations.push_back({node, output, count, line, NONE});
        if (first[node] == NONE)
            first[node] = made;
        else
            observations[last[node]].next = made;
        last[node] = made;
    }
};

}  // namespace

extern "C" {

void* exactstate_tree_new() { return new Tree(); }

void exactstate_tree_free(void* handle) { delete static_cast<Tree*>(handle); }

int64_t exactstate_tree_nodes(void* handle) { return int64_t(static_cast<Tree*>(handle)->parent.size()); }

int64_t exactstate_tree_observations(void* handle) { return int64_t(static_cast<Tree*>(handle)->observations.size()); }

// Add traces, one after another in `symbols` and `outputs`; `initial` is the output before the first symbol.
// The number of traces added: fewer than `count` when another one might exceed `most` nodes.
int64_t exactstate_tree_add(void* handle, const int32_t* symbols, const int32_t* outputs, const int64_t* lengths,
                        const int32_t* initial, const int64_t* lines, int64_t count, int64_t most) {
    Tree& tree = *static_cast<Tree*>(handle);
    for (int64_t trace = 0; trace < count; ++trace) {
        if (int64_t(tree.parent.size()) + lengths[trace] > most) return trace;
        int32_t node = 0;
        ++tree.visits[0];
        tree.observe(0, initial[trace], 1, lines[trace]);
        for (int64_t t = 0; t < lengths[trace]; ++t) {
            node = tree.child(node, symbols[t]);
            ++tree.visits[node];
            tree.observe(node, outputs[t], 1, lines[trace]);
        }
        symbols += lengths[trace];
        outputs += lengths[trace];
    }
    return count;
}

// Add another tree, given by its arrays; a parent comes before its children.
void exactstate_tree_merge(void* handle, const int32_t* parent, const int32_t* symbol, const int64_t* visits,
                       int64_t nodes, const int32_t* node, const int32_t* output, const int64_t* count,
                       const int64_t* line, int64_t observations) {
    Tree& tree = *static_cast<Tree*>(handle);
    std::vector<int32_t> place(size_t(nodes), 0);
    for (int64_t i = 0; i < nodes; ++i) {
        if (i) place[i] = tree.child(place[parent[i]], symbol[i]);
        tree.visits[place[i]] += visits[i];
    }
    for (int64_t o = 0; o < observations; ++o) tree.observe(place[node[o]], output[o], count[o], line[o]);
}

// The place of every node when prefixes are sorted by length, then by their symbols.
void exactstate_tree_ranks(const int32_t* parent, const int32_t* symbol, int64_t nodes, int64_t* rank) {
    std::vector<int32_t> begin(nodes + 1, 0), children(nodes), queue{0};
    for (int64_t c = 1; c < nodes; ++c) ++begin[parent[c] + 1];
    for (int64_t q = 0; q < nodes; ++q) begin[q + 1] += begin[q];
    std::vector<int32_t> place(begin);
    for (int64_t c = 1; c < nodes; ++c) children[place[parent[c]]++] = int32_t(c);
    queue.reserve(nodes);
    for (int64_t i = 0; i < nodes; ++i) {
        const int32_t q = queue[i];
        const auto first = children.begin() + begin[q], last = children.begin() + begin[q + 1];
        std::sort(first, last, [symbol](int32_t a, int32_t b) { return symbol[a] < symbol[b]; });
        queue.insert(queue.end(), first, last);
        rank[q] = i;
    }
}

void exactstate_tree_export(void* handle, int32_t* parent, int32_t* symbol, int64_t* visits, int32_t* node,
                        int32_t* output, int64_t* count, int64_t* line) {
    const Tree& tree = *static_cast<Tree*>(handle);
    std::memcpy(parent, tree.parent.data(), tree.parent.size() * sizeof(int32_t));
    std::memcpy(symbol, tree.symbol.data(), tree.symbol.size() * sizeof(int32_t));
    std::memcpy(visits, tree.visits.data(), tree.visits.size() * sizeof(int64_t));
    for (size_t o = 0; o < tree.observations.size(); ++o) {
        node[o] = tree.observations[o].node;
        output[o] = tree.observations[o].output;
        count[o] = tree.observations[o].count;
        line[o] = tree.observations[o].line;
    }
}

}  // extern "C"
