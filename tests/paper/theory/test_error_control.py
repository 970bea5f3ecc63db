"""Spread, separation and what a decoder reads through, on vectors whose classes are known."""

from __future__ import annotations

import numpy as np
import pytest

from exactstate.errors import InvalidInput
from paper.theory.error_control import Code

RNG = np.random.default_rng(0)
STATES, SYMBOLS = np.repeat([0, 1, 0, 1], 500), np.repeat([0, 0, 1, 1], 500)
CENTERS = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 7.0], [3.0, 0.0, 7.0]]).repeat(500, axis=0)


def test_code_measures_between_states_and_not_between_symbols() -> None:
    code = Code.of(CENTERS, STATES, SYMBOLS)
    assert code.separation == 3.0
    assert np.abs(code.directions).tolist() == [[1.0, 0.0, 0.0]]


def test_spread_of_equal_vectors_is_exactly_zero() -> None:
    odd = CENTERS + 0.1  # sums of 0.1 round
    assert Code.of(odd, STATES, SYMBOLS).spread(odd, STATES, SYMBOLS) == 0.0


def test_spread_counts_only_directions_that_separate() -> None:
    code = Code.of(CENTERS, STATES, SYMBOLS)
    aside = CENTERS + RNG.standard_normal((2000, 1)) * [0.0, 5.0, 5.0]
    along = CENTERS + RNG.standard_normal((2000, 1)) * [0.5, 0.0, 0.0]
    assert code.spread(aside, STATES, SYMBOLS) < 1e-12
    assert 0.48 < code.spread(along, STATES, SYMBOLS) < 0.52
    assert code.spread(along, STATES, 1 - SYMBOLS) > 0  # other names of the symbols, the same classes


def test_readable_spread_is_where_the_decoder_has_the_share_right() -> None:
    code = Code.of(CENTERS, STATES, SYMBOLS)

    def decoder(vectors: np.ndarray) -> np.ndarray:
        return (vectors[:, 0] > 1.5).astype(np.int64)

    found = code.readable_spread(CENTERS, STATES, SYMBOLS, decoder, 0.9, np.random.default_rng(1))
    assert found is not None
    assert 1.5 / 1.4 < found < 1.5 / 1.17  # a normal variable exceeds 1.28 deviations in a tenth of cases
    assert code.readable_spread(CENTERS, 1 - STATES, SYMBOLS, decoder, 0.9, RNG) is None


def test_code_refuses_vectors_of_one_state() -> None:
    with pytest.raises(InvalidInput, match="these words show no two states after the same symbol"):
        Code.of(CENTERS[:10], STATES[:10], SYMBOLS[:10])
