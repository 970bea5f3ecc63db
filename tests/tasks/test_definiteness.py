"""Definite or not, checked on every word by brute force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from detent import automata
from detent.errors import BudgetExceeded
from detent.tasks import Letters, ShortRuns, Task, permitted, tracking_objects
from detent.tasks.describe import definite_words
from detent.tasks.grammar import spell

FLIP_FLOP = automata.flip_flop()


def shift_register(k: int) -> automata.Moore:
    """The machine that remembers the last k bits: definite of order k."""
    q = np.arange(2**k)
    return automata.from_tables([(2 * q) % 2**k, (2 * q + 1) % 2**k])


def order_by_brute_force(task: Task, length: int) -> int | None:
    """The least k such that words of up to this length with the same last k symbols end in the same state."""
    ends: dict[tuple[int, ...], int] = {}
    for n in range(length + 1):
        for word in product(range(task.machine.n_symbols), repeat=n):
            if task.grammar.outputs[task.grammar.readout[task.grammar.run(word)]] != "refused":
                ends[word] = task.machine.run(word)
    for k in range(length):
        seen: dict[tuple[int, ...], set[int]] = {}
        for word, state in ends.items():
            if len(word) >= k:
                seen.setdefault(word[len(word) - k :], set()).add(state)
        if all(len(states) == 1 for states in seen.values()):
            return k
    return None


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_short_flip_flops_are_definite_of_their_order(n: int) -> None:
    task = Task(name="DFF", machine=FLIP_FLOP, law=ShortRuns(3, of=0, longest=n - 1))
    assert definite_words(task).order == n == order_by_brute_force(task, 7)


@pytest.mark.parametrize("n", [2, 5])
def test_the_longest_walk_is_shown(n: int) -> None:
    task = Task(name="DFF", machine=FLIP_FLOP, law=ShortRuns(3, of=0, longest=n - 1))
    found = definite_words(task)
    assert found.word == ("identity",) * (n - 1)
    assert found.apart is not None
    one, other = found.apart
    assert FLIP_FLOP.run(found.word, one) != FLIP_FLOP.run(found.word, other)


@dataclass(frozen=True)
class AnyWord(Letters):
    """Uniform letters whose grammar is spelt out, so that the search on pairs of places has to answer."""

    def grammar(self, symbols: Sequence[str]) -> automata.Moore:
        return spell(symbols, start=0, following=lambda _: dict.fromkeys(range(len(symbols)), 0))


def spelt_out(machine: automata.Moore) -> Task:
    task = Task(name="spelt out", machine=machine, law=AnyWord((1,) * machine.n_symbols))
    assert not permitted(task.grammar).all()  # the refusal is there, though nothing leads to it
    return task


@pytest.mark.parametrize("k", [1, 2, 3])
def test_shift_registers_are_definite(k: int) -> None:
    task = spelt_out(shift_register(k))
    assert definite_words(task).order == k == order_by_brute_force(task, 7)


def test_one_state_needs_no_symbols() -> None:
    assert definite_words(spelt_out(automata.from_tables([[0], [0]]))).order == 0


@pytest.mark.parametrize("seed", range(40))
def test_random_machines_agree_with_brute_force(seed: int) -> None:
    random = np.random.default_rng(seed)
    # mostly constant tables, so that some of the machines are definite
    tables = np.where(random.random((2, 1)) < 0.6, random.integers(0, 4, (2, 1)), random.integers(0, 4, (2, 4)))
    task = spelt_out(automata.from_tables(tables))
    assert definite_words(task).order == order_by_brute_force(task, 8)


@pytest.mark.parametrize(
    "task",
    [
        Task.of(automata.cyclic(2), name="Z2"),
        Task.of(automata.alternating(5), name="A5"),
        Task.of(automata.mathieu11(), name="M11"),
        Task(name="FF", machine=FLIP_FLOP, law=Letters((18, 1, 1))),
        tracking_objects(3),
        tracking_objects(5),
        *[Task.of(automata.tomita(n), name=f"Tomita{n}") for n in range(1, 8)],
    ],
    ids=lambda task: task.name,
)
def test_the_witness_keeps_two_states_apart_for_ever(task: Task) -> None:
    found = definite_words(task)
    assert found.order is None
    assert found.apart is not None
    one, other = (task.machine.states.index(name) for name in found.apart)
    for _ in range(50):
        assert one != other
        one, other = task.machine.run(found.word, one), task.machine.run(found.word, other)
    # the grammar lets the word be read again and again, somewhere
    again = task.grammar.act(found.word * 50)
    assert any(task.grammar.outputs[task.grammar.readout[place]] != "refused" for place in again)


def test_the_search_says_when_it_stops() -> None:
    with pytest.raises(BudgetExceeded, match="whether spelt out is definite takes more than 10 pairs"):
        definite_words(spelt_out(shift_register(5)), limit=10)
