"""Minimizing, comparing, running, reading and factoring machines, compared with automata-lib and AALpy.

A library is measured where it has the operation; factoring is measured alone, against the heads it is known to find.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Method, Report, seconds
from exactstate.automata import (
    Moore,
    Semiautomaton,
    alternating,
    distinguishing_word,
    factor,
    minimize,
    read_machine,
    symmetric,
)

SEED = 20261115
OURS, LIB, AALPY = "exactstate", "automata-lib", "AALpy"
BEARABLE = 64
"""The most states that AALpy minimizes here."""
HEADS = {"S4": (4, 3, 2), "A5": (5, 5, 5)}
"""In S4 the cosets of S3, D4 and A4; in A5 where three of the five points go."""


def run(quick: bool) -> Report:
    report = Report(title="Machines: exactstate beside automata-lib and AALpy")
    rng = np.random.default_rng(SEED)
    rounds, core, copies = (3, 40, 4) if quick else (7, 300, 8)
    small = machine(rng, core)
    large = copy_states(small, copies, rng)
    minimizing(report, copy_states(machine(rng, 12), 4, rng), rounds)
    minimizing(report, large, rounds)
    comparing(report, small, large, rounds)
    running(report, small, rng.integers(0, small.n_symbols, 1 << (14 if quick else 18)), rounds)
    reading(report, small if quick else large, rounds)
    factoring(report, rounds, {"S4": symmetric(4), "A5": alternating(5)})
    return report


def machine(rng: np.random.Generator, n: int, symbols: int = 4) -> Moore:
    """A minimal machine with about n states: random tables, half of the states accept."""
    return minimize(
        Moore(
            symbols=tuple("abcdefgh"[:symbols]), tables=rng.integers(0, n, (symbols, n)),
            outputs=("reject", "accept"), readout=rng.permutation(n) % 2,
        )
    )  # fmt: skip


def copy_states(small: Moore, copies: int, rng: np.random.Generator) -> Moore:
    """Several copies of every state; the copy that a symbol leads to is random."""
    n = small.n_states
    tables = np.tile(small.tables, (1, copies)) + n * rng.integers(0, copies, (small.n_symbols, n * copies))
    return replace(small, tables=tables, readout=np.tile(small.readout, copies), states=())


def minimizing(report: Report, large: Moore, rounds: int) -> None:
    """The number of states that are left; by AALpy only where that takes seconds, not hours."""
    dfa, theirs = in_automata_lib(large), in_aalpy(large)

    def by_aalpy() -> int:
        copied = theirs.copy()
        copied.minimize()
        return len(copied.states)

    methods = [
        Method(LIB, lambda: len(dfa.minify(retain_names=False).states), large.n_states),
        *([Method(AALPY, by_aalpy, large.n_states)] if large.n_states <= BEARABLE else []),
        Method(OURS, lambda: minimize(large).n_states, large.n_states),
    ]
    _measure(report, f"minimize {large.n_states} states", methods, "states", rounds)


def comparing(report: Report, small: Moore, large: Moore, rounds: int) -> None:
    """Equivalence of a machine and a larger one with the same outputs."""
    from aalpy.utils import bisimilar

    dfas = [in_automata_lib(each) for each in (small, large)]
    theirs = [in_aalpy(each) for each in (small, large)]
    methods = [
        Method(LIB, lambda: bool(dfas[0] == dfas[1]), large.n_states),
        Method(AALPY, lambda: bool(bisimilar(*theirs)), large.n_states),
        Method(OURS, lambda: distinguishing_word(small, large) is None, large.n_states),
    ]
    _measure(report, f"compare {small.n_states} states with {large.n_states}", methods, "states", rounds)


def running(report: Report, small: Moore, word: np.ndarray, rounds: int) -> None:
    """Whether the word is accepted."""
    dfa, theirs = in_automata_lib(small), in_aalpy(small)
    spelt: Any = [small.symbols[a] for a in word]
    methods = [
        Method(LIB, lambda: dfa.accepts_input(spelt), len(word)),
        Method(AALPY, lambda: bool(theirs.execute_sequence(theirs.initial_state, spelt)[-1]), len(word)),
        Method(OURS, lambda: bool(small.readout[small.run(word)]), len(word)),
    ]
    _measure(report, f"run {len(word)} symbols", methods, "symbols", rounds)


def reading(report: Report, large: Moore, rounds: int) -> None:
    """The machine that a file written by AALpy holds, by its outputs on a word that visits many states."""
    from aalpy.utils import load_automaton_from_file

    word = np.random.default_rng(SEED).integers(0, large.n_symbols, 1000)
    spelt = [large.symbols[a] for a in word]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "machine.dot"
        path.write_text(str(in_aalpy(large)))

        def by_aalpy() -> Sequence[bool]:
            read = load_automaton_from_file(str(path), "dfa")
            return [bool(output) for output in read.execute_sequence(read.initial_state, spelt)]

        def by_us() -> Sequence[bool]:
            read = read_machine(path)
            assert isinstance(read, Moore)
            order = np.array([read.symbols.index(x) for x in large.symbols])
            return [read.outputs[output] == "accept" for output in read.output_ids(order[word])]

        size = path.stat().st_size
        methods = [Method(AALPY, by_aalpy, size), Method(OURS, by_us, size)]
        report.measure(f"read {size / 1e3:.0f} kB of DOT", methods, unit="bytes", rounds=rounds)
    report.notes.append(
        f"{AALPY} reads DOT line by line as it writes it; {OURS} reads the language and several dialects."
    )


def factoring(report: Report, rounds: int, machines: Mapping[str, Semiautomaton]) -> None:
    """Heads of a word problem; no other library has the operation, so the sizes are compared with known ones."""
    for name, given in machines.items():
        find = partial(_sizes, given)
        report.agree(f"factor {name}", [Method("known", partial(HEADS.get, name), 1), Method(OURS, find, 1)])
        report.record(
            f"factor {name}", {OURS: [seconds(find) for _ in range(rounds)]}, {OURS: given.n_states}, unit="states"
        )


def in_automata_lib(given: Moore) -> Any:
    from automata.fa.dfa import DFA

    moves = [dict(zip(given.symbols, column, strict=True)) for column in given.tables.T.tolist()]
    return DFA(
        states=set(range(given.n_states)), input_symbols=set(given.symbols), transitions=dict(enumerate(moves)),
        initial_state=given.start, final_states=set(np.flatnonzero(given.readout).tolist()),
    )  # fmt: skip


def in_aalpy(given: Moore) -> Any:
    from aalpy.automata import Dfa

    assert given.start == 0, "AALpy starts in the first state"
    columns = given.tables.T.tolist()
    return Dfa.from_state_setup(
        {
            f"s{q}": (bool(given.readout[q]), {x: f"s{to}" for x, to in zip(given.symbols, columns[q], strict=True)})
            for q in range(given.n_states)
        }
    )


def _measure(report: Report, case: str, methods: Sequence[Method], unit: str, rounds: int) -> None:
    """Time all of them; the target is that exactstate, the last, is the fastest."""
    report.measure(case, methods, unit=unit, rounds=rounds)
    for method in methods[:-1]:
        report.target(case, OURS, at_least=1, over=method.name)


def _sizes(given: Semiautomaton) -> tuple[int, ...]:
    return factor(given).sizes
