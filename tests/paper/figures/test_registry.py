"""The registry: every figure paints the rows in `results`, and missing rows name the command that makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from exactstate import records
from paper.figures.registry import FIGURES

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", FIGURES)
def test_paint_of_every_figure_draws_the_stored_rows(name: str) -> None:
    figure = FIGURES[name].paint(list(records.read(ROOT / FIGURES[name].file)))
    assert figure.axes


def test_missing_rows_name_the_command() -> None:
    sentence = "results/geometry.jsonl: there are no rows here; make them with `python -m paper run geometry`"
    assert str(FIGURES["geometry"].missing()).startswith(sentence)
