"""Rows of integers are numbered in order of first occurrence."""

from __future__ import annotations

import numpy as np
import pytest

from exactstate.extract.explore import RowNumbering
from exactstate.extract.network import GrowingArray


@pytest.mark.parametrize("width", [1, 3])
def test_row_numbering_is_that_of_a_dictionary(width: int) -> None:
    rng = np.random.default_rng(1)
    met, by_hand = RowNumbering(width), {}
    for count in (0, 1, 5, 64, 65, 1000, 0, 7):
        rows = rng.integers(-1, 4, (count, width))
        wanted = [by_hand.setdefault(tuple(row), len(by_hand)) for row in rows.tolist()]
        assert met.of(rows).tolist() == wanted
        assert list(map(tuple, met.rows.tolist())) == list(by_hand)
    assert len(met) == len(by_hand)
    assert met.nbytes > 4 * width * len(met)


def test_growing_array_keeps_its_rows() -> None:
    rng, held, parts = np.random.default_rng(2), GrowingArray(3, np.float64), []
    for count in (1, 0, 62, 2, 500):
        parts.append(rng.normal(size=(count, 3)))
        held.append(parts[-1])
        assert np.array_equal(held.rows, np.concatenate(parts))
    assert len(held) == 565
