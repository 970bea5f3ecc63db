"""Figure `tso`: the index of every head of a stack along one story, colored by its interpretation.

Rows are those of `paper.experiments.story_stream`: one of kind "story", then one of kind "head" for every head; of
several stories the last is drawn. A head whose indices are values of a register (a person, or nobody) is colored by
value and shows its initial; of other heads the index itself is shown, in grey. The box is the question mark, where the
answer is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exactstate.records import Row
from exactstate.report.figures.style import GREY, INK, PAGE, STATES, of_kind, sheet, styled

UNSET = ("idle", "nobody", "")
NOTHING = "#F1F1F1"
CELL, MARGIN = 0.165, 0.9
"""Inches: the height of a row of cells, and the space above and below them."""
HEIGHT = 0.92
"""Of a cell, as a share of its row."""


@styled
def paint(rows: Sequence[Row]) -> Any:
    """The figure, as wide as a page."""
    story = of_kind(rows, "story", "task", "tokens", "answer")[-1]
    heads = of_kind(rows[rows.index(story) :], "head", "layer", "head", "means", "indices", "values")
    colors = _colors(heads)
    places = _places(heads)
    figure = sheet(PAGE, CELL * (max(places) + 1) + MARGIN + 0.35)
    axes = figure.add_subplot()
    tiles: dict[str, list[tuple[float, float]]] = {}
    for place, head in zip(places, heads, strict=True):
        for t, (fill, text) in enumerate(_cells(head, colors)):
            tiles.setdefault(fill, []).append((t, place))
            if text:
                _letter(axes, t, place, text, fill, bold=_is_register(head))
    for fill, corners in tiles.items():
        _lay(axes, fill, corners)
    _frame(axes, story, heads, places)
    _legend(figure, colors)
    return figure


def _colors(heads: Sequence[Row]) -> dict[str, str]:
    """One color for every person, in alphabetical order."""
    people = sorted({
        value for head in heads if _is_register(head) for value in head["values"] if value not in UNSET
    })  # fmt: skip
    return {person: STATES[i % len(STATES)] for i, person in enumerate(people)}


def _is_register(head: Row) -> bool:
    """Whether the values of a head are persons: the first name, or a holder."""
    return head["values"] is not None and any(value in ("idle", "nobody") for value in head["values"])


def _places(heads: Sequence[Row]) -> list[float]:
    """The vertical position of every head, with a gap between layers."""
    return [number + 0.8 * head["layer"] for number, head in enumerate(heads)]


def _cells(head: Row, colors: dict[str, str]) -> list[tuple[str, str]]:
    """(color, text) of the head at every token."""
    values = head["values"] or [None] * len(head["indices"])
    if _is_register(head):
        return [(NOTHING, "") if value in UNSET else (colors[value], str(value)[0].upper()) for value in values]
    texts = [str(index if value is None else value) for index, value in zip(head["indices"], values, strict=True)]
    return [("#DADADA" if text else NOTHING, text) for text in texts]


def _letter(axes: Any, t: float, place: float, text: str, fill: str, *, bold: bool) -> None:
    axes.text(
        t + 0.5, place + 0.5, text, ha="center", va="center", fontsize=5.0 if len(text) < 3 else 4.2,
        color=_readable(fill), fontweight="bold" if bold else "normal", clip_on=False,
    )  # fmt: skip


def _lay(axes: Any, fill: str, corners: Sequence[tuple[float, float]]) -> None:
    """All cells of one color as one path; a path for each would double the size of the file."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    cells = []
    for t, top in corners:
        bottom = top + HEIGHT
        cells.append(Path([(t, top), (t + 1, top), (t + 1, bottom), (t, bottom), (t, top)], closed=True))
    axes.add_patch(
        PathPatch(Path.make_compound_path(*cells), facecolor=fill, edgecolor="white", linewidth=0.4, joinstyle="miter")
    )


def _readable(fill: str) -> str:
    """Black or white, whichever has more contrast."""
    red, green, blue = (int(fill[i : i + 2], 16) for i in (1, 3, 5))
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else "white"


def _frame(axes: Any, story: Row, heads: Sequence[Row], places: Sequence[float]) -> None:
    """Tokens above, the interpretation of heads at the left, and a box around the question mark."""
    from matplotlib.patches import Rectangle

    tokens, bottom = story["tokens"], places[-1] + 1
    axes.set_xlim(0, len(tokens))
    axes.set_ylim(bottom + 0.2, -0.2)
    axes.set_xticks([t + 0.5 for t in range(len(tokens))], tokens, rotation=90, fontsize=5.5)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, pad=1.5)
    axes.set_yticks([place + 0.46 for place in places], [_name(head) for head in heads], fontsize=6.0)
    axes.grid(visible=False)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.add_patch(
        Rectangle((len(tokens) - 1, -0.12), 1, bottom + 0.2, fill=False, edgecolor=INK, linewidth=1.0, clip_on=False)
    )
    answer = f"{story['task']}, heads by layer.head; the answer read at '?' is {story['answer']}"
    axes.text(len(tokens), bottom + 0.35, answer, ha="right", va="top", fontsize=6.0, color=GREY)


def _name(head: Row) -> str:
    means = (head["means"] or "raw index").removeprefix("the ").replace("one symbol ago", "late")
    means = means.replace("symbol before, when it is asked for", "item asked for")
    return f"{means}   {head['layer']}.{head['head']}"


def _legend(figure: Any, colors: dict[str, str]) -> None:
    from matplotlib.patches import Patch

    keys = [Patch(facecolor=color, label=f"{person[0].upper()}  {person}") for person, color in colors.items()]
    keys.append(Patch(facecolor=NOTHING, edgecolor=GREY, linewidth=0.4, label="nobody, or not yet"))
    figure.legend(handles=keys, loc="outside lower center", ncols=len(keys), fontsize=6.5, handlelength=1.2)
