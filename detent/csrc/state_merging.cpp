// Blue-fringe state merging of a prefix tree, with outputs on states (Moore) or on transitions (Mealy).
//
// Some nodes are states (red). A child of a state that is not one itself (blue) is folded into a state, or becomes one.
// Folding merges the subtree of the blue node into the graph of the state, so that both have one child for a symbol; a
// trial is undone. An edge or a node has a histogram of outputs: its first output, and a list of others.
//
// Exact: two different outputs at one place contradict each other; an agreeing output scores minus its log prior.
// Noisy: nothing contradicts; a score is the logarithm of a Bayes factor, in integer units. With prior p of an output,
// right outputs of weight a each and wrong ones of weight b, a histogram h of N outputs weighs
//     M(h) = max over outputs o of  p[o] + a h[o] + b (N - h[o]),
// and folding h into g adds M(g + h) - M(g) - M(h). detent/learning/blue_fringe.py has the same in Python.
#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

constexpr int32_t NONE = -1;
constexpr int64_t IMPOSSIBLE = INT64_MIN;
enum Order { VISITS, EVIDENCE, MARGIN, SHORTLEX };

struct Histogram {
    int32_t output = NONE;
    int64_t count = 0;
    int32_t others = NONE;
};

struct Other {
    int32_t output;
    int64_t count;
    int32_t next;
};

struct Edge {
    int32_t symbol, target, next, histogram;
};

struct Change {
    enum Kind { HEAD, HISTOGRAM, COUNT } kind;
    int32_t at;
    int32_t head;
    Histogram before;
    int64_t count;
};

struct Settings {
    bool mealy, noisy;
    int order;
    int64_t outputs, right, wrong, threshold;
};

struct Merger {
    Settings set;
    std::vector<int64_t> prior, best_prior;  // symbols x outputs (Mealy) or outputs (Moore); the largest of each row
    std::vector<Edge> edges;
    std::vector<int32_t> head, into;
    std::vector<int64_t> visits, rank;
    std::vector<Histogram> histograms;
    std::vector<Other> others;
    std::vector<int32_t> states;
    std::vector<uint8_t> red;
    std::vector<Change> changes;
    std::vector<std::pair<int32_t, int32_t>> pairs;
    std::vector<std::vector<uint8_t>> refused;  // by blue node: states that contradict it
    int64_t work = 0;

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

    void note(int32_t at) { changes.push_back({Change::HISTOGRAM, at, 0, histograms[at], 0}); }

    void add(int32_t at, int32_t output, int64_t count) {
        Histogram& h = histograms[at];
        if (h.output == NONE || h.output == output) {
            note(at);
            h.output = output;
            h.count += count;
            return;
        }
        for (int32_t o = h.others; o != NONE; o = others[o].next)
            if (others[o].output == output) {
                changes.push_back({Change::COUNT, o, 0, {}, others[o].count});
                others[o].count += count;
                return;
            }
        note(at);
        others.push_back({output, count, h.others});
        h.others = int32_t(others.size()) - 1;
    }

    // Fold histogram `from` into `to`; the score, or IMPOSSIBLE.
    int64_t combine(int32_t to, int32_t from, int32_t symbol) {
        const Histogram source = histograms[from];
        if (source.output == NONE) return 0;
        const Histogram& target = histograms[to];
        if (!set.noisy) {
            if (target.output == NONE) {
                add(to, source.output, source.count);
                return 0;
            }
            if (target.output != source.output) return IMPOSSIBLE;
            return -prior[(set.mealy ? symbol * set.outputs : 0) + source.output];
        }
        const int64_t before = weight(target, symbol) + weight(source, symbol);
        add(to, source.output, source.count);
        for (int32_t o = source.others; o != NONE; o = others[o].next) {
            const Other other = others[o];
            add(to, other.output, other.count);
        }
        return weight(histograms[to], symbol) - before;
    }

    int32_t find(int32_t node, int32_t symbol) const {
        for (int32_t e = head[node]; e != NONE; e = edges[e].next)
            if (edges[e].symbol == symbol) return e;
        return NONE;
    }

