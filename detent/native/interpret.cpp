// Run one long word through a machine, as its program says: the state at the end, and what is said at every symbol.
//
// The word is read in blocks that stay in the cache. Within a block, pieces run side by side as soon as it is known
// where each begins: by composing the pieces before it in registers, or by looking back. Every way gives the same.
#include <memory>

#include "letters.hpp"
#include "lookback.hpp"
#include "program.hpp"
#include "registers.hpp"
#include "walk.hpp"

namespace detent {
namespace {

constexpr int64_t PIECE = 4352;  // letters; not a power of two, lest all pieces share the same lines of the cache
constexpr int LANES = 8, TALKING_LANES = 4;  // as many as registers allow, without and with writing
constexpr int MOST_CANDIDATES = 2 * LANES;
constexpr int MOST_HEADS = 64;
constexpr int64_t SHORT = 64;  // letters not worth cutting
constexpr int64_t LONGEST_PAUSE = 1024;

int64_t block_length(const Program& program) {
    switch (program.strategy) {
        case REGISTERS: return PIECES * PIECE;
        case LOOKBACK: return LANES * std::max<int64_t>(PIECE, (8 * program.states + 63) / 64 * 64);
    }
    return PIECES * PIECE;
}

template <class Letter, class State>
class Run {
   public:
    Run(const Program& program, const Saying* saying, int64_t state, uint8_t* out)
        : program_(program), bytes_(saying ? saying->bytes : 0), state_(uint32_t(state)), out_(out) {
        const int shift = int(program.shift), entry = int(bytes_);
        step_ = {static_cast<const State*>(program.step), entry ? bytes_of(saying->step) : nullptr, shift, entry};
        next_ = {static_cast<const State*>(program.next), entry ? bytes_of(saying->next) : nullptr, shift,
                 int(entry * program.pack)};
        if (program.strategy == LOOKBACK) lookback_.reset(new Lookback<State>(next_.next, shift, program.states));
    }

    // The whole word: -1, or the place of the first unknown symbol.
    int64_t all(const Word& word, int64_t length) {
        const int64_t block = std::min(block_length(program_), length);
        std::vector<Letter> letters(block);
        groups_.resize(block);
        for (int64_t begin = 0; begin < length; begin += block) {
            const int64_t count = std::min(block, length - begin);
            const Letter* here = read_letters(word, begin, count, program_.symbols, letters.data());
            if (!here) return first_unknown(word, begin, count, program_.symbols);
            const int64_t done = by_strategy(here, count);
            one_by_one(here + done, count - done);
        }
        return -1;
    }

    int64_t state() const { return state_; }

   private:
    static const uint8_t* bytes_of(const void* table) { return static_cast<const uint8_t*>(table); }

    // How many letters were read; the rest, too few to be worth cutting, is left to one_by_one.
    int64_t by_strategy(const Letter* letters, int64_t count) {
        switch (program_.strategy) {
            case PACKED: return in_groups(letters, count);
            case LOOKBACK: return count < LANES * SHORT ? in_groups(letters, count) : looking_back(letters, count);
            case REGISTERS: return count < PIECES * SHORT ? 0 : in_registers(letters, count);
        }
        return 0;
    }

    void one_by_one(const Letter* letters, int64_t count) { follow(step_, letters, count, 1); }

    int64_t in_groups(const Letter* letters, int64_t count) {
        const int64_t done = count - count % program_.pack;
        follow(next_, group(letters, done, program_.pack), done / program_.pack, program_.pack);
        return done;
    }

    int64_t in_registers(const Letter* letters, int64_t count) {
        const int64_t unit = std::max(program_.pack, program_.register_pack);
        const int64_t piece = count / PIECES / unit * unit, heads = program_.heads;
        uint8_t indices[PIECES + 1][MOST_HEADS];
        std::memcpy(indices[0], program_.indices + state_ * heads, heads);

        const Letter* groups = group(letters, PIECES * piece, program_.register_pack);
        const int in_a_row = program_.row_bytes == 32 && !program_.wide ? 2 : 1;
        int64_t table = program_.row_bytes;
        for (int64_t k = 0; k < program_.register_pack; ++k) table *= program_.symbols;
        for (int64_t bundle = 0; bundle < program_.bundles; ++bundle) {
            uint8_t functions[PIECES][ROW];
            compose(program_, program_.rows + bundle * table, groups, piece / program_.register_pack, functions);
            for (int64_t head = 0; head < heads; ++head) {
                const int function = program_.function_of[head];
                if (function / in_a_row != bundle) continue;
                for (int i = 0; i < PIECES; ++i)
                    indices[i + 1][head] = functions[i][16 * (function % in_a_row) + indices[i][head]];
            }
        }
        if (bytes_) {
            const Letter* again = group(letters, PIECES * piece, program_.pack);
            Strand<Letter> strands[PIECES];
            for (int i = 0; i < PIECES; ++i) strands[i] = strand(again, i, piece, decoded(indices[i]));
            walk<PIECES>(next_, strands, piece / program_.pack);
        }
        state_ = decoded(indices[PIECES]);
        out_ += PIECES * piece * bytes_;
        return PIECES * piece;
    }

    uint32_t decoded(const uint8_t* indices) const {
        int64_t number = 0;
        for (int64_t head = 0; head < program_.heads; ++head) number += int64_t(indices[head]) * program_.strides[head];
        return uint32_t(program_.decode[number]);
    }

