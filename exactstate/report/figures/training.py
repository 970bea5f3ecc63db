"""Figure of a report: loss, margins and accuracy of a training, over the steps of all its phases and attempts."""

from __future__ import annotations

import math
from typing import Any

from exactstate.records import Row
from exactstate.report.figures.style import PAGE, STATES, sheet, styled

PANELS: dict[str, dict[str, str]] = {
    "Loss": {"loss": ""},
    "Smallest margin": {"table_margin": "tables, ", "read_margin": "read-out, "},
    "Fresh words correct": {"accuracy": ""},
}
"""Title, and the entries of a row that are shown, with a prefix for the name of their phase."""
MIN_LOSS, MAX_POINTS, MAX_MARKED = 1e-8, 200, 40
LINES = ("-", "--", "-.", ":")

Point = tuple[float, float]


@styled
def paint(history: list[Row]) -> Any | None:
    """A panel for each kind of measurement; None where nothing was measured."""
    placed = with_total_steps(history)
    panels = {title: lines for title, entries in PANELS.items() if (lines := series(placed, entries))}
    if sum(map(len, panels.get("Fresh words correct", {}).values())) == 1:  # a single measurement at the end
        del panels["Fresh words correct"]
    if not panels:
        return None
    figure = sheet(PAGE, 2.4)
    for axes, (title, lines) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        for number, (name, points) in enumerate(lines.items()):
            marker = "o" if len(points) <= MAX_MARKED else None
            axes.plot(*zip(*points, strict=True), color=STATES[2 * number % len(STATES)],
                      linestyle=LINES[number % len(LINES)], marker=marker, markersize=2.4, label=name)  # fmt: skip
        axes.set(yscale="log" if title == "Loss" else "linear", xlabel="steps")
        axes.set_xlim(0, max(step for step, _ in placed) or 1)
        axes.set_title(title, loc="left")
        axes.legend()
    return figure


def series(placed: list[tuple[float, Row]], entries: dict[str, str]) -> dict[str, list[Point]]:
    """Points by name, a line for every entry and phase of the last attempt; at most about MAX_POINTS each."""
    lines: dict[str, list[Point]] = {}
    last = [(step, row) for step, row in placed if row.get("attempt") == placed[-1][1].get("attempt")]
    for step, row in last:
        for entry, prefix in entries.items():
            value = row.get(entry)
            if isinstance(value, int | float) and math.isfinite(value):
                at = max(float(value), MIN_LOSS) if entry == "loss" else float(value)
                lines.setdefault(f"{prefix}{row.get('phase')}", []).append((step, at))
    return {name: [*line[: -1 : math.ceil(len(line) / MAX_POINTS)], line[-1]] for name, line in lines.items()}


def with_total_steps(history: list[Row]) -> list[tuple[float, Row]]:
    """Rows with the number of steps since the start of training, over all phases and attempts."""
    placed, before, last = [], 0, 0
    part: tuple[Any, Any] | None = None
    for row in history:
        if (row.get("attempt"), row.get("phase")) != part:
            part, before = (row.get("attempt"), row.get("phase")), before + last
        last = int(row.get("step", 0))
        placed.append((float(before + last), row))
    return placed
