"""Figure `comparison`: share of right labels against the length of words, for recurrent layers in the same plain model.

Rows are {"task", "cell", "seed", "accuracy": {length: share}}; a line is the mean over seeds, a thin one each seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exactstate.records import Row
from exactstate.report.figures.style import PAGE, in_order, model_style, of_kind, sheet, styled


@styled
def paint(rows: Sequence[Row]) -> Any:
    """One panel per task."""
    found = of_kind(rows, "comparison", "task", "cell", "seed", "accuracy")
    tasks = list(dict.fromkeys(row["task"] for row in found))
    columns = min(3, len(tasks))
    figure = sheet(PAGE, 0.4 + 1.7 * -(-len(tasks) // columns))
    panels = figure.subplots(-(-len(tasks) // columns), columns, sharey=True, squeeze=False).flatten()
    cells = in_order(row["cell"] for row in found)
    for panel, task in zip(panels, tasks, strict=False):
        for cell in cells:
            _lines(panel, [row for row in found if (row["task"], row["cell"]) == (task, cell)])
        panel.set_title(task, loc="left")
        panel.set(xscale="log", ylim=(-0.04, 1.06), xlabel="length")
    for panel in panels[len(tasks) :]:
        panel.set_visible(False)
    for panel in panels[::columns]:
        panel.set_ylabel("labels right")
    handles = {line.get_label(): line for line in panels[0].get_lines() if not line.get_label().startswith("_")}
    figure.legend(handles=list(handles.values()), loc="outside lower center", ncols=len(handles))
    return figure


def _lines(panel: Any, rows: Sequence[Row]) -> None:
    """The mean of one cell in one task, and a thin line per seed."""
    if not rows:
        return
    name, color, marker, style = model_style(rows[0]["cell"])
    lengths = sorted(int(length) for length in rows[0]["accuracy"])
    shares = [[float(row["accuracy"][str(length)]) for length in lengths] for row in rows]
    for one in shares:
        panel.plot(lengths, one, color=color, linewidth=0.5, alpha=0.35, label="_seed")
    mean = [sum(column) / len(column) for column in zip(*shares, strict=True)]
    above = 3 if rows[0]["cell"] == "nfsm" else 2
    panel.plot(lengths, mean, color=color, marker=marker, linestyle=style, label=name, zorder=above)
