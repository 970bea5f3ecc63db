from __future__ import annotations

import numpy as np
import pytest
from sympy.combinatorics import Permutation, PermutationGroup

from detent.automata import Moore, Semiautomaton, cyclic, mathieu11, symmetric, tomita
from detent.automata.congruence import congruence, is_congruence, join, meet, merge, principal_congruences, quotient
from detent.automata.minimize import numbered
from detent.errors import InvalidInput, InvalidWord
from tests.automata.oracles import is_congruence_by_definition, partitions


def finer(one, other) -> bool:
    return all(other[p] == other[q] for p in range(len(one)) for q in range(len(one)) if one[p] == one[q])


def random_tables(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    n, A = int(rng.integers(1, 7)), int(rng.integers(1, 3))
    return np.sort(rng.integers(0, n, (A, n)), axis=1) if seed % 2 else rng.integers(0, n, (A, n))


def machine_of(tables: np.ndarray) -> Semiautomaton:
    return Semiautomaton(symbols=tuple("abc"[: len(tables)]), tables=tables)


def test_there_are_as_many_partitions_as_bell_says() -> None:
    assert [len(partitions(n)) for n in range(7)] == [1, 1, 2, 5, 15, 52, 203]


@pytest.mark.parametrize("seed", range(25))
def test_against_all_partitions(seed: int) -> None:
    tables = random_tables(seed)
    machine, n = machine_of(tables), tables.shape[1]
    congruences = [p for p in partitions(n) if is_congruence_by_definition(tables, p)]
    assert [p for p in partitions(n) if is_congruence(machine, np.array(p))] == congruences
    for p in range(n):
        for q in range(p):
            above = [c for c in congruences if c[p] == c[q]]
            least = next(c for c in above if all(finer(c, other) for other in above))
            assert tuple(congruence(machine, [(p, q)])) == least
    for c in congruences[::7]:
        for d in congruences[::5]:
            above = [e for e in congruences if finer(c, e) and finer(d, e)]
            below = [e for e in congruences if finer(e, c) and finer(e, d)]
            assert tuple(join(np.array(c), np.array(d))) == next(e for e in above if all(finer(e, f) for f in above))
            assert tuple(meet(np.array(c), np.array(d))) == next(e for e in below if all(finer(f, e) for f in below))


@pytest.mark.parametrize("seed", range(25))
def test_principal_congruences_are_all_that_pairs_generate(seed: int) -> None:
    tables = random_tables(seed)
    n = tables.shape[1]
    expected = {tuple(merge(tables, [(p, q)])) for p in range(n) for q in range(p)}
    found = list(principal_congruences(machine_of(tables)))
    assert {tuple(partition) for _, partition in found} == expected
    assert len(found) == len(expected)
    assert all(np.array_equal(merge(tables, [pair]), partition) for pair, partition in found)


def test_principal_congruences_of_a_group_are_its_cyclic_subgroups() -> None:
    group = PermutationGroup(Permutation([1, 0, 2, 3]), Permutation([0, 2, 1, 3]), Permutation([0, 1, 3, 2]))
    cyclic_subgroups = {frozenset(g**k for k in range(g.order())) for g in group.elements} - {
        frozenset([Permutation(3)])
    }
    found = [partition for _, partition in principal_congruences(symmetric(4))]
    assert len(found) == len(cyclic_subgroups)
    assert sorted(int(c.max()) + 1 for c in found) == sorted(24 // len(s) for s in cyclic_subgroups)


def test_cosets_of_a_cyclic_subgroup_of_mathieu11() -> None:
    machine = mathieu11()
    a = int(machine.tables[0, 0])
    found = congruence(machine, [(0, a)])
    assert is_congruence(machine, found)
    assert np.bincount(found).tolist() == [11] * 720
    broken = found.copy()
    broken[5] = (broken[5] + 1) % 720
    assert not is_congruence(machine, broken)


def test_states_can_be_named() -> None:
    machine = symmetric(3)
    assert np.array_equal(congruence(machine, [("e", "(0 1 2)")]), congruence(machine, [(0, 4)]))
    with pytest.raises(InvalidWord, match="state 9 is out of range"):
        congruence(machine, [(0, 9)])


def test_quotient_keeps_outputs_that_every_block_agrees_on() -> None:
    machine = Moore(symbols=("+",), tables=[[1, 2, 3, 0]], start=3, outputs=("even", "odd"), readout=[0, 1, 0, 1])
    small = quotient(machine, np.array([0, 1, 0, 1]))
    assert small == Moore(symbols=("+",), tables=[[1, 0]], start=1, outputs=("even", "odd"), readout=[0, 1])
    assert type(quotient(tomita(5), np.array([0, 1, 0, 1]))) is Semiautomaton


def test_what_is_no_congruence_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not a congruence: some symbol sends a block to more than one block"):
        quotient(cyclic(4), np.array([0, 0, 1, 1]))
    with pytest.raises(InvalidInput, match=r"the block of each of the 4 states; got int64 of shape \(3,\)"):
        is_congruence(cyclic(4), np.array([0, 0, 1]))


def test_partitions_may_be_numbered_anyhow() -> None:
    assert np.array_equal(join(np.array([7, 7, 2, 3]), np.array([1, 0, 0, 5])), [0, 0, 0, 1])
    assert np.array_equal(meet(np.array([7, 7, 2, 2]), np.array([1, 0, 0, 0])), numbered(np.array([0, 1, 2, 2])))
