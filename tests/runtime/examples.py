"""Machines of every shape for the tests, and the slow obvious way of running them."""

from __future__ import annotations

import numpy as np

from exactstate.automata import Mealy, Moore, mathieu11, permutation
from exactstate.runtime import Heads, Machine


def one_by_one(machine: Machine, word: np.ndarray, state: int | None = None) -> tuple[list[int], list[int]]:
    """(what is said, the state after) at every symbol: a Python loop over the tables and the read-out."""
    automaton = machine.automaton
    tables, readout = automaton.tables.tolist(), automaton.readout.tolist()
    at = automaton.start if state is None else state
    said, states = [], []
    for symbol in word.tolist():
        after = tables[symbol][at]
        said.append(readout[symbol][at] if isinstance(automaton, Mealy) else readout[after])
        states.append(at := after)
    return said, states


def names(count: int) -> tuple[str, ...]:
    return tuple(f"x{i}" for i in range(count))


def of_tables(tables: np.ndarray, rng: np.random.Generator, outputs: int = 3) -> Machine:
    """A Mealy machine with these tables that says random things."""
    A, n = tables.shape
    readout = rng.integers(0, outputs, (A, n))
    start = int(rng.integers(n))
    return Machine.of(
        Mealy(symbols=names(A), tables=tables, start=start, outputs=names(outputs), readout=readout)
    )  # fmt: skip


def anything(symbols: int, states: int, rng: np.random.Generator, outputs: int = 3) -> Machine:
    """Tables at random: sooner or later all states merge."""
    return of_tables(rng.integers(0, states, (symbols, states)), rng, outputs)


def reversible(symbols: int, states: int, rng: np.random.Generator) -> Machine:
    """Permutations: states never merge."""
    return of_tables(np.stack([rng.permutation(states) for _ in range(symbols)]), rng)


def forgetful(symbols: int, states: int, rng: np.random.Generator) -> Machine:
    """As protocols are: from most states a symbol goes on, and from some it goes back to the beginning."""
    rows = [np.where(rng.random(states) < 0.3, 0, rng.permutation(states)) for _ in range(symbols)]
    return of_tables(np.stack(rows), rng)


def with_parity(symbols: int, states: int, rng: np.random.Generator) -> Machine:
    """A forgetful machine beside a bit that is never forgotten: two candidates stay for ever."""
    small = forgetful(symbols, states, rng).automaton.tables.astype(np.int64)
    rows = [
        np.concatenate([row + states * (a % 2), row + states * ((a + 1) % 2)]) for a, row in enumerate(small)
    ]  # fmt: skip
    return of_tables(np.stack(rows), rng)


def points_of_m11(rng: np.random.Generator | None = None) -> Heads:
    """M11 as four heads of eleven points; with random numbers each head calls its points differently."""
    a, b = permutation([range(11)], 11), permutation([(2, 6, 10, 7), (3, 9, 4, 5)], 11)
    action = np.stack([a, b, np.argsort(a), np.argsort(b)])
    tables, starts = [], []
    for point in range(4):
        names = np.arange(11) if rng is None else rng.permutation(11)
        tables.append(names[action[:, np.argsort(names)]])
        starts.append(int(names[point]))
    return Heads(tuple(tables), tuple(starts))


def m11(rng: np.random.Generator | None = None) -> Machine:
    return Machine.of(mathieu11(), heads=points_of_m11(rng))


def counters(sizes: tuple[int, ...], symbols: int, rng: np.random.Generator) -> Heads:
    """Heads of any sizes, at random."""
    tables = tuple(rng.integers(0, d, (symbols, d)) for d in sizes)
    return Heads(tables, tuple(int(rng.integers(d)) for d in sizes))


def joint_machine(heads: Heads, readout: np.ndarray) -> Machine:
    """The joint machine of heads; readout[q] is what it says in joint state q."""
    automaton = Moore(
        symbols=names(heads.n_symbols),
        tables=heads.joint.tables,
        outputs=names(int(readout.max()) + 1),
        readout=readout,
    )
    return Machine.of(automaton, heads=heads)


def of_heads(heads: Heads, rng: np.random.Generator, outputs: int = 3) -> Machine:
    return joint_machine(heads, rng.integers(0, outputs, heads.joint.tables.shape[1]))


def traffic_light() -> Machine:
    """A small machine with names, for files and texts."""
    return Machine.of(
        Moore(
            symbols=("go", "stop"), states=("red", "green"), tables=np.array([[1, 1], [0, 0]]),
            outputs=("wait", "walk"), readout=np.array([0, 1]),
        )
    )  # fmt: skip
