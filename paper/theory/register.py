"""Every definite automaton has a contracting affine realisation: a shift register of its last k symbols.

    k  the order     m  symbols and states together

The hidden state has k slots of m numbers. A step shifts every slot one down, drops the last and writes the symbol into
the first, so A^k = 0: whatever is older than k steps is gone. A code point holds a marker for its state in the first
slot. Slot j has been pushed j times, so a region that takes j eta there is held, and coordinates are told apart by
rounding as long as k eta < 1/2.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from detent._types import MISSING, Ints
from detent.automata.machine import Semiautomaton
from detent.automata.properties.definite import definite
from detent.errors import BudgetExceeded, InvalidInput
from paper.theory.shapes import Box, Floats, Shape, exact
from paper.theory.triples import Affine, Triple

LIMIT = 20_000
"""Clean configurations of a register, at most."""


class Register(NamedTuple):
    """A shift register and what it realises."""

    triple: Triple
    order: int
    configurations: dict[tuple[int, ...], int]
    """What the slots hold (symbols, then |symbols| + state; -1 for nothing), and the state it stands for."""

    @property
    def eta_0(self) -> Fraction:
        """It tracks its automaton at every level below this one."""
        return Fraction(1, 2 * self.order)


def shift_register(automaton: Semiautomaton) -> Register:
    """The contracting affine realisation of a definite automaton, in the largest-entry norm."""
    fact = definite(automaton)
    if fact.order is None:
        raise InvalidInput(
            f"only definite automata have a contracting affine realisation; this one is {fact.explain()}."
        )
    k, A, n = max(fact.order, 1), automaton.n_symbols, automaton.n_states
    m = A + n
    shift = np.eye(k * m, k=-m)
    writes = np.eye(A, k * m)
    held = _configurations(automaton, k)
    codes = np.array([_spell((A + q, *(k - 1) * (-1,)), m) for q in range(n)])
    clean = {q: [exact(_spell(slots, m)) for slots, state in held.items() if state == q] for q in range(n)}

    def cells(eta: Fraction) -> list[list[Shape]]:
        room = exact(np.repeat(np.arange(1, k + 1), m)) * eta
        return [[Box(center, room) for center in clean[q]] for q in range(n)]

    return Register(Triple(codes, Affine(np.stack([shift] * A), writes), _Rounding(held, m), cells), k, held)


def _configurations(automaton: Semiautomaton, k: int) -> dict[tuple[int, ...], int]:
    """Everything an exact run can leave in the slots, most recent first, with its state."""
    A = automaton.n_symbols
    held = {(A + q, *(k - 1) * (-1,)): q for q in range(automaton.n_states)}
    waiting = list(held)
    for slots in waiting:
        for x in range(A):
            then = (x, *slots[:-1])
            if then not in held:
                held[then] = int(automaton.tables[x, held[slots]])
                waiting.append(then)
        if len(held) > LIMIT:
            raise BudgetExceeded(
                f"this register has more than {LIMIT} configurations: take a smaller order or alphabet."
            )
    return held


def _spell(slots: tuple[int, ...], m: int) -> Floats:
    """k m: a one-hot vector in every slot that holds something."""
    return np.concatenate([np.eye(m)[y] if y >= 0 else np.zeros(m) for y in slots])


class _Rounding:
    """Rounds every number to 0 or 1 and looks the configuration up."""

    def __init__(self, held: dict[tuple[int, ...], int], m: int) -> None:
        self.state = {_spell(slots, m).astype(bool).tobytes(): q for slots, q in held.items()}

    def __call__(self, h: Floats) -> Ints:
        flat = (h > 0.5).reshape(-1, h.shape[-1])
        return np.array([self.state.get(row.tobytes(), MISSING) for row in flat]).reshape(h.shape[:-1])

    def on(self, shape: Shape) -> int:
        d = len(shape.center)
        halves = np.full(d, Fraction(1, 2))
        zeros, ones = shape.below(np.eye(d), halves), shape.below(-np.eye(d), -halves, strict=True)
        return int(self(shape.center.astype(float))) if (zeros | ones).all() else MISSING
