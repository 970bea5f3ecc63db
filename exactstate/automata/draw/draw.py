"""Draw a machine with matplotlib, without Graphviz: circles and arrows while they can be read, tables beyond.

A diagram has a title, a key to colors or codes, and sentences that say what was left out.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from exactstate.automata.draw.paint import COLORS, SEVERAL, STYLES, Painter
from exactstate.automata.draw.save import picture_format, rendered, save
from exactstate.automata.draw.scene import Scene, abbreviate, fits
from exactstate.automata.machine import Semiautomaton

if TYPE_CHECKING:
    from matplotlib.axes import Axes


INCHES = 0.5
"""Height of a state if there is space."""
MAX_INCHES = 10.0
"""Width or height of a diagram in inches, beyond which states become smaller."""


def draw(
    machine: Semiautomaton, target: str | os.PathLike[str] | Axes, *, title: str | None = None, seed: int = 0
) -> list[str]:
    """Draw the machine into a file (.svg, .png, .pdf) or onto matplotlib axes. Deterministic for a seed.

    Up to about 30 states everything is drawn. Beyond, self-loops are hidden and colors replace labels; machines of
    hundreds of states are drawn as tables. What was left out is written below the diagram, and returned.
    """
    from matplotlib.figure import Figure

    if not isinstance(target, str | os.PathLike):
        return _onto(target, machine, title, seed)
    picture_format(target)
    figure = Figure()
    sentences = _fill(figure, machine, title, seed)
    save(figure, target)
    return sentences


def svg(machine: Semiautomaton, *, title: str | None = None, seed: int = 0) -> bytes:
    """The content of the SVG file that `draw` would write."""
    from matplotlib.figure import Figure

    figure = Figure()
    _fill(figure, machine, title, seed)
    return rendered(figure, ".svg")


def _fill(figure: Any, machine: Semiautomaton, title: str | None, seed: int) -> list[str]:
    """Give the figure its size and everything in it."""
    if not fits(machine):
        return paint_tables(figure, machine, title)
    scene = Scene(machine, seed=seed)
    axes = figure.add_axes((0, 0, 1, 1))
    scale = min(INCHES, MAX_INCHES / float(np.ptp(scene.points, axis=0).max() + 4))
    width, height = (_paint(axes, scene, scale) * scale).tolist()
    width = max(width, 3.6 if scene.has_color_key or scene.sentences else 0.0)
    lines = lines_below(scene, width)
    text = LINE * len(lines) + 0.1 * bool(lines)
    below, above = text + 0.3 * scene.has_color_key, 0.36 * (title is not None)
    whole = height + below + above
    figure.set_size_inches(width, whole)
    axes.set_position((0, below / whole, 1, height / whole))
    write_title(figure, title, whole)
    write_below(figure, lines, whole)
    if scene.has_color_key:
        color_key(figure, scene, (0.5, text / whole))
    return scene.sentences


def _onto(axes: Any, machine: Semiautomaton, title: str | None, seed: int) -> list[str]:
    """Draw onto axes of an existing figure."""
    if title is not None:
        axes.set_title(title, parse_math=False)
    if not fits(machine):
        axes.set_axis_off()
        return paint_tables(axes, machine, None)
    scene = Scene(machine, seed=seed)
    box = axes.get_window_extent()
    inches = np.array([box.width, box.height]) / axes.figure.dpi
    _paint(axes, scene, float((inches / (np.ptp(scene.points, axis=0) + 4)).min()))
    if scene.has_color_key:
        color_key(axes, scene, (0.5, 0.0))
    return scene.sentences


def _paint(axes: Any, scene: Scene, scale: float) -> Any:
    """Paint the scene and fit the axes to it; its width and height in heights of a state."""
    low, high = Painter(axes, scene, scale).paint()
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    axes.set_axis_off()
    return high - low


MAX_PANELS = 12
"""Symbols up to which each has a table."""
MAX_CELLS = 200
"""Rows and columns of a table; with more states, several share a cell."""
SQUARE = 2.3
"""Inches of a table with its margins."""


def paint_tables(onto: Any, machine: Semiautomaton, title: str | None) -> list[str]:
    """Paint one table per symbol into a figure or axes; returns the sentences on what was left out."""
    n, shown = machine.n_states, min(machine.n_symbols, MAX_PANELS)
    sentences = [f"{n} states and their arrows are too many to draw: a mark at column q, row p means that q goes to p."]
    if machine.n_symbols > shown:
        sentences.append(f"The first {shown} of {machine.n_symbols} symbols are shown.")
    columns = min(shown, 4)
    rows = -(-shown // columns)
    below, above = LINE * len(sentences) + 0.15, 0.3 * (title is not None) + 0.05
    width, height = max(SQUARE * columns, 4.6), SQUARE * 1.02 * rows + below + above
    is_figure = not hasattr(onto, "inset_axes")
    if is_figure:
        onto.set_size_inches(width, height)
        write_title(onto, title, height)
        write_below(onto, sentences, height)
    else:
        below = above = 0.0
        height = SQUARE * 1.02 * rows
    for a in range(shown):
        row, column = divmod(a, columns)
        low = (below + (rows - 1 - row + 0.1) * SQUARE * 1.02) / height
        place = ((column + 0.13) / columns, low, 0.8 / columns, 0.8 * SQUARE / height)
        _panel(onto.add_axes(place) if is_figure else onto.inset_axes(place), machine, a)
    return sentences


def _panel(axes: Any, machine: Semiautomaton, a: int) -> None:
    n, cells = machine.n_states, min(machine.n_states, MAX_CELLS)
    counts = np.zeros((cells, cells))
    np.add.at(counts, (machine.tables[a].astype(np.int64) * cells // n, np.arange(n) * cells // n), 1)
    # a single mark among 200 x 200 cells must be visible, so every mark is dark
    darkness = np.ma.masked_equal(np.where(counts > 0, 0.6 + 0.4 * counts / max(counts.max(), 1), 0.0), 0.0)
    axes.imshow(darkness, cmap="Blues", vmin=0, vmax=1, origin="lower", extent=(0, n, 0, n), interpolation="nearest")
    axes.set_title(abbreviate(machine.symbols[a], 24), fontsize=8, pad=3, parse_math=False)
    axes.set_xticks([0, n])
    axes.set_yticks([0, n])
    axes.tick_params(labelsize=6, length=2, pad=1)


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


def color_key(onto: Any, scene: Scene, at: tuple[float, float]) -> None:
    """The colors of the symbols in a row, its lower middle at a place of the figure or axes."""
    from matplotlib.lines import Line2D

    symbols = scene.machine.symbols
    handles = [
        Line2D([], [], color=color, linestyle=style, linewidth=1.6)
        for color, style, _ in zip(COLORS, STYLES, symbols, strict=False)
    ]
    names = [abbreviate(name) for name in symbols]
    if any(len(arrow.symbols) > 1 for arrow in scene.arrows):
        handles.append(Line2D([], [], color=SEVERAL, linewidth=1.6))
        names.append("several")
    # names go in afterwards: a legend drops labels that begin with _ and sets $...$ as mathematics
    legend = onto.legend(handles, ["x"] * len(handles), loc="lower center", bbox_to_anchor=at, ncols=len(handles),
                         frameon=False, fontsize=8, handlelength=3.2, borderaxespad=0.2)  # fmt: skip
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(name)
