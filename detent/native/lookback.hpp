// Where a piece of a word begins, found by looking back: whatever state came before, a few symbols later few remain.
//
// All states are followed over the symbols before the piece. When they have merged into one, that is the state at its
// beginning, known and not guessed. When a handful is left, each is a candidate.
#pragma once
#include <cstdint>
#include <vector>

namespace detent {
namespace {

template <class State>
class Lookback {
   public:
    Lookback(const State* next, int shift, int64_t states) : next_(next), shift_(shift), seen_(states, 0) {
        left_.reserve(states);
        moved_.reserve(states);
    }

    // The states possible after the letters [end - reach, end), from any state before; none when that takes too long.
    template <class Letter>
    const std::vector<State>& candidates(const Letter* end, int64_t reach, int64_t budget) {
        left_.resize(seen_.size());
        for (size_t q = 0; q < left_.size(); ++q) left_[q] = State(q);
        for (const Letter* at = end - reach; at < end; ++at) {
            budget -= int64_t(left_.size());
            if (budget < 0) {
                left_.clear();
                return left_;
            }
            step(next_ + (uint64_t(*at) << shift_));
        }
        return left_;
    }

   private:
    void step(const State* row) {
        if (left_.size() == 1) {
            left_[0] = row[left_[0]];
            return;
        }
        moved_.clear();
        ++now_;
        for (State q : left_) {
            const State reached = row[q];
            if (seen_[reached] != now_) {
                seen_[reached] = now_;
                moved_.push_back(reached);
            }
        }
        left_.swap(moved_);
    }

    const State* next_;
    int shift_;
    std::vector<uint64_t> seen_;
    uint64_t now_ = 0;
    std::vector<State> left_, moved_;
};

}  // namespace
}  // namespace detent
