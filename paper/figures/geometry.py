"""Figure `geometry`: the recurrent state of trained models under a constant word, in three windows of one run.

A row of panels per model, a column per window. A point is the state at one step, projected on the first two principal
components of the run, with the color and marker of the target state; the background is the label that the read-out
predicts there. A point on a background of another color is a wrong prediction, and has a red rim.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from exactstate.records import Row
from exactstate.report.figures.style import (
    ALARM,
    PAGE,
    STATE_MARKERS,
    STATES,
    in_order,
    model_style,
    of_kind,
    sheet,
    styled,
)


@styled
def paint(rows: Sequence[Row]) -> Any:
    """The figure of rows as `paper.experiments.geometry` describes them."""
    windows = of_kind(rows, "window", "model", "first", "points", "states", "read", "low", "high", "regions")
    runs = {row["model"]: row for row in of_kind(rows, "run", "model", "layers", "first_wrong", "steps")}
    models, firsts = in_order(row["model"] for row in windows), sorted({row["first"] for row in windows})
    figure = sheet(PAGE, 1.75 * len(models) + 0.6)
    panels = figure.subplots(len(models), len(firsts), squeeze=False)
    for line, model in zip(panels, models, strict=True):
        for axes, first in zip(line, firsts, strict=True):
            own = [row for row in windows if (row["model"], row["first"]) == (model, first)]
            axes.set_axis_off() if not own else _panel(axes, own[0])
        line[0].set_ylabel(_label(model, runs[model]), fontsize=7)
    for axes, first in zip(panels[0], firsts, strict=True):
        length = max(len(row["points"]) for row in windows if row["first"] == first)
        axes.set_title(f"steps {first} to {first + length - 1}")
    _key(figure, max(max(row["states"]) for row in windows) + 1)
    return figure


def _panel(axes: Any, row: Row) -> None:
    """The background, then the points; wrong ones have a rim."""
    from matplotlib.colors import ListedColormap

    labels = np.array([[int(label) for label in line] for line in row["regions"]])
    (left, bottom), (right, top) = row["low"], row["high"]
    axes.imshow(labels, cmap=ListedColormap(STATES), vmin=0, vmax=len(STATES) - 1, origin="lower", alpha=0.32,
                extent=(left, right, bottom, top), aspect="auto", interpolation="nearest")  # fmt: skip
    points, states, predicted = (np.array(row[name]) for name in ("points", "states", "read"))
    for q in np.unique(states):
        for wrong in (False, True):
            own = (states == q) & ((predicted != states) == wrong)
            axes.plot(*points[own].T, linestyle="none", marker=STATE_MARKERS[q % len(STATE_MARKERS)], markersize=4.6,
                      markerfacecolor=STATES[q % len(STATES)], markeredgecolor=ALARM if wrong else "white",
                      markeredgewidth=1.0 if wrong else 0.5, zorder=4 if wrong else 3,
                      label=f"{q}{' wrong' if wrong else ''}")  # fmt: skip
    correct = int((predicted == states).sum())
    axes.text(0.97, 0.04, f"{correct} of {len(states)} right", transform=axes.transAxes, ha="right", fontsize=6.5,
              bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.2})  # fmt: skip
    axes.set(xticks=[], yticks=[], xlim=(left, right), ylim=(bottom, top))
    axes.grid(False)


def _label(model: str, run: Row) -> str:
    """The model, how well it was trained, and its first wrong step."""
    layers = f"{run['layers']} layer{'s' if run['layers'] > 1 else ''}"
    learned = ["certified"] if run.get("certified") else []
    if run.get("accuracy") is not None:
        learned = [f"right on {run['accuracy']:.0%} of words of {run['length']}"]
    wrong = f"never wrong in {run['steps']:,}" if run["first_wrong"] is None else f"wrong at step {run['first_wrong']}"
    return "\n".join([f"{model_style(model)[0]}, {layers}", *learned, wrong])


def _key(figure: Any, count: int) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="none", marker=STATE_MARKERS[q % len(STATE_MARKERS)], markersize=6,
               markerfacecolor=STATES[q % len(STATES)], markeredgecolor="white", label=f"state {q}")
        for q in range(count)
    ]  # fmt: skip
    handles.append(Line2D([], [], linestyle="none", marker="o", markersize=6, markerfacecolor="white",
                          markeredgecolor=ALARM, markeredgewidth=1.2, label="misread"))  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), columnspacing=1.4)
