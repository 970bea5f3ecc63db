"""The figure of a stack along a story: a cell for every head and token, letters for people, a box at the question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matplotlib.patches import Rectangle

from detent import records
from detent.errors import InvalidInput
from detent.figures import tso
from tests.figures.drawn import nothing_sticks_out, svg, words

ROWS = list(records.read(Path(__file__).parents[2] / "results" / "tso_stream.jsonl"))


def cells(figure: Any) -> list[Any]:
    return [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle) and patch.get_width() == 1]


def test_a_cell_for_every_head_and_token() -> None:
    figure = tso.paint(ROWS)
    assert len(cells(figure)) == 9 * 52 + 1  # and the box


def test_letters_are_the_values() -> None:
    story, *heads = ROWS
    key = next(head for head in heads if head["means"] == "the holder of the key")
    letters = [value[0].upper() for value in key["values"] if value != "nobody"]
    axes = tso.paint(ROWS).axes[0]
    place = 5.8 + 1  # below five heads, a gap, and the holder of the ring
    drawn = [t for t in axes.texts if abs(t.get_position()[1] - (place + 0.5)) < 1e-9]
    assert [t.get_text() for t in sorted(drawn, key=lambda t: t.get_position()[0])] == letters
    assert letters[-1] == story["answer"][0].upper()


def test_it_says_what_heads_stand_for() -> None:
    text = words(tso.paint(ROWS))
    for said in (
        "first name   0.0",
        "first name, late   0.1",
        "item asked for   0.2",
        "holder of the stamp   1.3",
        "D  dana",
    ):
        assert said in text


def test_heads_without_a_meaning_show_their_index_in_grey() -> None:
    rows = [row if row["kind"] == "story" else {**row, "means": None, "values": None} for row in ROWS]
    figure = tso.paint(rows)
    assert "raw index   0.0" in words(figure)
    assert {patch.get_facecolor()[:3] for patch in cells(figure)[:-1]} == {(0xDA / 255,) * 3}


def test_nothing_is_cut_off_and_the_same_rows_give_the_same_picture(tmp_path: Path) -> None:
    assert nothing_sticks_out(tso.paint(ROWS))
    assert svg(tso.paint(ROWS), tmp_path) == svg(tso.paint(ROWS), tmp_path)


def test_other_rows_are_refused() -> None:
    with pytest.raises(InvalidInput, match="drawn from rows of kind 'story'"):
        tso.paint([{"kind": "run"}])
