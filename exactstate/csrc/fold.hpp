// A prefix tree that turns into a graph: one node is folded into another, with its whole subtree, and that is undone.
//
// Folding merges the subtree of a node into the graph of another, so that both have one child for a symbol. A place is
// what has outputs: a node (Moore), or the edge into it (Mealy).
//
// Exact: two different outputs at one place contradict each other; an agreeing output scores minus its log prior.
// Noisy: nothing contradicts; a score is the logarithm of a Bayes factor, in integer units. With prior p of an output,
// right outputs of weight a each and wrong ones of weight b, a histogram h of N outputs weighs
//     M(h) = max over outputs o of  p[o] + a h[o] + b (N - h[o]),
// and folding h into g adds M(g + h) - M(g) - M(h). exactstate/learning/blue_fringe.py has the same in Python.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace exactstate {

constexpr int32_t NONE = -1;
constexpr int64_t IMPOSSIBLE = INT64_MIN;

struct Histogram {
    int32_t output = NONE, others = NONE;  // the first output, and a list of others
    int64_t count = 0, weight = 0;
};

struct Other {
    int32_t output, next;
    int64_t count;
};

struct Edge {
    int32_t symbol, target, next, place;
};

// A set of nodes, in which several share a bit.
struct NodeSet {
    uint64_t words[4] = {};

    void add(int32_t node) { words[(node >> 6) & 3] |= uint64_t(1) << (node & 63); }
    void add(const NodeSet& other) {
        for (int i = 0; i < 4; ++i) words[i] |= other.words[i];
    }
    bool meets(const NodeSet& other) const {
        uint64_t both = 0;
        for (int i = 0; i < 4; ++i) both |= words[i] & other.words[i];
        return both != 0;
    }
};

struct Settings {
    bool mealy, noisy;
    int64_t symbols, outputs, right, wrong;
};

struct Graph {
    Settings set;
    std::vector<int64_t> prior, best_prior;  // symbols x outputs (Mealy) or outputs (Moore); the largest of each row
    std::vector<Edge> edges;
    std::vector<int32_t> head;     // of a node's list of edges; a state has a row of `table` instead
    std::vector<int32_t> number;   // of a node that is a state
    std::vector<int32_t> states;   // their nodes
    std::vector<int32_t> table;    // states x symbols: edges
    std::vector<int32_t> into;     // the node that another was merged into
    std::vector<int64_t> visits, rank;
    std::vector<int32_t> seen;     // the output at every place (exact)
    std::vector<Histogram> histograms;  // the outputs at every place (noisy)
    std::vector<Other> others;
    int64_t work = 0;              // pairs of nodes that were folded

    // A region is a state alone, or the whole tree of a child that is not one; it is named by its root. The score of a
    // fold depends on the trees that it enters and on the states that it adds something to, not on other states: their
    // edges to states and their outputs never change.
    NodeSet reached;  // regions that the score of the last fold depends on
    NodeSet changed;  // regions that it changed

    void promote(int32_t node) {
        number[node] = int32_t(states.size());
        states.push_back(node);
        table.resize(states.size() * set.symbols, NONE);
        int32_t* row = table.data() + number[node] * set.symbols;
        for (int32_t e = head[node]; e != NONE; e = edges[e].next) row[edges[e].symbol] = e;
        head[node] = NONE;
    }

    // Fold the target of an edge into a state: the score. Undone by `undo`.
    int64_t attempt(int32_t edge, int32_t state) {
        const int32_t child = edges[edge].target;
        edges[edge].target = states[state];
        const int64_t score = fold_any<false>(states[state], child);
        undo();
        edges[edge].target = child;
        return score;
    }

    // Fold the target of an edge into a state for good; `see(edge)` gets the edges that states gained, `grown(node)` the
    // nodes that something was added to.
    template <class See, class Grown>
    void merge(int32_t edge, int32_t state, See see, Grown grown) {
        const int32_t child = edges[edge].target;
        edges[edge].target = states[state];
        fold_any<true>(states[state], child);
        const size_t first = edges.size() - links.size();
        for (size_t i = 0; i < links.size(); ++i)
            if (number[links[i].first] != NONE) see(int32_t(first + i));
        for (const Pair& pair : pairs) grown(pair.left);
        links.clear(), first_seen.clear(), kept.clear(), counts.clear();
    }

    void observe(int32_t place, int32_t output, int64_t count, int32_t symbol) {
        if (!set.noisy) {
            seen[place] = output;
            return;
        }
        add(histograms[place], output, count);
        histograms[place].weight = weight(histograms[place], symbol);
        counts.clear();
    }

  private:
    struct Pair {
        int32_t left, right, region;
    };
    std::vector<Pair> pairs;
    // What a trial changed.
    std::vector<std::pair<int32_t, int32_t>> links;  // a node and the symbol of its new edge
    std::vector<int32_t> first_seen;                 // places that had no output
    std::vector<std::pair<int32_t, Histogram>> kept;
    std::vector<std::pair<int32_t, int64_t>> counts;
    size_t others_before = 0;

