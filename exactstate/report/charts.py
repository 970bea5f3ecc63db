"""Line charts as inline SVG, in the colors of the page: the training curves of a run. And accuracy by length, drawn as
`exactstate figure sweep` draws it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from exactstate.records import Row
from exactstate.report.html import Html, drawing, element, joined

WIDTH, HEIGHT = 440, 230
LEFT, RIGHT, TOP, BOTTOM = 52, 18, 14, 38
MAX_POINTS = 400

Point = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """From values to positions: linear, or logarithmic with ticks at powers of the base."""

    name: str
    low: float
    high: float
    base: int | None = None

    def at(self, value: float) -> float:
        """From 0 at `low` to 1 at `high`."""
        low, high, at = (self._scaled(v) for v in (self.low, self.high, value))
        return 0.5 if high == low else (at - low) / (high - low)

    def ticks(self) -> list[float]:
        if self.base is None:
            step = _tick_step(max(self.high - self.low, 1e-9) / 4)
            return [k * step for k in range(math.ceil(self.low / step), math.floor(self.high / step + 1e-9) + 1)]
        low, high = math.ceil(self._scaled(self.low) - 1e-9), math.floor(self._scaled(self.high) + 1e-9)
        every = max(1, math.ceil((high - low + 1) / 6))
        return [float(self.base) ** k for k in range(low, high + 1, every)]

    def label(self, tick: float) -> Html:
        if self.base is None:
            return joined([f"{tick:g}"])
        power = round(self._scaled(tick))
        return joined([str(self.base), element("tspan", str(power), dy="-4", font_size="8.5")])

    def _scaled(self, value: float) -> float:
        return value if self.base is None else math.log(value) / math.log(self.base)


@dataclass(frozen=True)
class Line:
    """A named series of points."""

    name: str
    points: Sequence[Point]


def chart(lines: Sequence[Line], x: Axis, y: Axis, *, title: str) -> Html:
    """The chart, with a legend below it."""
    to_x, to_y = _x_position(x), _y_position(y)
    parts = [element("title", title)]
    for tick in y.ticks():
        parts += [
            _rule(LEFT, to_y(tick), WIDTH - RIGHT, to_y(tick), "grid"),
            _text(LEFT - 6, to_y(tick) + 4, y.label(tick), "end"),
        ]
    for tick in x.ticks():
        parts.append(_text(to_x(tick), HEIGHT - BOTTOM + 16, x.label(tick), "middle"))
    parts.append(_rule(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis"))
    for number, line in enumerate(lines):
        parts.append(_line(_subsampled(line.points), to_x, to_y, number))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 5, joined([x.name]), "middle"))
    picture = element("svg", *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", class_="chart")
    return joined([picture, _legend(lines)])


def _line(points: Sequence[Point], to_x: Callable[[float], float], to_y: Callable[[float], float], number: int) -> Html:
    places = [(round(to_x(a), 1), round(to_y(b), 1)) for a, b in points]
    path = " ".join(f"{'L' if k else 'M'}{a} {b}" for k, (a, b) in enumerate(places))
    dots = [element("circle", cx=a, cy=b, r=3) for a, b in places] if len(places) <= 40 else []
    return element("g", element("path", d=path), *dots, class_=f"line s{number}")


def _legend(lines: Sequence[Line]) -> Html:
    names = [element("li", element("span", class_=f"swatch s{k}"), line.name) for k, line in enumerate(lines)]
    return element("ul", *names, class_="legend")


def _rule(x1: float, y1: float, x2: float, y2: float, kind: str) -> Html:
    return element("line", x1=round(x1, 1), y1=round(y1, 1), x2=round(x2, 1), y2=round(y2, 1), class_=kind)


def _text(x: float, y: float, words: Html, anchor: str) -> Html:
    return element("text", words, x=round(x, 1), y=round(y, 1), text_anchor=anchor)


def _x_position(axis: Axis) -> Callable[[float], float]:
    return lambda value: LEFT + axis.at(value) * (WIDTH - LEFT - RIGHT)


def _y_position(axis: Axis) -> Callable[[float], float]:
    return lambda value: HEIGHT - BOTTOM - axis.at(value) * (HEIGHT - TOP - BOTTOM)


def _subsampled(points: Sequence[Point]) -> Sequence[Point]:
    """At most MAX_POINTS of them, evenly spaced, and the last."""
    if len(points) <= MAX_POINTS:
        return points
    every = math.ceil(len(points) / MAX_POINTS)
    return [*points[:-1:every], points[-1]]


def _tick_step(step: float) -> float:
    """The next larger of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * (1 - 1e-9))


FLOOR = 1e-8
PHASES = {
    "wide": "end to end by gradient, with many heads; the loss includes that of the probes, if there are any",
    "search": "every head alone, by gradient, from words and labels: the least loss of a head",
    "cascade": "heads of two layers by gradient, from words and labels, or answers alone; the targets of pretraining",
    "pretrain": "pretraining: transition tables (inferred from labeled sequences, given or learned) are targets",
    "finetune": "fine-tuning: end to end, on the loss of the task",
    "end_to_end": "end to end, from words and labels alone",
}
MARGINS = {"table_margin": "tables", "read_margin": "read-out"}


