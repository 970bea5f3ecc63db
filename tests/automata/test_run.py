"""Every implementation of running words gives the states of a plain loop."""

from __future__ import annotations

import numpy as np
import pytest

from exactstate import native
from exactstate.automata import run as running
from exactstate.automata.run import compose, smallest_dtype, trajectories
from exactstate.errors import InvalidWord
from tests.cases import pairs


def slow(tables, words, starts):
    """One symbol after the other."""
    rows = tables.tolist()
    paths = []
    for word, state in zip(words.tolist(), starts.tolist(), strict=True):
        path = []
        for symbol in word:
            state = rows[symbol][state]
            path.append(state)
        paths.append(path)
    return np.array(paths, dtype=np.int64).reshape(words.shape)


@pytest.fixture(params=["compiled", "numpy"])
def way(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(native, "available", lambda: False)
    else:
        assert native.available(), native.why_not()
    return request.param


@pytest.mark.parametrize(("L", "n", "B"), pairs([0, 1, 2, 3, 63, 64, 65, 1000, 4099], [1, 2, 5, 300], [1, 7, 8, 19]))
def test_trajectories_are_those_of_a_plain_loop(way, L, n, B):
    rng = np.random.default_rng(L + 17 * n + B)
    tables = rng.integers(0, n, (3, n)).astype(smallest_dtype(n))
    words, starts = rng.integers(0, 3, (B, L)), rng.integers(0, n, B)
    wanted = slow(tables, words, starts)
    path, ends = trajectories(tables, words, starts)
    assert path.dtype == tables.dtype
    assert np.array_equal(path, wanted)
    assert np.array_equal(ends, wanted[:, -1] if L else starts)
    nothing, alone = trajectories(tables, words, starts, keep=False)
    assert nothing is None
    assert np.array_equal(alone, ends)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int32, np.int64, np.uint64])
def test_trajectories_of_symbols_of_every_dtype(way, dtype):
    rng = np.random.default_rng(1)
    tables = rng.integers(0, 4, (3, 4)).astype(np.uint8)
    words = rng.integers(0, 3, (5, 100))
    wanted, _ = trajectories(tables, words, np.zeros(5, int))
    found, _ = trajectories(tables, words.astype(dtype), np.zeros(5, int))
    assert np.array_equal(found, wanted)


def test_trajectories_of_words_that_are_not_contiguous(way):
    rng = np.random.default_rng(2)
    tables, words = rng.integers(0, 4, (3, 4)).astype(np.uint8), rng.integers(0, 3, (10, 200))
    wanted, _ = trajectories(tables, words[::2, ::3].copy(), np.zeros(5, int))
    found, _ = trajectories(tables, words[::2, ::3], np.zeros(5, int))
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("value", [3, 255, -1, 2**31 - 1])
@pytest.mark.parametrize("place", [0, 2047, 2048, 5000])
def test_trajectories_refuse_a_symbol_out_of_range_anywhere(way, value, place):
    words = np.zeros((3, 5001), np.int32)
    words[1, place] = value
    with pytest.raises(InvalidWord, match=f"symbol {value} at position {place} of word 1"):
        trajectories(np.zeros((3, 2), np.uint8), words, np.zeros(3, int))


def test_trajectories_differ_when_one_table_entry_is_wrong(way):
    rng = np.random.default_rng(3)
    tables = rng.integers(0, 5, (2, 5)).astype(np.uint8)
    words, starts = rng.integers(0, 2, (4, 300)), np.zeros(4, int)
    wanted = slow(tables, words, starts)
    symbol, state = int(words[0, 100]), int(wanted[0, 99])
    tables[symbol, state] = (tables[symbol, state] + 1) % 5
    assert not np.array_equal(trajectories(tables, words, starts)[0], wanted)


def test_trajectories_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(4)
    tables, words = rng.integers(0, 6, (2, 6)).astype(np.uint8), rng.integers(0, 2, (37, 500))
    before = native.set_threads(1)
    try:
        alone, _ = trajectories(tables, words, np.zeros(37, int))
        native.set_threads(5)
        together, _ = trajectories(tables, words, np.zeros(37, int))
    finally:
        native.set_threads(before)
    assert np.array_equal(alone, together)


def test_compose_applies_the_first_table_and_then_the_second():
    assert compose(np.array([1, 2, 0]), np.array([0, 0, 2])).tolist() == [0, 2, 0]
    assert running.smallest_dtype(256) == np.uint8