    // Merge the subtree of `other` into the graph of `one`.
    int64_t fold(int32_t one, int32_t other, bool commit) {
        pairs.assign(1, {one, other});
        int64_t score = 0;
        for (size_t next = 0; next < pairs.size(); ++next) {  // breadth-first: short words contradict most often
            const auto [left, right] = pairs[next];
            ++work;
            if (!set.mealy) {
                const int64_t gain = combine(left, right, 0);
                if (gain == IMPOSSIBLE) return IMPOSSIBLE;
                score += gain;
            }
            for (int32_t e = head[right]; e != NONE; e = edges[e].next) {
                const Edge edge = edges[e];
                const int32_t same = find(left, edge.symbol);
                if (same == NONE) {
                    changes.push_back({Change::HEAD, left, head[left], {}, 0});
                    edges.push_back({edge.symbol, edge.target, head[left], edge.histogram});
                    head[left] = int32_t(edges.size()) - 1;
                    continue;
                }
                if (set.mealy) {
                    const int64_t gain = combine(edges[same].histogram, edge.histogram, edge.symbol);
                    if (gain == IMPOSSIBLE) return IMPOSSIBLE;
                    score += gain;
                }
                pairs.push_back({edges[same].target, edge.target});
            }
            if (commit) {
                into[right] = left;
                visits[left] += visits[right];
                rank[left] = std::min(rank[left], rank[right]);  // which of the two is kept depends on the traversal
            }
        }
        return score;
    }

    void undo() {
        for (size_t i = changes.size(); i-- > 0;) {
            const Change& change = changes[i];
            if (change.kind == Change::HEAD) {
                head[change.at] = change.head;
                edges.pop_back();
            } else if (change.kind == Change::COUNT) {
                others[change.at].count = change.count;
            } else {
                if (histograms[change.at].others != change.before.others) others.pop_back();
                histograms[change.at] = change.before;
            }
        }
        changes.clear();
    }

    int64_t attempt(int32_t edge, int32_t state) {
        const int32_t child = edges[edge].target;
        edges[edge].target = state;
        const int64_t score = fold(state, child, false);
        undo();
        edges[edge].target = child;
        return score;
    }

    void merge(int32_t edge, int32_t state) {
        const int32_t child = edges[edge].target;
        edges[edge].target = state;
        fold(state, child, true);
        changes.clear();
        if (!refused.empty()) std::vector<uint8_t>().swap(refused[child]);
    }

    void promote(int32_t node) {
        red[node] = 1;
        states.push_back(node);
        if (!refused.empty()) std::vector<uint8_t>().swap(refused[node]);
    }

    bool contradicts(int32_t child, size_t state) const {
        return !refused.empty() && state < refused[child].size() && refused[child][state];
    }

    void remember_contradiction(int32_t child, size_t state) {
        if (refused.empty()) refused.resize(head.size());
        if (refused[child].size() <= state) refused[child].resize(states.size() + 16, 0);
        refused[child][state] = 1;
    }

    struct Best {
        int64_t score, state, second;
    };

    // The best state for a blue edge, the first on a tie, and the next best score.
    Best best_state(int32_t edge, bool cache) {
        const int32_t child = edges[edge].target;
        int64_t best = IMPOSSIBLE, which = -1, second = IMPOSSIBLE;
        for (size_t s = 0; s < states.size(); ++s) {
            if (cache && contradicts(child, s)) continue;
            const int64_t score = attempt(edge, states[s]);
            if (score == IMPOSSIBLE) {
                if (cache) remember_contradiction(child, s);
                continue;
            }
            if (which < 0 || score > best)
                second = best, best = score, which = int64_t(s);
            else
                second = std::max(second, score);
        }
        return {best, which, second};
    }

    std::vector<int32_t> fringe() const {
        std::vector<int32_t> blue;
        for (int32_t state : states)
            for (int32_t e = head[state]; e != NONE; e = edges[e].next)
                if (!red[edges[e].target]) blue.push_back(e);
        std::sort(blue.begin(), blue.end(), [this](int32_t a, int32_t b) {
            const int32_t x = edges[a].target, y = edges[b].target;
            if (set.order != SHORTLEX && visits[x] != visits[y]) return visits[x] > visits[y];
            return rank[x] < rank[y];
        });
        return blue;
    }

    bool enough(int64_t score) const { return score != IMPOSSIBLE && (!set.noisy || score >= set.threshold); }

