// Refinement of a machine from a noisy log: what every transition would gain or lose by going elsewhere.
//
//     N  nodes of the prefix tree     A  symbols     n  states
//
// value[c, s] is the log-likelihood of the outputs below node c, in integer units, if the machine is in state s there;
// total[a, q, s] is its sum over all nodes c that the transition of state q on symbol a leads to. A parent comes before
// its children, so that one pass backwards computes both. detent/learning/refine.py has the same in Python.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {
constexpr int32_t NONE = -1;
}

extern "C" {

void detent_refine_totals(const int32_t* parent, const int32_t* symbol, int64_t nodes, const int32_t* node,
                          const int32_t* output, const int64_t* count, int64_t observations, const int64_t* tables,
                          const int64_t* readout, const int64_t* state_of, int64_t n, int mealy, int64_t right,
                          int64_t wrong, int64_t* total) {
    std::vector<int64_t> value(std::size_t(nodes) * n, 0), of_edge(mealy ? std::size_t(nodes) * n : 0, 0);
    for (int64_t o = 0; o < observations; ++o) {
        const int64_t c = node[o];
        if (mealy && c == 0) continue;
        const int64_t* expected = mealy ? readout + int64_t(symbol[c]) * n : readout;
        int64_t* place = (mealy ? of_edge.data() : value.data()) + c * n;
        for (int64_t s = 0; s < n; ++s) place[s] += count[o] * (expected[s] == output[o] ? right : wrong);
    }
    for (int64_t c = nodes - 1; c > 0; --c) {
        const int64_t* own = value.data() + c * n;
        const int64_t* after = tables + int64_t(symbol[c]) * n;
        int64_t* above = value.data() + int64_t(parent[c]) * n;
        int64_t* sum = total + (int64_t(symbol[c]) * n + state_of[parent[c]]) * n;
        for (int64_t s = 0; s < n; ++s) {
            sum[s] += own[s];
            above[s] += (mealy ? of_edge[c * n + s] : 0) + (after[s] == NONE ? wrong : own[after[s]]);
        }
    }
}

}  // extern "C"
