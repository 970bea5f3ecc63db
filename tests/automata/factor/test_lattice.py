from __future__ import annotations

import numpy as np
import pytest

from detent.automata import Semiautomaton, alternating, cyclic, dihedral, quaternion, symmetric
from detent.automata.factor.budget import Work
from detent.automata.factor.lattice import first_states, lattice
from detent.errors import BudgetExceeded
from tests.automata.oracles import partitions


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
@pytest.mark.parametrize("seed", range(40))
def test_against_all_partitions(seed: int, never: float) -> None:
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
def test_the_congruences_of_a_group_are_its_subgroups(machine: Semiautomaton, subgroups: int) -> None:
    found = lattice(machine.tables, Work(10**9))
    assert len(found.congruences) == subgroups - 1
    assert found.sizes[0] == machine.n_states
    assert all(machine.n_states % size == 0 for size in found.sizes)


def test_the_atoms_of_a_group_are_its_subgroups_of_prime_order() -> None:
    assert len(lattice(symmetric(4).tables, Work(10**9)).atoms) == 9 + 4
    assert len(lattice(alternating(5).tables, Work(10**9)).atoms) == 15 + 10 + 6
    assert len(lattice(cyclic(16).tables, Work(10**9)).atoms) == 1


def test_too_much_work_is_refused() -> None:
    with pytest.raises(BudgetExceeded, match="more than the 1000 steps it was given"):
        lattice(symmetric(4).tables, Work(1000))
    with pytest.raises(BudgetExceeded):
        lattice(np.arange(12)[None, :], Work(100_000))  # every partition of twelve states