    int64_t weight(const Histogram& h, int32_t symbol) const {
        if (h.output == NONE) return 0;
        const int64_t* p = prior.data() + (set.mealy ? symbol * set.outputs : 0);
        int64_t total = h.count;
        for (int32_t o = h.others; o != NONE; o = others[o].next) total += others[o].count;
        int64_t best = best_prior[set.mealy ? symbol : 0] + set.wrong * total;
        best = std::max(best, p[h.output] + set.right * h.count + set.wrong * (total - h.count));
        for (int32_t o = h.others; o != NONE; o = others[o].next)
            best = std::max(best, p[others[o].output] + set.right * others[o].count +
                                      set.wrong * (total - others[o].count));
        return best;
    }

    void add(Histogram& h, int32_t output, int64_t count) {
        if (h.output == NONE || h.output == output) {
            h.output = output;
            h.count += count;
            return;
        }
        for (int32_t o = h.others; o != NONE; o = others[o].next)
            if (others[o].output == output) {
                counts.push_back({o, others[o].count});
                others[o].count += count;
                return;
            }
        others.push_back({output, h.others, count});
        h.others = int32_t(others.size()) - 1;
    }

    // Fold the outputs at one place into those at another: the score, or IMPOSSIBLE.
    template <bool NOISY>
    int64_t combine(int32_t to, int32_t from, int32_t symbol, int32_t region) {
        if (!NOISY) {
            const int32_t output = seen[from];
            if (output == NONE) return 0;
            if (seen[to] == output) return -prior[(set.mealy ? symbol * set.outputs : 0) + output];
            if (seen[to] != NONE) return IMPOSSIBLE;
            seen[to] = output;
            first_seen.push_back(to);
            changed.add(region);
            return 0;
        }
        const Histogram source = histograms[from];
        if (source.output == NONE) return 0;
        Histogram& target = histograms[to];
        kept.push_back({to, target});
        const int64_t before = target.weight + source.weight;
        add(target, source.output, source.count);
        for (int32_t o = source.others; o != NONE; o = others[o].next) {
            const Other other = others[o];
            add(target, other.output, other.count);
        }
        target.weight = weight(target, symbol);
        return target.weight - before;
    }

    int32_t find(int32_t node, int32_t symbol) const {
        if (number[node] != NONE) return table[number[node] * set.symbols + symbol];
        for (int32_t e = head[node]; e != NONE; e = edges[e].next)
            if (edges[e].symbol == symbol) return e;
        return NONE;
    }

    void link(int32_t node, Edge edge) {
        links.push_back({node, edge.symbol});
        int32_t& first = number[node] != NONE ? table[number[node] * set.symbols + edge.symbol] : head[node];
        edge.next = number[node] != NONE ? NONE : first;
        edges.push_back(edge);
        first = int32_t(edges.size()) - 1;
    }

    template <bool COMMIT>
    int64_t fold_any(int32_t one, int32_t other) {
        return set.noisy ? fold<COMMIT, true>(one, other) : fold<COMMIT, false>(one, other);
    }

    template <bool COMMIT, bool NOISY>
    int64_t fold(int32_t one, int32_t other) {
        pairs.assign(1, {one, other, one});
        reached = changed = NodeSet();
        others_before = others.size();
        int64_t score = 0;
        for (size_t next = 0; next < pairs.size(); ++next) {  // breadth-first: short words contradict most often
            const auto [left, right, region] = pairs[next];
            const bool is_state = number[left] != NONE;
            if (!is_state) reached.add(region);
            ++work;
            if (!set.mealy) {
                const int64_t gain = combine<NOISY>(left, right, 0, region);
                if (gain == IMPOSSIBLE) return IMPOSSIBLE;
                score += gain;
            }
            for (int32_t e = head[right]; e != NONE;) {
                const Edge edge = edges[e];
                e = edge.next;
                const int32_t same = find(left, edge.symbol);
                if (same == NONE) {
                    link(left, edge);
                    changed.add(region);
                    continue;
                }
                if (set.mealy) {
                    const int64_t gain = combine<NOISY>(edges[same].place, edge.place, edge.symbol, region);
                    if (gain == IMPOSSIBLE) return IMPOSSIBLE;
                    score += gain;
                }
                // nothing is left to compare at the end of a word
                if (COMMIT || !set.mealy || head[edge.target] != NONE)
                    pairs.push_back({edges[same].target, edge.target, is_state ? edges[same].target : region});
            }
            if (COMMIT) {
                into[right] = left;
                visits[left] += visits[right];
                rank[left] = std::min(rank[left], rank[right]);  // which of the two is kept depends on the traversal
            }
        }
        reached.add(changed);
        return score;
    }

    void undo() {
        for (size_t i = links.size(); i-- > 0;) {
            const auto [node, symbol] = links[i];
            if (number[node] != NONE)
                table[number[node] * set.symbols + symbol] = NONE;
            else
                head[node] = edges.back().next;
            edges.pop_back();
        }
        for (int32_t place : first_seen) seen[place] = NONE;
        for (size_t i = counts.size(); i-- > 0;) others[counts[i].first].count = counts[i].second;
        for (size_t i = kept.size(); i-- > 0;) histograms[kept[i].first] = kept[i].second;
        others.resize(others_before);
        links.clear(), first_seen.clear(), kept.clear(), counts.clear();
    }
};

}  // namespace exactstate
