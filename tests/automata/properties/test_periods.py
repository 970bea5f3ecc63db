from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from detent.automata import Semiautomaton, flip_flop, modular_arithmetic, permutation_reset, symmetric, tomita
from detent.automata.properties.monoid import Subgroup, aperiodic, cyclic_powers, group, transition_monoid


def powers(acts: np.ndarray, count: int) -> list[tuple[int, ...]]:
    made = [tuple(acts.tolist())]
    for _ in range(count - 1):
        made.append(tuple(acts[q] for q in made[-1]))
    return made


def check(machine: Semiautomaton, found: Subgroup) -> None:
    """The powers from `index` on repeat after `order` steps, and not before; no earlier power comes back."""
    made = powers(machine.act(list(found.word)), found.index + 2 * found.order)
    circle = made[found.index - 1 : found.index - 1 + found.order]
    assert found.order > 1
    assert len(set(circle)) == found.order
    assert made[found.index - 1 + found.order] == circle[0]
    assert all(early not in circle for early in made[: found.index - 1])


@pytest.mark.parametrize("seed", range(60))
def test_random_machines_against_all_their_elements(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, A = int(rng.integers(1, 6)), int(rng.integers(1, 3))
    tables = rng.integers(0, n, (A, n))
    machine = Semiautomaton(symbols=tuple("ab"[:A]), tables=np.sort(tables, axis=1) if seed % 2 else tables)
    answer = aperiodic(machine)
    counts = any(powers(f, 2 * n)[-1] != powers(f, 2 * n)[-2] for f in transition_monoid(machine).maps)
    assert answer.answer is not counts
    if answer.subgroup:
        check(machine, answer.subgroup)


def test_monotone_machines_are_aperiodic() -> None:
    machine = Semiautomaton(symbols=("a", "b"), tables=[[0, 0, 1, 3], [1, 2, 3, 3]])
    assert aperiodic(machine).answer
    assert aperiodic(machine).explain() == "aperiodic: no word leads states round a circle"


@pytest.mark.parametrize(
    ("number", "expected"), [(1, True), (2, True), (3, False), (4, True), (5, False), (6, False), (7, True)]
)
def test_tomita(number: int, expected: bool) -> None:
    assert aperiodic(tomita(number)).answer is expected


def test_a_group_hidden_in_a_longer_word() -> None:
    answer = aperiodic(modular_arithmetic(5))
    assert answer.subgroup == Subgroup(word=("1", "+"), index=1, order=5)
    check(modular_arithmetic(5), answer.subgroup)


def test_tails_before_circles() -> None:
    """3 -> 2 -> 1 -> 0 -> 4 -> 0, and a circle of three: powers repeat after 6, from the third on."""
    acts = np.array([4, 0, 1, 2, 0, 6, 7, 5])
    machine = Semiautomaton(symbols=("a",), tables=acts[None, :])
    found = cyclic_powers(("a",), acts)
    assert (found.index, found.order) == (3, 6)
    check(machine, found)
    assert found.explain() == "the powers of 'a' from power 3 on are a group of order 6"
    with pytest.raises(AssertionError):
        check(machine, replace(found, order=3))
    with pytest.raises(AssertionError):
        check(machine, replace(found, index=2))


def test_a_search_that_stopped_says_so() -> None:
    machine = Semiautomaton(symbols=("a", "b"), tables=[[0, 0, 1, 3], [1, 2, 3, 3]])
    answer = aperiodic(machine, limit=3)
    assert answer.answer is None
    assert answer.explain().startswith("perhaps aperiodic: no subgroup among the first 3 elements")


def test_group_or_the_symbol_that_merges() -> None:
    assert group(symmetric(4))
    assert group(symmetric(4)).explain() == "a group: every symbol permutes the states"
    assert not group(flip_flop())
    assert group(permutation_reset(3)).explain() == "not a group: 'reset' sends '0' and '1' to the same state"
