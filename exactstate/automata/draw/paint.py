"""Paint a scene with matplotlib: states, arrows, loops, labels, the start.

Lengths are in heights of a state, so that fonts and lines follow the scale of the picture. Colors are chosen to stay
apart for color-blind eyes (after Okabe and Ito, darkened for white paper); line styles repeat them without color.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from exactstate.automata.draw.layout import Points
from exactstate.automata.draw.routes import Route, along, beside, free_direction, loop, place_label, routes
from exactstate.automata.draw.scene import Arrow, Scene, half_of
from exactstate.automata.machine import Moore

COLORS = ("#0072B2", "#D55E00", "#009E73", "#AA4499", "#B8860B", "#444444")
STYLES: tuple[Any, ...] = (
    "-", (0, (5, 1.6)), (0, (1.4, 1.2)), (0, (5, 1.4, 1.2, 1.4)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1))
)  # fmt: skip
INK, SEVERAL, FILL, SHADE = "#222222", "#777777", "#F4F6F8", "#D9DEE4"


class Painter:
    """One scene being painted onto axes, at so many inches per height of a state."""

    def __init__(self, axes: Any, scene: Scene, scale: float) -> None:
        self.axes, self.scene = axes, scene
        self.points, self.size = scene.points, scene.size
        self.points_per_unit = 72 * scale
        self.head = float(np.clip(0.3 * self.points_per_unit, 3.0, 14.0))
        self.corners = [self.points - self.size - 0.2, self.points + self.size + 0.2]
        self.boxes: list[tuple[Points, Points]] = []
        """Middle and half size of everything that labels must not cover."""

    def paint(self) -> tuple[Points, Points]:
        """Paint everything; the lower left and upper right corner of what was painted."""
        arrows = [arrow for arrow in self.scene.arrows if not arrow.is_loop]
        curves = routes(arrows, self.points, self.size)
        self.busy: list[list[float]] = [[] for _ in self.points]
        for arrow, curve in zip(arrows, curves, strict=True):
            self._arrow(curve, arrow, "<|-|>" if arrow.both_ways else "-|>")
            for q, end in ((arrow.source, curve[0]), (arrow.target, curve[-1])):
                self.busy[q].append(_angle(end - self.points[q]))
        if self.scene.start is not None:
            self._start(self.scene.start)
        for arrow in self.scene.arrows:
            if arrow.is_loop:
                self._loop(arrow)
        if self.scene.labeled:
            self._labels(arrows, curves)
        self._states()
        corners = np.concatenate(self.corners)
        return corners.min(0) - 0.1, corners.max(0) + 0.1

    def _states(self) -> None:
        from matplotlib.patches import Ellipse

        machine, scene = self.scene.machine, self.scene
        accepting = np.zeros(machine.n_states, bool)
        if isinstance(machine, Moore) and machine.outputs == ("reject", "accept"):
            accepting = machine.readout.astype(bool)
        for q, (center, (name, output)) in enumerate(zip(self.points, scene.labels, strict=True)):
            fill = SHADE if q in scene.hubs else FILL
            for inset in (0.0, 0.14)[: 1 + accepting[q]]:
                width, height = 2 * self.size - inset
                self.axes.add_patch(
                    Ellipse(center, width, height, facecolor=fill, edgecolor=INK, linewidth=self._line(), zorder=3)
                )
            self._text(center + np.array([0, 0.16 * bool(output)]), name, 0.27 if output else 0.31)
            self._text(center - np.array([0, 0.2]), output, 0.27, weight="bold")

    def _arrow(self, curve: Route, arrow: Arrow, heads: str) -> None:
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path

        code = Path.CURVE3 if len(curve) == 3 else Path.CURVE4
        path = Path(curve, [Path.MOVETO] + [code] * (len(curve) - 1))
        color, style = color_of(arrow, self.scene.colored)
        # the line may be broken, its heads never, so they are two patches
        self.axes.add_patch(
            FancyArrowPatch(path=path, arrowstyle="-", color=color, linestyle=style, linewidth=self._line(1.2),
                            capstyle="butt", zorder=2)
        )  # fmt: skip
        self.axes.add_patch(
            FancyArrowPatch(path=path, arrowstyle=heads, mutation_scale=self.head, color=color, linewidth=0, zorder=2.5)
        )
        self.corners.append(along(curve))

    def _start(self, q: int) -> None:
        from matplotlib.patches import FancyArrowPatch

        angle = free_direction(q, self.points, self.busy[q], np.pi)
        self.busy[q].append(angle)
        direction = np.array([np.cos(angle), np.sin(angle)])
        rim = self.points[q] + direction / np.linalg.norm(direction / (self.size + 0.06))
        tail = rim + 0.8 * direction
        self.axes.add_patch(
            FancyArrowPatch(tail, rim, arrowstyle="-|>", mutation_scale=1.2 * self.head, color=INK,
                            linewidth=self._line(1.6), shrinkA=0, shrinkB=0, zorder=4)
        )  # fmt: skip
        self.axes.plot(*tail, marker="o", markersize=self._line(3.4), color=INK, zorder=4)
        self.corners.append(np.array([tail - 0.2, tail + 0.2]))
        self.boxes.append(((tail + rim) / 2, np.abs(tail - rim) / 2 + 0.1))

    def _loop(self, arrow: Arrow) -> None:
        """A self-loop where there is room, rather outward, rather above, with its label on top."""
        q = arrow.source
        outward = self.points[q] - self.points.mean(0)
        spread = float(np.ptp(self.points, axis=0).max()) + 1
        preferred = _angle(np.array([0.5 * outward[0], outward[1] + 0.12 * spread]))
        angle = free_direction(q, self.points, self.busy[q], preferred)
        self.busy[q].append(angle)
        curve = loop(self.points[q], self.size, angle)
        self._arrow(curve, arrow, "-|>")
        around = along(curve)
        self.boxes.append((around.mean(0), np.ptp(around, axis=0) / 2))
        if self.scene.labeled:
            half = half_of(arrow.label)
            self._boxed(beside(around[len(around) // 2], angle, half), half, arrow.label)

    def _labels(self, arrows: Sequence[Arrow], curves: Sequence[Route]) -> None:
        """Labels on their arrows, near the middle, where they cover least."""
        samples = [along(curve) for curve in curves]
        for i, arrow in enumerate(arrows):
            half = half_of(arrow.label)
            others = np.concatenate([np.empty((0, 2)), *(sample for j, sample in enumerate(samples) if j != i)])
            candidates = samples[i][[16, 15, 17, 14, 18, 13, 19, 12, 20, 11, 21, 10, 22, 9, 23, 8, 24]]
            at = place_label(candidates, half, self.points, self.size, self.boxes, others)
            self._boxed(at, half, arrow.label)

    def _boxed(self, at: Points, half: Points, label: str) -> None:
        """A label on white, so that it can stand on its arrow."""
        self._text(at, label, 0.27, bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"})
        self.corners.append(np.array([at - half, at + half]))
        self.boxes.append((at, half))

    def _text(self, at: Points, words: str, height: float, **style: Any) -> None:
        size = max(height * self.points_per_unit, 3.5)
        self.axes.text(*at, words, fontsize=size, ha="center", va="center", color=INK, zorder=5, linespacing=1.1,
                       parse_math=False, **style)  # fmt: skip

    def _line(self, width: float = 1.0) -> float:
        return float(np.clip(0.032 * width * self.points_per_unit, 0.5 * width, 1.5 * width))


def color_of(arrow: Arrow, colored: bool) -> tuple[str, Any]:
    """Color and line style of an arrow: those of its symbol, if it has one and there are few."""
    return (
        (COLORS[arrow.symbols[0]], STYLES[arrow.symbols[0]]) if colored and len(arrow.symbols) == 1 else (SEVERAL, "-")
    )


def _angle(direction: Points) -> float:
    return float(np.arctan2(direction[1], direction[0]))
