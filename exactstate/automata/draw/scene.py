"""What a diagram of a machine shows, by how much of it can be read: its arrows, labels, names and positions.

    A  symbols     n  states

There is one arrow per pair of states, its symbols merged into a short label. Two arrows that are inverse to each other
with the same label (a transposition) become one with two heads. Labels are written on the arrows while these are few;
long labels are coded by letters and numbers with a key. Beyond that, colors stand for symbols, self-loops are hidden,
states that many others lead to are shaded and lose their incoming arrows, and names give way to numbers. Everything
that is left out is said in a sentence below the diagram.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from exactstate.automata.draw.layout import Points, place
from exactstate.automata.machine import Mealy, Moore, Semiautomaton

MAX_LABELED_ARROWS = 48
"""Arrows up to which labels are drawn, if nothing else shows the symbol."""
MAX_LABELED_COLORED_ARROWS = 34
"""Arrows up to which labels are drawn, if the color shows the symbol too."""
MAX_LOOPED_STATES = 32
"""States up to which self-loops and arrows into hubs are drawn."""
MAX_NAMED_STATES = 80
"""States up to which names or numbers are drawn."""
MAX_DRAWN_STATES = 130
"""States up to which circles are drawn."""
MAX_DRAWN_ARROWS = 600
"""Arrows up to which any are drawn."""
MAX_COLORED_SYMBOLS = 6
"""Symbols up to which each has a color."""
MAX_SINK_ARROWS = 3
"""Arrows into the refusing sink of a DFA up to which they are drawn."""
LETTER = 0.165
"""Width of a letter of a label, in heights of a state."""
MAX_LINES, MAX_CODED_LINES = 3, 5
"""Lines of a label; what does not fit is counted."""
WIDTH = 18
"""Characters of a line."""


def fits(machine: Semiautomaton) -> bool:
    """Whether the machine is small enough to be drawn as circles and arrows."""
    n = machine.n_states
    if n > MAX_DRAWN_STATES or machine.tables.size > 100_000:
        return False
    pairs = machine.tables.astype(np.int64) + n * np.arange(n)
    return len(np.unique(pairs)) <= MAX_DRAWN_ARROWS


class Scene:
    """The states and arrows that are drawn, their positions, and the sentences below."""

    def __init__(self, machine: Semiautomaton, *, seed: int = 0) -> None:
        self.machine = machine
        self.start = machine.start if isinstance(machine, Moore | Mealy) else None
        self.colored = machine.n_symbols <= MAX_COLORED_SYMBOLS
        self.sentences: list[str] = []
        self.key: list[str] = []
        self._choose_arrows()
        self._name_states()
        pairs = {(min(a.source, a.target), max(a.source, a.target)) for a in self.arrows if not a.is_loop}
        ends = np.array(sorted(pairs), int).reshape(-1, 2)
        self.points = self._spread(place(machine.n_states, ends, machine.tables, self.start or 0, seed=seed), len(ends))

    @property
    def has_color_key(self) -> bool:
        return self.colored and not self.labeled and self.machine.n_symbols > 1

    def _choose_arrows(self) -> None:
        machine = self.machine
        self.hubs = _busy_sink(machine)
        self.arrows = [arrow for arrow in arrows_of(machine) if arrow.target not in self.hubs]
        color_shows_symbol = self.colored and not isinstance(machine, Mealy)
        self.labeled = len(self.arrows) <= (MAX_LABELED_COLORED_ARROWS if color_shows_symbol else MAX_LABELED_ARROWS)
        between = [arrow for arrow in self.arrows if not arrow.is_loop]
        if self.labeled and len(between) > 8 and can_be_coded(machine):
            width = np.mean([max(map(len, arrow.label.split("\n"))) for arrow in between])
            if width > 10:
                coded = arrows_of(machine, coded=True)
                self.arrows, self.key = [a for a in coded if a.target not in self.hubs], codes(machine)
        if not self.labeled and not self.colored:
            self.sentences.append(f"Arrows are drawn without their symbol: there are {machine.n_symbols}.")
        if not self.labeled and isinstance(machine, Mealy):
            self.sentences.append("Outputs are not shown.")
        if self.hubs:
            self.sentences.append("Words that lead to the shaded state are refused for good; its arrows are not shown.")
        if machine.n_states > MAX_LOOPED_STATES:
            self._fold()

    def _fold(self) -> None:
        """Hide self-loops, and the arrows into states that a quarter of all states lead to."""
        n = self.machine.n_states
        loops = sum(arrow.is_loop for arrow in self.arrows)
        if loops:
            have = "1 state has" if loops == 1 else f"{loops} states have"
            self.sentences.append(f"Self-loops are not shown: {have} one.")
        entered = np.bincount([a.target for a in self.arrows if not a.is_loop and not a.both_ways], minlength=n)
        self.hubs += [q for q in range(n) if entered[q] > max(n / 4, 2.5 * entered.mean())]
        if self.hubs:
            names = ", ".join(f"{self.machine.states[q][:12]} ({entered[q]})" for q in self.hubs[:6])
            more = f" and {len(self.hubs) - 6} more" if len(self.hubs) > 6 else ""
            self.sentences.append(f"Arrows into shaded states are not shown: {names}{more}.")
        self.arrows = [a for a in self.arrows if not a.is_loop and (a.both_ways or a.target not in self.hubs)]

    def _name_states(self) -> None:
        n = self.machine.n_states
        self.labels = node_labels(self.machine, 12)
        if n > MAX_LOOPED_STATES and max(len(name) for name, _ in self.labels) > 4:
            self.labels = [(str(q), output[:4]) for q, (_, output) in enumerate(self.labels)]
            self.sentences.append("States are numbered.")
        if n > MAX_NAMED_STATES:
            self.labels = [("", "")] * n
            self.sentences = [*(s for s in self.sentences if s != "States are numbered."), "States are not named."]
        widest = max(max(len(name), len(output)) for name, output in self.labels)
        self.size = np.array([max(0.5, 0.105 * widest + 0.16), 0.5])

    def _spread(self, points: Points, joined: int) -> Points:
        """Scale positions so that names and labels have space."""
        halves = [half_of(arrow.label) for arrow in self.arrows if self.labeled and not arrow.is_loop]
        label = 2 * np.max(halves, axis=0) if halves else np.zeros(2)
        crowd = max(0.0, joined / len(points) - 1.5)
        tall = float(np.clip(1.9 + label[1] + 0.5 * crowd + 0.03 * len(points), 2.3, 4.2))
        wide = float(np.clip(2 * self.size[0] + label[0] + 0.9, tall, 2.2 * tall))
        spread = _apart(points * np.array([wide, tall]), 2.9 * self.size)
        return np.asarray(spread * self._too_short(spread))

    def _too_short(self, points: Points) -> float:
        """The factor by which the diagram must grow so that most arrows have space for their labels."""
        needs = [1.0]
        for arrow in self.arrows:
            if self.labeled and not arrow.is_loop:
                way = points[arrow.target] - points[arrow.source]
                length = float(np.linalg.norm(way))
                direction = np.abs(way / length)
                states = 2 / np.linalg.norm(direction / self.size)
                label = 2 * min(half_of(arrow.label) / np.maximum(direction, 1e-9))
                needs.append((states + label + 0.75) / length)
        return float(np.clip(np.quantile(needs, 0.9), 1.0, 1.7))


def _busy_sink(machine: Semiautomaton) -> list[int]:
    """The state of a DFA from which no word is accepted, where many states lead to it; else nothing."""
    if not isinstance(machine, Moore) or set(machine.outputs) != {"reject", "accept"}:
        return []
    rejects = machine.readout == machine.outputs.index("reject")
    sinks = np.flatnonzero((machine.tables == np.arange(machine.n_states)).all(axis=0) & rejects)
    return [q for q in sinks.tolist() if (machine.tables == q).any(axis=0).sum() > MAX_SINK_ARROWS]


def half_of(label: str) -> Points:
    """Half the width and height of a label, in heights of a state."""
    lines = label.split("\n")
    return np.array([LETTER * max(map(len, lines)) / 2 + 0.06, 0.19 * len(lines) + 0.04])


def _apart(points: Points, least: Points, rounds: int = 60) -> Points:
    """Push states apart that are closer than `least`, iteratively."""
    points = points.copy()
    for _ in range(rounds):
        between = (points[:, None] - points[None]) / least
        distance = np.linalg.norm(between, axis=2) + 9 * np.eye(len(points))
        if distance.min() >= 1:
            break
        push = np.clip(1 - distance, 0, None) / 2
        # states on one spot are pushed apart in a direction of their own
        turn = np.arange(len(points)) * 2.4
        nudge = 1e-3 * np.stack([np.cos(turn), np.sin(turn)], 1)
        towards = (between + nudge[:, None] - nudge[None]) / np.maximum(distance, 1e-3)[..., None]
        points += (push[..., None] * towards).sum(1) * least
    return points


@dataclass(frozen=True, slots=True)
class Arrow:
    source: int
    target: int
    symbols: tuple[int, ...]
    label: str
    both_ways: bool = False
    """Whether it has a head at each end."""

    @property
    def is_loop(self) -> bool:
        return self.source == self.target


def arrows_of(machine: Semiautomaton, *, coded: bool = False) -> list[Arrow]:
    """The arrows of the machine, self-loops included, in order of source and first symbol.

    Coded labels use A, B, ... for the symbols and 1, 2, ... for the outputs; `codes` is the key.
    """
    merged: dict[tuple[int, int], list[int]] = {}
    for q, row in enumerate(machine.tables.T.tolist()):
        for a, target in enumerate(row):
            merged.setdefault((q, target), []).append(a)
    labels = {ends: _label(machine, ends[0], symbols, coded) for ends, symbols in merged.items()}
    arrows = []
    for (q, target), symbols in merged.items():
        back = merged.get((target, q))
        undone = q != target and back == symbols and labels[target, q] == labels[q, target]
        if not undone or q < target:
            arrows.append(Arrow(q, target, tuple(symbols), labels[q, target], undone))
    return arrows


def can_be_coded(machine: Semiautomaton) -> bool:
    return machine.n_symbols <= 26 and (not isinstance(machine, Mealy) or len(machine.outputs) <= 40)


def codes(machine: Semiautomaton) -> list[str]:
    """The key to coded labels: the meaning of every letter and number."""
    key = [f"{_letter(a)} = {abbreviate(name, 60)}" for a, name in enumerate(machine.symbols)]
    if isinstance(machine, Mealy):
        key += [f"{b + 1} = {abbreviate(name, 60)}" for b, name in enumerate(machine.outputs)]
    return key


def node_labels(machine: Semiautomaton, width: int) -> list[tuple[str, str]]:
    """(name, output) of every state; the output is empty where there is none, or where it is the name.

    Names that would be equal after abbreviation are replaced by numbers.
    """
    names = [abbreviate(name, width) for name in machine.states]
    if len(set(names)) < len(names):
        names = [str(q) for q in range(len(names))]
    if not isinstance(machine, Moore) or machine.outputs == ("reject", "accept"):
        return [(name, "") for name in names]
    outputs = [machine.outputs[b] for b in machine.readout]
    if tuple(outputs) == machine.states:
        return [(name, "") for name in names]
    return [(name, abbreviate(output, width)) for name, output in zip(names, outputs, strict=True)]


def abbreviate(name: str, width: int = WIDTH) -> str:
    """The name, printable and abbreviated in the middle to at most `width` characters."""
    visible = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    tail = (width - 1) // 3
    return visible if len(visible) <= width else visible[: width - 1 - tail] + "…" + visible[-tail:]


def _label(machine: Semiautomaton, q: int, symbols: Sequence[int], coded: bool) -> str:
    """The symbols, and for a Mealy machine the outputs: in one line if they fit, else on several."""
    if not isinstance(machine, Mealy):
        parts = [_together(machine, symbols, coded)] if coded else [machine.symbols[a] for a in symbols]
    else:
        by_output: dict[int, list[int]] = {}
        for a in symbols:
            by_output.setdefault(int(machine.readout[a, q]), []).append(a)
        # inputs with the same output share it: a, b / 0
        parts = [
            f"{_together(machine, inputs, True)}/{b + 1}" if coded
            else f"{_together(machine, inputs, False)} / {machine.outputs[b]}"
            for b, inputs in by_output.items()
        ]  # fmt: skip
    if sum(map(len, parts)) + 2 * len(parts) <= WIDTH:
        return abbreviate(("; " if coded else ", ").join(parts))
    most = MAX_CODED_LINES if coded else MAX_LINES
    shown = [abbreviate(one) for one in parts[: most if len(parts) <= most else most - 1]]
    return "\n".join(shown + [f"+ {len(parts) - len(shown)} more"] * (len(parts) > len(shown)))


def _together(machine: Semiautomaton, symbols: Sequence[int], coded: bool) -> str:
    """Several symbols in a row; coded, with runs such as A-D."""
    if not coded:
        return ", ".join(machine.symbols[a] for a in symbols)
    runs = []
    for _, members in groupby(enumerate(symbols), lambda pair: pair[1] - pair[0]):
        run = [_letter(a) for _, a in members]
        runs += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else run
    return ",".join(runs)


def _letter(a: int) -> str:
    return chr(ord("A") + a)
