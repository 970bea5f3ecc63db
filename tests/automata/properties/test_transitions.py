from __future__ import annotations

import numpy as np
import pytest
from sympy.combinatorics import Permutation, PermutationGroup

from detent.automata import Semiautomaton, flip_flop, permutation_reset, symmetric
from detent.automata.properties.monoid import transition_monoid
from tests.automata.oracles import closure


@pytest.mark.parametrize("seed", range(30))
def test_all_elements_with_words_that_make_them(seed: int) -> None:
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


def test_a_group_has_the_order_sympy_says() -> None:
    tables = [[1, 2, 3, 4, 5, 0], [1, 0, 2, 4, 3, 5]]
    machine = Semiautomaton(symbols=("a", "b"), tables=tables)
    assert len(transition_monoid(machine)) == PermutationGroup(*(Permutation(t) for t in tables)).order()
    assert len(transition_monoid(machine).idempotents) == 1


def test_word_problems_have_as_many_elements_as_states() -> None:
    for machine in (symmetric(4), flip_flop()):
        assert len(transition_monoid(machine)) == machine.n_states


@pytest.mark.parametrize("limit", [1, 2, 10, 24, 27])
def test_it_stops_at_the_limit_and_says_so(limit: int) -> None:
    monoid = transition_monoid(permutation_reset(4), limit=limit)  # 24 permutations and 4 constants
    assert len(monoid) == limit
    assert not monoid.complete
    assert f"more than {limit - 1} elements (stopped there)" in monoid.explain()
    assert (
        transition_monoid(permutation_reset(4), limit=28).explain().startswith("transition monoid of 28 elements, 5 ")
    )
