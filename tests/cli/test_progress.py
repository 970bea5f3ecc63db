"""The line that is watched while a network trains."""

from __future__ import annotations

import pytest

from detent.cli._output import Live, duration


def test_what_the_line_says() -> None:
    live = Live({"tracking": 1_000, "released": 20})
    row = {"attempt": 0, "phase": "tracking", "step": 50, "loss": 0.51234, "first_error": 12.0, "accuracy": 0.25}
    assert live.line(row, 10.0) == "tracking, step 50/1,000: loss 0.512, first error 12, accuracy 0.25"
    later = {**row, "step": 100, "accuracy": 1.0}
    assert live.line(later, 15.0).endswith("accuracy 1, at most 2 min left")
    again = {"attempt": 2, "phase": "released", "step": 10, "loss": 0.5}
    assert live.line(again, 20.0) == "restart 2, released, step 10/20: loss 0.5"
    assert live.line({**again, "step": 20}, 21.0) == "reading the machine out, bounding its rounding"
    taught = {"attempt": 0, "phase": "anchored", "step": 20, "loss": 0.5, "table_margin": 7.71, "read_margin": 7.3}
    assert live.line(taught, 22.0) == "anchored, step 20: loss 0.5, margins 7.71 and 7.3"


def test_nothing_is_drawn_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with Live({}) as show:
        show({"phase": "tracking", "step": 1, "loss": 1.0})
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (89, "89 s"), (600, "10 min"), (9_000, "2 h"), (400_000, "5 days")]
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words
