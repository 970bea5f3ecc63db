"""Figure `drift`: phase and norm of a perfectly trained rotation whose weights were rounded once to each format.

On the left the phase error against the step, on the right the logarithm of the norm. A cross marks the first step at
which the read-out is wrong. Steps from the closed form, beyond those that were iterated, are dotted.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi
from typing import Any

from exactstate.records import Row
from exactstate.report.figures.style import ALARM, GREY, PAGE, SHADES, of_kind, sheet, styled


@styled
def paint(rows: Sequence[Row]) -> Any:
    """The figure of rows as `paper.theory.drift` describes them."""
    summaries = of_kind(rows, "summary", "format", "order", "first_wrong_step", "by")
    steps = of_kind(rows, "step", "format", "step", "phase_error", "log_norm", "by")
    figure = sheet(PAGE, 2.75)
    left, right = figure.subplots(1, 2)
    for summary, color in zip(summaries, SHADES * len(summaries), strict=False):
        own = sorted((row for row in steps if row["format"] == summary["format"]), key=lambda row: int(row["step"]))
        for axes, entry in ((left, "phase_error"), (right, "log_norm")):
            _line(axes, own, entry, color, summary)
    order = summaries[0]["order"]
    _frame(left, f"2π / {order} rounded once: phase error")
    _frame(right, "logarithm of the norm")
    edge = pi / order
    left.axhline(edge, color=GREY, linestyle=(0, (4, 3)), linewidth=0.8)
    left.axhline(-edge, color=GREY, linestyle=(0, (4, 3)), linewidth=0.8)
    left.set_ylim(-2 * edge, 2 * edge)
    left.set_yticks([-edge, 0, edge], [f"$-\\pi/{order}$", "0", f"$+\\pi/{order}$"])
    left.annotate("read as the next state", (2e9, edge), (0, 2), textcoords="offset points", fontsize=6.5, color=GREY)
    right.set_ylim(-1.25, 1.25)
    _key(figure, summaries)
    return figure


def _line(axes: Any, own: Sequence[Row], entry: str, color: str, summary: Row) -> None:
    """One format's line, and the cross on it."""
    run = [row for row in own if row["by"] == "iteration"]
    extrapolated = [*run[-1:], *(row for row in own if row["by"] != "iteration")]
    for part, style in ((run, "-"), (extrapolated, (0, (1, 1)))):
        if len(part) > 1:
            axes.plot([row["step"] for row in part], [row[entry] for row in part], color=color, linestyle=style,
                      label="_" + summary["format"])  # fmt: skip
    first = summary["first_wrong_step"]
    axes.plot([first], [_at(own, entry, first)], linestyle="none", marker="X", markersize=7, markeredgewidth=0.7,
              markerfacecolor=ALARM, markeredgecolor="white", zorder=4, label="_wrong")  # fmt: skip


def _at(own: Sequence[Row], entry: str, step: int) -> float:
    """The value of the line at a step, which grows in proportion to the step."""
    after = next((row for row in own if row["step"] >= step), own[-1])
    return float(after[entry]) * step / float(after["step"])


def _frame(axes: Any, title: str) -> None:
    axes.set_xscale("log")
    axes.set_title(title, loc="left")
    axes.set_xlabel("step")


def _key(figure: Any, summaries: Sequence[Row]) -> None:
    """The formats below the panels, with the step at which each fails."""
    from matplotlib.lines import Line2D

    def label(row: Row) -> str:
        bound = "" if row["by"] == "iteration" else " (bound)"
        return f"{row['format']}: {count(row['first_wrong_step'])}{bound}"

    handles = [
        Line2D([], [], color=color, linewidth=2.2, label=label(row))
        for row, color in zip(summaries, SHADES * len(summaries), strict=False)
    ]
    cross = Line2D([], [], linestyle="none", marker="X", markersize=7, markerfacecolor=ALARM, markeredgecolor="white")
    figure.legend([cross, *handles], ["first wrong step:", *(handle.get_label() for handle in handles)],
                  loc="outside lower center", ncols=len(handles) + 1, handlelength=1.2, columnspacing=1.1,
                  handletextpad=0.4)  # fmt: skip


def count(steps: int) -> str:
    """A number of steps, short: 291, 4 797, 27.3 million, 1.33e16."""
    if steps >= 10**9:
        return f"{steps:.2e}".replace("e+", "e")
    return f"{steps / 1e6:.1f} million" if steps >= 10**6 else f"{steps:,}".replace(",", " ")
