// Blue-fringe state merging of a prefix tree, with outputs on states (Moore) or on transitions (Mealy).
//
// Some nodes are states (red). A child of a state that is not one itself (blue) is folded into a state, or becomes one;
// fold.hpp has the scores. The orders that compare all blue nodes keep their trials: one is valid until a region that
// it looked at changes, and a contradiction stays one. exactstate/learning/blue_fringe.py has the same in Python.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "fold.hpp"

namespace {

using exactstate::Graph;
using exactstate::IMPOSSIBLE;
using exactstate::NodeSet;
using exactstate::NONE;

enum Order { VISITS, EVIDENCE, MARGIN, SHORTLEX };

// The result of folding a blue node into a state.
struct Trial {
    int32_t state;
    int64_t score;
    NodeSet reached;  // regions that it depends on
    int64_t when;     // the number of changes for which it holds
};

struct Blue {
    int32_t edge, node;
    int64_t visits, rank;  // when it was found, or something was added to it
};

// The best state for a blue node, on a tie the one that most transitions lead to, and the next best score.
struct Best {
    int64_t score = IMPOSSIBLE, second = IMPOSSIBLE;
    int32_t state = NONE, entered = 0;

    void add(int64_t found, int32_t s, int32_t times) {
        if (found == IMPOSSIBLE) return;
        if (state == NONE || found > score || (found == score && times > entered))
            second = score, score = found, state = s, entered = times;
        else
            second = std::max(second, found);
    }
};

// The trials of a blue node with every state that does not contradict it.
struct Trials {
    std::vector<Trial> possible;
    int32_t tried = 0;  // states, among them those that contradict
    NodeSet reached;    // by all trials
    int64_t when = 0;
};

struct Merger {
    Graph graph;
    int order;
    int64_t refused;     // the number of a merge that is taken for a contradiction
    int64_t merges = 0;  // so far, in the orders that keep trials
    std::vector<Trials> trials;  // of blue nodes
    std::vector<int32_t> slot;   // of a blue node in `trials`
    std::vector<int32_t> free_slots;
    std::vector<NodeSet> changes;  // regions that each merge or promotion changed
    std::vector<Blue> blue;          // a heap, of one order; others look at all blue nodes in each step
    std::vector<int32_t> edge_to;    // the edge that leads to a blue node
    std::vector<int32_t> entered{0};  // transitions that lead to every state

    bool compares_all() const { return order == EVIDENCE || order == MARGIN; }

    bool comes_first(const Blue& a, const Blue& b) const {
        if (order != SHORTLEX && a.visits != b.visits) return a.visits > b.visits;
        return a.rank < b.rank;
    }

    Blue blue_at(int32_t edge) const {
        const int32_t node = graph.edges[edge].target;
        return {edge, node, graph.visits[node], graph.rank[node]};
    }

    void push(int32_t edge) {
        blue.push_back(blue_at(edge));
        edge_to[blue.back().node] = edge;
        std::push_heap(blue.begin(), blue.end(), [this](const Blue& a, const Blue& b) { return comes_first(b, a); });
    }

    // The first blue node of the heap; entries from before something was added to their node are passed over.
    bool pop(Blue& first) {
        while (!blue.empty()) {
            std::pop_heap(blue.begin(), blue.end(), [this](const Blue& a, const Blue& b) { return comes_first(b, a); });
            first = blue.back();
            blue.pop_back();
            if (graph.edges[first.edge].target == first.node && graph.number[first.node] == NONE &&
                graph.visits[first.node] == first.visits && graph.rank[first.node] == first.rank)
                return true;
        }
        return false;
    }

    void find_fringe() {
        blue.clear();
        const int64_t symbols = graph.set.symbols;
        for (int32_t s = 0; s < int32_t(graph.states.size()); ++s)
            for (int64_t a = 0; a < symbols; ++a) {
                const int32_t edge = graph.table[s * symbols + a];
                if (edge == NONE) continue;
                if (graph.number[graph.edges[edge].target] == NONE) blue.push_back(blue_at(edge));
            }
    }

