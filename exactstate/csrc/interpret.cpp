// Run one long word through a machine, as its program says: the state at the end, and the output at every symbol.
//
// The word is read in blocks that stay in the cache. Within a block, pieces run side by side as soon as it is known
// where each begins: by composing the pieces before it in registers, or by looking back. Every way gives the same.
#include <memory>

#include "decode.hpp"
#include "lookback.hpp"
#include "program.hpp"
#include "registers.hpp"
#include "walk.hpp"

namespace exactstate {
namespace {

constexpr int64_t PIECE = 4352;  // letters; not a power of two, lest all pieces share the same lines of the cache
constexpr int PIECES_WITHOUT_OUTPUT = 8, PIECES_WITH_OUTPUT = 4;  // pieces walked at once: as many as there are registers for
constexpr int64_t LONGEST_PIECE = 1 << 17;
constexpr size_t MOST_CANDIDATES = 4;
constexpr int MOST_HEADS = 64;
constexpr int64_t SHORT = 64;  // letters not worth cutting
constexpr int64_t LONGEST_PAUSE = 1024;

// Looking back costs the more, the more states there are: longer blocks make up for it, within reason.
int64_t block_length(const Program& program) {
    if (program.strategy != LOOKBACK) return PIECES * PIECE;
    return PIECES_WITHOUT_OUTPUT * std::max<int64_t>(2 * PIECE, std::min<int64_t>(64 * program.states, LONGEST_PIECE));
}

template <class Letter, class State>
class Run {
   public:
    Run(const Program& program, const Outputs* outputs, int64_t state, uint8_t* out)
        : program_(program), bytes_(outputs ? outputs->bytes : 0), state_(uint32_t(state)), out_(out) {
        const int shift = int(program.shift), entry = int(bytes_);
        step_ = {static_cast<const State*>(program.step), entry ? bytes_of(outputs->step) : nullptr, shift, entry};
        next_ = {static_cast<const State*>(program.next), entry ? bytes_of(outputs->next) : nullptr, shift,
                 int(entry * program.pack)};
        if (program.strategy == LOOKBACK) lookback_.reset(new Lookback<State>(next_.next, shift, program.states));
    }

    // The whole word: -1, or the place of the first unknown symbol.
    int64_t all(const Word& word, int64_t length) {
        const int64_t block = std::min(block_length(program_), length);
        std::vector<Letter> letters(block);
        groups_.resize(block);
        for (int64_t begin = 0; begin < length;) {
            const int64_t count = std::min(block, length - begin);
            const Letter* here = read_letters(word, begin, count, program_.symbols, letters.data());
            if (!here) return first_unknown(word, begin, count, program_.symbols);
            int64_t done = by_strategy(here, count);
            if (done < SHORT) {
                follow(step_, here + done, count - done, 1);
                done = count;
            }
            begin += done;
        }
        return -1;
    }

    int64_t state() const { return state_; }

   private:
    static const uint8_t* bytes_of(const void* table) { return static_cast<const uint8_t*>(table); }

    // How many letters were read; a few may be left over.
    int64_t by_strategy(const Letter* letters, int64_t count) {
        switch (program_.strategy) {
            case PACKED: return in_groups(letters, count);
            case LOOKBACK: return count < PIECES_WITHOUT_OUTPUT * SHORT ? in_groups(letters, count) : by_lookback(letters, count);
            case REGISTERS: return count < PIECES * SHORT ? 0 : in_registers(letters, count);
        }
        return 0;
    }

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
            uint32_t states[PIECES];
            for (int i = 0; i < PIECES; ++i) states[i] = decoded(indices[i]);
            walk<PIECES>(next_, group(letters, PIECES * piece, program_.pack), piece / program_.pack, states, out_);
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

    int64_t by_lookback(const Letter* letters, int64_t count) {
        // a sixteenth is left for reading before the pieces begin
        const int64_t steps = count / program_.pack * 15 / 16 / PIECES_WITHOUT_OUTPUT;
        const Letter* groups = group(letters, count - count % program_.pack, program_.pack);
        const int64_t before = should_look_back() ? settle(groups, steps, count / program_.pack - PIECES_WITHOUT_OUTPUT * steps) : -1;
        if (before < 0) {
            follow(next_, groups, PIECES_WITHOUT_OUTPUT * steps, program_.pack);
            return PIECES_WITHOUT_OUTPUT * steps * program_.pack;
        }
        follow(next_, groups, before, program_.pack);
        groups += before;
        uint32_t states[PIECES_WITHOUT_OUTPUT + 1];
        choose(groups, steps, states);
        state_ = states[PIECES_WITHOUT_OUTPUT];
        const int64_t piece = steps * program_.pack;
        for (int i = 0; bytes_ && i < PIECES_WITHOUT_OUTPUT; i += PIECES_WITH_OUTPUT) {
            walk<PIECES_WITH_OUTPUT>(next_, groups + i * steps, steps, states + i, out_ + i * piece * bytes_);
            state_ = states[i + PIECES_WITH_OUTPUT - 1];
        }
        out_ += PIECES_WITHOUT_OUTPUT * piece * bytes_;
        return before * program_.pack + PIECES_WITHOUT_OUTPUT * piece;
    }

