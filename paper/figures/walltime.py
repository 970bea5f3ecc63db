"""Figure `walltime`: time of one layer in a training step, against the length and against the size of its state.

Rows are {"model", "form": "scan" or "loop", "L", "d", "seconds", "peak_bytes", "chunked"}. Solid lines are the parallel
scan, dotted ones the sequential loop; a red circle marks a run in chunks, which bounds memory at the cost of time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from exactstate.records import Row
from exactstate.report.figures.style import ALARM, GREY, PAGE, in_order, model_style, of_kind, sheet, styled


@styled
def paint(rows: Sequence[Row]) -> Any:
    """Seconds against L, seconds against d, and memory against L; each at the other's best-covered value."""
    found = of_kind(rows, "walltime", "model", "form", "L", "d", "seconds")
    figure = sheet(PAGE, 2.7)
    by_length, by_size, by_memory = figure.subplots(1, 3)
    d, L = _best_covered(found, "d", "L"), _best_covered(found, "L", "d")
    models = in_order(row["model"] for row in found)
    for model in models:
        own = [row for row in found if row["model"] == model]
        scan = [row for row in own if row["form"] == "scan"]
        loop = [row for row in own if row["form"] == "loop"]
        _line(by_length, [row for row in scan if row["d"] == d], "L", "seconds")
        _line(by_length, [row for row in loop if row["d"] == d], "L", "seconds", style=(0, (1, 1.4)))
        _line(by_size, [row for row in scan if row["L"] == L], "d", "seconds")
        _line(by_memory, [row for row in scan if row["d"] == d and row.get("peak_bytes")], "L", "peak_bytes")
    for axes, title, across, up in (
        (by_length, f"time, d = {d}", "length L", "seconds per call"),
        (by_size, f"time of the scan, L = {L}", "indices or channels d", "seconds per call"),
        (by_memory, f"memory of the scan, d = {d}", "length L", "bytes at the peak"),
    ):
        axes.set(xscale="log", yscale="log", xlabel=across, ylabel=up)
        axes.xaxis.set_major_formatter(_power_of_two)
        axes.minorticks_off()
        axes.set_title(title, loc="left")
        _ticks(axes, found, "d" if axes is by_size else "L")
    _key(figure, models, any(row.get("chunked") for row in found))
    return figure


def _best_covered(rows: Sequence[Row], fixed: str, varied: str) -> int:
    """The value of one entry at which most values of the other were measured, the largest of equals."""
    seen = {(row[fixed], row[varied]) for row in rows if row["form"] == "scan"}
    if not seen:
        seen = {(row[fixed], row[varied]) for row in rows}
    counted = Counter(value for value, _ in seen)
    return int(max(counted, key=lambda value: (counted[value], value)))


def _line(axes: Any, rows: Sequence[Row], across: str, up: str, *, style: Any = "-") -> None:
    """The line of one model; repeated measurements are all shown, in order."""
    if not rows:
        return
    name, color, marker, _ = model_style(rows[0]["model"])
    rows = sorted(rows, key=lambda row: int(row[across]))
    axes.plot([row[across] for row in rows], [row[up] for row in rows], color=color, marker=marker, markersize=3.2,
              linestyle=style, label=f"{name}, {rows[0]['form']}")  # fmt: skip
    chunked = [row for row in rows if row.get("chunked")]
    axes.plot([row[across] for row in chunked], [row[up] for row in chunked], linestyle="none", marker="o",
              markersize=8, markerfacecolor="none", markeredgecolor=ALARM, markeredgewidth=1.1,
              label="_chunked")  # fmt: skip


def _power_of_two(value: float, _: object) -> str:
    exponent = round(value).bit_length() - 1
    return f"$2^{{{exponent}}}$" if value == 2**exponent else f"{value:g}"


def _ticks(axes: Any, rows: Sequence[Row], entry: str) -> None:
    """Ticks at values that were measured, at most six."""
    values = sorted({row[entry] for row in rows})
    axes.set_xticks(values[:: -(-len(values) // 6)])


def _key(figure: Any, models: Sequence[str], chunked: bool) -> None:
    from matplotlib.lines import Line2D

    handles = []
    for model in models:
        name, color, marker, _ = model_style(model)
        handles.append(Line2D([], [], color=color, marker=marker, markersize=3.5, label=name))
    handles.append(Line2D([], [], color=GREY, linestyle="-", label="parallel scan"))
    handles.append(Line2D([], [], color=GREY, linestyle=(0, (1, 1.4)), label="sequential loop"))
    if chunked:
        handles.append(Line2D([], [], linestyle="none", marker="o", markersize=7, markerfacecolor="none",
                              markeredgecolor=ALARM, label="in chunks"))  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), handlelength=2.2, columnspacing=1.2)
