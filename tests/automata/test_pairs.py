from __future__ import annotations

import numpy as np
import pytest

from detent.automata.congruence import PairsBefore


@pytest.mark.parametrize("seed", range(10))
def test_pairs_before_are_those_that_a_symbol_sends_there(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables, p, q = rng.integers(0, 6, (2, 6)), np.array([0, 3, 5]), np.array([1, 3, 2])
    for a, table in enumerate(tables):
        found = sorted(zip(*(side.tolist() for side in PairsBefore(tables)(a, p, q)), strict=True))
        assert found == sorted((u, v) for i in range(3) for u in range(6) for v in range(6)
                               if table[u] == p[i] and table[v] == q[i])  # fmt: skip


@pytest.mark.parametrize("seed", range(10))
def test_spread_marks_all_that_words_send_to_a_known_pair(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, tables = 7, rng.integers(0, 7, (2, 7))
    known = np.zeros((n, n), bool)
    PairsBefore(tables).spread(known, np.array([2]), np.array([5]))
    expected = np.zeros((n, n), bool)
    expected[2, 5] = expected[5, 2] = True
    for _ in range(n * n):
        expected |= np.any([expected[np.ix_(table, table)] for table in tables], axis=0)
    assert np.array_equal(known, expected)
