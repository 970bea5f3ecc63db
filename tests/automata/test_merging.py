from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detent._types import MISSING
from detent.automata import cyclic, from_tables, mathieu11, symmetric
from detent.automata.congruence import essential, is_transitive_group, merge, on_blocks, respects
from tests.automata.oracles import is_congruence_by_definition, partitions


def some_tables(seed: int, never: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    n, A = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    return np.where(rng.random((A, n)) < never, MISSING, rng.integers(0, n, (A, n)))


@pytest.mark.parametrize("never", [0, 0.4])
@pytest.mark.parametrize("seed", range(25))
def test_against_all_partitions(seed: int, never: float) -> None:
    tables = some_tables(seed, never)
    n = tables.shape[1]
    good = [p for p in partitions(n) if is_congruence_by_definition(tables, p)]
    assert [p for p in partitions(n) if respects(tables, np.array(p))] == good
    for p in range(n):
        for q in range(p):
            above = [c for c in good if c[p] == c[q]]
            assert tuple(merge(tables, [(p, q)])) == max(above, key=lambda c: max(c))
    for c in map(np.array, good):
        small = on_blocks(tables, c)
        for a, table in enumerate(tables):
            sent = [{int(c[to]) for to in table[c == block] if to != MISSING} for block in range(c.max() + 1)]
            assert [{int(to)} - {MISSING} for to in small[a]] == sent


@given(st.integers(0, 10**6), st.integers(2, 60), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_merging_in_rounds_is_merging_one_by_one(seed: int, n: int, A: int, pairs: int) -> None:
    rng = np.random.default_rng(seed)
    tables = rng.permuted(np.tile(np.arange(n), (A, 1)), axis=1) if seed % 2 else rng.integers(0, n, (A, n))
    tables = np.where(rng.random((A, n)) < 0.3, MISSING, tables) if seed % 3 else tables
    wanted = [(int(p), int(q)) for p, q in rng.integers(0, n, (pairs, 2))]
    one_by_one = merge(tables, wanted)
    for rounds in (0, 1, 2, 64):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys.modules["detent.automata.congruence"], "_LARGE", 0)
            patch.setattr(sys.modules["detent.automata.congruence"], "_ROUNDS", rounds)
            assert np.array_equal(merge(tables, wanted), one_by_one)


def test_transitive_groups_are_known() -> None:
    assert is_transitive_group(symmetric(4).tables)
    assert is_transitive_group(np.array([[1, 2, 0]]))
    assert not is_transitive_group(np.array([[1, 0, 2]]))
    assert not is_transitive_group(np.array([[1, 1, 0]]))


@pytest.mark.parametrize("seed", range(20))
def test_essential_tables_tell_the_same_congruences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    some = [np.arange(n), *rng.integers(0, n, (2, n)), rng.permutation(n)]
    tables = np.stack([*some, np.argsort(some[3]), some[1][some[2]], some[3][some[1]], some[1]])
    few = essential(tables)
    assert len(few) <= 3
    assert all(is_congruence_by_definition(tables, p) == is_congruence_by_definition(few, p) for p in partitions(n))


def test_one_letter_of_a_cyclic_group_is_essential() -> None:
    assert essential(cyclic(30).tables).tolist() == [[*range(1, 30), 0]]
    assert essential(from_tables([[0, 1, 2]]).tables).tolist() == [[0, 1, 2]]
    assert len(essential(mathieu11().tables)) == 2


@pytest.mark.parametrize("seed", range(20))
def test_essential_tables_where_not_everything_happens(seed: int) -> None:
    tables = some_tables(seed, 0.4)
    n = tables.shape[1]
    tables = np.vstack([tables, tables[:1], np.where(np.arange(n) < 2, np.arange(n), MISSING)])
    few = essential(tables)
    assert len(few) <= len(tables) - 2 or len(few) == 1
    assert all(is_congruence_by_definition(tables, p) == is_congruence_by_definition(few, p) for p in partitions(n))
