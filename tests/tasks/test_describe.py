"""Descriptions of tasks; definite or not is checked on every word by brute force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from exactstate import automata
from exactstate.errors import BudgetExceeded
from exactstate.tasks import BoundedRuns, IidLetters, Task, allowed_symbols, describe, task, tracking_shuffled_objects
from exactstate.tasks.describe import definite_words
from exactstate.tasks.grammar import build_grammar
from tests.cases import in_one_case


def test_describe_a_group() -> None:
    about = describe(task("S4"))
    assert (about.name, about.states, about.symbols) == ("S4", 24, 3)
    assert about.heads == (4, 3, 2)
    assert about.layers == ((4, 3, 2),)
    assert not about.definite
    assert about.why.startswith("not definite: '(0 1)' keeps")


def test_describe_a_task_that_is_definite_where_its_machine_is_not() -> None:
    drawn, machine = describe(task("DFF5")), describe(task("FF"))
    assert drawn.definite.order == 5
    assert not drawn.machine_definite
    assert drawn.why.endswith("this holds for the words that are drawn, not for all words")
    assert not machine.definite
    assert drawn.heads == machine.heads


def test_describe_a_machine_that_is_definite_on_all_words() -> None:
    about = describe(Task.of(automata.from_tables([[0, 0], [1, 1]]), name="last letter"))
    assert about.definite.order == 1
    assert about.machine_definite
    assert "not for all words" not in about.why


# the first name and every holder, in one layer each: every register has a value for "none"
STACKS = {
    3: ((4, 4, 4, 4), (4, 4, 4)),
    4: ((5, 5, 5, 5, 5), (5, 5, 5, 5)),
    5: ((6, 6, 6, 6, 6, 6), (6, 6, 6, 6, 6)),
}


@pytest.mark.parametrize("people", [3, 4, 5])
def test_describe_gives_stories_the_stack_of_the_paper(people: int) -> None:
    about = describe(task(f"TSO{people}"))
    first, second = about.layers
    assert (first, second) == STACKS[people]
    assert about.heads == first + second
    assert f"{people + 1} heads of {people + 1}, then {people} heads of {people + 1} indices" in about.factoring


def test_describe_is_cached() -> None:
    assert describe(task("S3")) is describe(task("S3"))


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
def test_definite_words_of_bounded_flip_flops(n: int) -> None:
    task = Task(name="DFF", machine=FLIP_FLOP, sampler=BoundedRuns(3, letter=0, longest=n - 1))
    assert definite_words(task).order == n == order_by_brute_force(task, 7)


@pytest.mark.parametrize("n", [2, 5])
def test_definite_words_gives_a_longest_word_as_witness(n: int) -> None:
    task = Task(name="DFF", machine=FLIP_FLOP, sampler=BoundedRuns(3, letter=0, longest=n - 1))
    found = definite_words(task)
    assert found.word == ("identity",) * (n - 1)
    assert found.apart is not None
    one, other = found.apart
    assert FLIP_FLOP.run(found.word, one) != FLIP_FLOP.run(found.word, other)


@dataclass(frozen=True)
class AnyWord(IidLetters):
    """Uniform letters whose grammar is built state by state, so that `definite_words` has to search."""

    def grammar(self, symbols: Sequence[str]) -> automata.Moore:
        return build_grammar(symbols, start=0, following=lambda _: dict.fromkeys(range(len(symbols)), 0))


def with_explicit_grammar(machine: automata.Moore) -> Task:
    task = Task(name="explicit", machine=machine, sampler=AnyWord((1,) * machine.n_symbols))
    assert not allowed_symbols(task.grammar).all()  # the refused state exists, but is unreachable
    return task


@pytest.mark.parametrize("k", [1, 2, 3])
def test_definite_words_of_shift_registers(k: int) -> None:
    task = with_explicit_grammar(shift_register(k))
    assert definite_words(task).order == k == order_by_brute_force(task, 7)


def test_definite_words_of_one_state_has_order_0() -> None:
    assert definite_words(with_explicit_grammar(automata.from_tables([[0], [0]]))).order == 0


@in_one_case("seed", range(40))
def test_definite_words_of_random_machines_agrees_with_brute_force(seed: int) -> None:
    random = np.random.default_rng(seed)
    # mostly constant tables, so that some of the machines are definite
    tables = np.where(random.random((2, 1)) < 0.6, random.integers(0, 4, (2, 1)), random.integers(0, 4, (2, 4)))
    task = with_explicit_grammar(automata.from_tables(tables))
    assert definite_words(task).order == order_by_brute_force(task, 8)


@pytest.mark.parametrize(
    "task",
    [
        Task.of(automata.cyclic(2), name="Z2"),
        Task.of(automata.alternating(5), name="A5"),
        Task.of(automata.mathieu11(), name="M11"),
        Task(name="FF", machine=FLIP_FLOP, sampler=IidLetters((18, 1, 1))),
        tracking_shuffled_objects(3),
        tracking_shuffled_objects(5),
        *[Task.of(automata.tomita(n), name=f"Tomita{n}") for n in range(1, 8)],
    ],
    ids=lambda task: task.name,
)
def test_definite_words_witness_keeps_two_states_apart_for_ever(task: Task) -> None:
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


def test_definite_words_stops_at_the_limit() -> None:
    with pytest.raises(BudgetExceeded, match="explicit: more than 10 pairs of states to decide whether it is"):
        definite_words(with_explicit_grammar(shift_register(5)), limit=10)


def test_describe_kept_factorings_are_those_that_factor_finds() -> None:
    """Four seconds here, so that `exactstate tasks` does not take them."""
    from exactstate.automata.factor import factor
    from exactstate.tasks.describe import KEPT_FACTORINGS

    for name, (sizes, reason) in KEPT_FACTORINGS.items():
        found = factor(task(name).machine)
        assert (found.sizes, found.explain()) == (sizes, reason)
