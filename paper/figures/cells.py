"""One automaton, two ways of carrying it on a line of cells: with restoration, and without.

Every state q has a cell [q - 1/2, q + 1/2) with its code point q in the middle. A step moves a cell rigidly onto the
cell of the next state, and whatever computes it is off by at most eta. With restoration the state is then put back on
the code point. Without, the ball of where it may be grows by eta at every step, until it touches another cell and one
symbol drives several runs at once. `cell_rows` follows both:

    kind "run"          step, state, symbol (the one just read; none at step 0)
    kind "restored"     step, low, high: where the state may be before it is put back
    kind "accumulated"  step, cell, from_low, from_high, low, high: one piece of where it may be, and what became of it
    kind "read"         step, states: what the read-out may say without restoration
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

from detent.automata import Mealy, Moore, Semiautomaton
from detent.errors import InvalidConfig, InvalidMachine
from detent.records import Row

MOST = 12
"""States that can be told apart as cells."""
Interval = tuple[float, float]


def wandering_word(machine: Semiautomaton, length: int) -> list[int]:
    """A word whose run sees many states: always the symbol that leads to the state seen least, the first of equals."""
    state, word = _start(machine), []
    seen = [0] * machine.n_states
    for _ in range(length):
        seen[state] += 1
        nexts = [int(q) for q in machine.tables[:, state]]
        symbol = min(range(machine.n_symbols), key=lambda a: (seen[nexts[a]], nexts[a] == state, a))
        word.append(symbol)
        state = nexts[symbol]
    return word


def cell_rows(machine: Semiautomaton, word: Sequence[int], eta: float = 0.11) -> list[Row]:
    """Rows as described above."""
    if machine.n_states > MOST:
        raise InvalidMachine(
            f"cells are drawn for at most {MOST} states; this machine has {machine.n_states}: take a smaller one."
        )
    if not 0 < eta < 0.5:
        raise InvalidConfig(f"eta is between 0 and 1/2, half a cell; got {eta}.")
    state = _start(machine)
    rows: list[Row] = [
        {"kind": "run", "step": 0, "state": state, "symbol": None}, {"kind": "read", "step": 0, "states": [state]}
    ]  # fmt: skip
    held: list[Interval] = [(float(state), float(state))]
    for step, symbol in enumerate(word, start=1):
        table = machine.tables[symbol]
        state = int(table[state])
        rows.append({"kind": "run", "step": step, "state": state, "symbol": machine.symbols[symbol]})
        rows.append({"kind": "restored", "step": step, "low": state - eta, "high": state + eta})
        moved = []
        for cell, (low, high) in _by_cell(held, machine.n_states):
            shift = int(table[cell]) - cell
            moved.append((low + shift - eta, high + shift + eta))
            rows.append({
                "kind": "accumulated", "step": step, "cell": cell, "from_low": low, "from_high": high,
                "low": moved[-1][0], "high": moved[-1][1],
            })  # fmt: skip
        held = _merged(moved)
        rows.append({"kind": "read", "step": step, "states": sorted({q for q, _ in _by_cell(held, machine.n_states)})})
    return rows


def _by_cell(intervals: Sequence[Interval], n: int) -> list[tuple[int, Interval]]:
    """The intervals, cut where cells meet; the outermost cells go on without end."""
    pieces = []
    for low, high in intervals:
        first, last = (min(max(floor(end + 0.5), 0), n - 1) for end in (low, high))
        for cell in range(first, last + 1):
            piece = (low if cell == first else cell - 0.5, high if cell == last else cell + 0.5)
            if piece[0] < piece[1] or low == high:
                pieces.append((cell, piece))
    return pieces


def _merged(intervals: Sequence[Interval]) -> list[Interval]:
    """The same points in as few intervals as possible."""
    merged: list[Interval] = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _start(machine: Semiautomaton) -> int:
    return machine.start if isinstance(machine, Moore | Mealy) else 0
