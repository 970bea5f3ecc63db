"""What tests ask of a drawing: its lines, its words, its bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from exactstate.automata.draw.save import save


def data(line: Any) -> tuple[list[float], list[float]]:
    return np.asarray(line.get_xdata(), float).tolist(), np.asarray(line.get_ydata(), float).tolist()


def lines(axes: Any, label: str) -> list[Any]:
    return [line for line in axes.get_lines() if line.get_label() == label]


def words(figure: Any) -> str:
    """Everything that is written anywhere in the figure."""
    from matplotlib.text import Text

    return "\n".join(text.get_text() for text in figure.findobj(Text) if text.get_text() and text.get_visible())


def svg(figure: Any, folder: Path) -> bytes:
    save(figure, folder / "figure.svg")
    return (folder / "figure.svg").read_bytes()


def nothing_sticks_out(figure: Any) -> bool:
    """Whether drawing the figure tight needs no more room than it has, so that no label is cut off."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    tight = figure.get_tightbbox(canvas.get_renderer())
    width, height = figure.get_size_inches()
    return bool(tight.x0 >= -0.02 and tight.y0 >= -0.02 and tight.x1 <= width + 0.02 and tight.y1 <= height + 0.02)
