"""Every strategy gives what a loop over the tables gives: final state, states, outputs, at every length and type."""

from __future__ import annotations

import numpy as np
import pytest

from exactstate import native
from exactstate.automata.run import smallest_dtype
from exactstate.errors import BackendUnavailable, InvalidWord, UnknownName
from exactstate.runtime import Machine, programs, strategies
from tests.cases import pairs
from tests.runtime import examples

SEED = 20261115
LENGTHS = (0, 1, 2, 3, 5, 63, 64, 65, 255, 256, 257, 511, 1023, 4352 * 4, 4352 * 4 + 1, 80_011)

MACHINES = {
    "one state, one symbol": lambda rng: examples.anything(1, 1, rng),
    "two states, three symbols": lambda rng: examples.anything(3, 2, rng),
    "16 states, 4 symbols": lambda rng: examples.anything(4, 16, rng),
    "16 states, 16 symbols": lambda rng: examples.anything(16, 16, rng),
    "13 states, 17 symbols": lambda rng: examples.anything(17, 13, rng),
    "16 states, 256 symbols": lambda rng: examples.anything(256, 16, rng),
    "9 states, 300 symbols": lambda rng: examples.anything(300, 9, rng),
    "17 states, 5 symbols": lambda rng: examples.anything(5, 17, rng),
    "32 states, 2 symbols": lambda rng: examples.reversible(2, 32, rng),
    "33 states, permutations": lambda rng: examples.reversible(3, 33, rng),
    "57 states that merge": lambda rng: examples.forgetful(12, 57, rng),
    "256 states, 300 outputs": lambda rng: examples.anything(3, 256, rng, outputs=300),
    "257 states that merge": lambda rng: examples.forgetful(5, 257, rng),
    "two that never merge": lambda rng: examples.with_parity(4, 20, rng),
    "70,000 states": lambda rng: examples.anything(2, 70_000, rng, outputs=2),
    "heads of 3 2 5": lambda rng: examples.of_heads(examples.counters((3, 2, 5), 4, rng), rng),
    "heads of 16 16 2": lambda rng: examples.of_heads(examples.counters((16, 16, 2), 2, rng), rng),
    "heads of 17 4": lambda rng: examples.of_heads(examples.counters((17, 4), 3, rng), rng),
    "M11, one table": lambda rng: examples.m11(),
    "M11, four tables": examples.m11,
}


def words(machine: Machine, rng: np.random.Generator) -> list[np.ndarray]:
    kinds = [smallest_dtype(machine.n_symbols), np.uint16, np.int32, np.int64, np.uint32, np.uint64, np.int16]
    return [
        rng.integers(0, machine.n_symbols, length).astype(kinds[i % len(kinds)]) for i, length in enumerate(LENGTHS)
    ]


@pytest.mark.parametrize("name", MACHINES)
def test_interpreter_every_strategy_is_the_plain_loop(name: str) -> None:
    rng = np.random.default_rng(SEED)
    machine = MACHINES[name](rng)
    for word in words(machine, rng):
        begin = int(rng.integers(machine.n_states)) if machine.heads is None else machine.start
        said, states = examples.one_by_one(machine, word, begin)
        for strategy in machine.strategies:
            assert machine.run(word, begin, strategy=strategy) == (states[-1] if states else begin), strategy
            assert np.array_equal(machine.trajectory(word, begin, strategy=strategy), states), strategy
            assert np.array_equal(machine.output_ids(word, begin, strategy=strategy), said), strategy


def test_interpreter_all_strategies_are_tried() -> None:
    """The kernels are there, so no strategy goes untested; a processor without AVX2 lacks the wide tables only."""
    rng = np.random.default_rng(SEED)
    if not native.available():
        pytest.skip(str(native.why_not()))
    tried = {strategy for make in MACHINES.values() for strategy in make(rng).strategies}
    assert tried >= {"plain", "packed", "lookback", "numpy"}
    if strategies.features():
        assert tried == set(strategies.NAMES)


def test_interpreter_comparison_detects_a_wrong_entry() -> None:
    """One wrong entry in the tables of a strategy is seen."""
    rng = np.random.default_rng(SEED)
    machine = examples.anything(4, 16, rng)
    word = rng.integers(0, 4, 5000).astype(np.uint8)
    made = machine.interpreter._program("packed")
    groups = made.kept[1]
    groups[:, 3] = (groups[:, 3] + 1) % 16
    states = examples.one_by_one(machine, word)[1]
    assert not np.array_equal(machine.trajectory(word, strategy="packed"), states)
    assert np.array_equal(machine.trajectory(word, strategy="plain"), states)


@pytest.mark.parametrize("strategy", strategies.NAMES)
def test_interpreter_run_can_be_split_anywhere(strategy: str) -> None:
    rng = np.random.default_rng(SEED)
    machine = examples.of_heads(examples.counters((3, 5), 4, rng), rng)
    if strategy not in machine.strategies:
        pytest.skip(str(machine.interpreter.shape.why_not(strategy)))
    word = rng.integers(0, 4, 30_000)
    whole = machine.output_ids(word, strategy=strategy)
    state, parts, begin = machine.start, [], 0
    while begin < len(word):
        end = begin + int(rng.integers(0, 6000))
        parts.append(machine.output_ids(word[begin:end], state, strategy=strategy))
        state, begin = machine.run(word[begin:end], state, strategy=strategy), end
    assert np.array_equal(np.concatenate(parts), whole)


