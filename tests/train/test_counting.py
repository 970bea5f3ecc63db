"""What depends on what, and the moves that nothing shows."""

from __future__ import annotations

import numpy as np

from detent.train.stack_supervision import completed, determined, different, rule


def test_determined() -> None:
    keys = np.array([[0, 1], [0, 2], [0, 1]])
    assert determined(keys, np.array([5, 6, 5]))
    assert not determined(keys, np.array([5, 6, 7]))


def test_moves_that_no_story_shows() -> None:
    table = np.array([[1, 1, 0], [2, 2, 2], [0, 2, 1], [0, 1, 1]])
    seen = np.array([[True, True, False], [False, False, False], [True, True, True], [False, True, False]])
    assert completed(table, seen).tolist() == [
        [1, 1, 2],  # one of those seen stays where it is: nothing else moves
        [0, 1, 2],  # nothing seen, nothing moved
        [0, 2, 1],
        [0, 1, 2],
    ]
    away = np.array([[1, 0, 0], [2, 2, 0]])
    assert completed(away, np.array([[True, False, False], [True, True, False]])).tolist() == [[1, 1, 1], [2, 2, 2]]


def test_a_rule_has_what_was_counted() -> None:
    """Two values; symbol 0 swaps them below 1 and leaves them alone below 0, symbol 1 was seen once."""
    below, symbols, before, after = np.array([[1, 0, 0, 1], [1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 1, 0]]).T
    found = rule(below, symbols, before, after, 2, 2)
    assert found.tolist() == [[[0, 1], [0, 0]], [[1, 0], [0, 1]]]


def test_different_rows() -> None:
    rows = np.array([[3, -1], [0, 2], [3, -1], [0, 3]], np.int16)
    assert sorted(different(rows).tolist()) == [[0, 2], [0, 3], [3, -1]]
