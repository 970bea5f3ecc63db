"""Figure `realization`: an automaton, carried by a state that is put back at every step and by one that is not.

Left the automaton; right its run on a word, and below it the cells of the states as bands with their code points.
Above, a step moves the state into the next cell, computing it spreads the state over a ball, and restoration pulls the
ball back onto the code point. Below, nothing does: the ball grows until it covers several cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from detent.automata import Semiautomaton, draw
from detent.automata.draw.arrows import brief
from detent.records import Row
from detent.report.figures.style import ALARM, GREY, INK, PAGE, STATES, of_kind, sheet, styled

ARRIVES = 0.55
"""Where within a step the move ends and restoration begins."""
MOVED, RESTORED, SPILT = "#8A8A8A", "#D98A93", "#E1700F"


@styled
def paint(machine: Semiautomaton, rows: Sequence[Row], title: str = "the automaton") -> Any:
    """The figure of rows as `cells` describes them."""
    run = of_kind(rows, "run", "step", "state", "symbol")
    n, last = machine.n_states, run[-1]["step"]
    band = float(np.clip(0.27 * n, 1.1, 2.4))
    figure = sheet(PAGE, 2 * band + 1.9)
    left, right = figure.subfigures(1, 2, width_ratios=(1, 2))
    strip, above, said, below, read = right.subplots(5, 1, sharex=True, height_ratios=(0.4, band, 0.3, band, 0.3))
    for axes, name in ((above, "restored"), (below, "not restored")):
        _bands(axes, machine, last, name)
    _restored(above, run, of_kind(rows, "restored", "step", "low", "high"))
    reads = of_kind(rows, "read", "step", "states")
    _accumulated(below, of_kind(rows, "accumulated", "step", "from_low", "from_high", "low", "high"), reads)
    below.plot([row["step"] for row in run], [row["state"] for row in run], **_dots(3.0))
    _run(strip, machine, run)
    _tokens(said, machine, [[row["state"]] for row in run], "read")
    _tokens(read, machine, [row["states"] for row in reads], "read")
    read.set_xlabel("step")
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
    axes.set_yticks(range(n), [brief(name, 9) for name in machine.states])
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
        _flow(axes, t, t + ARRIVES, *whole, colour=MOVED)
        _flow(axes, t + ARRIVES, t + 1, whole[1], (q, q), colour=RESTORED)
        axes.vlines([t + ARRIVES], ball["low"], ball["high"], color="#4A4A4A", linewidth=2.2)
    axes.plot([row["step"] for row in run], [row["state"] for row in run], **_dots(4.5))
    _key(axes, (("the step moves and spreads it", MOVED), ("it is put back on the code point", RESTORED)))


def _accumulated(axes: Any, pieces: Sequence[Row], reads: Sequence[Row]) -> None:
    """Pieces of where the state may be, moved and spread; in orange once the read-out is no longer unique."""
    sure = {row["step"]: len(row["states"]) == 1 for row in reads}
    for row in pieces:
        t = row["step"] - 1
        colour = MOVED if sure[row["step"]] else SPILT
        after = row["low"], row["high"]
        _flow(axes, t, t + ARRIVES, (row["from_low"], row["from_high"]), after, colour=colour)
        _flow(axes, t + ARRIVES, t + 1, after, after, colour=colour)
        axes.vlines([t + ARRIVES], *after, color="#4A4A4A", linewidth=2.2)
    _key(axes, (("where it may be", MOVED), ("the read-out is no longer unique", SPILT)))


def _key(axes: Any, meanings: Sequence[tuple[str, str]]) -> None:
    from matplotlib.patches import Patch

    axes.legend(handles=[Patch(color=colour, alpha=0.72, label=words) for words, colour in meanings], ncols=2,
                loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1, fontsize=6.5, handlelength=1.0,
                handleheight=0.8, columnspacing=1.0)  # fmt: skip


def _flow(
    axes: Any, begin: float, end: float, before: tuple[float, float], after: tuple[float, float], *, colour: str
) -> None:  # fmt: skip
    """A band that goes smoothly from one interval to another."""
    along = np.linspace(0, 1, 15)
    ease = (1 - np.cos(np.pi * along)) / 2
    low, high = (a + (b - a) * ease for a, b in zip(before, after, strict=True))
    axes.fill_between(begin + (end - begin) * along, low, high, color=colour, alpha=0.72, linewidth=0)
    axes.plot(begin + (end - begin) * along, (low + high) / 2, color=INK, linewidth=0.6, alpha=0.8)


def _run(axes: Any, machine: Semiautomaton, run: Sequence[Row]) -> None:
    """The automaton's own run, with the symbols between its states."""
    _tokens(axes, machine, [[row["state"]] for row in run], "run")
    for row in run[1:]:
        axes.annotate(brief(row["symbol"], 8), (row["step"] - 0.5, 0), (0, 5.5), textcoords="offset points",
                      ha="center", fontsize=7, parse_math=False)  # fmt: skip
        arrow = {"arrowstyle": "-|>", "color": GREY, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (row["step"] - 0.34, 0), (row["step"] - 0.66, 0), arrowprops=arrow)


def _tokens(axes: Any, machine: Semiautomaton, told: Sequence[Sequence[int]], name: str) -> None:
    """The states that are told at every step, as small boxes side by side."""
    for step, states in enumerate(told):
        if len(states) > 4:
            _token(axes, step, f"{len(states)} states", "white")
            continue
        for i, q in enumerate(states):
            at = step + (i - (len(states) - 1) / 2) * 0.22
            words = brief(machine.states[q], 8 if len(states) == 1 else 2)
            _token(axes, at, words if len(states) == 1 or len(machine.states[q]) < 3 else " ", pale(q))
    axes.set(ylim=(-0.6, 0.9))
    axes.set_yticks([0], [name])
    axes.tick_params(length=0)
    axes.set_xticks(range(len(told)))
    axes.grid(False)
    for side in axes.spines.values():
        side.set_visible(False)


def _token(axes: Any, at: float, words: str, colour: str) -> None:
    box = {"boxstyle": "round,pad=0.18", "facecolor": colour, "edgecolor": GREY, "linewidth": 0.5}
    axes.text(at, 0, words, ha="center", va="center", fontsize=6.5, parse_math=False, bbox=box)


def _dots(size: float) -> dict[str, Any]:
    return {"linestyle": "none", "marker": "o", "markersize": size, "markerfacecolor": ALARM,
            "markeredgecolor": "white", "markeredgewidth": 0.6, "zorder": 5}  # fmt: skip


def pale(q: int) -> str:
    """The colour of a state's cell: that of the state, thinned with white."""
    colour = STATES[q % len(STATES)]
    channels = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 - 0.3 * (255 - channel)):02x}" for channel in channels)
