"""Branch and bound over the indices of heads that are left out: does a label lead for every tuple of them?

    R  read-outs     S  indices of all heads of the last layer     m  width

Where the bound over all tuples does not decide, one head's indices are parted in two and both parts are bounded again:
the head that moves the worst lead most, its indices parted along the longest difference of what they add. In the end
every head is at one index, so only the number of parts limits what can be proved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from exactstate._types import Bools, Floats, Ints
from exactstate.extract.graph.steps import Steps

AT_ONCE = 256
PARTS = 20_000
"""Of all read-outs together, at most."""
HOPELESS = 2000.0
"""A part that lags by so many times the lead that is wanted is not worth a search."""

Bounded = Callable[[Steps, Ints], tuple[Floats, Floats]]
"""(steps, labels) -> (R leads, R r: how much each head that is left out moves the worst lead)."""


@dataclass(frozen=True, eq=False)
class Parted:
    """The result of a branch and bound."""

    leads: Floats
    """R: the smallest lead over all parts; where the search ended early, that of the worst part."""
    parts: int
    """How many parts were bounded."""
    blamed: int
    """The head that moved leads most where the search ended; -1 if it succeeded."""


def branch(
    bounded: Bounded, steps: Steps, best: Ints, wanted: Floats, *, heads: tuple[int, ...], dropped: tuple[int, ...],
    contributions: Callable[[int], Floats], most: int,
) -> Parted:  # fmt: skip
    """Part the possible indices of every read-out until all parts lead by more than `wanted` (R).

    A part that cannot be decided ends the search, and so do more than `most` parts: the proof has failed.
    """
    assert steps.possible is not None
    offsets = np.cumsum([0, *heads])
    result = np.full(len(best), np.inf)
    owners, possible = np.arange(len(best)), steps.possible
    parts = 0
    while len(owners):
        some, owners = owners[-AT_ONCE:], owners[:-AT_ONCE]
        masks, possible = possible[-AT_ONCE:], possible[:-AT_ONCE]
        leads, influence = bounded(Steps(*_at(steps, some), masks), best[some])
        parts += len(some)
        failed = ~(leads > wanted[some])
        np.minimum.at(result, some[~failed], leads[~failed])
        halves = [_parted(mask, moved, offsets, dropped, contributions) for mask, moved in
                  zip(masks[failed], influence[failed], strict=True)]  # fmt: skip
        stuck = np.array([half is None for half in halves], bool)
        hopeless = (leads < -HOPELESS * wanted[some]) & (wanted[some] > 0)
        if stuck.any() or parts > most or hopeless.any():
            np.minimum.at(result, some[failed], leads[failed])
            np.minimum.at(result, owners, -np.inf)
            worst = influence[leads.argmin()]
            return Parted(result, parts, dropped[int(worst.argmax())])
        if halves:
            owners = np.concatenate([owners, np.repeat(some[failed], 2)])
            possible = np.concatenate([possible, *(half for half in halves if half is not None)])
    return Parted(result, parts, -1)


def _at(steps: Steps, which: Ints) -> tuple[Ints, tuple[Ints, ...]]:
    held = steps.rows(which)
    return held.symbols, held.indices


def _parted(
    mask: Bools, influence: Floats, offsets: Ints, dropped: tuple[int, ...], contributions: Callable[[int], Floats]
) -> Bools | None:
    """2 S: the possible indices of one head in two parts; None where every head is at one index."""
    counts = np.array([mask[offsets[head] : offsets[head + 1]].sum() for head in dropped])
    if not (counts > 1).any():
        return None
    place = int(np.where(counts > 1, influence, -1.0).argmax())
    head = dropped[place]
    indices = np.flatnonzero(mask[offsets[head] : offsets[head + 1]])
    added = contributions(head)[indices]
    far = ((added[:, None] - added[None]) ** 2).sum(-1)
    one, other = np.unravel_index(int(far.argmax()), far.shape)
    along = added @ (added[one] - added[other])
    order = np.argsort(along)
    cut = 1 + int(np.diff(along[order]).argmax())
    halves = np.stack([mask, mask])
    halves[0, offsets[head] + indices[order[cut:]]] = False
    halves[1, offsets[head] + indices[order[:cut]]] = False
    return halves
