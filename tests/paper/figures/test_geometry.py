"""The geometry figure: a point per step where the rows put it, red rims exactly at wrong answers, ground as read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from exactstate.report.figures import style
from paper.figures import geometry
from tests.report.figures.drawn import data, lines, nothing_sticks_out, svg, words


def rows() -> list[dict]:
    about = {"low": [-1.0, -1.0], "high": [1.0, 1.0], "regions": ["001", "011", "222"]}
    return [
        {"kind": "run", "model": "nfsm", "layers": 1, "first_wrong": None, "steps": 1050, "certified": True},
        {"kind": "run", "model": "mamba", "layers": 2, "first_wrong": 102, "steps": 1050,
         "accuracy": 0.977, "length": 24},
        {"kind": "window", "model": "nfsm", "first": 1, "points": [[0, 0], [0.5, 0.5], [0, 0]], "states": [0, 1, 0],
         "read": [0, 1, 0], **about},
        {"kind": "window", "model": "mamba", "first": 1, "points": [[0, 0], [0.5, 0.1], [0.2, 0]], "states": [0, 1, 2],
         "read": [0, 1, 2], **about},
        {"kind": "window", "model": "mamba", "first": 101, "points": [[0, 0], [0.1, 0.1]], "states": [0, 1],
         "read": [0, 0], **about},
    ]  # fmt: skip


def test_paint_points_are_those_of_the_rows() -> None:
    figure = geometry.paint(rows())
    first = figure.axes[0]
    assert data(lines(first, "0")[0]) == ([0, 0], [0, 0])
    assert data(lines(first, "1")[0]) == ([0.5], [0.5])
    assert lines(first, "1")[0].get_markerfacecolor() == style.STATES[1]


def test_paint_rims_only_wrong_points() -> None:
    late = geometry.paint(rows()).axes[3]
    wrong = [line for line in late.get_lines() if line.get_markeredgecolor() == style.ALARM and len(line.get_xdata())]
    assert [data(line) for line in wrong] == [([0.1], [0.1])]
    assert "1 of 2 right" in [text.get_text() for text in late.texts]


def test_paint_background_is_the_predicted_label() -> None:
    (ground,) = geometry.paint(rows()).axes[0].get_images()
    assert np.array_equal(ground.get_array(), [[0, 0, 1], [0, 1, 1], [2, 2, 2]])
    assert ground.get_extent() == [-1, 1, -1, 1]


def test_paint_rows_of_panels_are_models_and_columns_are_windows() -> None:
    figure = geometry.paint(rows())
    said = words(figure)
    assert "NFSM, 1 layer\ncertified\nnever wrong in 1,050" in said
    assert "Mamba⁻, 2 layers\nright on 98% of words of 24\nwrong at step 102" in said
    assert [axes.get_title() for axes in figure.axes[:2]] == ["steps 1 to 3", "steps 101 to 102"]
    assert nothing_sticks_out(figure)


def test_paint_leaves_the_panel_of_a_missing_window_empty() -> None:
    empty = geometry.paint(rows()).axes[1]
    assert not empty.axison
    assert not empty.get_lines()


def test_paint_is_deterministic(tmp_path: Path) -> None:
    assert svg(geometry.paint(rows()), tmp_path) == svg(geometry.paint(rows()), tmp_path)
