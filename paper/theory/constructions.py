"""Constructions that realize an automaton: one-hot heads that restore exactly, and the shift register.

    k  order of a definite automaton     m  symbols and states together

A head holds a one-hot code. A step reads the largest entry, looks up its successor and writes a one-hot code again, so
every perturbation below eta_0 is removed. Cells are balls around code points, of radius eta. This works for one head,
for several heads of a factorization, and for a stack that realizes a cascade.

Every definite automaton also has a contracting affine realization: a shift register of its last k symbols. The hidden
state has k slots of m numbers. A step shifts every slot one down, drops the last and writes the symbol into the first,
so A^k = 0 and whatever is older than k steps is gone. A code point holds a marker for its state in the first slot. Slot
j has been perturbed j times, so the region that allows j eta there is invariant, and rounding recovers every coordinate
as long as k eta < 1/2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from exactstate._types import MISSING, Ints
from exactstate.automata.factor import Factoring
from exactstate.automata.machine import Semiautomaton
from exactstate.automata.products import cascade
from exactstate.automata.properties.definite import definite
from exactstate.errors import BudgetExceeded, InvalidInput
from paper.theory.shapes import Ball, Box, Floats, Norm, Shape, check_norm, exact
from paper.theory.triples import Affine, IndexReadout, Indices, Tables, Triple

LIMIT = 20_000
"""The most configurations of a register."""


def eta_0(norm: Norm) -> float:
    """Perturbations below this norm do not change the largest entry of a one-hot code.

    A perturbation e lifts entry j above entry k if e_j - e_k >= 1; in the three norms that takes 1/2, 1/sqrt(2) and 1.

    >>> eta_0("inf"), eta_0("1")
    (0.5, 1.0)
    """
    check_norm(norm)
    return {"inf": 0.5, "2": 0.5**0.5, "1": 1.0}[norm]


def one_hot(automaton: Semiautomaton, norm: Norm = "inf") -> Triple:
    """One head with an index for every state."""
    return from_tables((automaton.n_states,), [automaton.tables], [(q,) for q in range(automaton.n_states)], norm)


def from_factoring(factoring: Factoring, norm: Norm = "inf") -> Triple:
    """A head for every congruence of a factoring, side by side."""
    return from_tables(factoring.sizes, factoring.tables, list(zip(*factoring.partitions, strict=True)), norm)


def from_tables(heads: Sequence[int], tables: Sequence[Ints], chi: Sequence[Indices], norm: Norm = "inf") -> Triple:
    """Independent heads with tables (A d each); chi lists the indices of every state."""

    def move(symbol: int, indices: Indices) -> Indices:
        return tuple(int(table[symbol, k]) for table, k in zip(tables, indices, strict=True))

    return _restoring_triple(heads, move, [tuple(map(int, indices)) for indices in chi], norm)


def from_logits(theta: Sequence[Floats], states: int, norm: Norm = "inf") -> Triple:
    """One head from its logits: theta[x][j, k] scores the move from k to j. States are its first indices."""
    logits = np.asarray(theta, float)
    if logits.ndim != 3 or logits.shape[1] != logits.shape[2] or not 1 <= states <= logits.shape[1]:
        raise InvalidInput(f"logits are (A, d, d) with d of at least {states} states; got shape {logits.shape}.")
    return from_tables(logits.shape[1:2], [logits.argmax(1)], [(q,) for q in range(states)], norm)


def stacked(
    first: Semiautomaton, second: Semiautomaton, feed: Sequence[Sequence[int]], norm: Norm = "inf"
) -> tuple[Triple, Semiautomaton]:  # fmt: skip
    """(two layers, the cascade that they realize): the upper layer reads the symbol and the updated index of the lower.

    feed[a][p] is the symbol that the upper machine reads after symbol a has taken the lower one to state p.
    """
    n1, n2 = first.n_states, second.n_states

    def move(symbol: int, indices: Indices) -> Indices:
        lower = int(first.tables[symbol, indices[0]])
        return lower, int(second.tables[feed[symbol][lower], indices[1]])

    chi = [(p, q) for p in range(n1) for q in range(n2)]
    return _restoring_triple((n1, n2), move, chi, norm), cascade(first, second, feed, reads="updated")


def logit_margin(theta: Floats) -> float:
    """The smallest difference between the largest and the second largest entry of a column.

    Errors of all logits below half of it do not change the table.
    """
    ordered = np.sort(np.asarray(theta, float), axis=0)
    return float((ordered[-1] - ordered[-2]).min()) if len(ordered) > 1 else np.inf


def _restoring_triple(
    heads: Sequence[int], move: Callable[[int, Indices], Indices], chi: Sequence[Indices], norm: Norm
) -> Triple:
    step = Tables(heads, move)
    codes = np.array([step.code(indices) for indices in chi])

    def cells(eta: Fraction) -> list[list[Shape]]:
        return [[Ball(exact(code), eta, norm)] for code in codes]

    return Triple(codes, step, IndexReadout(step, chi), cells, norm)


class ShiftRegister(NamedTuple):
    """A shift register of the last symbols."""

    triple: Triple
    order: int
    configurations: dict[tuple[int, ...], int]
    """Contents of the slots (a symbol, |symbols| + state, or -1 if empty) -> state of the automaton."""

    @property
    def eta_0(self) -> Fraction:
        """It tracks its automaton for every eta below this."""
        return Fraction(1, 2 * self.order)


def shift_register(automaton: Semiautomaton) -> ShiftRegister:
    """The contracting affine realization of a definite automaton, in the largest-entry norm."""
    fact = definite(automaton)
    if fact.order is None:
        raise InvalidInput(
            f"only definite automata have a contracting affine realization; this one is {fact.explain()}."
        )
    k, A, n = max(fact.order, 1), automaton.n_symbols, automaton.n_states
    m = A + n
    shift = np.eye(k * m, k=-m)
    writes = np.eye(A, k * m)
    reachable = _configurations(automaton, k)
    codes = np.array([_encode_slots((A + q, *(k - 1) * (-1,)), m) for q in range(n)])
    clean = {q: [exact(_encode_slots(slots, m)) for slots, state in reachable.items() if state == q] for q in range(n)}

    def cells(eta: Fraction) -> list[list[Shape]]:
        room = exact(np.repeat(np.arange(1, k + 1), m)) * eta
        return [[Box(center, room) for center in clean[q]] for q in range(n)]

    return ShiftRegister(
        Triple(codes, Affine(np.stack([shift] * A), writes), _RoundingReadout(reachable, m), cells), k, reachable
    )


def _configurations(automaton: Semiautomaton, k: int) -> dict[tuple[int, ...], int]:
    """The contents of the slots in exact runs, most recent first, with their state."""
    A = automaton.n_symbols
    reachable = {(A + q, *(k - 1) * (-1,)): q for q in range(automaton.n_states)}
    waiting = list(reachable)
    for slots in waiting:
        for x in range(A):
            then = (x, *slots[:-1])
            if then not in reachable:
                reachable[then] = int(automaton.tables[x, reachable[slots]])
                waiting.append(then)
        if len(reachable) > LIMIT:
            raise BudgetExceeded(
                f"this register has more than {LIMIT} configurations: use a smaller order or alphabet."
            )
    return reachable


def _encode_slots(slots: tuple[int, ...], m: int) -> Floats:
    """k m: a one-hot vector in every slot that is not empty."""
    return np.concatenate([np.eye(m)[y] if y >= 0 else np.zeros(m) for y in slots])


class _RoundingReadout:
    """Round every number to 0 or 1 and look the configuration up."""

    def __init__(self, reachable: dict[tuple[int, ...], int], m: int) -> None:
        self.state = {_encode_slots(slots, m).astype(bool).tobytes(): q for slots, q in reachable.items()}

    def __call__(self, h: Floats) -> Ints:
        flat = (h > 0.5).reshape(-1, h.shape[-1])
        return np.array([self.state.get(row.tobytes(), MISSING) for row in flat]).reshape(h.shape[:-1])

    def on(self, shape: Shape) -> int:
        d = len(shape.center)
        halves = np.full(d, Fraction(1, 2))
        zeros, ones = shape.below(np.eye(d), halves), shape.below(-np.eye(d), -halves, strict=True)
        return int(self(shape.center.astype(float))) if (zeros | ones).all() else MISSING
