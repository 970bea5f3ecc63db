"""Figure `gap`: parallel against sequential evaluation of the same untrained recurrence.

On the left the gap over time, a line per model and format with the range of its seeds; on the right its distribution
over all words and steps. The axis is logarithmic and has no zero, so a gap of exactly zero is drawn on a separate level
below a break, labelled "exactly 0", and never as a small number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from exactstate.records import Row
from exactstate.report.figures.style import GREY, INK, PAGE, PALE, in_order, model_style, of_kind, sheet, styled

STRENGTH = {"fp32": 0.55, "fp16": 1.0}
"""Opacity of the lines of a format; 1 for others."""
ZERO_FACTOR = 10.0
"""Zero is drawn this factor below the smallest gap that is not zero."""


@styled
def paint(rows: Sequence[Row]) -> Any:
    """The figure of rows as `paper.theory.gap` describes them."""
    steps = of_kind(rows, "step", "model", "format", "seed", "step", "gap")
    spreads = of_kind(rows, "distribution", "model", "format", "gap_min", "gap_q25", "gap_median", "gap_q75", "gap_max")
    positive = [
        row[key] for row in (*steps, *spreads) for key in ("gap", "gap_min", "gap_q25") if row.get(key, 0.0) > 0
    ]
    zero_level = 10 ** np.floor(np.log10(min(positive, default=1.0) / ZERO_FACTOR))
    figure = sheet(PAGE, 3.0)
    over_time, over_all = figure.subplots(1, 2, sharey=True, width_ratios=(1.6, 1))
    models, formats = in_order(row["model"] for row in steps), list(dict.fromkeys(row["format"] for row in steps))
    for model in models:
        for format in formats:
            own = [row for row in steps if (row["model"], row["format"]) == (model, format)]
            if own:
                _over_time(over_time, own, zero_level)
    for place, (model, format) in enumerate((model, format) for model in models for format in formats):
        own = [row for row in spreads if (row["model"], row["format"]) == (model, format)]
        if own:
            _box(over_all, own, place + place // len(formats), zero_level)
    _frame(over_time, over_all, models, formats, zero_level)
    return figure


def _over_time(axes: Any, rows: Sequence[Row], zero_level: float) -> None:
    """The mean over seeds, and the range of the seeds' means."""
    name, color, _, line = model_style(rows[0]["model"])
    format = rows[0]["format"]
    at = sorted({int(row["step"]) for row in rows})
    seeds = np.array([[row["gap"] for row in rows if row["step"] == step] for step in at])
    strength = STRENGTH.get(format, 1.0)
    mean = seeds.mean(axis=1)
    axes.plot(at, with_zero_at(mean, zero_level), color=color, linestyle=line, alpha=strength,
              linewidth=0.7 + 0.9 * strength, label=f"{name}, {format}")  # fmt: skip
    if (mean > 0).any():
        low, high = (with_zero_at(ends, zero_level) for ends in (seeds.min(axis=1), seeds.max(axis=1)))
        axes.fill_between(at, low, high, color=color, alpha=0.18 * strength, linewidth=0)


def _box(axes: Any, rows: Sequence[Row], place: int, zero_level: float) -> None:
    """Quartiles and extremes over all words and steps: the median over seeds of each, whiskers to the very ends."""
    _, color, marker, _ = model_style(rows[0]["model"])
    strength = STRENGTH.get(rows[0]["format"], 1.0)
    low, high = min(row["gap_min"] for row in rows), max(row["gap_max"] for row in rows)
    first, middle, third = (float(np.median([row[f"gap_{q}"] for row in rows])) for q in ("q25", "median", "q75"))
    if high == 0:
        axes.plot([place], [zero_level], marker=marker, color=color, alpha=strength, linestyle="none", clip_on=False)
        return
    ends = with_zero_at(np.array([low, high, first, third, middle]), zero_level)
    axes.vlines([place], ends[0], ends[1], color=color, alpha=strength, linewidth=0.9)
    axes.bar([place], [ends[3] - ends[2]], bottom=[ends[2]], width=0.62, color=color, alpha=strength, linewidth=0)
    axes.hlines([ends[4]], place - 0.31, place + 0.31, color=INK, linewidth=0.8)


def with_zero_at(values: Any, zero_level: float) -> Any:
    """The values, with zeros replaced by the level at which zero is drawn."""
    return np.where(np.asarray(values) > 0, values, zero_level)


def _frame(
    over_time: Any, over_all: Any, models: Sequence[str], formats: Sequence[str], zero_level: float
) -> None:  # fmt: skip
    over_time.set(xscale="log", yscale="log", xlabel="step")
    over_time.set_ylabel("gap between the two runs")
    over_time.set_title("gap at each step: mean over words and seeds, range of seeds", loc="left")
    over_all.set_title("distribution over all steps", loc="left")
    top = over_time.get_ylim()[1]
    over_time.set_ylim(zero_level / 4, top)
    decades = np.arange(np.ceil(np.log10(zero_level * 3)), np.log10(top))
    shown = decades[:: max(1, len(decades) // 6)]
    over_time.set_yticks([zero_level, *(10.0**shown)], ["exactly 0", *(f"$10^{{{int(d)}}}$" for d in shown)])
    over_time.minorticks_off()
    for axes in (over_time, over_all):
        axes.axhspan(zero_level / 4, zero_level * 2.5, color=PALE, alpha=0.45, linewidth=0, zorder=0)
        axes.axhline(zero_level * 2.5, color=GREY, linewidth=0.6, linestyle=(0, (2, 2)))
    wide = len(formats) + 1
    over_all.set_xticks([i * wide + (len(formats) - 1) / 2 for i in range(len(models))],
                        [model_style(model)[0] for model in models])  # fmt: skip
    over_all.grid(False, axis="x")
    over_time.figure.legend(*over_time.get_legend_handles_labels(), loc="outside lower center", ncols=4,
                            handlelength=2.6)  # fmt: skip
