"""Transition monoids, groups and aperiodic machines, against closure by hand and sympy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sympy.combinatorics import Permutation, PermutationGroup

from exactstate.automata import Semiautomaton, flip_flop, symmetric, tomita
from exactstate.automata.properties.monoid import Subgroup, aperiodic, cyclic_powers, group, transition_monoid
from tests.automata.machines import modular_arithmetic, permutation_reset
from tests.automata.oracles import closure
from tests.cases import in_one_case


@in_one_case("seed", range(30))
def test_transition_monoid_has_all_elements_with_words(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, A = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    machine = Semiautomaton(symbols=tuple("abc"[:A]), tables=rng.integers(0, n, (A, n)))
    monoid = transition_monoid(machine)
    expected = closure([tuple(row) for row in machine.tables.tolist()])
    assert monoid.complete
    assert {tuple(row) for row in monoid.maps.tolist()} == expected
    assert len(monoid) == len(expected)
    lengths = [len(monoid.word(i)) for i in range(len(monoid))]
    assert lengths == sorted(lengths)
    for i, acts in enumerate(monoid.maps):
        assert np.array_equal(machine.act(list(monoid.word(i))), acts)
    idempotent = {f for f in expected if all(f[f[q]] == f[q] for q in range(n))}
    assert {tuple(monoid.maps[i].tolist()) for i in monoid.idempotents} == idempotent


def test_transition_monoid_of_a_group_has_the_order_of_sympy() -> None:
    tables = [[1, 2, 3, 4, 5, 0], [1, 0, 2, 4, 3, 5]]
    machine = Semiautomaton(symbols=("a", "b"), tables=tables)
    assert len(transition_monoid(machine)) == PermutationGroup(*(Permutation(t) for t in tables)).order()
    assert len(transition_monoid(machine).idempotents) == 1


def test_transition_monoid_of_word_problems_has_as_many_elements_as_states() -> None:
    for machine in (symmetric(4), flip_flop()):
        assert len(transition_monoid(machine)) == machine.n_states


@pytest.mark.parametrize("limit", [1, 2, 10, 24, 27])
def test_transition_monoid_stops_at_the_limit(limit: int) -> None:
    monoid = transition_monoid(permutation_reset(4), limit=limit)  # 24 permutations and 4 constants
    assert len(monoid) == limit
    assert not monoid.complete
    assert f"more than {limit - 1} elements (enumeration stopped)" in monoid.explain()
    assert (
        transition_monoid(permutation_reset(4), limit=28).explain().startswith("transition monoid of 28 elements, 5 ")
    )


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


@in_one_case("seed", range(60))
def test_aperiodic_random_machines_against_all_their_elements(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, A = int(rng.integers(1, 6)), int(rng.integers(1, 3))
    tables = rng.integers(0, n, (A, n))
    machine = Semiautomaton(symbols=tuple("ab"[:A]), tables=np.sort(tables, axis=1) if seed % 2 else tables)
    answer = aperiodic(machine)
    counts = any(powers(f, 2 * n)[-1] != powers(f, 2 * n)[-2] for f in transition_monoid(machine).maps)
    assert answer.answer is not counts
    if answer.subgroup:
        check(machine, answer.subgroup)


def test_aperiodic_monotone_machines() -> None:
    machine = Semiautomaton(symbols=("a", "b"), tables=[[0, 0, 1, 3], [1, 2, 3, 3]])
    assert aperiodic(machine).answer
    assert aperiodic(machine).explain() == "aperiodic: no word has a cycle of more than one state"


@pytest.mark.parametrize(
    ("number", "expected"), [(1, True), (2, True), (3, False), (4, True), (5, False), (6, False), (7, True)]
)
def test_aperiodic_tomita(number: int, expected: bool) -> None:
    assert aperiodic(tomita(number)).answer is expected


def test_aperiodic_finds_a_group_in_a_longer_word() -> None:
    answer = aperiodic(modular_arithmetic(5))
    assert answer.subgroup == Subgroup(word=("1", "+"), index=1, order=5)
    check(modular_arithmetic(5), answer.subgroup)


def test_cyclic_powers_index_and_order() -> None:
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


def test_aperiodic_stops_at_the_limit() -> None:
    machine = Semiautomaton(symbols=("a", "b"), tables=[[0, 0, 1, 3], [1, 2, 3, 3]])
    answer = aperiodic(machine, limit=3)
    assert answer.answer is None
    assert answer.explain().startswith("perhaps aperiodic: no subgroup among the first 3 elements")


def test_group_or_the_symbol_that_merges() -> None:
    assert group(symmetric(4))
    assert group(symmetric(4)).explain() == "a group: every symbol permutes the states"
    assert not group(flip_flop())
    assert group(permutation_reset(3)).explain() == "not a group: 'reset' sends '0' and '1' to the same state"
