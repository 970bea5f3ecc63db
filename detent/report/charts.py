"""What a run's rows show: the learning curve, and accuracy along lengths."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from detent.records import Row
from detent.report.html import Html, element, joined

# -- Line charts as inline SVG: a few kilobytes, in the colours of the page, readable on a phone.

WIDTH, HEIGHT = 440, 230
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 14, 38
MOST_POINTS = 400

Point = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """From numbers to places: linear, or logarithmic with ticks at powers of the base."""

    name: str
    least: float
    most: float
    base: int | None = None

    def at(self, value: float) -> float:
        """From 0 at the least to 1 at the most."""
        low, high, here = (self._bent(v) for v in (self.least, self.most, value))
        return 0.5 if high == low else (here - low) / (high - low)

    def ticks(self) -> list[float]:
        if self.base is None:
            step = _round_step(max(self.most - self.least, 1e-9) / 4)
            return [k * step for k in range(math.ceil(self.least / step), math.floor(self.most / step + 1e-9) + 1)]
        low, high = math.ceil(self._bent(self.least) - 1e-9), math.floor(self._bent(self.most) + 1e-9)
        every = max(1, math.ceil((high - low + 1) / 6))
        return [float(self.base) ** k for k in range(low, high + 1, every)]

    def label(self, tick: float) -> Html:
        if self.base is None:
            return joined([f"{tick:g}"])
        power = round(self._bent(tick))
        return joined([str(self.base), element("tspan", str(power), dy="-4", font_size="8.5")])

    def _bent(self, value: float) -> float:
        return value if self.base is None else math.log(value) / math.log(self.base)


@dataclass(frozen=True)
class Line:
    """Points that belong together."""

    name: str
    points: Sequence[Point]


def chart(lines: Sequence[Line], x: Axis, y: Axis, *, title: str) -> Html:
    """The chart, and below it which line is which."""
    across, up = _across(x), _up(y)
    parts = [element("title", title)]
    for tick in y.ticks():
        parts += [
            _rule(LEFT, up(tick), WIDTH - RIGHT, up(tick), "grid"),
            _text(LEFT - 6, up(tick) + 4, y.label(tick), "end"),
        ]
    for tick in x.ticks():
        parts.append(_text(across(tick), HEIGHT - BOTTOM + 16, x.label(tick), "middle"))
    parts.append(_rule(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis"))
    for number, line in enumerate(lines):
        parts.append(_drawn(_thinned(line.points), across, up, number))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 5, joined([x.name]), "middle"))
    picture = element("svg", *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", class_="chart")
    return joined([picture, _key(lines)])


def _drawn(
    points: Sequence[Point], across: Callable[[float], float], up: Callable[[float], float], number: int
) -> Html:
    places = [(round(across(a), 1), round(up(b), 1)) for a, b in points]
    path = " ".join(f"{'L' if k else 'M'}{a} {b}" for k, (a, b) in enumerate(places))
    dots = [element("circle", cx=a, cy=b, r=3) for a, b in places] if len(places) <= 40 else []
    return element("g", element("path", d=path), *dots, class_=f"line s{number}")


def _key(lines: Sequence[Line]) -> Html:
    names = [element("li", element("span", class_=f"swatch s{k}"), line.name) for k, line in enumerate(lines)]
    return element("ul", *names, class_="key")


def _rule(x1: float, y1: float, x2: float, y2: float, kind: str) -> Html:
    return element("line", x1=round(x1, 1), y1=round(y1, 1), x2=round(x2, 1), y2=round(y2, 1), class_=kind)


def _text(x: float, y: float, words: Html, anchor: str) -> Html:
    return element("text", words, x=round(x, 1), y=round(y, 1), text_anchor=anchor)


def _across(axis: Axis) -> Callable[[float], float]:
    return lambda value: LEFT + axis.at(value) * (WIDTH - LEFT - RIGHT)


def _up(axis: Axis) -> Callable[[float], float]:
    return lambda value: HEIGHT - BOTTOM - axis.at(value) * (HEIGHT - TOP - BOTTOM)


def _thinned(points: Sequence[Point]) -> Sequence[Point]:
    """Every so many of them, and the last."""
    if len(points) <= MOST_POINTS:
        return points
    every = math.ceil(len(points) / MOST_POINTS)
    return [*points[:-1:every], points[-1]]


def _round_step(step: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * (1 - 1e-9))


FLOOR = 1e-8
PHASES = {
    "anchored": "codes for the states, found by counting transitions, are taught to the heads",
    "released": "the teacher leaves; steps on the loss of the task itself",
    "tracking": "from words and labels alone, end to end",
}
MARGINS = {"table_margin": "tables", "read_margin": "read-out"}


def learning(history: list[Row]) -> Html:
    """The loss along the steps of all phases and attempts, one after another; margins and accuracy where measured."""
    placed = _one_after_another(history)
    if not placed:
        return element("p", "No history was kept.", class_="soft")
    parts = []
    losses = _by_phase(placed, "loss", lambda value: max(value, FLOOR))
    if losses:
        values = [value for line in losses for _, value in line.points]
        steps = _steps(placed)
        bounds = 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values)) + 1e-9)
        picture = chart(losses, steps, Axis("loss", *bounds, base=10), title="Loss along the steps of training")
        parts.append(element("figure", element("h3", "Loss"), picture))
    margins = [Line(name, line.points) for key, name in MARGINS.items() for line in _by_phase(placed, key, float)]
    if margins:
        values = [value for line in margins for _, value in line.points]
        bounds = min(0.0, math.floor(min(values))), max(1.0, math.ceil(max(values)))
        picture = chart(margins, _steps(placed), Axis("", *bounds), title="Smallest lead of a right choice")
        parts.append(element("figure", element("h3", "Smallest lead of a right choice"), picture))
    right = _by_phase(placed, "accuracy", float)
    if right and len(placed) > 1 and sum(len(line.points) for line in right) > 1:
        picture = chart(right, _steps(placed), Axis("", 0, 1), title="Share of fresh words with every label right")
        parts.append(element("figure", element("h3", "Fresh words with every label right"), picture))
    named = dict.fromkeys(str(row.get("phase")) for _, row in placed)
    told = [element("li", element("strong", name), f": {PHASES[name]}.") for name in named if name in PHASES]
    return joined([element("div", *parts, class_="pair"), element("ul", *told)])


def lengths(rows: list[Row]) -> Html:
    """Accuracy along lengths, one line for every cell, on an axis of powers of two; the sentence and the numbers."""
    last = {_cell(row): row for row in rows}
    lines = [
        Line(name, sorted((int(length), float(share)) for length, share in row["accuracies"].items()))
        for name, row in last.items()
    ]
    every = [length for line in lines for length, _ in line.points]
    picture = chart(
        lines, Axis("length of a word", min(every), max(every), base=2), Axis("", 0, 1),
        title="Share of words that are right from the first label to the last, by length",
    )  # fmt: skip
    said = [element("li", _sentence(name, row)) for name, row in last.items()]
    answers = any(row.get("measure", "words") != "words" for row in last.values())
    title = element("h3", "Words with the right answer" if answers else "Words with every label right")
    return joined([element("ul", *said), element("figure", title, picture), _numbers(lines)])


def is_sweep(row: Row) -> bool:
    """Whether the row tells accuracies along lengths, as `detent.evaluate` writes them."""
    return isinstance(row.get("accuracies"), dict) and bool(row["accuracies"])


def _sentence(name: str, row: Row) -> str:
    right = "every label right" if row.get("measure", "words") == "words" else "the answer right"
    if row.get("failing_length") is None:
        longest = row.get("max_length", max(map(int, row["accuracies"])))
        return f"{name}: no failure up to length {longest:,} ({row.get('batch', '?')} words each)."
    few = f"fewer than {row['threshold']:.0%} of the words"
    return f"{name}: fails at length {row['failing_length']:,}; {few} have {right}."


def _numbers(lines: list[Line]) -> Html:
    top = element(
        "tr", element("th", "length", scope="col"), *(element("th", line.name, scope="col") for line in lines)
    )
    found = [dict(line.points) for line in lines]
    body = []
    for length in sorted({length for points in found for length in points}):
        cells = [element("td", f"{points[length]:.3f}" if length in points else "–") for points in found]
        body.append(element("tr", element("th", f"{length:,}", scope="row"), *cells))
    table = element("table", element("thead", top), element("tbody", *body))
    return element("details", element("summary", "The numbers"), element("div", table, class_="scroll"))


def _cell(row: Row) -> str:
    return str(row.get("cell", "nfsm"))


def _one_after_another(history: list[Row]) -> list[tuple[float, Row]]:
    """Rows with the number of steps taken since the very beginning."""
    placed, before, last = [], 0, 0
    part: tuple[Any, Any] | None = None
    for row in history:
        if (row.get("attempt"), row.get("phase")) != part:
            part, before = (row.get("attempt"), row.get("phase")), before + last
        last = int(row.get("step", 0))
        placed.append((float(before + last), row))
    return placed


def _steps(placed: list[tuple[float, Row]]) -> Axis:
    return Axis("steps", 0, max(step for step, _ in placed))


def _by_phase(placed: list[tuple[float, Row]], name: str, value: Any) -> list[Line]:
    """One line for every phase, of the attempt that counted."""
    last = placed[-1][1].get("attempt")
    kept = [(step, row) for step, row in placed if row.get("attempt") == last and _is_number(row.get(name))]
    phases = dict.fromkeys(str(row.get("phase")) for _, row in kept)
    return [Line(p, [(step, value(row[name])) for step, row in kept if str(row.get("phase")) == p]) for p in phases]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