    void merge(const Blue& child, int32_t state) {
        forget(child.node);
        const auto see = [this](int32_t edge) {
            if (!compares_all()) push(edge);
        };
        const auto grown = [this](int32_t node) {
            if (!compares_all() && edge_to[node] != NONE && graph.number[node] == NONE) push(edge_to[node]);
        };
        graph.merge(child.edge, state, see, grown);
        ++entered[state];
        changes.push_back(graph.changed);
        changes.back().add(child.node);
    }

    void promote(const Blue& child) {
        forget(child.node);
        promote(child.node);
        entered.push_back(1);
        changes.emplace_back();
        changes.back().add(child.node);  // from now on a region for itself, and its children are others
    }

    void promote(int32_t node) {
        graph.promote(node);
        if (compares_all()) return;
        const int32_t* row = graph.table.data() + graph.number[node] * graph.set.symbols;
        for (int64_t a = 0; a < graph.set.symbols; ++a)
            if (row[a] != NONE) push(row[a]);
    }

    void forget(int32_t node) {
        if (slot.empty() || slot[node] == NONE) return;
        trials[slot[node]] = Trials();
        free_slots.push_back(slot[node]);
        slot[node] = NONE;
    }

    Trials& trials_of(int32_t node) {
        if (slot.empty()) slot.assign(graph.head.size(), NONE);
        if (slot[node] == NONE) {
            if (free_slots.empty()) {
                free_slots.push_back(int32_t(trials.size()));
                trials.emplace_back();
            }
            slot[node] = free_slots.back();
            free_slots.pop_back();
        }
        return trials[slot[node]];
    }

    // Whether what was reached is unchanged since `when`, which moves on.
    bool is_unchanged(const NodeSet& reached, int64_t& when) const {
        for (; when < int64_t(changes.size()); ++when)
            if (reached.meets(changes[when])) return false;
        return true;
    }

    Best best_state(const Blue& child) {
        Best best;
        for (int32_t s = 0; s < int32_t(graph.states.size()); ++s) best.add(graph.attempt(child.edge, s), s, entered[s]);
        return best;
    }

    Trial attempt(const Blue& child, int32_t state) {
        Trial trial{state, graph.attempt(child.edge, state), graph.reached, int64_t(changes.size())};
        trial.reached.add(child.node);
        return trial;
    }

    // The same from trials that were kept; a contradiction stays one.
    Best best_kept(const Blue& child) {
        Trials& kept = trials_of(child.node);
        if (!is_unchanged(kept.reached, kept.when)) {
            kept.reached = NodeSet();
            size_t left = 0;
            for (Trial& trial : kept.possible) {
                if (!is_unchanged(trial.reached, trial.when)) trial = attempt(child, trial.state);
                if (trial.score == IMPOSSIBLE) continue;
                kept.reached.add(trial.reached);
                kept.possible[left++] = trial;
            }
            kept.possible.resize(left);
            kept.when = int64_t(changes.size());
        }
        for (; kept.tried < int32_t(graph.states.size()); ++kept.tried) {
            const Trial trial = attempt(child, kept.tried);
            if (trial.score == IMPOSSIBLE) continue;
            kept.reached.add(trial.reached);
            kept.possible.push_back(trial);
        }
        Best best;
        for (const Trial& trial : kept.possible) best.add(trial.score, trial.state, entered[trial.state]);
        return best;
    }

    bool enough(int64_t score) const { return score != IMPOSSIBLE && (!graph.set.noisy || score >= 0); }

    // One merge or promotion; false when nothing is left.
    bool step() {
        if (!compares_all()) {
            Blue child{};
            if (!pop(child)) return false;
            const Best found = best_state(child);
            if (enough(found.score))
                merge(child, found.state);
            else
                promote(child);
            return true;
        }
        find_fringe();
        if (blue.empty()) return false;
        std::sort(blue.begin(), blue.end(), [this](const Blue& a, const Blue& b) { return comes_first(a, b); });
        int64_t best = IMPOSSIBLE;
        int32_t state = NONE;
        Blue chosen{};
        for (const Blue& child : blue) {
            const Best found = graph.set.noisy ? best_state(child) : best_kept(child);
            if (!enough(found.score)) {
                promote(child);
                return true;
            }
            const int64_t second = found.second == IMPOSSIBLE ? 0 : found.second;
            const int64_t key = order == MARGIN ? found.score - second : found.score;
            if (state == NONE || key > best) best = key, state = found.state, chosen = child;
        }
        if (!graph.set.noisy && merges++ == refused)
            refuse(chosen, state);
        else
            merge(chosen, state);
        return true;
    }

