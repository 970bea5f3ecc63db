from __future__ import annotations

import numpy as np
import pytest

from detent.automata.minimize import _hopcroft, equal_rows, numbered, refine


def by_definition(tables: np.ndarray, colours: np.ndarray) -> np.ndarray:
    """Mark distinguishable pairs until nothing changes (the table-filling method)."""
    apart = colours[:, None] != colours[None, :]
    while True:
        more = apart | np.any([apart[np.ix_(table, table)] for table in tables], axis=0)
        if np.array_equal(more, apart):
            return numbered((~apart).argmax(axis=1))
        apart = more


@pytest.mark.parametrize("seed", range(60))
def test_refine_is_table_filling(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, A, colours = int(rng.integers(1, 40)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    tables, colouring = rng.integers(0, max(1, n // 2), (A, n)), rng.integers(0, colours, n)
    expected = by_definition(tables, colouring)
    assert np.array_equal(refine(tables, colouring), expected)
    assert np.array_equal(_hopcroft(tables, numbered(colouring)), expected)


@pytest.mark.parametrize("n", [1, 2, 3, 100, 257])
def test_chains_and_counters_need_all_their_states(n: int) -> None:
    q = np.arange(n)
    chain = np.minimum(q + 1, n - 1)[None, :]
    assert np.array_equal(refine(chain, (q == n - 1).astype(int)), q)
    counter = np.stack([(q + 1) % n, (q - 1) % n])
    assert np.array_equal(refine(counter, (q == 0).astype(int)), by_definition(counter, q == 0))


def test_a_counter_seen_modulo_seven_has_seven_blocks() -> None:
    q = np.arange(700)
    assert np.array_equal(refine(((q + 1) % 700)[None, :], (q % 7 == 3).astype(int)), q % 7)


def test_numbering_is_by_first_state() -> None:
    assert numbered(np.array([5, 2, 5, 9, 2])).tolist() == [0, 1, 0, 2, 1]
    assert equal_rows(np.array([[3, 1], [0, 0], [3, 1], [1, 3]])).tolist() == [0, 1, 0, 2]