def training_charts(history: list[Row]) -> Html:
    """Loss, margins and accuracy over the steps of all phases and attempts, where they were measured."""
    placed = _with_total_steps(history)
    if not placed:
        return element("p", "The run has no history.", class_="soft")
    steps, figures = Axis("steps", 0, max(step for step, _ in placed)), []
    if losses := _by_phase(placed, "loss", floor=FLOOR):
        values = [value for line in losses for _, value in line.points]
        bounds = 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values)) + 1e-9)
        figures.append(_figure("Loss", losses, steps, Axis("loss", *bounds, base=10)))
    if margins := [Line(name, line.points) for key, name in MARGINS.items() for line in _by_phase(placed, key)]:
        values = [value for line in margins for _, value in line.points]
        bounds = min(0.0, math.floor(min(values))), max(1.0, math.ceil(max(values)))
        figures.append(_figure("Smallest margin of a correct entry", margins, steps, Axis("", *bounds)))
    accuracies = _by_phase(placed, "accuracy")
    if sum(len(line.points) for line in accuracies) > 1:
        figures.append(_figure("Accuracy: fresh words with all labels correct", accuracies, steps, Axis("", 0, 1)))
    phases = dict.fromkeys(str(row.get("phase")) for _, row in placed)
    legend = [element("li", element("strong", name), f": {PHASES[name]}.") for name in phases if name in PHASES]
    return joined([element("div", *figures, class_="pair"), *([element("ul", *legend)] if legend else [])])


def length_sweep_chart(rows: list[Row]) -> Html:
    """Accuracy by length, one line for every cell, with a sentence for each and the numbers."""
    from exactstate.automata.draw.save import rendered
    from exactstate.report.figures.length_sweep import paint

    latest = {str(row.get("cell", "nfsm")): row for row in rows}
    lines = [
        Line(cell, sorted((int(length), float(share)) for length, share in row["accuracies"].items()))
        for cell, row in latest.items()
    ]
    of_words = all(row.get("measure", "words") == "words" for row in latest.values())
    title = "Accuracy: words with all labels correct" if of_words else "Accuracy: words with the correct answer"
    defaults = {"task": "", "seed": 0, "failing_length": None}
    shown = [
        {**defaults, "cell": cell, "max_length": max(map(int, row["accuracies"])), **row}
        for cell, row in latest.items()
    ]
    picture = drawing(rendered(paint(shown), ".svg"), title)
    figure = element("figure", element("h3", title), picture)
    sentences = [element("li", _sweep_sentence(cell, row)) for cell, row in latest.items()]
    return joined([element("ul", *sentences), figure, _numbers(lines)])


def _figure(title: str, lines: Sequence[Line], x: Axis, y: Axis) -> Html:
    return element("figure", element("h3", title), chart(lines, x, y, title=title))


def _sweep_sentence(cell: str, row: Row) -> str:
    if row.get("failing_length") is None:
        longest = row.get("max_length", max(map(int, row["accuracies"])))
        return f"{cell}: no failure up to length {longest:,} ({row.get('batch', '?')} words each)."
    correct = "all labels correct" if row.get("measure", "words") == "words" else "the correct answer"
    few = f"fewer than {row['threshold']:.0%} of the words"
    return f"{cell}: fails at length {row['failing_length']:,}; {few} have {correct}."


def _numbers(lines: list[Line]) -> Html:
    names = ["length", *(line.name for line in lines)]
    head = element("tr", *(element("th", name, scope="col") for name in names))
    series = [dict(line.points) for line in lines]
    body = []
    for length in sorted({length for points in series for length in points}):
        cells = [element("td", f"{points[length]:.3f}" if length in points else "–") for points in series]
        body.append(element("tr", element("th", f"{length:,}", scope="row"), *cells))
    table = element("table", element("thead", head), element("tbody", *body))
    return element("details", element("summary", "Numbers"), element("div", table, class_="scroll"))


def _with_total_steps(history: list[Row]) -> list[tuple[float, Row]]:
    """Rows with the number of steps since the start of training, over all phases and attempts."""
    placed, before, last = [], 0, 0
    part: tuple[Any, Any] | None = None
    for row in history:
        if (row.get("attempt"), row.get("phase")) != part:
            part, before = (row.get("attempt"), row.get("phase")), before + last
        last = int(row.get("step", 0))
        placed.append((float(before + last), row))
    return placed


def _by_phase(placed: list[tuple[float, Row]], name: str, floor: float = -math.inf) -> list[Line]:
    """One line for every phase of the last attempt; values below `floor` are raised to it."""
    last = placed[-1][1].get("attempt")
    rows = [(step, row) for step, row in placed if row.get("attempt") == last and _is_number(row.get(name))]
    points: dict[str, list[Point]] = {}
    for step, row in rows:
        points.setdefault(str(row.get("phase")), []).append((step, max(float(row[name]), floor)))
    return [Line(phase, line) for phase, line in points.items()]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
