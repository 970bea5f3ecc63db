"""What stands around a picture: the title, the key to colours or codes, and what was left out."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from detent.automata.diagram.arrows import brief
from detent.automata.diagram.paint import COLOURS, SEVERAL, STYLES
from detent.automata.diagram.scene import Scene

LINE = 0.155
"""Inches per line of text."""
GREY = "#555555"


def lines_below(scene: Scene, inches: float) -> list[str]:
    """The key to codes and the sentences, wrapped to a width."""
    letters = max(int(inches * 17), 40)
    # unbreakable blanks keep `a = name` on one line
    key = textwrap.wrap("    ".join(entry.replace(" ", "\xa0") for entry in scene.key), letters)
    return [line.replace("\xa0", " ") for line in key] + [
        line for sentence in scene.sentences for line in textwrap.wrap(sentence, letters)
    ]


def write_below(figure: Any, lines: Sequence[str], height: float) -> None:
    for i, line in enumerate(reversed(lines)):
        figure.text(0.5, (0.1 + LINE * i) / height, line, ha="center", va="center", fontsize=7.5, color=GREY,
                    parse_math=False)  # fmt: skip


def write_title(figure: Any, title: str | None, height: float) -> None:
    if title is not None:
        figure.text(0.5, 1 - 0.18 / height, title, ha="center", va="center", fontsize=11, parse_math=False)


def colour_key(onto: Any, scene: Scene, at: tuple[float, float]) -> None:
    """The colours of the symbols in a row, its lower middle at a place of the figure or axes."""
    from matplotlib.lines import Line2D

    symbols = scene.machine.symbols
    handles = [
        Line2D([], [], color=colour, linestyle=style, linewidth=1.6)
        for colour, style, _ in zip(COLOURS, STYLES, symbols, strict=False)
    ]
    names = [brief(name) for name in symbols]
    if any(len(arrow.symbols) > 1 for arrow in scene.arrows):
        handles.append(Line2D([], [], color=SEVERAL, linewidth=1.6))
        names.append("several")
    # names go in afterwards: a legend drops labels that begin with _ and sets $...$ as mathematics
    legend = onto.legend(handles, ["x"] * len(handles), loc="lower center", bbox_to_anchor=at, ncols=len(handles),
                         frameon=False, fontsize=8, handlelength=3.2, borderaxespad=0.2)  # fmt: skip
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(name)
