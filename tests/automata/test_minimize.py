"""Minimization and partition refinement, against automata-lib, AALpy and table filling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from aalpy.automata import MealyMachine, MooreMachine
from automata.fa.dfa import DFA
from hypothesis import given, settings
from hypothesis import strategies as st

from exactstate.automata import Mealy, Moore, Semiautomaton, cyclic, mathieu11, parallel, symmetric, tomita
from exactstate.automata.minimize import _hopcroft, canonical, equal_rows, minimize, numbered, refine
from exactstate.errors import InvalidMachine
from tests.cases import in_one_case


def random_machine(kind: type, seed: int, n: int = 12, A: int = 2, outputs: int = 2):
    """Targets among the first half only, so that there is something to drop and to merge."""
    rng = np.random.default_rng(seed)
    shape = (n,) if kind is Moore else (A, n)
    return kind(
        symbols=tuple("abcd"[:A]), tables=rng.integers(0, max(1, n // 2), (A, n)), start=int(rng.integers(n)),
        outputs=tuple("xyz"[:outputs]), readout=rng.integers(0, outputs, shape) * (rng.random(shape) < 0.3),
    )  # fmt: skip


def shuffled(machine, seed: int):
    """The same machine with its states in another order."""
    to = np.random.default_rng(seed).permutation(machine.n_states)
    back = np.argsort(to)
    return replace(
        machine, tables=to[machine.tables[:, back]], states=(), start=int(to[machine.start]),
        readout=machine.readout[..., back],
    )  # fmt: skip


def as_dfa(machine: Moore) -> DFA:
    moves = {q: dict(zip(machine.symbols, row, strict=True)) for q, row in enumerate(machine.tables.T.tolist())}
    return DFA(
        states=set(moves), input_symbols=set(machine.symbols), initial_state=machine.start, transitions=moves,
        final_states=set(np.flatnonzero(machine.readout).tolist()),
    )  # fmt: skip


@in_one_case("seed", range(40))
def test_minimize_moore_against_automata_lib(seed: int) -> None:
    machine = random_machine(Moore, seed)
    small = minimize(machine)
    assert as_dfa(small) == as_dfa(machine)
    assert small.n_states == len(as_dfa(machine).minify().states)


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("kind", [Moore, Mealy])
def test_minimize_against_aalpy(kind: type, seed: int) -> None:
    machine = minimize(random_machine(kind, seed, n=10, A=3, outputs=3))  # aalpy keeps unreachable states
    grown = parallel_copy(machine, seed)
    setup, order = {}, [grown.start, *(q for q in range(grown.n_states) if q != grown.start)]
    for q in order:
        moves = {x: str(int(grown.tables[a, q])) for a, x in enumerate(grown.symbols)}
        if kind is Moore:
            setup[str(q)] = (int(grown.readout[q]), moves)
        else:
            setup[str(q)] = {x: (int(grown.readout[a, q]), moves[x]) for a, x in enumerate(grown.symbols)}
    theirs = (MooreMachine if kind is Moore else MealyMachine).from_state_setup(setup)
    theirs.minimize()
    assert minimize(grown) == machine
    assert len(theirs.states) == machine.n_states


def parallel_copy(machine, seed: int):
    """Two copies of every state, entered at random: the same responses from up to twice as many states."""
    rng, n = np.random.default_rng(seed), machine.n_states
    tables = np.tile(machine.tables.astype(int), 2) + n * rng.integers(0, 2, (machine.n_symbols, 2 * n))
    return replace(machine, tables=tables, states=(), readout=np.concatenate([machine.readout] * 2, axis=-1))


@given(st.integers(0, 2**32), st.sampled_from([Moore, Mealy]), st.integers(1, 30), st.integers(1, 3))
@settings(max_examples=80, deadline=None)
def test_minimize_gives_equal_machines_for_equal_behavior(seed: int, kind: type, n: int, A: int) -> None:
    machine = random_machine(kind, seed, n=n, A=A)
    small = minimize(machine)
    assert minimize(shuffled(machine, seed + 1)) == small
    assert minimize(parallel_copy(machine, seed + 2)) == small
    assert minimize(small) == small
    word = np.random.default_rng(seed).integers(0, A, 40)
    assert np.array_equal(small.output_ids(word), machine.output_ids(word))


def test_minimize_numbers_states_breadth_first() -> None:
    machine = Moore(
        symbols=("a", "b"), tables=[[3, 0, 2, 1], [2, 1, 3, 0]], start=0, outputs=tuple("wxyz"), readout=range(4)
    )
    assert minimize(machine).tables.tolist() == [[1, 3, 2, 0], [2, 0, 1, 3]]
    assert minimize(machine).states == ("0", "1", "2", "3")


def test_canonical_ignores_the_order_of_names() -> None:
    machine = Mealy(symbols=("a", "b"), tables=[[1, 0], [0, 1]], outputs=("n", "never", "m"), readout=[[0, 2], [2, 2]])
    other = Mealy(symbols=("b", "a"), tables=[[0, 1], [1, 0]], outputs=("m", "n"), readout=[[0, 0], [1, 0]])
    assert minimize(machine) != minimize(other)
    assert canonical(machine) == canonical(other)
    assert canonical(machine).outputs == ("m", "n")
    assert canonical(tomita(1)) == canonical(minimize(tomita(1))) != canonical(tomita(2))


def test_minimize_differs_when_one_output_is_flipped() -> None:
    machine = tomita(7)
    flipped = replace(machine, readout=[1, 1, 1, 0, 0])
    assert minimize(flipped) != minimize(machine)


@pytest.mark.parametrize("number", range(1, 8))
def test_minimize_leaves_tomita_machines(number: int) -> None:
    assert minimize(tomita(number)).n_states == tomita(number).n_states


def test_minimize_leaves_word_problems() -> None:
    for machine in (cyclic(16), symmetric(4), mathieu11()):
        assert np.array_equal(minimize(machine).tables, machine.tables)


def test_minimize_a_machine_in_parallel_with_itself() -> None:
    assert np.array_equal(minimize(parallel(symmetric(4), symmetric(4))).tables, symmetric(4).tables)


def test_minimize_refuses_a_machine_without_outputs() -> None:
    with pytest.raises(
        InvalidMachine, match=r"only machines with outputs can be minimized; got Semiautomaton\(1 states"
    ):
        minimize(Semiautomaton(symbols=("a",), tables=[[0]]))  # type: ignore[type-var]


def by_definition(tables: np.ndarray, colors: np.ndarray) -> np.ndarray:
    """Mark distinguishable pairs until nothing changes (the table-filling method)."""
    apart = colors[:, None] != colors[None, :]
    while True:
        more = apart | np.any([apart[np.ix_(table, table)] for table in tables], axis=0)
        if np.array_equal(more, apart):
            return numbered((~apart).argmax(axis=1))
        apart = more


@in_one_case("seed", range(60))
def test_refine_is_table_filling(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, A, colors = int(rng.integers(1, 40)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    tables, colouring = rng.integers(0, max(1, n // 2), (A, n)), rng.integers(0, colors, n)
    expected = by_definition(tables, colouring)
    assert np.array_equal(refine(tables, colouring), expected)
    assert np.array_equal(_hopcroft(tables, numbered(colouring)), expected)


@pytest.mark.parametrize("n", [1, 2, 3, 100, 257])
def test_refine_separates_all_states_of_chains_and_counters(n: int) -> None:
    q = np.arange(n)
    chain = np.minimum(q + 1, n - 1)[None, :]
    assert np.array_equal(refine(chain, (q == n - 1).astype(int)), q)
    counter = np.stack([(q + 1) % n, (q - 1) % n])
    assert np.array_equal(refine(counter, (q == 0).astype(int)), by_definition(counter, q == 0))


def test_refine_a_counter_modulo_seven_has_seven_blocks() -> None:
    q = np.arange(700)
    assert np.array_equal(refine(((q + 1) % 700)[None, :], (q % 7 == 3).astype(int)), q % 7)


def test_numbered_is_by_first_state() -> None:
    assert numbered(np.array([5, 2, 5, 9, 2])).tolist() == [0, 1, 0, 2, 1]
    assert equal_rows(np.array([[3, 1], [0, 0], [3, 1], [1, 3]])).tolist() == [0, 1, 0, 2]
