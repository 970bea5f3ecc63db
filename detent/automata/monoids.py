"""The word problem of a monoid: states are its elements, and reading a letter multiplies by it.

A monoid is given by maps of the points 0 .. d-1, one for each letter. Letter x sends state q to x∘q, so the state is
the running composite of what was read: a word acts on the points from left to right. State 0 is the identity and the
start; the others are numbered breadth-first, in the order of the letters.

    A  letters     n  elements     d  points
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from detent._types import Ints
from detent.automata.machine import Moore
from detent.automata.run import smallest_dtype
from detent.errors import BudgetExceeded, InvalidMachine

LIMIT = 1_000_000
"""How many elements a monoid may have before `elements` gives up."""


def from_maps(
    maps: Sequence[Sequence[int]] | Ints,
    names: Sequence[str] | None = None,
    *,
    element_name: Callable[[Sequence[int]], str] | None = None,
    limit: int = LIMIT,
) -> Moore:
    """The word problem of the transformation monoid that the maps generate.

    `maps[a][k]` is where letter a sends point k. Letters are called like the elements they are when no names are given,
    and elements are called by `element_name`, which is `map_name` when none is given.

    >>> from_maps([[0, 0], [1, 1]], names=("reset", "set")).states
    ('e', '[0 0]', '[1 1]')
    """
    letters = checked_maps(maps)
    called = element_name or map_name
    found, tables = elements(letters, limit=limit)
    states = tuple(map(called, found.tolist()))
    symbols = tuple(map(called, letters.tolist())) if names is None else tuple(names)
    return Moore(symbols=symbols, tables=tables, states=states, outputs=states, readout=np.arange(len(found)))


def elements(letters: Ints, *, limit: int = LIMIT) -> tuple[Ints, Ints]:
    """(every element as a map: n d, tables of the word problem: A n), found breadth-first from the identity."""
    A, d = letters.shape
    letters = letters.astype(smallest_dtype(d))
    frontier = np.arange(d, dtype=letters.dtype)[None, :]
    number = {frontier.tobytes(): 0}
    levels, tables = [frontier], []
    width = frontier.nbytes
    while len(frontier):
        composites = letters[:, frontier].transpose(1, 0, 2)  # by element, then by letter: the order of numbering
        raw = composites.tobytes()
        before = len(number)
        reached = [number.setdefault(raw[i : i + width], len(number)) for i in range(0, len(raw), width)]
        if len(number) > limit:
            raise BudgetExceeded(f"this monoid has more than {limit} elements; raise the limit or take other letters.")
        tables.append(np.array(reached, np.int64).reshape(-1, A))
        fresh, first = np.unique(tables[-1], return_index=True)
        frontier = composites.reshape(-1, d)[first[fresh >= before]]
        levels.append(frontier)
    return np.concatenate(levels), np.concatenate(tables).T


def map_name(images: Sequence[int]) -> str:
    """Cycle notation for a permutation, 'e' for the identity, the list of images for any other map.

    >>> map_name([1, 0, 2]), map_name([0, 1, 2]), map_name([0, 0, 2])
    ('(0 1)', 'e', '[0 0 2]')
    """
    if len(set(images)) < len(images):
        return f"[{' '.join(map(str, images))}]"
    cycles, seen = "", set()
    for point, image in enumerate(images):
        if image == point or point in seen:
            continue
        cycle = [point]
        while image != point:
            cycle.append(image)
            image = images[image]
        seen.update(cycle)
        cycles += f"({' '.join(map(str, cycle))})"
    return cycles or "e"


def checked_maps(maps: Sequence[Sequence[int]] | Ints) -> Ints:
    """The maps as an array (A d), or a sentence saying which of them is none."""
    try:
        array = np.asarray(maps)
    except ValueError:
        raise InvalidMachine("the maps act on the same points; got maps of different lengths.") from None
    if array.ndim != 2 or array.size == 0 or not np.issubdtype(array.dtype, np.integer):
        raise InvalidMachine(
            f"the maps are one row of integers for each letter; got {array.dtype} of shape {array.shape}."
        )
    d = array.shape[1]
    wrong = np.argwhere((array < 0) | (array >= d))
    if len(wrong):
        a, k = wrong[0]
        raise InvalidMachine(f"map {a} sends point {k} to {array[a, k]}, but there are {d} points (0..{d - 1}).")
    return array


def flip_flop() -> Moore:
    """The flip-flop monoid: the identity until the first reset or set, and then the last of them."""
    called = {"identity": (0, 1), "reset": (0, 0), "set": (1, 1)}
    by_images = {images: name for name, images in called.items()}
    return from_maps(list(called.values()), element_name=lambda images: by_images[images[0], images[1]])


def permutation_reset(n: int) -> Moore:
    """n states in which every letter permutes or resets: `rotate` (q to q + 1), `swap` (0 with 1), `reset` (to 0)."""
    if n < 2:
        raise InvalidMachine(f"a permutation-reset machine has at least 2 states; got {n}.")
    states = tuple(map(str, range(n)))
    q = np.arange(n)
    tables = np.stack([(q + 1) % n, np.where(q < 2, 1 - q, q), np.zeros_like(q)])
    return Moore(symbols=("rotate", "swap", "reset"), tables=tables, states=states, outputs=states, readout=q)
