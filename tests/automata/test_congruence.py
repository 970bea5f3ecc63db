"""Congruences against all partitions of the states and the definition."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy.combinatorics import Permutation, PermutationGroup

from exactstate._types import MISSING
from exactstate.automata import Moore, Semiautomaton, cyclic, from_tables, mathieu11, symmetric, tomita
from exactstate.automata.congruence import (
    PairPredecessors,
    congruence,
    equivalent_tables,
    is_congruence,
    is_transitive_group,
    join,
    meet,
    merge,
    principal_congruences,
    quotient,
    quotient_tables,
    respects,
)
from exactstate.automata.minimize import numbered
from exactstate.errors import InvalidInput, InvalidWord
from tests.automata.oracles import is_congruence_by_definition, partitions
from tests.cases import in_one_case


def finer(one, other) -> bool:
    return all(other[p] == other[q] for p in range(len(one)) for q in range(len(one)) if one[p] == one[q])


def random_tables(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    n, A = int(rng.integers(1, 7)), int(rng.integers(1, 3))
    return np.sort(rng.integers(0, n, (A, n)), axis=1) if seed % 2 else rng.integers(0, n, (A, n))


def machine_of(tables: np.ndarray) -> Semiautomaton:
    return Semiautomaton(symbols=tuple("abc"[: len(tables)]), tables=tables)


def test_partitions_are_counted_by_bell_numbers() -> None:
    assert [len(partitions(n)) for n in range(7)] == [1, 1, 2, 5, 15, 52, 203]


@in_one_case("seed", range(25))
def test_congruence_join_and_meet_against_all_partitions(seed: int) -> None:
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


@in_one_case("seed", range(25))
def test_principal_congruences_are_all_that_pairs_generate(seed: int) -> None:
    tables = random_tables(seed)
    n = tables.shape[1]
    congruences = [c for c in partitions(n) if is_congruence_by_definition(tables, c)]

    def generated(p: int, q: int) -> tuple[int, ...]:
        above = [c for c in congruences if c[p] == c[q]]
        return next(c for c in above if all(finer(c, other) for other in above))

    expected = {generated(p, q) for p in range(n) for q in range(p)}
    found = list(principal_congruences(machine_of(tables)))
    assert {tuple(partition) for _, partition in found} == expected
    assert len(found) == len(expected)
    assert all(generated(*pair) == tuple(partition) for pair, partition in found)


def test_principal_congruences_of_a_group_are_its_cyclic_subgroups() -> None:
    group = PermutationGroup(Permutation([1, 0, 2, 3]), Permutation([0, 2, 1, 3]), Permutation([0, 1, 3, 2]))
    cyclic_subgroups = {frozenset(g**k for k in range(g.order())) for g in group.elements} - {
        frozenset([Permutation(3)])
    }
    found = [partition for _, partition in principal_congruences(symmetric(4))]
    assert len(found) == len(cyclic_subgroups)
    assert sorted(int(c.max()) + 1 for c in found) == sorted(24 // len(s) for s in cyclic_subgroups)


def test_congruence_of_mathieu11_is_the_cosets_of_a_cyclic_subgroup() -> None:
    machine = mathieu11()
    a = int(machine.tables[0, 0])
    found = congruence(machine, [(0, a)])
    assert is_congruence(machine, found)
    assert np.bincount(found).tolist() == [11] * 720
    broken = found.copy()
    broken[5] = (broken[5] + 1) % 720
    assert not is_congruence(machine, broken)


def test_congruence_of_named_states() -> None:
    machine = symmetric(3)
    assert np.array_equal(congruence(machine, [("e", "(0 1 2)")]), congruence(machine, [(0, 4)]))
    with pytest.raises(InvalidWord, match="state 9 is out of range"):
        congruence(machine, [(0, 9)])


def test_quotient_keeps_outputs_that_every_block_agrees_on() -> None:
    machine = Moore(symbols=("+",), tables=[[1, 2, 3, 0]], start=3, outputs=("even", "odd"), readout=[0, 1, 0, 1])
    small = quotient(machine, np.array([0, 1, 0, 1]))
    assert small == Moore(symbols=("+",), tables=[[1, 0]], start=1, outputs=("even", "odd"), readout=[0, 1])
    assert type(quotient(tomita(5), np.array([0, 1, 0, 1]))) is Semiautomaton


def test_quotient_refuses_what_is_not_a_congruence() -> None:
    with pytest.raises(InvalidInput, match="not a congruence: some symbol sends a block to more than one block"):
        quotient(cyclic(4), np.array([0, 0, 1, 1]))
    with pytest.raises(InvalidInput, match=r"the block of each of the 4 states; got int64 of shape \(3,\)"):
        is_congruence(cyclic(4), np.array([0, 0, 1]))


def test_join_and_meet_of_partitions_with_any_numbering() -> None:
    assert np.array_equal(join(np.array([7, 7, 2, 3]), np.array([1, 0, 0, 5])), [0, 0, 0, 1])
    assert np.array_equal(meet(np.array([7, 7, 2, 2]), np.array([1, 0, 0, 0])), numbered(np.array([0, 1, 2, 2])))


def some_tables(seed: int, never: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    n, A = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    return np.where(rng.random((A, n)) < never, MISSING, rng.integers(0, n, (A, n)))


@pytest.mark.parametrize("never", [0, 0.4])
@in_one_case("seed", range(25))
def test_merge_against_all_partitions(seed: int, never: float) -> None:
    tables = some_tables(seed, never)
    n = tables.shape[1]
    good = [p for p in partitions(n) if is_congruence_by_definition(tables, p)]
    assert [p for p in partitions(n) if respects(tables, np.array(p))] == good
    for p in range(n):
        for q in range(p):
            above = [c for c in good if c[p] == c[q]]
            assert tuple(merge(tables, [(p, q)])) == max(above, key=lambda c: max(c))
    for c in map(np.array, good):
        small = quotient_tables(tables, c)
        for a, table in enumerate(tables):
            sent = [{int(c[to]) for to in table[c == block] if to != MISSING} for block in range(c.max() + 1)]
            assert [{int(to)} - {MISSING} for to in small[a]] == sent


@given(st.integers(0, 10**6), st.integers(2, 60), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_merge_in_rounds_is_merge_one_by_one(seed: int, n: int, A: int, pairs: int) -> None:
    rng = np.random.default_rng(seed)
    tables = rng.permuted(np.tile(np.arange(n), (A, 1)), axis=1) if seed % 2 else rng.integers(0, n, (A, n))
    tables = np.where(rng.random((A, n)) < 0.3, MISSING, tables) if seed % 3 else tables
    wanted = [(int(p), int(q)) for p, q in rng.integers(0, n, (pairs, 2))]
    one_by_one = merge(tables, wanted)
    for rounds in (0, 1, 2, 64):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys.modules["exactstate.automata.congruence"], "_LARGE", 0)
            patch.setattr(sys.modules["exactstate.automata.congruence"], "_ROUNDS", rounds)
            assert np.array_equal(merge(tables, wanted), one_by_one)


def test_is_transitive_group() -> None:
    assert is_transitive_group(symmetric(4).tables)
    assert is_transitive_group(np.array([[1, 2, 0]]))
    assert not is_transitive_group(np.array([[1, 0, 2]]))
    assert not is_transitive_group(np.array([[1, 1, 0]]))


@in_one_case("seed", range(20))
def test_equivalent_tables_have_the_same_congruences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    some = [np.arange(n), *rng.integers(0, n, (2, n)), rng.permutation(n)]
    tables = np.stack([*some, np.argsort(some[3]), some[1][some[2]], some[3][some[1]], some[1]])
    few = equivalent_tables(tables)
    assert len(few) <= 3
    assert all(is_congruence_by_definition(tables, p) == is_congruence_by_definition(few, p) for p in partitions(n))


def test_equivalent_tables_of_a_cyclic_group_are_one_letter() -> None:
    assert equivalent_tables(cyclic(30).tables).tolist() == [[*range(1, 30), 0]]
    assert equivalent_tables(from_tables([[0, 1, 2]]).tables).tolist() == [[0, 1, 2]]
    assert len(equivalent_tables(mathieu11().tables)) == 2


@in_one_case("seed", range(20))
def test_equivalent_tables_with_missing_transitions(seed: int) -> None:
    tables = some_tables(seed, 0.4)
    n = tables.shape[1]
    tables = np.vstack([tables, tables[:1], np.where(np.arange(n) < 2, np.arange(n), MISSING)])
    few = equivalent_tables(tables)
    assert len(few) <= len(tables) - 2 or len(few) == 1
    assert all(is_congruence_by_definition(tables, p) == is_congruence_by_definition(few, p) for p in partitions(n))


@pytest.mark.parametrize("seed", range(10))
def test_pair_predecessors_are_those_that_a_symbol_sends_there(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables, p, q = rng.integers(0, 6, (2, 6)), np.array([0, 3, 5]), np.array([1, 3, 2])
    for a, table in enumerate(tables):
        found = sorted(zip(*(side.tolist() for side in PairPredecessors(tables)(a, p, q)), strict=True))
        assert found == sorted((u, v) for i in range(3) for u in range(6) for v in range(6)
                               if table[u] == p[i] and table[v] == q[i])  # fmt: skip


@pytest.mark.parametrize("seed", range(10))
def test_pair_predecessors_spread_marks_all_that_words_send_to_a_known_pair(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, tables = 7, rng.integers(0, 7, (2, 7))
    known = np.zeros((n, n), bool)
    PairPredecessors(tables).spread(known, np.array([2]), np.array([5]))
    expected = np.zeros((n, n), bool)
    expected[2, 5] = expected[5, 2] = True
    for _ in range(n * n):
        expected |= np.any([expected[np.ix_(table, table)] for table in tables], axis=0)
    assert np.array_equal(known, expected)
