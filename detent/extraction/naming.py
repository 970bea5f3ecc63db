"""Name configurations by what was said on arrival: the labels as the states of a machine."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from detent.automata import Moore
from detent.automata.minimise import reachable
from detent.automata.running import Ints

START, REFUSED = "start", "refused"


class Labelled(Protocol):
    """What naming needs to know."""

    @property
    def symbols(self) -> tuple[str, ...]: ...
    @property
    def outputs(self) -> tuple[str, ...]: ...
    @property
    def tables(self) -> Ints: ...
    @property
    def readout(self) -> Ints: ...


def arrivals(found: Labelled) -> Ints | None:
    """The label said on arrival at every configuration, -1 where none is; None when one has several."""
    steps = found.tables >= 0
    labels = np.full(found.tables.shape[1], -1)
    labels[found.tables[steps]] = found.readout[steps]
    return labels if np.array_equal(labels[found.tables[steps]], found.readout[steps]) else None


def by_label(found: Labelled) -> Moore | None:
    """The machine whose states are the labels that are said, in the order in which they are met; None if there is none.

    A start that is never returned to is the label whose moves include its own, or a state called 'start'.
    """
    labels = arrivals(found)
    if labels is None:
        return None
    nameless, refused = len(found.outputs), len(found.outputs) + 1
    kinds = np.where(labels < 0, nameless, labels)
    symbols, before = np.nonzero(found.tables >= 0)
    moves = np.full((len(found.symbols), refused + 1), refused)
    moves[symbols, kinds[before]] = kinds[found.tables[symbols, before]]
    if not np.array_equal(moves[symbols, kinds[before]], kinds[found.tables[symbols, before]]):
        return None
    start = int(kinds[0])
    if start == nameless:
        known = moves[:, nameless, None] != refused
        same = np.where(known, moves[:, :nameless] == moves[:, nameless, None], True).all(axis=0)
        start = int(same.argmax()) if same.any() else nameless
    order = reachable(moves, start)
    number = np.zeros(refused + 1, np.int64)
    number[order] = np.arange(len(order))
    names = (*found.outputs, _unlike(START, found.outputs), _unlike(REFUSED, found.outputs))
    states = tuple(names[kind] for kind in order)
    return Moore(
        symbols=found.symbols, tables=number[moves[:, order]], states=states, outputs=states,
        readout=np.arange(len(order)),
    )  # fmt: skip


def _unlike(name: str, names: tuple[str, ...]) -> str:
    return name if name not in names else _unlike(f"{name}'", names)
