"""Figure `sweep`: accuracy against length, one panel per task, one line per run.

Rows are those of `exactstate sweep`: {"task", "cell", "seed", "learned", "certified", "threshold", "max_length",
"failing_length", "accuracies": {length: share}}. The share counts words with every label correct, or correct answers.
Of several sweeps of a run the longest counts; lines that coincide are drawn once. A cross marks the failing length at
the threshold. A run that did not learn its task is dotted. An arrow to the right marks a certificate: beyond the sweep,
correctness is proved. A stroke is the end of a sweep without a failure, beyond which nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from exactstate.baselines.cells import CELLS
from exactstate.records import Row
from exactstate.report.figures.style import GREY, PAGE, in_order, model_key, model_style, of_kind, sheet, styled

ORDER = ("Z2", "Z16", "S3", "S4", "A5", "M11", "DFF5", "FF", "TSO3", "TSO4", "TSO5")
"""Of the panels, as in the paper; other tasks follow."""


@styled
def paint(rows: Sequence[Row]) -> Any:
    """A panel for every task."""
    selected = _longest(of_kind(rows, "sweep", "task", "cell", "seed", "max_length", "failing_length", "accuracies"))
    named = dict.fromkeys(row["task"] for row in selected)
    tasks = [*(name for name in ORDER if name in named), *(name for name in named if name not in ORDER)]
    columns = min(3 if len(tasks) <= 6 else 4, len(tasks))
    lines = -(-len(tasks) // columns)
    figure = sheet(PAGE if columns > 1 else 0.6 * PAGE, 1.75 * lines + 0.75)
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axes in panels[len(tasks) :]:
        axes.set_axis_off()
    for axes, name in zip(panels, tasks, strict=False):
        own = [row for row in selected if row["task"] == name]
        for cell in reversed(in_order(row["cell"] for row in own)):  # the NFSM last, on top
            for row in _distinct(row for row in own if row["cell"] == cell):
                _run(axes, row)
        axes.set_title(name, loc="left", fontweight="bold", parse_math=False)
        axes.set(xscale="log", ylim=(-0.05, 1.12), yticks=[0, 0.5, 1])
    panels[0].set_xscale("log", base=2)
    panels[0].set(xticks=[1 << power for power in range(0, 21, 5)], xlim=(0.7, 1 << 21))
    for axes in panels[max(len(tasks) - columns, 0) : len(tasks)]:
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("length of the words")
    figure.supylabel("accuracy", fontsize=8)
    _legend(figure, selected)
    return figure


def _longest(rows: Sequence[Row]) -> list[Row]:
    """One sweep of every run: the longest, and of those the one with the most words."""
    kept: dict[tuple[Any, ...], Row] = {}
    for row in sorted(rows, key=lambda row: (row["max_length"], row.get("batch", 0))):
        kept[row["task"], row["cell"], row.get("recipe"), row["seed"], row.get("format")] = row
    return list(kept.values())


def _distinct(rows: Iterable[Row]) -> list[Row]:
    """One of the rows that would be drawn alike."""
    return list({
        (str(sorted(row["accuracies"].items())), row["failing_length"], row["max_length"], row.get("certified")): row
        for row in rows
    }.values())  # fmt: skip


def _holds_uncertified(row: Row) -> bool:
    """Whether the run learned and did not fail in the sweep, without a certificate."""
    return row["failing_length"] is None and bool(row.get("learned", True)) and not row.get("certified")


def _run(axes: Any, row: Row) -> None:
    name, color, marker, _ = model_style(row["cell"])
    lengths = sorted(row["accuracies"], key=int)
    shares = [row["accuracies"][length] for length in lengths]
    learned = row.get("learned", True)
    marked = [place for place, share in enumerate(shares) if share < 1 or place % 4 == 0]
    axes.plot([int(length) for length in lengths], shares, color=color, linestyle="-" if learned else (0, (1, 1.5)),
              linewidth=1.2 if learned else 0.8, alpha=0.9 if learned else 0.6, marker=marker, markersize=2.4,
              markevery=marked, label=f"{name}, seed {row['seed']}")  # fmt: skip
    if row["failing_length"] is not None and learned:
        axes.plot([row["failing_length"]], [row.get("threshold", 1.0)], linestyle="none", marker="X", markersize=6,
                  markerfacecolor=color, markeredgecolor="white", markeredgewidth=0.6, zorder=4,
                  label="_failing")  # fmt: skip
    elif row.get("certified"):
        axes.plot([row["max_length"]], [1.0], linestyle="none", marker=">", markersize=6, markerfacecolor=color,
                  markeredgecolor="white", zorder=4, clip_on=False, label="_certified")  # fmt: skip
    elif _holds_uncertified(row):
        height = 4 + 2 * [*CELLS, model_key(row["cell"])].index(model_key(row["cell"]))  # strokes may coincide
        axes.plot([row["max_length"]], [1.0], linestyle="none", marker="|", markersize=height, markeredgecolor=color,
                  markeredgewidth=1.6, zorder=5, label="_held")  # fmt: skip


def _legend(figure: Any, rows: Sequence[Row]) -> None:
    """The models, with how many of their runs learned, and the marks."""
    from matplotlib.lines import Line2D

    handles = []
    for cell in in_order(row["cell"] for row in rows):
        name, color, marker, _ = model_style(cell)
        own = [row for row in rows if row["cell"] == cell]
        learned = sum(bool(row.get("learned", True)) for row in own)
        label = name if learned == len(own) == 1 else f"{name} ({learned} of {len(own)} learned)"
        handles.append(Line2D([], [], color=color, marker=marker, markersize=3.5, label=label))
    marks = [("X", "failing length")] if any(row["failing_length"] for row in rows) else []
    marks += [(">", "certified beyond")] if any(row.get("certified") for row in rows) else []
    marks += [("|", "no failure, end of the sweep")] if any(_holds_uncertified(row) for row in rows) else []
    handles += [
        Line2D([], [], linestyle="none", marker=marker, markersize=6, markerfacecolor=GREY,
               markeredgecolor=GREY if marker == "|" else "white", markeredgewidth=1.2, label=label)
        for marker, label in marks
    ]  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=3 if figure.get_figwidth() == PAGE else 2,
                  columnspacing=1.4, handlelength=2.0)  # fmt: skip
