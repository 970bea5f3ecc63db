// The machine of a partition of a prefix tree, and its refinement: exactstate/learning/{state_merging,refine}.py have the
// same in Python.
//
//     N  nodes of the tree     A  symbols     n  states     k  outputs
//
// A parent comes before its children, so that one pass forwards runs a machine along all traces and one pass backwards
// sums what was seen below every node.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {
constexpr int32_t NONE = -1;
}

extern "C" {

// tables and visits (A n), readout (A n or n); where outputs differ, the most frequent one, the first on a tie.
// Returns the number of observed outputs that differ from those of the machine.
int64_t exactstate_partition_machine(const int32_t* parent, const int32_t* symbol, const int64_t* visits, int64_t nodes,
                                 const int32_t* node, const int32_t* output, const int64_t* count,
                                 int64_t observations, const int32_t* state_of, int64_t n, int64_t symbols,
                                 int64_t outputs, int mealy, int64_t* tables, int64_t* readout, int64_t* visited) {
    std::fill(tables, tables + symbols * n, int64_t(NONE));
    std::fill(visited, visited + symbols * n, int64_t(0));
    for (int64_t c = 1; c < nodes; ++c) {
        const int64_t place = int64_t(symbol[c]) * n + state_of[parent[c]];
        tables[place] = state_of[c];
        visited[place] += visits[c];
    }
    const int64_t places = mealy ? symbols * n : n;
    std::vector<int64_t> seen(std::size_t(places) * outputs, 0);
    for (int64_t o = 0; o < observations; ++o) {
        const int64_t c = node[o];
        if (mealy && c == 0) continue;
        const int64_t place = mealy ? int64_t(symbol[c]) * n + state_of[parent[c]] : state_of[c];
        seen[place * outputs + output[o]] += count[o];
    }
    int64_t wrong = 0;
    for (int64_t place = 0; place < places; ++place) {
        const int64_t* row = seen.data() + place * outputs;
        int64_t best = 0, total = 0;
        readout[place] = NONE;
        for (int64_t k = 0; k < outputs; ++k) {
            total += row[k];
            if (row[k] > best) best = row[k], readout[place] = k;
        }
        wrong += total - best;
    }
    return wrong;
}

// The state at every node; NONE after a transition that is NONE.
void exactstate_partition_run(const int32_t* parent, const int32_t* symbol, int64_t nodes, const int64_t* tables,
                          int64_t n, int32_t* state_of) {
    if (nodes) state_of[0] = 0;
    for (int64_t c = 1; c < nodes; ++c) {
        const int32_t before = state_of[parent[c]];
        state_of[c] = before == NONE ? NONE : int32_t(tables[int64_t(symbol[c]) * n + before]);
    }
}

// What every transition would gain or lose by going elsewhere: value[c, s] is the log-likelihood of the outputs below
// node c, in integer units, if the machine is in state s there; total[a, q, s] is its sum over all nodes c that the
// transition of state q on symbol a leads to.
void exactstate_refine_totals(const int32_t* parent, const int32_t* symbol, int64_t nodes, const int32_t* node,
                          const int32_t* output, const int64_t* count, int64_t observations, const int64_t* tables,
                          const int64_t* readout, const int32_t* state_of, int64_t n, int mealy, int64_t right,
                          int64_t wrong, int64_t* total) {
    std::vector<int32_t> first(nodes, NONE), next(observations, NONE);
    for (int64_t o = 0; o < observations; ++o) {
        next[o] = first[node[o]];
        first[node[o]] = int32_t(o);
    }
    // a row is needed from the last child of a node to the node itself, so that few are in use at a time
    std::vector<int64_t> values, zeros(n, 0), of_place(n);
    std::vector<int32_t> row(nodes, NONE), unused;
    for (int64_t c = nodes - 1; c > 0; --c) {
        std::fill(of_place.begin(), of_place.end(), 0);
        for (int32_t o = first[c]; o != NONE; o = next[o]) {
            const int64_t* expected = mealy ? readout + int64_t(symbol[c]) * n : readout;
            for (int64_t s = 0; s < n; ++s) of_place[s] += count[o] * (expected[s] == output[o] ? right : wrong);
        }
        int32_t& above_row = row[parent[c]];
        if (above_row == NONE && unused.empty()) {
            above_row = int32_t(values.size() / n);
            values.resize(values.size() + n, 0);
        } else if (above_row == NONE) {
            above_row = unused.back();
            unused.pop_back();
            std::fill_n(values.begin() + above_row * n, n, 0);
        }
        int64_t* own = row[c] == NONE ? zeros.data() : values.data() + row[c] * n;
        if (!mealy) {  // the output at a node is that of its state, or of its edge
            for (int64_t s = 0; s < n; ++s) of_place[s] += own[s];
            own = of_place.data();
        }
        const int64_t* after = tables + int64_t(symbol[c]) * n;
        int64_t* above = values.data() + above_row * n;
        int64_t* sum = total + (int64_t(symbol[c]) * n + state_of[parent[c]]) * n;
        for (int64_t s = 0; s < n; ++s) {
            sum[s] += own[s];
            above[s] += (mealy ? of_place[s] : 0) + (after[s] == NONE ? wrong : own[after[s]]);
        }
        if (row[c] != NONE) unused.push_back(row[c]);
    }
}

}  // extern "C"