    // After a failed lookback, a growing number of blocks is read without trying again.
    bool should_look_back() { return pause_ == 0 || --pause_ == 0; }

    // How many groups to read before the pieces begin; -1 when too many states stay apart.
    int64_t settle(const Letter* groups, int64_t steps, int64_t most) {
        int64_t before = lookback_->settle(groups + steps, steps, PIECES_WITHOUT_OUTPUT - 1, 2 * steps);
        for (int i = 0; i + 1 < PIECES_WITHOUT_OUTPUT; ++i)
            if (before > most || lookback_->candidates(i).size() > MOST_CANDIDATES) before = -1;
        pause_ = before < 0 ? next_pause_ : 0;
        next_pause_ = before < 0 ? std::min(2 * next_pause_, LONGEST_PAUSE) : 1;
        return before;
    }

    // The state at the beginning of every piece, and at the end of the last unless something is to be written on the
    // way there. Every candidate is run without output; each piece begins where the one before it ends.
    void choose(const Letter* groups, int64_t steps, uint32_t* states) {
        known_ = {State(state_)};
        size_t rounds = 1;
        for (int i = 0; i < PIECES_WITHOUT_OUTPUT; ++i) {
            states[i] = starts(i)[0];
            rounds = std::max(rounds, starts(i).size());
        }
        states[PIECES_WITHOUT_OUTPUT] = state_;
        if (rounds == 1 && bytes_) return;
        uint32_t ends[MOST_CANDIDATES][PIECES_WITHOUT_OUTPUT];
        Tables<State> without_output = next_;
        without_output.entry = 0;
        for (size_t round = 0; round < rounds; ++round) {
            for (int i = 0; i < PIECES_WITHOUT_OUTPUT; ++i) ends[round][i] = starts(i)[std::min(round, starts(i).size() - 1)];
            walk<PIECES_WITHOUT_OUTPUT>(without_output, groups, steps, ends[round], nullptr);
        }
        for (int i = 0; i < PIECES_WITHOUT_OUTPUT; ++i) {
            const auto which = std::find(starts(i).begin(), starts(i).end(), State(states[i])) - starts(i).begin();
            states[i + 1] = ends[which][i];
        }
    }

    // The candidates at the beginning of a piece.
    const std::vector<State>& starts(int piece) const { return piece ? lookback_->candidates(piece - 1) : known_; }

    const Letter* group(const Letter* letters, int64_t count, int64_t pack) {
        return grouped(letters, count, program_.symbols, pack, groups_.data());
    }

    // One lookup after another.
    void follow(const Tables<State>& tables, const Letter* letters, int64_t count, int64_t pack) {
        walk<1>(tables, letters, count, &state_, out_);
        out_ += count * pack * bytes_;
    }

    const Program& program_;
    Tables<State> step_, next_;
    int64_t bytes_;
    uint32_t state_;
    uint8_t* out_;
    std::vector<Letter> groups_;
    std::unique_ptr<Lookback<State>> lookback_;
    std::vector<State> known_;
    int64_t pause_ = 0, next_pause_ = 1;
};

template <class Letter, class State>
int64_t run(const Program& program, const Outputs* outputs, const Word& word, int64_t length, int64_t* state, void* out) {
    Run<Letter, State> run(program, outputs, *state, static_cast<uint8_t*>(out));
    const int64_t unknown = run.all(word, length);
    if (unknown < 0) *state = run.state();
    return unknown;
}

template <class Letter>
int64_t run(const Program& program, const Outputs* outputs, const Word& word, int64_t length, int64_t* state, void* out) {
    switch (program.state_bytes) {
        case 1: return run<Letter, uint8_t>(program, outputs, word, length, state, out);
        case 2: return run<Letter, uint16_t>(program, outputs, word, length, state, out);
    }
    return run<Letter, uint32_t>(program, outputs, word, length, state, out);
}

}  // namespace
}  // namespace exactstate

// What registers of this processor hold: 1 for functions of 16 states, plus 2 for functions of 32.
EXACTSTATE_API int exactstate_register_features() { return exactstate::register_features(); }

// Reads `length` symbols from *state on and leaves the state after them there. `letter_of` says for text what letter a
// byte stands for (any number that is no symbol for one that is unknown), or is null. `outputs` and `out` may be null.
// Returns -1, or the place of the first symbol that the machine does not have; then *state is as it was.
EXACTSTATE_API int64_t exactstate_interpret(const exactstate::Program* program, const exactstate::Outputs* outputs, const void* symbols,
                                    int symbol_bytes, const uint8_t* letter_of, int64_t length, int64_t* state,
                                    void* out) {
    const exactstate::Word word{symbols, symbol_bytes, letter_of};
    return program->symbols <= 256 ? exactstate::run<uint8_t>(*program, outputs, word, length, state, out)
                                   : exactstate::run<uint16_t>(*program, outputs, word, length, state, out);
}