    // One merge or promotion; false when nothing is left.
    bool step() {
        const std::vector<int32_t> blue = fringe();
        if (blue.empty()) return false;
        if (set.order != EVIDENCE && set.order != MARGIN) {
            const Best found = best_state(blue[0], false);
            if (enough(found.score))
                merge(blue[0], states[found.state]);
            else
                promote(edges[blue[0]].target);
            return true;
        }
        int64_t best = IMPOSSIBLE, state = -1;
        int32_t edge = NONE;
        for (int32_t e : blue) {
            const Best found = best_state(e, !set.noisy);
            if (!enough(found.score)) {
                promote(edges[e].target);
                return true;
            }
            const int64_t second = found.second == IMPOSSIBLE ? 0 : found.second;
            const int64_t key = set.order == MARGIN ? found.score - second : found.score;
            if (edge == NONE || key > best) best = key, state = found.state, edge = e;
        }
        merge(edge, states[state]);
        return true;
    }
};

}  // namespace

extern "C" {

void* detent_merger_new(const int32_t* parent, const int32_t* symbol, const int64_t* visits, int64_t nodes,
                        const int32_t* node, const int32_t* output, const int64_t* count, int64_t observations,
                        int mealy, int noisy, int order, const int64_t* rank, int64_t symbols, int64_t outputs, const int64_t* prior,
                        int64_t right, int64_t wrong, int64_t threshold) {
    Merger* merger = new Merger();
    merger->set = {mealy != 0, noisy != 0, order, outputs, right, wrong, threshold};
    const int64_t rows = mealy ? symbols : 1;
    merger->prior.assign(prior, prior + rows * outputs);
    for (int64_t a = 0; a < rows; ++a)
        merger->best_prior.push_back(*std::max_element(prior + a * outputs, prior + (a + 1) * outputs));
    merger->head.assign(nodes, NONE);
    merger->into.assign(nodes, NONE);
    merger->visits.assign(visits, visits + nodes);
    merger->rank.assign(rank, rank + nodes);
    merger->histograms.resize(nodes);
    merger->red.assign(nodes, 0);
    merger->edges.resize(nodes);
    merger->edges[0] = {NONE, NONE, NONE, NONE};
    for (int64_t i = nodes - 1; i > 0; --i) {  // so that lists begin with the child that was seen first
        merger->edges[i] = {symbol[i], int32_t(i), merger->head[parent[i]], int32_t(i)};
        merger->head[parent[i]] = int32_t(i);
    }
    for (int64_t o = 0; o < observations; ++o) {
        Histogram& h = merger->histograms[node[o]];
        if (h.output == NONE)
            h.output = output[o], h.count = count[o];
        else
            merger->add(node[o], output[o], count[o]);
    }
    merger->changes.clear();
    merger->promote(0);
    return merger;
}

void detent_merger_free(void* handle) { delete static_cast<Merger*>(handle); }

// Go on until nothing is left (1), `most_states` are exceeded (2), or `work` node pairs have been folded (0).
int detent_merger_run(void* handle, int64_t most_states, int64_t work) {
    Merger& merger = *static_cast<Merger*>(handle);
    const int64_t stop = merger.work + work;
    while (merger.work < stop) {
        if (!merger.step()) return 1;
        if (int64_t(merger.states.size()) > most_states) return 2;
    }
    return 0;
}

int64_t detent_merger_states(void* handle) { return int64_t(static_cast<Merger*>(handle)->states.size()); }

int64_t detent_merger_work(void* handle) { return static_cast<Merger*>(handle)->work; }

// The state number of every node of the tree.
void detent_merger_export(void* handle, int32_t* state_of) {
    const Merger& merger = *static_cast<Merger*>(handle);
    std::vector<int32_t> number(merger.head.size(), NONE);
    for (size_t s = 0; s < merger.states.size(); ++s) number[merger.states[s]] = int32_t(s);
    std::vector<int32_t> path;
    for (size_t node = 0; node < merger.head.size(); ++node) {
        int32_t at = int32_t(node);
        path.clear();
        while (number[at] == NONE && merger.into[at] != NONE) {
            path.push_back(at);
            at = merger.into[at];
        }
        for (int32_t passed : path) number[passed] = number[at];
        state_of[node] = number[at];
    }
}

}  // extern "C"
