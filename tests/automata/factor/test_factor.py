"""Factorings against all families of congruences of tiny machines, and known cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from exactstate.automata import (
    Semiautomaton,
    alternating,
    cyclic,
    dihedral,
    flip_flop,
    from_tables,
    mathieu11,
    minimize,
    parallel,
    symmetric,
    tomita,
)
from exactstate.automata.factor.factor import Factoring, check_factoring, factor, factor_into
from exactstate.errors import InvalidInput
from tests.automata.machines import quaternion
from tests.automata.oracles import partitions


def run_heads(found: Factoring, word: np.ndarray) -> None:
    """Follow a word in the machine and in the heads: the paper's sigma_i(chi_i(q)) = chi_i(delta(q)), step by step."""
    state, indices = 0, [int(chi[0]) for chi in found.partitions]
    seen = {}
    for symbol in word:
        state = int(found.machine.tables[symbol, state])
        indices = [int(table[symbol, index]) for table, index in zip(found.tables, indices, strict=True)]
        assert seen.setdefault(tuple(indices), state) == state
        assert indices == [int(chi[state]) for chi in found.partitions]


@pytest.mark.parametrize(
    ("machine", "sizes"),
    [(cyclic(2), (2,)), (cyclic(5), (5,)), (cyclic(16), (16,)), (cyclic(30), (5, 3, 2)), (symmetric(3), (3, 2)),
     (symmetric(4), (4, 3, 2)), (alternating(5), (5, 5, 5)), (symmetric(5), (5, 5, 5, 2)), (flip_flop(), (2, 2)),
     (quaternion(), (8,)), (dihedral(6), (3, 2, 2)), (tomita(5), (2, 2)), (cyclic(1), (1,))],
    ids=["Z2", "Z5", "Z16", "Z30", "S3", "S4", "A5", "S5", "FF", "Q8", "D6", "T5", "Z1"],
)  # fmt: skip
def test_factor_proves_the_cheapest_heads(machine: Semiautomaton, sizes: tuple[int, ...]) -> None:
    found = factor(machine)
    assert found.sizes == sizes
    assert found.complete
    assert found.cost == sum(d * d for d in sizes)
    assert found.trivial == (len(sizes) == 1)
    run_heads(found, np.random.default_rng(0).integers(0, machine.n_symbols, 300))


def cheapest_by_hand(tables: np.ndarray, occurs: np.ndarray) -> int:
    """The smallest sum of squares over all families of up to three partitions that the symbols respect."""
    n = tables.shape[1]
    good = [
        c
        for c in partitions(n)
        if all(
            c[tables[a, p]] == c[tables[a, q]]
            for a in range(len(tables))
            for p in range(n)
            for q in range(p)
            if c[p] == c[q] and occurs[a, p] and occurs[a, q]
        )
    ]
    return min(
        sum((max(c) + 1) ** 2 for c in family)
        for count in (1, 2, 3)
        for family in itertools.combinations(good, count)
        if len(set(zip(*family, strict=True))) == n
    )


@pytest.mark.parametrize("everywhere", [True, False])
@pytest.mark.parametrize("seed", range(15))
def test_factor_tiny_machines_against_all_families(seed: int, everywhere: bool) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    tables = np.sort(rng.integers(0, n, (2, n)), axis=1) if seed % 2 else rng.integers(0, n, (2, n))
    occurs = (rng.random((2, n)) < 0.6) | everywhere
    found = factor(from_tables(tables), occurs=None if everywhere else occurs)
    assert found.complete
    assert found.cost == cheapest_by_hand(tables, occurs)


def test_factor_ignores_transitions_that_never_occur() -> None:
    """A counter modulo 6 that is only ever stepped by one, next to a symbol that would scramble it."""
    machine = from_tables([[1, 2, 3, 4, 5, 0], [3, 1, 4, 0, 5, 2]], symbols=("step", "scramble"))
    assert factor(machine).trivial
    occurs = np.array([[True] * 6, [False] * 6])
    found = factor(machine, occurs=occurs)
    assert found.sizes == (3, 2)
    assert found.explain() == (
        "heads of 3 and 2 indices hold the 6 states, on the transitions that occur, at cost 13 instead of 36; "
        "no congruences are cheaper"
    )
    assert [table[1].tolist() for table in found.tables] == [[0, 1, 2], [0, 1]]
    run_heads(found, np.zeros(50, int))
    check_factoring(machine, found.partitions, occurs=occurs)
    with pytest.raises(InvalidInput, match="head 0 cannot track this machine"):
        check_factoring(machine, found.partitions)
    with pytest.raises(InvalidInput, match=r"one entry for each symbol and state, shape \(2, 6\); got \(6,\)"):
        factor(machine, occurs=occurs[0])


