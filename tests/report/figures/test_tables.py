"""The tables figure: a mark at column k, row j where index k goes to j, darker for larger margins."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from exactstate.automata import factor, symmetric
from exactstate.report.figures import tables
from tests.report.figures.drawn import nothing_sticks_out, svg, words

ROWS = [
    {"layer": 0, "head": 0, "symbol": "a", "table": [1, 2, 0], "margins": [2.0, 4.0, None]},
    {"layer": 0, "head": 0, "symbol": "b", "table": [0, 0, -1], "margins": [1.0, 1.0, None]},
    {"layer": 0, "head": 1, "symbol": "a", "table": [1, 0], "margins": [4.0, 4.0]},
]


def test_matrix_marks_are_the_table() -> None:
    dark = tables.matrix([1, 2, 0], None, None)
    assert np.array_equal(np.argwhere(dark.T), [[0, 1], [1, 2], [2, 0]])


def test_matrix_is_darkest_at_the_largest_margin_and_shows_every_mark() -> None:
    dark = tables.matrix([1, 2, 0], [2.0, 4.0, 0.0], 4.0)
    assert dark[2, 1] == 1.0
    assert dark[1, 0] == 0.35 + 0.65 / 2
    assert dark[0, 2] == 0.35


def test_paint_has_a_panel_per_head_and_symbol() -> None:
    figure = tables.paint(ROWS, "mine")
    first, second, third, fourth = figure.axes
    (image,) = first.get_images()
    assert np.array_equal(np.argwhere(image.get_array().filled(0).T), [[0, 1], [1, 2], [2, 0]])
    assert third.get_images()[0].get_array().shape == (2, 2)
    assert not fourth.axison
    assert second.patches[0].get_hatch() == "////"
    assert first.get_ylabel() == "head 1"
    said = words(figure)
    assert "mine; darkest mark: margin 4" in said
    assert nothing_sticks_out(figure)


def test_paint_names_the_heads_of_every_layer() -> None:
    above = {"layer": 1, "head": 0, "symbol": "a | 01", "table": [0, 0], "margins": None}
    figure = tables.paint([*ROWS, above])
    assert "layer 2\nhead 1" in words(figure)
    assert [axes.get_title() for axes in figure.axes if axes.get_title()] == ["a", "b", "a | 01"]
    assert np.array_equal(np.argwhere(figure.axes[4].get_images()[0].get_array().filled(0)), [[0, 0], [0, 1]])
    assert not figure.axes[5].axison


def test_paint_counts_omitted_symbols() -> None:
    rows = [{"layer": 0, "head": 0, "symbol": f"s{i}", "table": [0], "margins": None} for i in range(11)]
    figure = tables.paint(rows)
    assert len(figure.axes) == 8
    assert "the first 8 of 11 symbols" in words(figure)


def test_rows_of_heads_compute_the_machine() -> None:
    """Running the heads by hand and the machine side by side never merges two states of the machine."""
    machine = symmetric(3)
    rows = tables.rows_of_heads(machine.symbols, factor(machine).tables)
    heads = sorted({row["head"] for row in rows})
    moves = {(row["head"], row["symbol"]): row["table"] for row in rows}
    random = np.random.default_rng(5)
    met: dict[tuple[int, ...], int] = {}
    state, at = machine.start, dict.fromkeys(heads, 0)
    for a in random.integers(machine.n_symbols, size=400):
        state = machine.run([int(a)], state)
        at = {h: moves[h, machine.symbols[int(a)]][k] for h, k in at.items()}
        key = tuple(at.values())
        assert met.setdefault(key, state) == state


def test_paint_of_the_same_rows_gives_the_same_bytes(tmp_path: Path) -> None:
    assert svg(tables.paint(ROWS), tmp_path) == svg(tables.paint(ROWS), tmp_path)