    int64_t looking_back(const Letter* letters, int64_t count) {
        const int64_t piece = count / LANES / program_.pack * program_.pack, steps = piece / program_.pack;
        const Letter* groups = group(letters, LANES * piece, program_.pack);
        std::vector<State> starts[LANES];
        if (!find_starts(groups, steps, starts)) {
            follow(next_, groups, LANES * steps, program_.pack);
            return LANES * piece;
        }
        Strand<Letter> strands[LANES];
        bool known = true;
        for (int i = 0; i < LANES; ++i) {
            strands[i] = strand(groups, i, piece, starts[i][0]);
            known &= starts[i].size() == 1;
        }
        uint32_t end = state_;
        if (!known) end = choose(groups, piece, starts, strands);
        if (known || bytes_) {
            for (int i = 0; bytes_ && i < LANES; i += TALKING_LANES) walk<TALKING_LANES>(next_, strands + i, steps);
            if (!bytes_) walk<LANES>(next_, strands, steps);
            end = strands[LANES - 1].state;
        }
        state_ = end;
        out_ += LANES * piece * bytes_;
        return LANES * piece;
    }

    // The candidates at the beginning of every piece. False when there are too many to be followed, and then for a
    // while: a word that keeps its states apart is not asked again at every block.
    bool find_starts(const Letter* groups, int64_t steps, std::vector<State>* starts) {
        if (pause_ > 0 && pause_-- > 0) return false;
        starts[0] = {State(state_)};
        const int64_t farthest = std::max<int64_t>(steps / 2, 1);
        size_t total = 1;
        for (int i = 1; i < LANES && total <= MOST_CANDIDATES; ++i) {
            for (;; reach_ *= 2) {
                starts[i] = lookback_->candidates(groups + i * steps, std::min(reach_, farthest), steps / 2);
                if (starts[i].size() < 2 || reach_ >= farthest) break;
            }
            total += starts[i].empty() ? MOST_CANDIDATES : starts[i].size();
        }
        if (total <= MOST_CANDIDATES) {
            next_pause_ = 1;
            return true;
        }
        pause_ = next_pause_;
        next_pause_ = std::min(2 * next_pause_, LONGEST_PAUSE);
        return false;
    }

    // Follow every candidate through its piece, silently. Each strand gets the one that the end of the piece before it
    // says; the state at the end of the last.
    uint32_t choose(const Letter* groups, int64_t piece, const std::vector<State>* starts, Strand<Letter>* strands) {
        Strand<Letter> all[MOST_CANDIDATES];
        int count = 0;
        for (int i = 0; i < LANES; ++i)
            for (State candidate : starts[i]) all[count++] = strand(groups, i, piece, candidate);
        for (; count < MOST_CANDIDATES; ++count) all[count] = all[count - 1];
        Tables<State> silent = next_;
        silent.entry = 0;
        for (int i = 0; i < MOST_CANDIDATES; i += LANES) walk<LANES>(silent, all + i, piece / program_.pack);

        uint32_t state = state_;
        const Strand<Letter>* piece_ends = all;
        for (int i = 0; i < LANES; ++i) {
            strands[i].state = state;
            const size_t which = std::find(starts[i].begin(), starts[i].end(), State(state)) - starts[i].begin();
            state = piece_ends[which].state;
            piece_ends += starts[i].size();
        }
        return state;
    }

    const Letter* group(const Letter* letters, int64_t count, int64_t pack) {
        return grouped(letters, count, program_.symbols, pack, groups_.data());
    }

    // The i-th piece of a block, from a state.
    Strand<Letter> strand(const Letter* groups, int i, int64_t piece, uint32_t state) {
        return {groups + i * piece / program_.pack, state, out_ + i * piece * bytes_};
    }

    void follow(const Tables<State>& tables, const Letter* letters, int64_t count, int64_t pack) {
        Strand<Letter> one{letters, state_, out_};
        walk<1>(tables, &one, count);
        state_ = one.state;
        out_ += count * pack * bytes_;
    }

    const Program& program_;
    Tables<State> step_, next_;
    int64_t bytes_;
    uint32_t state_;
    uint8_t* out_;
    std::vector<Letter> groups_;
    std::unique_ptr<Lookback<State>> lookback_;
    int64_t reach_ = 16, pause_ = 0, next_pause_ = 1;
};

template <class Letter, class State>
int64_t run(const Program& program, const Saying* saying, const Word& word, int64_t length, int64_t* state, void* out) {
    Run<Letter, State> run(program, saying, *state, static_cast<uint8_t*>(out));
    const int64_t unknown = run.all(word, length);
    if (unknown < 0) *state = run.state();
    return unknown;
}

template <class Letter>
int64_t run(const Program& program, const Saying* saying, const Word& word, int64_t length, int64_t* state, void* out) {
    switch (program.state_bytes) {
        case 1: return run<Letter, uint8_t>(program, saying, word, length, state, out);
        case 2: return run<Letter, uint16_t>(program, saying, word, length, state, out);
    }
    return run<Letter, uint32_t>(program, saying, word, length, state, out);
}

}  // namespace
}  // namespace detent

// What registers of this processor hold: 1 for functions of 16 states, plus 2 for functions of 32.
DETENT_API int detent_register_features() { return detent::register_features(); }

// Reads `length` symbols from *state on and leaves the state after them there. `letter_of` says for text what letter a
// byte stands for (any number that is no symbol for one that is unknown), or is null. `saying` and `out` may be null.
// Returns -1, or the place of the first symbol that the machine does not have; then *state is as it was.
DETENT_API int64_t detent_interpret(const detent::Program* program, const detent::Saying* saying, const void* symbols,
                                    int symbol_bytes, const uint8_t* letter_of, int64_t length, int64_t* state,
                                    void* out) {
    const detent::Word word{symbols, symbol_bytes, letter_of};
    return program->symbols <= 256 ? detent::run<uint8_t>(*program, saying, word, length, state, out)
                                   : detent::run<uint16_t>(*program, saying, word, length, state, out);
}
