"""Constructions that restore exactly: one head, several heads from a factoring, and a stack for a cascade.

Every head holds a one-hot code; a step reads the largest entry, looks up where it goes, and writes a one-hot code
again, so whatever was pushed by less than eta_0 is gone. Cells are balls around code points, of radius eta.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from detent._types import Ints
from detent.automata.factor import Factoring
from detent.automata.machine import Semiautomaton
from detent.automata.products import cascade
from detent.errors import InvalidInput
from paper.theory.shapes import Ball, Floats, Norm, Shape, check_norm, exact
from paper.theory.triples import ByIndex, Indices, Tables, Triple


def eta_0(norm: Norm) -> float:
    """Below this level a push leaves the largest entry of a one-hot code where it is, in this norm.

    A push e moves entry j over entry k when e_j - e_k >= 1; in the three norms that takes 1/2, 1/sqrt(2) and 1.

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
    """Heads with tables of their own (A d each); chi says which indices stand for each state."""

    def move(symbol: int, indices: Indices) -> Indices:
        return tuple(int(table[symbol, k]) for table, k in zip(tables, indices, strict=True))

    return _restoring(heads, move, [tuple(map(int, indices)) for indices in chi], norm)


def from_logits(theta: Sequence[Floats], states: int, norm: Norm = "inf") -> Triple:
    """One head as it is learned: theta[x][j, k] scores the move from k to j. States are its first indices."""
    logits = np.asarray(theta, float)
    if logits.ndim != 3 or logits.shape[1] != logits.shape[2] or not 1 <= states <= logits.shape[1]:
        raise InvalidInput(f"logits are (A, d, d) with d of at least {states} states; got shape {logits.shape}.")
    return from_tables(logits.shape[1:2], [logits.argmax(1)], [(q,) for q in range(states)], norm)


def stacked(
    first: Semiautomaton, second: Semiautomaton, feed: Sequence[Sequence[int]], norm: Norm = "inf"
) -> tuple[Triple, Semiautomaton]:  # fmt: skip
    """(two layers, the cascade they realise): the upper layer reads the symbol and the updated index of the lower.

    feed[a][p] is the symbol that the upper machine reads when symbol a has brought the lower one to state p.
    """
    n1, n2 = first.n_states, second.n_states

    def move(symbol: int, indices: Indices) -> Indices:
        lower = int(first.tables[symbol, indices[0]])
        return lower, int(second.tables[feed[symbol][lower], indices[1]])

    chi = [(p, q) for p in range(n1) for q in range(n2)]
    return _restoring((n1, n2), move, chi, norm), cascade(first, second, feed, reads="updated")


def logit_margin(theta: Floats) -> float:
    """By how much the largest entry of a column leads, in the column where it leads least.

    Logits that are all wrong by less than half of it have the same table.
    """
    ordered = np.sort(np.asarray(theta, float), axis=0)
    return float((ordered[-1] - ordered[-2]).min()) if len(ordered) > 1 else np.inf


def _restoring(
    heads: Sequence[int], move: Callable[[int, Indices], Indices], chi: Sequence[Indices], norm: Norm
) -> Triple:
    step = Tables(heads, move)
    codes = np.array([step.code(indices) for indices in chi])

    def cells(eta: Fraction) -> list[list[Shape]]:
        return [[Ball(exact(code), eta, norm)] for code in codes]

    return Triple(codes, step, ByIndex(step, chi), cells, norm)
