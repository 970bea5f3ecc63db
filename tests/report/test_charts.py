"""Charts: axes, series and what they say."""

from __future__ import annotations

import re

import pytest

from exactstate.report.charts import HEIGHT, MAX_POINTS, WIDTH, Axis, Line, chart, length_sweep_chart, training_charts


@pytest.mark.parametrize(
    ("axis", "ticks"),
    [
        (Axis("", 0, 1), [0, 0.5, 1]),
        (Axis("", 0, 100), [0, 50, 100]),
        (Axis("", 1, 1024, base=2), [1, 4, 16, 64, 256, 1024]),
        (Axis("", 0.01, 10, base=10), [0.01, 0.1, 1, 10]),
    ],
)
def test_axis_ticks_lie_on_the_axis(axis: Axis, ticks: list[float]) -> None:
    assert axis.ticks() == pytest.approx(ticks)
    assert [axis.at(tick) for tick in (axis.low, axis.high)] == [0, 1]
    assert all(-1e-9 <= axis.at(tick) <= 1 + 1e-9 for tick in axis.ticks())


def test_axis_of_one_value_places_it_in_the_middle() -> None:
    assert Axis("", 3, 3).at(3) == 0.5


def test_chart_draws_every_line_inside_the_picture_and_subsamples_long_ones() -> None:
    points = [(float(k), (k % 10) / 10) for k in range(5_000)]
    picture = chart([Line("long", points), Line("short", [(0, 0.0), (4_999, 1.0)])], Axis("", 0, 4_999), Axis("", 0, 1),
                    title="t")  # fmt: skip
    long, short = re.findall(r'<path d="([^"]*)"', picture)
    places = [tuple(map(float, place)) for place in re.findall(r"[ML]([\d.]+) ([\d.]+)", long)]
    assert len(places) <= MAX_POINTS + 1
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in places)
    assert len(re.findall("[ML]", short)) == 2
    assert re.findall(r"</span>(\w+)</li>", picture) == ["long", "short"]


def test_training_charts_show_the_last_attempt_after_all_steps_before_it() -> None:
    rows = [{"attempt": a, "phase": "end_to_end", "step": s, "loss": 1.0 / s} for a in (0, 1) for s in (10, 20)]
    page = training_charts(rows)
    assert page.count('class="line s') == 1
    assert page.count("<circle") == 2
    assert "end to end, from words and labels alone" in page
    assert "no history" in training_charts([])


def test_training_charts_leave_out_what_is_not_a_number() -> None:
    rows = [{"attempt": 0, "phase": "p", "step": 1, "loss": float("nan")}, {"attempt": 0, "phase": "p", "step": 2}]
    assert "<svg" not in training_charts(rows)


def test_length_sweep_chart_of_answers() -> None:
    row = {"cell": "mamba", "measure": "questions", "threshold": 0.9, "failing_length": 70, "accuracies": {"64": 1.0}}
    page = length_sweep_chart([row])
    assert "mamba: fails at length 70; fewer than 90% of the words have the correct answer." in page
    assert "Accuracy: words with the correct answer" in page
