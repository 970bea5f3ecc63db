"""The gap figure shows means over seeds and their range; an exact zero has a level of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from paper.figures import gap
from tests.report.figures.drawn import data, lines, nothing_sticks_out, svg, words


def rows(nfsm: float = 0.0) -> list[dict]:
    made = []
    for model, scale in (("AUSSM", 1e-6), ("NFSM", nfsm)):
        for seed in (0, 1):
            about = {"model": model, "format": "fp16", "seed": seed}
            made += [{"kind": "step", **about, "step": t, "gap": scale * t * (1 + 2 * seed)} for t in (1, 10, 100)]
            spread = {f"gap_{q}": scale * k for q, k in zip(("min", "q25", "median", "q75", "max"), range(1, 6))}  # noqa: B905
            made.append({"kind": "distribution", **about, "gap": scale, **spread})
    return made


def test_paint_lines_are_means_over_seeds() -> None:
    over_time, _ = gap.paint(rows()).axes
    steps, means = data(lines(over_time, "AUSSM, fp16")[0])
    assert steps == [1, 10, 100]
    assert means == pytest.approx([2e-6, 2e-5, 2e-4])


def test_paint_band_is_the_range_of_the_seeds() -> None:
    over_time, _ = gap.paint(rows()).axes
    (band,) = over_time.collections
    corners = band.get_paths()[0].vertices
    at_ten = corners[np.isclose(corners[:, 0], 10), 1]
    assert (at_ten.min(), at_ten.max()) == pytest.approx((1e-5, 3e-5))


def test_paint_draws_zero_below_everything_and_labels_it() -> None:
    figure = gap.paint(rows())
    over_time, over_all = figure.axes
    _, heights = data(lines(over_time, "NFSM, fp16")[0])
    assert set(heights) == {1e-7}
    ticks = dict(zip(over_time.get_yticks(), (label.get_text() for label in over_time.get_yticklabels()), strict=True))
    assert ticks[1e-7] == "exactly 0"
    assert not [line for line in over_all.get_lines() if 0 < line.get_ydata()[0] < 1e-7]
    assert "exactly 0" in words(figure)


def test_paint_does_not_draw_a_small_gap_as_zero() -> None:
    over_time, _ = gap.paint(rows(nfsm=1e-12)).axes
    _, heights = data(lines(over_time, "NFSM, fp16")[0])
    assert heights == pytest.approx([2e-12, 2e-11, 2e-10])
    assert heights[0] > over_time.get_yticks()[0]


def test_paint_boxes_span_quartiles_and_whiskers_extremes() -> None:
    _, over_all = gap.paint(rows()).axes
    (box,) = (patch for patch in over_all.patches if patch.get_width() == pytest.approx(0.62))
    assert (box.get_y(), box.get_y() + box.get_height()) == pytest.approx((2e-6, 4e-6))
    whisker = over_all.collections[0].get_segments()[0]
    assert whisker[:, 1].tolist() == pytest.approx([1e-6, 5e-6])


def test_paint_is_deterministic(tmp_path: Path) -> None:
    assert svg(gap.paint(rows()), tmp_path) == svg(gap.paint(rows()), tmp_path)
    assert nothing_sticks_out(gap.paint(rows()))
