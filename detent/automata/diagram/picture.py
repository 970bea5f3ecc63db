"""Draw a machine as a picture, without Graphviz: circles and arrows while that can be read, tables beyond."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from detent.automata.diagram.captions import LINE, colour_key, lines_below, write_below, write_title
from detent.automata.diagram.paint import Painter
from detent.automata.diagram.saving import picture_format, rendered, save
from detent.automata.diagram.scene import Scene, fits
from detent.automata.diagram.tables import paint_tables
from detent.automata.machine import Semiautomaton

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INCHES = 0.5
"""Height of a state where there is room."""
LARGEST = 10.0
"""Inches of a picture, beyond which states become smaller."""


def draw(
    machine: Semiautomaton, target: str | os.PathLike[str] | Axes, *, title: str | None = None, seed: int = 0
) -> list[str]:
    """Draw the machine into a file (.svg, .png, .pdf) or onto matplotlib axes; the same call gives the same picture.

    Up to about 30 states everything is shown. Beyond, self-loops are folded and colours take the place of labels;
    machines of hundreds of states are shown as tables. What was left out is written below the picture, and returned.
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
    """The picture that `draw` would write into a file."""
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
    scale = min(INCHES, LARGEST / float(np.ptp(scene.points, axis=0).max() + 4))
    width, height = (_paint(axes, scene, scale) * scale).tolist()
    width = max(width, 3.6 if scene.has_colour_key or scene.sentences else 0.0)
    lines = lines_below(scene, width)
    text = LINE * len(lines) + 0.1 * bool(lines)
    below, above = text + 0.3 * scene.has_colour_key, 0.36 * (title is not None)
    whole = height + below + above
    figure.set_size_inches(width, whole)
    axes.set_position((0, below / whole, 1, height / whole))
    write_title(figure, title, whole)
    write_below(figure, lines, whole)
    if scene.has_colour_key:
        colour_key(figure, scene, (0.5, text / whole))
    return scene.sentences


def _onto(axes: Any, machine: Semiautomaton, title: str | None, seed: int) -> list[str]:
    """Draw onto axes that belong to somebody else's figure."""
    if title is not None:
        axes.set_title(title, parse_math=False)
    if not fits(machine):
        axes.set_axis_off()
        return paint_tables(axes, machine, None)
    scene = Scene(machine, seed=seed)
    box = axes.get_window_extent()
    inches = np.array([box.width, box.height]) / axes.figure.dpi
    _paint(axes, scene, float((inches / (np.ptp(scene.points, axis=0) + 4)).min()))
    if scene.has_colour_key:
        colour_key(axes, scene, (0.5, 0.0))
    return scene.sentences


def _paint(axes: Any, scene: Scene, scale: float) -> Any:
    """Paint the scene and fit the axes to it; its width and height in heights of a state."""
    low, high = Painter(axes, scene, scale).paint()
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    axes.set_axis_off()
    return high - low
