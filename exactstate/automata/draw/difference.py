"""Draw two machines over each other: what both have in black, what only one has in its color, one legend.

The picture is SVG or DOT; states that are aligned are one circle.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from typing import NamedTuple

import numpy as np

from exactstate.automata.difference import Difference
from exactstate.automata.draw.layout import place
from exactstate.automata.machine import Mealy

COLORS = {"both": "#333333", "first": "#c0392b", "second": "#1f6fb2"}
SCALE, RADIUS = 150.0, 26.0


class _Edge(NamedTuple):
    source: int
    target: int
    owner: str
    labels: tuple[str, ...]


class _Union:
    """States of both machines, aligned ones once, and their edges by owner."""

    def __init__(self, found: Difference) -> None:
        first, second, aligned = found.first, found.second, found.aligned
        back = {q: p for p, q in aligned.items()}
        self.names, self.owners = list(first.states), ["first"] * first.n_states
        number = {}
        for q, name in enumerate(second.states):
            if q in back:
                number[q], self.owners[back[q]] = back[q], "both"
                if name != self.names[back[q]]:
                    self.names[back[q]] += f" ~ {name}"
            else:
                number[q] = len(self.names)
                self.names.append(name)
                self.owners.append("second")
        self.start = first.start
        steps: dict[tuple[int, int, str], set[str]] = {}
        for owner, machine, of in (("first", first, None), ("second", second, number)):
            for p, to, label in _steps(machine):
                key = (p, to, label) if of is None else (of[p], of[to], label)
                steps.setdefault(key, set()).add(owner)
        kept = {q for p, to, _ in steps for q in (p, to)} & self._reached(steps)
        self.order = sorted(kept)
        place_of = {q: i for i, q in enumerate(self.order)}
        edges: dict[tuple[int, int, str], list[str]] = {}
        for (p, to, label), owners in steps.items():
            if p in place_of and to in place_of:
                owner = "both" if len(owners) == 2 else next(iter(owners))
                edges.setdefault((place_of[p], place_of[to], owner), []).append(label)
        self.edges = [_Edge(p, to, owner, tuple(labels)) for (p, to, owner), labels in edges.items()]
        self.start = place_of[self.start]

    def _reached(self, steps: Iterable[tuple[int, int, str]]) -> set[int]:
        after: dict[int, set[int]] = {}
        for p, to, _ in steps:
            after.setdefault(p, set()).add(to)
        queue, seen = [self.start], {self.start}
        for p in queue:
            for to in after.get(p, ()):
                if to not in seen:
                    seen.add(to)
                    queue.append(to)
        return seen

    def name(self, i: int) -> str:
        return self.names[self.order[i]]

    def owner(self, i: int) -> str:
        return self.owners[self.order[i]]


def _steps(machine: Mealy) -> Iterable[tuple[int, int, str]]:
    for a, symbol in enumerate(machine.symbols):
        for p in range(machine.n_states):
            output = machine.outputs[int(machine.readout[a, p])]
            yield p, int(machine.tables[a, p]), f"{symbol}/{output}"


def difference_dot(found: Difference, names: tuple[str, str] = ("first", "second")) -> str:
    """Both machines as DOT, differences in color."""
    union = _Union(found)
    lines = [
        "digraph difference {",
        f'  label="black: both; red: only {_quoted(names[0])}; blue: only {_quoted(names[1])}";',
    ]
    lines += [
        f'  q{i} [label="{_quoted(union.name(i))}" color="{COLORS[union.owner(i)]}"];' for i in range(len(union.order))
    ]
    for edge in union.edges:
        label, color = "\\n".join(map(_quoted, edge.labels)), COLORS[edge.owner]
        lines.append(f'  q{edge.source} -> q{edge.target} [label="{label}" color="{color}" fontcolor="{color}"];')
    return "\n".join([*lines, '  __start0 [label="" shape="none"];', f"  __start0 -> q{union.start};", "}", ""])


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def difference_svg(found: Difference, names: tuple[str, str] = ("first", "second"), *, seed: int = 0) -> str:
    """Both machines as one SVG picture with a legend."""
    union = _Union(found)
    n = len(union.order)
    pairs = np.array(sorted({(min(e.source, e.target), max(e.source, e.target)) for e in union.edges
                             if e.source != e.target}), int).reshape(-1, 2)  # fmt: skip
    tables = np.tile(np.arange(n), (1, 1))
    for edge in union.edges:
        tables[0, edge.source] = edge.target
    points = np.asarray(place(n, pairs, tables, union.start, seed=seed), float) if n > 1 else np.zeros((1, 2))
    at = (points - points.min(axis=0)) * SCALE + 90
    at[:, 1] = at[:, 1].max() + 90 - at[:, 1]
    width, height = (at.max(axis=0) + 90).tolist()
    parts = [_edge(edge, at) for edge in union.edges]
    for i, (x, y) in enumerate(at.tolist()):
        color = COLORS[union.owner(i)]
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" fill="#fff" stroke="{color}" stroke-width="2"/>')
        parts.append(_text(x, y + 4, union.name(i), color, 11))
        if i == union.start:
            parts.append(
                f'<path d="M{x - 60:.1f} {y:.1f}H{x - RADIUS - 3:.1f}" stroke="#333333" marker-end="url(#both)"/>'
            )
    legend = (("both", "in both"), ("first", f"only in {names[0]}"), ("second", f"only in {names[1]}"))
    for row, (owner, words) in enumerate(legend):
        y = height + 20 + 18 * row
        parts.append(f'<path d="M20 {y - 4:.1f}h30" stroke="{COLORS[owner]}" stroke-width="2"/>')
        parts.append(f'<text x="60" y="{y:.1f}" font-size="12" fill="{COLORS[owner]}">{escape(words)}</text>')
    markers = "".join(
        f'<marker id="{owner}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{color}"/></marker>'
        for owner, color in COLORS.items()
    )
    wide = max(width, 320.0)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {height + 70:.0f}" width="{wide:.0f}" '
        f'height="{height + 70:.0f}" font-family="sans-serif"><rect width="100%" height="100%" fill="#fff"/>'
        f"<defs>{markers}</defs>{''.join(parts)}</svg>\n"
    )


def _edge(edge: _Edge, at: np.ndarray) -> str:
    color, bend = COLORS[edge.owner], {"both": 0.16, "first": 0.30, "second": -0.02}[edge.owner]
    (x, y), (u, v) = at[edge.source].tolist(), at[edge.target].tolist()
    if edge.source == edge.target:
        side = {"both": 0.0, "first": -0.9, "second": 0.9}[edge.owner]
        ax, ay = x + 62 * math.sin(side), y - 62 * math.cos(side)
        dx, dy = 22 * math.cos(side), 22 * math.sin(side)
        rim = y - RADIUS * math.cos(side)
        path = f"M{x + dx / 2:.1f} {rim:.1f}C{ax + dx:.1f} {ay + dy:.1f} {ax - dx:.1f} {ay - dy:.1f} "
        path += f"{x - dx / 2 + RADIUS * math.sin(side) * 0.6:.1f} {rim:.1f}"
        label_at = (ax, ay + 6)
    else:
        dx, dy = u - x, v - y
        far = math.hypot(dx, dy) or 1.0
        mx, my = (x + u) / 2 - bend * dy, (y + v) / 2 + bend * dx
        sx, sy = (mx - x), (my - y)
        tx, ty = (mx - u), (my - v)
        s, t = RADIUS / (math.hypot(sx, sy) or far), (RADIUS + 3) / (math.hypot(tx, ty) or far)
        path = f"M{x + s * sx:.1f} {y + s * sy:.1f}Q{mx:.1f} {my:.1f} {u + t * tx:.1f} {v + t * ty:.1f}"
        label_at = ((x + u) / 4 + mx / 2, (y + v) / 4 + my / 2)
    shown = [*edge.labels[:3], *([f"... {len(edge.labels) - 3} more"] if len(edge.labels) > 3 else [])]
    words = "".join(_text(label_at[0], label_at[1] + 11 * i, label, color, 9) for i, label in enumerate(shown))
    return f'<path d="{path}" fill="none" stroke="{color}" marker-end="url(#{edge.owner})"/>{words}'


def _text(x: float, y: float, words: str, color: str, size: int) -> str:
    shown = words if len(words) <= 40 else words[:37] + "..."
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="middle" fill="{color}" stroke="#fff" '
        f'stroke-width="3" paint-order="stroke">{escape(shown)}</text>'
    )
