from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from aalpy.automata import MealyMachine, MooreMachine
from aalpy.utils import bisimilar
from automata.fa.dfa import DFA

from exactstate.automata import Mealy, Moore, Semiautomaton, cyclic, tomita
from exactstate.automata.equivalence import distinguishing_word
from exactstate.automata.minimize import minimize
from exactstate.errors import InvalidMachine
from tests.cases import in_one_case


def random_machine(kind: type, seed: int, n: int, A: int = 2):
    rng = np.random.default_rng(seed)
    shape = (n,) if kind is Moore else (A, n)
    return kind(
        symbols=tuple("abcd"[:A]), tables=rng.integers(0, n, (A, n)), start=int(rng.integers(n)),
        outputs=("no", "yes"), readout=(rng.random(shape) < 0.2).astype(int),
    )  # fmt: skip


def perturbed(machine, seed: int):
    """The machine after one change that may or may not matter."""
    rng = np.random.default_rng(seed)
    tables = machine.tables.copy()
    tables[rng.integers(machine.n_symbols), rng.integers(machine.n_states)] = rng.integers(machine.n_states)
    return replace(machine, tables=tables)


def as_aalpy(machine):
    setup = {}
    for q in [machine.start, *(q for q in range(machine.n_states) if q != machine.start)]:
        moves = {x: str(int(machine.tables[a, q])) for a, x in enumerate(machine.symbols)}
        if isinstance(machine, Moore):
            setup[str(q)] = (machine.outputs[machine.readout[q]], moves)
        else:
            setup[str(q)] = {
                x: (machine.outputs[machine.readout[a, q]], moves[x]) for a, x in enumerate(machine.symbols)
            }
    return (MooreMachine if isinstance(machine, Moore) else MealyMachine).from_state_setup(setup)


def differs(first, second, word: tuple[str, ...]) -> bool:
    """Whether the last responses differ, by running the word."""
    if isinstance(first, Moore):
        said = [machine.outputs[machine.readout[machine.run(list(word))]] for machine in (first, second)]
    else:
        said = [machine.outputs[machine.output_ids(list(word))[-1]] for machine in (first, second)]
    return said[0] != said[1]


@in_one_case("seed", range(60))
@pytest.mark.parametrize("kind", [Moore, Mealy])
def test_distinguishing_word_against_aalpy(kind: type, seed: int) -> None:
    first = random_machine(kind, seed, n=3 + seed % 12)
    second = perturbed(first, seed)
    theirs, ours = bisimilar(as_aalpy(first), as_aalpy(second), return_cex=True), distinguishing_word(first, second)
    if theirs is None:
        assert ours is None
    else:
        assert ours is not None
        assert len(ours) == len(theirs)
        assert differs(first, second, ours)


@in_one_case("seed", range(30))
def test_distinguishing_word_against_automata_lib(seed: int) -> None:
    first, second = random_machine(Moore, seed, n=6), random_machine(Moore, seed + 1000, n=5)
    first = first if seed % 3 else perturbed(second, seed)
    dfas = [
        DFA(
            states=set(range(m.n_states)), input_symbols=set("ab"), initial_state=m.start,
            transitions={q: {x: int(m.tables[a, q]) for a, x in enumerate("ab")} for q in range(m.n_states)},
            final_states=set(np.flatnonzero(m.readout).tolist()),
        )
        for m in (first, second)
    ]  # fmt: skip
    word, difference = distinguishing_word(first, second), dfas[0] ^ dfas[1]
    assert (None if word is None else len(word)) == (None if difference.isempty() else difference.minimum_word_length())


@in_one_case("seed", range(20))
@pytest.mark.parametrize("kind", [Moore, Mealy])
def test_distinguishing_word_is_a_shortest_one(kind: type, seed: int) -> None:
    first, second = random_machine(kind, seed, n=4), random_machine(kind, seed + 500, n=4)
    word = distinguishing_word(first, second)
    shortest = range(kind is Mealy, 8 if word is None else len(word))
    assert not any(differs(first, second, w) for length in shortest for w in itertools.product("ab", repeat=length))


@pytest.mark.parametrize("n", [2, 3, 50])
def test_distinguishing_word_can_be_as_long_as_both_machines_together(n: int) -> None:
    """Counters modulo n and n + 1 that say yes at 0 and at n - 1: they agree as long as the first has not wrapped."""
    q = np.arange(n)
    first = Moore(symbols=("+",), tables=[(q + 1) % n], outputs=("no", "yes"), readout=(q == 0).astype(int))
    q = np.arange(n + 1)
    second = Moore(symbols=("+",), tables=[(q + 1) % (n + 1)], outputs=("no", "yes"), readout=(q == 0).astype(int))
    assert distinguishing_word(first, second) == ("+",) * n


def test_distinguishing_word_of_a_machine_and_its_minimal_one_is_none() -> None:
    machine = random_machine(Moore, 3, n=40)
    assert distinguishing_word(machine, minimize(machine)) is None


def test_distinguishing_word_finds_one_flipped_table_entry() -> None:
    machine = tomita(3)
    broken = replace(machine, tables=[[0, 2, 3, 2, 4], [1, 0, 4, 1, 0]])
    word = distinguishing_word(machine, broken)
    assert word == ("1", "0", "1", "1")
    assert differs(machine, broken, word)


def test_distinguishing_word_compares_names_in_any_order() -> None:
    first = Moore(symbols=("a", "b"), tables=[[1, 0], [0, 1]], outputs=("no", "yes"), readout=[0, 1])
    second = Moore(symbols=("b", "a"), tables=[[0, 1], [1, 0]], outputs=("maybe", "yes", "no"), readout=[2, 1])
    assert distinguishing_word(first, second) is None
    assert distinguishing_word(first, replace(second, readout=[2, 0])) == ("a",)
    assert distinguishing_word(first, replace(second, readout=[1, 2])) == ()


def test_distinguishing_word_refuses_machines_that_cannot_be_compared() -> None:
    with pytest.raises(InvalidMachine, match="over the same symbols; only the second reads '2'"):
        distinguishing_word(cyclic(2), cyclic(3))
    with pytest.raises(InvalidMachine, match="only the first reads '0' and only the second reads 'a'"):
        distinguishing_word(tomita(1), random_machine(Moore, 0, 2))
    with pytest.raises(InvalidMachine, match="two Moore or two Mealy machines can be compared; got Moore and Mealy"):
        distinguishing_word(random_machine(Moore, 0, 2), random_machine(Mealy, 0, 2))
    with pytest.raises(InvalidMachine, match="only machines with outputs can be compared"):
        distinguishing_word(Semiautomaton(symbols=("a",), tables=[[0]]), tomita(1))  # type: ignore[arg-type]
