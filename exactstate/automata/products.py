"""Products of machines: direct, parallel and cascade.

A state of a product is a pair; state (p, q) has number p * n2 + q. A product of Moore machines is a Moore machine whose
outputs are pairs; any other product is a semiautomaton.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

import numpy as np

from exactstate._types import Ints
from exactstate.automata.machine import Moore, Semiautomaton
from exactstate.errors import InvalidMachine

M = TypeVar("M", Moore, Semiautomaton)


def direct_product(first: M, second: M) -> M:
    """Both machines side by side, each reading its own letter: the symbols are pairs of symbols."""
    n1, n2 = first.n_states, second.n_states
    p, q = np.divmod(np.arange(n1 * n2), n2)
    x, y = np.divmod(np.arange(first.n_symbols * second.n_symbols), second.n_symbols)
    tables = first.tables[x][:, p].astype(np.int64) * n2 + second.tables[y][:, q]
    return _paired(first, second, pair_names(first.symbols, second.symbols), tables)


def parallel(first: M, second: M) -> M:
    """Both machines side by side, reading the same letters, as the heads of one layer do."""
    if first.symbols != second.symbols:
        raise InvalidMachine(
            f"machines in parallel read the same symbols; got {first.symbols} and {second.symbols}. "
            "Use direct_product for machines that read their own."
        )
    p, q = np.divmod(np.arange(first.n_states * second.n_states), second.n_states)
    tables = first.tables[:, p].astype(np.int64) * second.n_states + second.tables[:, q]
    return _paired(first, second, first.symbols, tables)


def cascade(
    first: M,
    second: M,
    feed: Sequence[Sequence[int]] | Ints,
    *,
    reads: Literal["previous", "updated"] = "previous",
) -> M:
    """The first machine reads the symbols; the second reads a function of the symbol and the first machine's state.

    feed[a][p] is the number of the second machine's symbol when symbol a meets state p of the first: the state before
    the step, as in a wreath product (`previous`), or after it, as in stacked layers (`updated`).
    """
    letters = np.asarray(feed)
    if letters.shape != first.tables.shape or not np.issubdtype(letters.dtype, np.integer):
        raise InvalidMachine(
            f"feed holds a symbol number for each symbol and state of the first machine, shape {first.tables.shape}; "
            f"got {letters.dtype} of shape {letters.shape}."
        )
    if letters.min() < 0 or letters.max() >= second.n_symbols:
        raise InvalidMachine(
            f"feed names symbols {letters.min()} to {letters.max()}, but the second machine has {second.n_symbols} "
            f"(0..{second.n_symbols - 1})."
        )
    if reads not in ("previous", "updated"):
        raise InvalidMachine(f"reads is 'previous' or 'updated'; got {reads!r}.")
    p, q = np.divmod(np.arange(first.n_states * second.n_states), second.n_states)
    moved = first.tables[:, p]
    read = letters[:, p] if reads == "previous" else np.take_along_axis(letters, moved.astype(np.intp), axis=1)
    tables = moved.astype(np.int64) * second.n_states + second.tables[read, q]
    return _paired(first, second, first.symbols, tables)


def pair_names(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    """Names for all pairs, the second running fastest; quoted when the plain ones would collide."""
    plain = tuple(f"({p}, {q})" for p in first for q in second)
    return plain if len(set(plain)) == len(plain) else tuple(f"({p!r}, {q!r})" for p in first for q in second)


def _paired(first: M, second: M, symbols: tuple[str, ...], tables: Ints) -> M:
    states = pair_names(first.states, second.states)
    if not (isinstance(first, Moore) and isinstance(second, Moore)):
        return Semiautomaton(symbols=symbols, tables=tables, states=states)
    pairs = first.readout[:, None].astype(np.int64) * len(second.outputs) + second.readout
    return Moore(
        symbols=symbols, tables=tables, states=states, start=first.start * second.n_states + second.start,
        outputs=pair_names(first.outputs, second.outputs), readout=pairs.ravel(),
    )  # fmt: skip
