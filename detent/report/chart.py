"""Line charts as inline SVG: a few kilobytes, in the colours of the page, readable on a phone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from detent.report.markup import Html, element, joined

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
