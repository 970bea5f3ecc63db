"""Decide what of a machine a picture shows, by how much of it can be read.

Labels stand on the arrows while these are few; long labels become letters and numbers with a key. Beyond, colours say
the symbol, self-loops are folded, states to which everybody leads are shaded and lose their incoming arrows, and
names give way to numbers. Whatever is left out is said in a sentence.
"""

from __future__ import annotations

import numpy as np

from detent.automata.draw.arrows import arrows_of, can_be_coded, codes, node_labels
from detent.automata.draw.layout import Points, place
from detent.automata.machine import Mealy, Moore, Semiautomaton

LABELLED_ARROWS = 48
"""Arrows that still carry labels, where nothing else says the symbol."""
LABELLED_COLOURED_ARROWS = 34
"""Arrows that still carry labels, where the colour says the symbol too."""
LOOPED_STATES = 32
"""States whose self-loops and hubs are still drawn."""
NAMED_STATES = 80
"""States that still carry their names or numbers."""
DRAWN_STATES = 130
"""States that are drawn as circles."""
DRAWN_ARROWS = 600
"""Arrows that are drawn at all."""
COLOURED_SYMBOLS = 6
"""Symbols that have a colour each."""
LETTER = 0.165
"""Width of a letter of a label, in heights of a state."""


def fits(machine: Semiautomaton) -> bool:
    """Whether the machine can be drawn as circles and arrows at all."""
    n = machine.n_states
    if n > DRAWN_STATES or machine.tables.size > 100_000:
        return False
    pairs = machine.tables.astype(np.int64) + n * np.arange(n)
    return len(np.unique(pairs)) <= DRAWN_ARROWS


class Scene:
    """The states and arrows that are shown, where they are, and what is said below."""

    def __init__(self, machine: Semiautomaton, *, seed: int = 0) -> None:
        self.machine = machine
        self.start = machine.start if isinstance(machine, Moore | Mealy) else None
        self.coloured = machine.n_symbols <= COLOURED_SYMBOLS
        self.sentences: list[str] = []
        self.key: list[str] = []
        self._choose_arrows()
        self._name_states()
        pairs = {(min(a.source, a.target), max(a.source, a.target)) for a in self.arrows if not a.is_loop}
        ends = np.array(sorted(pairs), int).reshape(-1, 2)
        self.points = self._spread(place(machine.n_states, ends, machine.tables, self.start or 0, seed=seed), len(ends))

    @property
    def has_colour_key(self) -> bool:
        return self.coloured and not self.labelled and self.machine.n_symbols > 1

    def _choose_arrows(self) -> None:
        machine = self.machine
        self.arrows = arrows_of(machine)
        colour_says_it = self.coloured and not isinstance(machine, Mealy)
        self.labelled = len(self.arrows) <= (LABELLED_COLOURED_ARROWS if colour_says_it else LABELLED_ARROWS)
        between = [arrow for arrow in self.arrows if not arrow.is_loop]
        if self.labelled and len(between) > 8 and can_be_coded(machine):
            width = np.mean([max(map(len, arrow.label.split("\n"))) for arrow in between])
            if width > 10:
                self.arrows, self.key = arrows_of(machine, coded=True), codes(machine)
        if not self.labelled and not self.coloured:
            self.sentences.append(f"Arrows do not say their symbol: there are {machine.n_symbols}.")
        if not self.labelled and isinstance(machine, Mealy):
            self.sentences.append("Outputs are not shown.")
        self.hubs: list[int] = []
        if machine.n_states > LOOPED_STATES:
            self._fold()

    def _fold(self) -> None:
        """Leave out self-loops, and the arrows into states to which a quarter of all states lead."""
        n = self.machine.n_states
        loops = sum(arrow.is_loop for arrow in self.arrows)
        if loops:
            have = "1 state has" if loops == 1 else f"{loops} states have"
            self.sentences.append(f"Self-loops are not shown: {have} one.")
        entered = np.bincount([a.target for a in self.arrows if not a.is_loop and not a.both_ways], minlength=n)
        self.hubs = [q for q in range(n) if entered[q] > max(n / 4, 2.5 * entered.mean())]
        if self.hubs:
            names = ", ".join(f"{self.machine.states[q][:12]} ({entered[q]})" for q in self.hubs[:6])
            more = f" and {len(self.hubs) - 6} more" if len(self.hubs) > 6 else ""
            self.sentences.append(f"Arrows into shaded states are not shown: {names}{more}.")
        self.arrows = [a for a in self.arrows if not a.is_loop and (a.both_ways or a.target not in self.hubs)]

    def _name_states(self) -> None:
        n = self.machine.n_states
        self.labels = node_labels(self.machine, 12)
        if n > LOOPED_STATES and max(len(name) for name, _ in self.labels) > 4:
            self.labels = [(str(q), output[:4]) for q, (_, output) in enumerate(self.labels)]
            self.sentences.append("States are numbered.")
        if n > NAMED_STATES:
            self.labels = [("", "")] * n
            self.sentences = [*(s for s in self.sentences if s != "States are numbered."), "States are not named."]
        widest = max(max(len(name), len(output)) for name, output in self.labels)
        self.size = np.array([max(0.5, 0.105 * widest + 0.16), 0.5])

    def _spread(self, points: Points, joined: int) -> Points:
        """From arrows of length 1 to distances at which names and labels have room."""
        halves = [half_of(arrow.label) for arrow in self.arrows if self.labelled and not arrow.is_loop]
        label = 2 * np.max(halves, axis=0) if halves else np.zeros(2)
        crowd = max(0.0, joined / len(points) - 1.5)
        tall = float(np.clip(1.9 + label[1] + 0.5 * crowd + 0.03 * len(points), 2.3, 4.2))
        wide = float(np.clip(2 * self.size[0] + label[0] + 0.9, tall, 2.2 * tall))
        spread = _apart(points * np.array([wide, tall]), 2.9 * self.size)
        return np.asarray(spread * self._too_short(spread))

    def _too_short(self, points: Points) -> float:
        """By how much the picture must grow so that most arrows have room for their labels."""
        needs = [1.0]
        for arrow in self.arrows:
            if self.labelled and not arrow.is_loop:
                way = points[arrow.target] - points[arrow.source]
                length = float(np.linalg.norm(way))
                direction = np.abs(way / length)
                states = 2 / np.linalg.norm(direction / self.size)
                label = 2 * min(half_of(arrow.label) / np.maximum(direction, 1e-9))
                needs.append((states + label + 0.75) / length)
        return float(np.clip(np.quantile(needs, 0.9), 1.0, 1.7))


def half_of(label: str) -> Points:
    """Half the width and height of a label, in heights of a state."""
    lines = label.split("\n")
    return np.array([LETTER * max(map(len, lines)) / 2 + 0.06, 0.19 * len(lines) + 0.04])


def _apart(points: Points, least: Points, rounds: int = 60) -> Points:
    """Push states apart that are closer than this, horizontally and vertically, a little at a time."""
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
