"""Figure `realization`: one automaton on a line of cells, with the state restored at every step and without.

Every state q has a cell [q - 1/2, q + 1/2) with its code point q in the middle. A step moves a cell rigidly onto the
cell of the next state, with an error of at most eta. With restoration the state then returns to the code point. Without
it, the interval of possible states grows by eta at every step until it overlaps another cell and the read-out is no
longer unique. `cell_rows` computes both:

    kind "run"          step, state, symbol (the one just read; none at step 0)
    kind "restored"     step, low, high: the interval before restoration
    kind "accumulated"  step, cell, from_low, from_high, low, high: one piece of the interval, before and after the step
    kind "read"         step, states: the possible read-outs without restoration

`paint` draws the automaton on the left; on the right its run on a word and, below it, the cells as bands.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor
from typing import Any

import numpy as np

from exactstate.automata import Mealy, Moore, Semiautomaton, draw
from exactstate.automata.draw.scene import abbreviate
from exactstate.errors import InvalidConfig, InvalidMachine
from exactstate.records import Row
from exactstate.report.figures.style import ALARM, GREY, INK, PAGE, STATES, of_kind, sheet, styled

MAX_STATES = 12
"""More cells than this cannot be distinguished in the figure."""
Interval = tuple[float, float]
ARRIVES = 0.55
"""Fraction of a step after which restoration begins."""
MOVED, RESTORED, AMBIGUOUS = "#8A8A8A", "#D98A93", "#E1700F"


def exploring_word(machine: Semiautomaton, length: int) -> list[int]:
    """A word whose run visits many states: at each step the symbol that leads to the least visited state."""
    state, word = _start(machine), []
    visits = [0] * machine.n_states
    for _ in range(length):
        visits[state] += 1
        nexts = [int(q) for q in machine.tables[:, state]]
        symbol = min(range(machine.n_symbols), key=lambda a: (visits[nexts[a]], nexts[a] == state, a))
        word.append(symbol)
        state = nexts[symbol]
    return word


def cell_rows(machine: Semiautomaton, word: Sequence[int], eta: float = 0.11) -> list[Row]:
    """Rows as described above."""
    if machine.n_states > MAX_STATES:
        raise InvalidMachine(
            f"cells are drawn for at most {MAX_STATES} states; this machine has {machine.n_states}: use a smaller one."
        )
    if not 0 < eta < 0.5:
        raise InvalidConfig(f"eta is between 0 and 1/2, half a cell; got {eta}.")
    state = _start(machine)
    rows: list[Row] = [
        {"kind": "run", "step": 0, "state": state, "symbol": None}, {"kind": "read", "step": 0, "states": [state]}
    ]  # fmt: skip
    possible: list[Interval] = [(float(state), float(state))]
    for step, symbol in enumerate(word, start=1):
        table = machine.tables[symbol]
        state = int(table[state])
        rows.append({"kind": "run", "step": step, "state": state, "symbol": machine.symbols[symbol]})
        rows.append({"kind": "restored", "step": step, "low": state - eta, "high": state + eta})
        moved = []
        for cell, (low, high) in _by_cell(possible, machine.n_states):
            shift = int(table[cell]) - cell
            moved.append((low + shift - eta, high + shift + eta))
            rows.append({
                "kind": "accumulated", "step": step, "cell": cell, "from_low": low, "from_high": high,
                "low": moved[-1][0], "high": moved[-1][1],
            })  # fmt: skip
        possible = _merged(moved)
        rows.append(
            {"kind": "read", "step": step, "states": sorted({q for q, _ in _by_cell(possible, machine.n_states)})}
        )
    return rows


def _by_cell(intervals: Sequence[Interval], n: int) -> list[tuple[int, Interval]]:
    """The intervals, split at the borders of cells; the outermost cells are unbounded."""
    pieces = []
    for low, high in intervals:
        first, last = (min(max(floor(end + 0.5), 0), n - 1) for end in (low, high))
        for cell in range(first, last + 1):
            piece = (low if cell == first else cell - 0.5, high if cell == last else cell + 0.5)
            if piece[0] < piece[1] or low == high:
                pieces.append((cell, piece))
    return pieces


def _merged(intervals: Sequence[Interval]) -> list[Interval]:
    """The union of the intervals, as disjoint intervals."""
    merged: list[Interval] = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _start(machine: Semiautomaton) -> int:
    return machine.start if isinstance(machine, Moore | Mealy) else 0


@styled
def paint(machine: Semiautomaton, rows: Sequence[Row], title: str = "the automaton") -> Any:
    """The figure of the rows of `cell_rows`."""
    run = of_kind(rows, "run", "step", "state", "symbol")
    n, last = machine.n_states, run[-1]["step"]
    band = float(np.clip(0.27 * n, 1.1, 2.4))
    figure = sheet(PAGE, 2 * band + 1.9)
    left, right = figure.subfigures(1, 2, width_ratios=(1, 2))
    strip, above, read_above, below, read_below = right.subplots(
        5, 1, sharex=True, height_ratios=(0.4, band, 0.3, band, 0.3)
    )
    for axes, name in ((above, "restored"), (below, "not restored")):
        _bands(axes, machine, last, name)
    _restored(above, run, of_kind(rows, "restored", "step", "low", "high"))
    reads = of_kind(rows, "read", "step", "states")
    _accumulated(below, of_kind(rows, "accumulated", "step", "from_low", "from_high", "low", "high"), reads)
    below.plot([row["step"] for row in run], [row["state"] for row in run], **_dots(3.0))
    _run(strip, machine, run)
    _tokens(read_above, machine, [[row["state"]] for row in run], "read")
    _tokens(read_below, machine, [row["states"] for row in reads], "read")
    read_below.set_xlabel("step")
    _automaton(left, machine, title)
    return figure


def _automaton(onto: Any, machine: Semiautomaton, title: str) -> None:
    axes = onto.subplots(1, 1)
    axes.grid(False)
    draw(machine, axes)
    axes.set_title(title, fontsize=8.5, parse_math=False)


def _bands(axes: Any, machine: Semiautomaton, last: int, title: str) -> None:
    n = machine.n_states
    for q in range(n):
        axes.axhspan(q - 0.5, q + 0.5, color=pale(q), linewidth=0, zorder=0)
        axes.axhline(q + 0.5, color="white", linewidth=1.0, zorder=0.5)
    axes.set(xlim=(-0.35, last + 0.35), ylim=(-0.75, n - 0.25))
    axes.set_yticks(range(n), [abbreviate(name, 9) for name in machine.states])
    axes.tick_params(axis="both", length=0)
    axes.tick_params(axis="x", labelbottom=False)
    axes.grid(False)
    axes.set_title(title, loc="left", fontweight="bold", fontsize=8, pad=3)
    for text in axes.get_yticklabels():
        text.set_parse_math(False)


def _restored(axes: Any, run: Sequence[Row], balls: Sequence[Row]) -> None:
    """From code point to ball, and from ball back to code point."""
    for before, after, ball in zip(run, run[1:], balls, strict=False):
        t, q = before["step"], float(after["state"])
        whole = (float(before["state"]),) * 2, (ball["low"], ball["high"])
        _flow(axes, t, t + ARRIVES, *whole, color=MOVED)
        _flow(axes, t + ARRIVES, t + 1, whole[1], (q, q), color=RESTORED)
        axes.vlines([t + ARRIVES], ball["low"], ball["high"], color="#4A4A4A", linewidth=2.2)
    axes.plot([row["step"] for row in run], [row["state"] for row in run], **_dots(4.5))
    _key(axes, (("the step, with its error", MOVED), ("restoration to the code point", RESTORED)))


def _accumulated(axes: Any, pieces: Sequence[Row], reads: Sequence[Row]) -> None:
    """The pieces of the interval of possible states; orange once the read-out is no longer unique."""
    unique = {row["step"]: len(row["states"]) == 1 for row in reads}
    for row in pieces:
        t = row["step"] - 1
        color = MOVED if unique[row["step"]] else AMBIGUOUS
        after = row["low"], row["high"]
        _flow(axes, t, t + ARRIVES, (row["from_low"], row["from_high"]), after, color=color)
        _flow(axes, t + ARRIVES, t + 1, after, after, color=color)
        axes.vlines([t + ARRIVES], *after, color="#4A4A4A", linewidth=2.2)
    _key(axes, (("possible states", MOVED), ("the read-out is no longer unique", AMBIGUOUS)))


def _key(axes: Any, meanings: Sequence[tuple[str, str]]) -> None:
    from matplotlib.patches import Patch

    axes.legend(handles=[Patch(color=color, alpha=0.72, label=words) for words, color in meanings], ncols=2,
                loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1, fontsize=6.5, handlelength=1.0,
                handleheight=0.8, columnspacing=1.0)  # fmt: skip


def _flow(
    axes: Any, begin: float, end: float, before: tuple[float, float], after: tuple[float, float], *, color: str
) -> None:  # fmt: skip
    """A band that interpolates smoothly between two intervals."""
    along = np.linspace(0, 1, 15)
    ease = (1 - np.cos(np.pi * along)) / 2
    low, high = (a + (b - a) * ease for a, b in zip(before, after, strict=True))
    axes.fill_between(begin + (end - begin) * along, low, high, color=color, alpha=0.72, linewidth=0)
    axes.plot(begin + (end - begin) * along, (low + high) / 2, color=INK, linewidth=0.6, alpha=0.8)


def _run(axes: Any, machine: Semiautomaton, run: Sequence[Row]) -> None:
    """The run of the automaton, with the symbols between its states."""
    _tokens(axes, machine, [[row["state"]] for row in run], "run")
    for row in run[1:]:
        axes.annotate(abbreviate(row["symbol"], 8), (row["step"] - 0.5, 0), (0, 5.5), textcoords="offset points",
                      ha="center", fontsize=7, parse_math=False)  # fmt: skip
        arrow = {"arrowstyle": "-|>", "color": GREY, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (row["step"] - 0.34, 0), (row["step"] - 0.66, 0), arrowprops=arrow)


def _tokens(axes: Any, machine: Semiautomaton, read: Sequence[Sequence[int]], name: str) -> None:
    """The possible states at every step, as small boxes side by side."""
    for step, states in enumerate(read):
        if len(states) > 4:
            _token(axes, step, f"{len(states)} states", "white")
            continue
        for i, q in enumerate(states):
            at = step + (i - (len(states) - 1) / 2) * 0.22
            words = abbreviate(machine.states[q], 8 if len(states) == 1 else 2)
            _token(axes, at, words if len(states) == 1 or len(machine.states[q]) < 3 else " ", pale(q))
    axes.set(ylim=(-0.6, 0.9))
    axes.set_yticks([0], [name])
    axes.tick_params(length=0)
    axes.set_xticks(range(len(read)))
    axes.grid(False)
    for side in axes.spines.values():
        side.set_visible(False)


def _token(axes: Any, at: float, words: str, color: str) -> None:
    box = {"boxstyle": "round,pad=0.18", "facecolor": color, "edgecolor": GREY, "linewidth": 0.5}
    axes.text(at, 0, words, ha="center", va="center", fontsize=6.5, parse_math=False, bbox=box)


def _dots(size: float) -> dict[str, Any]:
    return {"linestyle": "none", "marker": "o", "markersize": size, "markerfacecolor": ALARM,
            "markeredgecolor": "white", "markeredgewidth": 0.6, "zorder": 5}  # fmt: skip


def pale(q: int) -> str:
    """The color of a state's cell: that of the state, mixed with white."""
    color = STATES[q % len(STATES)]
    channels = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 - 0.3 * (255 - channel)):02x}" for channel in channels)