def test_interpreter_lookback_on_words_that_merge_late() -> None:
    """Looking back gives up for a while, and finds its feet again."""
    rng = np.random.default_rng(SEED)
    machine = examples.forgetful(6, 57, rng)
    tables = machine.automaton.tables.copy()
    tables[0] = np.roll(np.arange(57), 1)
    machine = examples.of_tables(tables, rng)
    apart, merging = np.zeros(400_000, np.uint8), rng.integers(0, 6, 400_000).astype(np.uint8)
    word = np.concatenate([apart, merging, apart, merging])
    said, states = examples.one_by_one(machine, word)
    assert np.array_equal(machine.output_ids(word, strategy="lookback"), said)
    assert machine.run(word, strategy="lookback") == states[-1]


def test_interpreter_narrow_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor whose registers hold one table of 16 gives the same."""
    if not strategies.features():
        pytest.skip("this processor has no shuffles")
    rng = np.random.default_rng(SEED)
    wide = examples.m11(rng)
    word = rng.integers(0, 4, 50_000).astype(np.uint8)
    expected = wide.output_ids(word, strategy="heads")
    for module in (strategies, programs):
        monkeypatch.setattr(module, "features", lambda: strategies.HAS_16)
    narrow = Machine.of(wide.automaton, heads=wide.heads)
    assert narrow.interpreter._program("heads").structure.row_bytes == 16
    assert np.array_equal(narrow.output_ids(word, strategy="heads"), expected)
    with pytest.raises(BackendUnavailable, match="no instruction that shuffles tables of 20 entries"):
        examples.anything(2, 20, rng).run([0], strategy="shuffle")


def test_strategy_of_auto_is_named() -> None:
    rng = np.random.default_rng(SEED)
    if not strategies.features() & strategies.HAS_32:
        pytest.skip("the choices below are those of a processor with AVX2")
    assert examples.anything(16, 16, rng).strategy == "shuffle"
    assert examples.forgetful(12, 57, rng).strategy == "lookback"
    assert examples.reversible(3, 60, rng).strategy == "packed"
    assert examples.m11(rng).strategy == "heads"
    assert "heads of 11 11 11 11; heads)" in repr(examples.m11(rng))


def test_interpreter_numpy_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_load", lambda: "the compiled kernels were not built; build them")
    rng = np.random.default_rng(SEED)
    machine = examples.m11(rng)
    assert machine.strategies == ("numpy",)
    assert machine.strategy == "numpy"
    word = rng.integers(0, 4, 3000)
    assert np.array_equal(machine.output_ids(word), examples.one_by_one(machine, word)[0])
    batch = rng.integers(0, 4, (9, 50))
    assert machine.run(batch).tolist() == [examples.one_by_one(machine, row)[1][-1] for row in batch]
    with pytest.raises(BackendUnavailable, match=r"strategy 'packed' is not possible here: .* not built.*: numpy\."):
        machine.run(word, strategy="packed")


def test_require_refuses_impossible_strategies() -> None:
    rng = np.random.default_rng(SEED)
    machine = examples.anything(2, 40, rng)
    with pytest.raises(
        BackendUnavailable, match="the machine has 40 states, and a register holds tables of at most 32"
    ):
        machine.run([0], strategy="shuffle")
    with pytest.raises(BackendUnavailable, match="this machine was made without heads"):
        machine.run([0], strategy="heads")
    with pytest.raises(UnknownName, match=r"unknown strategy 'shufle'\. Did you mean 'shuffle'"):
        machine.run([0], strategy="shufle")


def test_interpreter_more_symbols_than_the_kernels_take() -> None:
    rng = np.random.default_rng(SEED)
    machine = examples.anything(65_537, 3, rng)
    assert machine.strategies == ("numpy",)
    word = rng.integers(0, 65_537, 2000)
    assert np.array_equal(machine.output_ids(word), examples.one_by_one(machine, word)[0])


@pytest.mark.parametrize(
    ("strategy", "dtype", "place"),
    pairs(
        strategies.NAMES,
        [np.uint8, np.int8, np.uint16, np.int16, np.int32, np.uint32, np.int64, np.uint64],
        [0, 70, 40_000],
    ),
)
def test_interpreter_refuses_unknown_numbers_with_their_position(strategy: str, dtype: type, place: int) -> None:
    rng = np.random.default_rng(SEED)
    machine = examples.of_heads(examples.counters((3, 5), 5, rng), rng)
    if strategy not in machine.strategies:
        pytest.skip(str(machine.interpreter.shape.why_not(strategy)))
    for wrong in (5, -1, np.iinfo(dtype).max):
        if wrong < 0 and not np.issubdtype(dtype, np.signedinteger):
            continue
        word = rng.integers(0, 5, place + 100).astype(dtype)
        word[place] = word[place + 50] = wrong
        with pytest.raises(InvalidWord, match=rf"symbol {wrong} at position {place} is out of range: .* 5 symbols"):
            machine.run(word, strategy=strategy)