    void refuse(const Blue& child, int32_t state) {
        std::vector<Trial>& possible = trials_of(child.node).possible;
        const auto is_it = [state](const Trial& trial) { return trial.state == state; };
        possible.erase(std::remove_if(possible.begin(), possible.end(), is_it), possible.end());
    }
};

}  // namespace

extern "C" {

void* exactstate_merger_new(const int32_t* parent, const int32_t* symbol, const int64_t* visits, int64_t nodes,
                        const int32_t* node, const int32_t* output, const int64_t* count, int64_t observations,
                        int mealy, int noisy, int order, const int64_t* rank, int64_t symbols, int64_t outputs,
                        const int64_t* prior, int64_t right, int64_t wrong, int64_t refused) {
    Merger* merger = new Merger();
    merger->order = order;
    merger->refused = refused;
    Graph& graph = merger->graph;
    graph.set = {mealy != 0, noisy != 0, symbols, outputs, right, wrong};
    const int64_t rows = mealy ? symbols : 1;
    graph.prior.assign(prior, prior + rows * outputs);
    for (int64_t a = 0; a < rows; ++a)
        graph.best_prior.push_back(*std::max_element(prior + a * outputs, prior + (a + 1) * outputs));
    graph.head.assign(nodes, NONE);
    graph.number.assign(nodes, NONE);
    graph.into.assign(nodes, NONE);
    graph.visits.assign(visits, visits + nodes);
    graph.rank.assign(rank, rank + nodes);
    if (noisy)
        graph.histograms.resize(nodes);
    else
        graph.seen.assign(nodes, NONE);
    graph.edges.resize(nodes);
    graph.edges[0] = {NONE, NONE, NONE, NONE};
    for (int64_t i = nodes - 1; i > 0; --i) {  // so that lists begin with the child that was seen first
        graph.edges[i] = {symbol[i], int32_t(i), graph.head[parent[i]], int32_t(i)};
        graph.head[parent[i]] = int32_t(i);
    }
    for (int64_t o = 0; o < observations; ++o)  // outputs before the first symbol are those of no transition
        if (!mealy || node[o] > 0) graph.observe(node[o], output[o], count[o], mealy ? symbol[node[o]] : 0);
    merger->edge_to.assign(nodes, NONE);
    merger->promote(0);
    return merger;
}

void exactstate_merger_free(void* handle) { delete static_cast<Merger*>(handle); }

// Go on until nothing is left (1), `most_states` are exceeded (2), or `work` node pairs have been folded (0).
int exactstate_merger_run(void* handle, int64_t most_states, int64_t work) {
    Merger& merger = *static_cast<Merger*>(handle);
    const int64_t stop = merger.graph.work + work;
    while (merger.graph.work < stop) {
        if (!merger.step()) return 1;
        if (int64_t(merger.graph.states.size()) > most_states) return 2;
    }
    return 0;
}

int64_t exactstate_merger_work(void* handle) { return static_cast<Merger*>(handle)->graph.work; }

// The state number of every node of the tree.
void exactstate_merger_export(void* handle, int32_t* state_of) {
    const Graph& graph = static_cast<Merger*>(handle)->graph;
    std::vector<int32_t> number = graph.number, path;
    for (size_t node = 0; node < number.size(); ++node) {
        int32_t at = int32_t(node);
        path.clear();
        while (number[at] == NONE && graph.into[at] != NONE) {
            path.push_back(at);
            at = graph.into[at];
        }
        for (int32_t passed : path) number[passed] = number[at];
        state_of[node] = number[at];
    }
}

}  // extern "C"
