"""The figure of a stack along a story: a cell for every head and token, letters for people, a box at the question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matplotlib.patches import PathPatch

from exactstate import records
from exactstate.errors import InvalidInput
from paper.figures import tso
from tests.report.figures.drawn import nothing_sticks_out, svg, words

ROWS = list(records.read(Path(__file__).parents[3] / "results" / "tso_stream.jsonl"))


def cells(figure: Any) -> list[Any]:
    """Per color: (color, the corners of its cells)."""
    patches = [patch for patch in figure.axes[0].patches if type(patch) is PathPatch]
    return [(patch.get_facecolor()[:3], patch.get_path().to_polygons(closed_only=True)) for patch in patches]


def test_paint_has_a_cell_for_every_head_and_token() -> None:
    corners = [tuple(cell.min(axis=0)) for _, some in cells(tso.paint(ROWS)) for cell in some]
    rows = [number + 0.8 * head["layer"] for number, head in enumerate(ROWS[1:])]
    assert sorted(corners) == sorted((t, row) for t in range(52) for row in rows)


def test_paint_draws_the_last_of_several_stories() -> None:
    other = [{**ROWS[0], "answer": "somebody else"}, *ROWS[1:3]]
    assert words(tso.paint([*other, *ROWS])) == words(tso.paint(ROWS))


def test_paint_letters_are_the_values() -> None:
    story, *heads = ROWS
    key = next(head for head in heads if head["means"] == "the holder of the key")
    letters = [value[0].upper() for value in key["values"] if value != "nobody"]
    axes = tso.paint(ROWS).axes[0]
    place = 5.8 + 1  # below five heads, a gap, and the holder of the ring
    drawn = [t for t in axes.texts if abs(t.get_position()[1] - (place + 0.5)) < 1e-9]
    assert [t.get_text() for t in sorted(drawn, key=lambda t: t.get_position()[0])] == letters
    assert letters[-1] == story["answer"][0].upper()


def test_paint_labels_heads_with_their_interpretation() -> None:
    text = words(tso.paint(ROWS))
    for said in (
        "first name   0.0",
        "first name, late   0.1",
        "item asked for   0.2",
        "holder of the stamp   1.3",
        "D  dana",
    ):
        assert said in text


def test_paint_heads_without_a_meaning_show_their_index_in_grey() -> None:
    rows = [row if row["kind"] == "story" else {**row, "means": None, "values": None} for row in ROWS]
    figure = tso.paint(rows)
    assert "raw index   0.0" in words(figure)
    assert {color for color, _ in cells(figure)} == {(0xDA / 255,) * 3}


def test_paint_fits_the_page_and_is_deterministic(tmp_path: Path) -> None:
    assert nothing_sticks_out(tso.paint(ROWS))
    assert svg(tso.paint(ROWS), tmp_path) == svg(tso.paint(ROWS), tmp_path)


def test_paint_refuses_other_rows() -> None:
    with pytest.raises(InvalidInput, match="drawn from rows of kind 'story'"):
        tso.paint([{"kind": "run"}])