def test_factor_mathieu11_into_four_heads_of_eleven() -> None:
    found = factor(mathieu11())
    assert found.sizes == (11, 11, 11, 11)
    assert found.cost == 484
    assert not found.complete
    assert found.explain() == (
        "heads of 11, 11, 11 and 11 indices hold the 7920 states at cost 484 instead of 62726400; "
        "the cheapest found, not proven cheapest"
    )
    run_heads(found, np.random.default_rng(0).integers(0, 4, 5000))


@pytest.mark.parametrize("seed", range(4))
def test_factor_separates_machines_in_parallel(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [from_tables(rng.integers(0, d, (3, d))) for d in (5, 6, 7)]
    whole = minimize(parallel(parallel(parts[0], parts[1]), parts[2]))
    found = factor(whole, seed=seed, budget=1_000_000)
    assert found.cost <= 25 + 36 + 49
    assert not found.trivial


def test_factor_random_machines_trivially() -> None:
    for n in (10, 50, 200):
        found = factor(from_tables(np.random.default_rng(n).integers(0, n, (3, n))))
        assert found.trivial
        assert found.complete
        assert "only the trivial factoring exists" in found.explain()


def test_factor_is_trivial_when_other_factorings_cost_more() -> None:
    """The congruences of three blocks that merge 0 with 1 and 1 with 3 do it as well, at cost 18."""
    found = factor(from_tables([[3, 3, 1, 0], [3, 3, 2, 0]]))
    check_factoring(found.machine, (np.array([0, 0, 1, 2]), np.array([0, 1, 2, 0])))
    assert found.trivial
    assert found.complete
    assert found.explain() == "one head of 4 indices, cost 16: other factorings exist, but none is cheaper"


def test_factoring_explain() -> None:
    assert factor(symmetric(3)).explain() == (
        "heads of 3 and 2 indices hold the 6 states at cost 13 instead of 36; no congruences are cheaper"
    )
    assert factor(cyclic(16)).explain() == (
        "one head of 16 indices, cost 256: only the trivial factoring exists, "
        "because every congruence but equality merges '0' and '8'"
    )
    assert factor(cyclic(1)).explain() == "one head of 1 indices, cost 1: there is only one state"
    one = Factoring(cyclic(6), (np.arange(6),), complete=False)
    assert one.explain().endswith("no cheaper factoring was found, which does not prove that there is none")


def test_factor_is_deterministic() -> None:
    machine = symmetric(5)
    first, second = (factor(machine, seed=7, budget=60_000) for _ in range(2))
    assert not first.complete
    assert first.sizes == second.sizes
    assert all(np.array_equal(a, b) for a, b in zip(first.partitions, second.partitions, strict=True))


def test_check_factoring_refuses_wrong_heads() -> None:
    machine = symmetric(3)
    good = factor(machine).partitions
    check_factoring(machine, good)
    with pytest.raises(InvalidInput, match=r"these heads do not separate the states 'e' and '\(\d \d\)'"):
        check_factoring(machine, good[:1])
    torn = good[0].copy()
    torn[3] = (torn[3] + 1) % 3
    with pytest.raises(
        InvalidInput, match="head 0 cannot track this machine: some symbol sends one of its blocks to two"
    ):
        Factoring(machine, (torn, good[1]), complete=False)
    with pytest.raises(InvalidInput, match="do not separate"):
        Factoring(machine, (), complete=False)


@pytest.mark.parametrize(
    ("machine", "heads"),
    [
        (symmetric(3), (3, 2)),
        (symmetric(3), (2, 3)),
        (symmetric(3), (6,)),
        (symmetric(3), (7, 2)),
        (symmetric(4), (4, 3, 2)),
        (symmetric(4), (4, 4, 4)),
        (symmetric(4), (24, 1)),
        (alternating(5), (5, 12)),
        (alternating(5), (5, 5, 5)),
        (cyclic(6), (3, 2)),
        (flip_flop(), (3,)),
    ],
    ids=lambda value: str(value),
)
def test_factor_into_heads_that_fit(machine, heads):
    found = factor_into(machine, heads)
    assert found is not None
    assert len(found.partitions) == len(heads)
    assert all(size <= d for size, d in zip(found.sizes, heads, strict=True))
    codes = np.stack(found.partitions, axis=1)
    assert len(np.unique(codes, axis=0)) == machine.n_states
    for chi, table in zip(found.partitions, found.tables, strict=True):
        for a in range(machine.n_symbols):
            assert np.array_equal(table[a][chi], chi[machine.tables[a].astype(int)])


@pytest.mark.parametrize(
    ("machine", "heads"), [(symmetric(3), (2, 2)), (symmetric(4), (5, 5)), (cyclic(16), (8, 2)), (cyclic(16), (15,))]
)
def test_factor_into_heads_that_do_not_fit_is_none(machine, heads):
    assert factor_into(machine, heads) is None
