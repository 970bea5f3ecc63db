"""All congruences and monoliths, against all partitions, all pairs and subgroups."""

from __future__ import annotations

import numpy as np
import pytest

from exactstate.automata import Semiautomaton, alternating, cyclic, dihedral, mathieu11, symmetric
from exactstate.automata.congruence import meet, merge
from exactstate.automata.factor.lattice import Work, first_states, lattice, monolith
from exactstate.errors import BudgetExceeded
from tests.automata.machines import quaternion
from tests.automata.oracles import partitions
from tests.cases import in_one_case


def congruences(tables: np.ndarray) -> set[tuple[int, ...]]:
    """All congruences but the coarsest, as first states, by trying all partitions."""
    n = tables.shape[1]
    found = set()
    for partition in map(np.array, partitions(n)):
        same = partition[:, None] == partition
        sent = [np.where(table < 0, -1, partition[table]) for table in tables]
        clash = [(blocks[:, None] != blocks) & (blocks[:, None] >= 0) & (blocks >= 0) for blocks in sent]
        if partition.any() and not any((same & c).any() for c in clash):
            found.add(tuple(first_states(partition).tolist()))
    return found


@pytest.mark.parametrize("never", [0, 0.3])
@in_one_case("seed", range(40))
def test_lattice_against_all_partitions(seed: int, never: float) -> None:
    rng = np.random.default_rng(seed)
    n, A = int(rng.integers(2, 7)), int(rng.integers(1, 3))
    tables = np.sort(rng.integers(0, n, (A, n)), axis=1) if seed % 2 else rng.integers(0, n, (A, n))
    tables = np.where(rng.random((A, n)) < never, -1, tables)
    found = lattice(tables, Work(10**9))
    expected = congruences(tables)
    assert {tuple(c) for c in found.congruences.tolist()} == expected
    assert len(found.congruences) == len(expected)
    # a family meets in equality exactly when it separates all atoms
    for _ in range(20):
        family = found.congruences[rng.integers(0, len(expected), 2)]
        separates = found.separates[[found.congruences.tolist().index(c) for c in family.tolist()]].any(axis=0).all()
        assert separates == (len(np.unique(family, axis=1).T) == n)


@pytest.mark.parametrize(
    ("machine", "subgroups"),
    [(cyclic(30), 8), (symmetric(3), 6), (quaternion(), 6), (dihedral(4), 10), (alternating(4), 10), (symmetric(4), 30),
     (alternating(5), 59), (symmetric(5), 156)],
    ids=["Z30", "S3", "Q8", "D4", "A4", "S4", "A5", "S5"],
)  # fmt: skip
def test_lattice_of_a_group_is_its_subgroups(machine: Semiautomaton, subgroups: int) -> None:
    found = lattice(machine.tables, Work(10**9))
    assert len(found.congruences) == subgroups - 1
    assert found.sizes[0] == machine.n_states
    assert all(machine.n_states % size == 0 for size in found.sizes)


def test_lattice_atoms_of_a_group_are_its_subgroups_of_prime_order() -> None:
    assert len(lattice(symmetric(4).tables, Work(10**9)).atoms) == 9 + 4
    assert len(lattice(alternating(5).tables, Work(10**9)).atoms) == 15 + 10 + 6
    assert len(lattice(cyclic(16).tables, Work(10**9)).atoms) == 1


def test_lattice_refuses_too_much_work() -> None:
    with pytest.raises(BudgetExceeded, match="more than the budget of 1000 steps"):
        lattice(symmetric(4).tables, Work(1000))
    with pytest.raises(BudgetExceeded):
        lattice(np.arange(12)[None, :], Work(100_000))  # every partition of twelve states


@in_one_case("seed", range(80))
def test_monolith_against_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, A = int(rng.integers(2, 12)), int(rng.integers(1, 4))
    tables = rng.integers(0, n, (A, n))
    if seed % 3 == 0:
        tables = np.sort(tables, axis=1)
    if seed % 3 == 1:
        tables = rng.permuted(np.tile(np.arange(n), (A, 1)), axis=1)
    if seed % 2:
        tables = np.where(rng.random((A, n)) < 0.2, -1, tables)
    found = monolith(tables, Work(10**9))
    all_principal = [merge(tables, [(p, q)]) for p in range(n) for q in range(p)]
    always = meet(*all_principal).max() < n - 1  # some pair is merged by all of them
    assert (found.other is None) == always
    p, q = found.pair
    if always:
        assert all(c[p] == c[q] for c in all_principal)
    else:
        assert meet(merge(tables, [found.pair]), merge(tables, [found.other])).max() == n - 1


def test_monolith_of_groups() -> None:
    assert monolith(cyclic(16).tables, Work(10**9)).pair == (0, 8)
    assert monolith(quaternion().tables, Work(10**9)).other is None
    assert monolith(symmetric(3).tables, Work(10**9)).other is not None


def test_monolith_refuses_machines_that_are_too_large() -> None:
    with pytest.raises(BudgetExceeded, match="up to 2000 states; this one has 7920"):
        monolith(mathieu11().tables, Work(10**9))
    with pytest.raises(BudgetExceeded, match="more than the budget of 10 steps"):
        monolith(cyclic(16).tables, Work(10))
