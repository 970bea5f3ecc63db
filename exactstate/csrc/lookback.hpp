// Find the states in which pieces of a word begin by reading a little before them: soon few states are possible.
//
// All states are followed from a few places of the word at once. Where they have merged into one, the state there is
// known, not guessed. Where a handful stays apart, each of them is a candidate.
#pragma once
#include <cstdint>
#include <vector>

namespace exactstate {
namespace {

constexpr int64_t PATIENCE = 64;  // steps without a merger after which no more are waited for; more for many states

template <class State>
class Lookback {
   public:
    Lookback(const State* next, int shift, int64_t states) : next_(next), shift_(shift), seen_(states, 0) {}

    // Follow all states from `letters`, from letters + apart and so on, `places` of them, until they have merged.
    // How many letters that took from each place; -1 when it would take more than `budget` lookups or `apart` letters.
    template <class Letter>
    int64_t settle(const Letter* letters, int64_t apart, int places, int64_t budget) {
        left_.resize(places);
        for (auto& left : left_) {
            left.resize(seen_.size());
            for (size_t q = 0; q < left.size(); ++q) left[q] = State(q);
        }
        size_t total = places * seen_.size();
        const int64_t patience = PATIENCE + int64_t(seen_.size()) / 2;
        int64_t read = 0;
        for (int64_t calm = 0; total > size_t(places) && calm < patience; ++read, ++calm) {
            if ((budget -= int64_t(total)) < 0 || read == apart) return -1;
            const size_t before = total;
            total = 0;
            for (int i = 0; i < places; ++i) {
                step(left_[i], next_ + (uint64_t(letters[i * apart + read]) << shift_));
                total += left_[i].size();
            }
            if (total < before) calm = 0;
        }
        return read;
    }

    // The states that are possible at a place, after the letters that `settle` read.
    const std::vector<State>& candidates(int place) const { return left_[place]; }

   private:
    void step(std::vector<State>& left, const State* row) {
        ++now_;
        size_t kept = 0;
        for (size_t i = 0; i < left.size(); ++i) {
            const State reached = row[left[i]];
            left[kept] = reached;
            kept += seen_[reached] != now_;  // no branch: whether two states merge is hard to foresee
            seen_[reached] = now_;
        }
        left.resize(kept);
    }

    const State* next_;
    int shift_;
    std::vector<uint64_t> seen_;  // when each state was last reached
    uint64_t now_ = 0;
    std::vector<std::vector<State>> left_;
};

}  // namespace
}  // namespace exactstate
