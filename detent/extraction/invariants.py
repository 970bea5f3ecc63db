"""Which quotient does a head track? Its index, compared with what people have names for.

    n  configurations

A head parts the configurations by its index, and an invariant parts them by its value. A head tracks an invariant when
the two parts are the same, and determines it when the index tells the value. Values come from the names of the labels
(permutations written in cycles), from their numbers where symbols add, from registers that a person gives (now or one
symbol ago), and from what symbols do to the index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from detent.automata.refinement import numbered
from detent.automata.running import Ints
from detent.errors import InvalidInput
from detent.extraction.earlier import just_before, late
from detent.extraction.habits import habit
from detent.extraction.naming import arrivals

if TYPE_CHECKING:
    from detent.extraction.extracted import Extracted

Invariant = tuple[str, Ints]
"""A name, and a value for every label or configuration, -1 where it has none."""


def sentences(found: Extracted, registers: Mapping[str, Sequence[int] | Ints]) -> Iterator[str]:
    """What was found in a model, and one sentence for every head."""
    yield (
        f"{len(found.symbols)} symbols, {found.joint_indices:,} joint indices, {len(found.reached):,} of them reached"
        + (
            f" in {len(found.configurations):,} configurations"
            if len(found.configurations) > len(found.reached)
            else ""
        )
    )
    known = list(_of_configurations(found, [*_given(found, registers), *_of_permutations(found.outputs)]))
    column = 0
    for number, layer in enumerate(found.layers):
        for head, d in enumerate(layer.heads):
            index = found.configurations[:, column]
            met = len(np.unique(index))
            name = f"head {head}" if len(found.layers) == 1 else f"layer {number}, head {head}"
            size = f"{d} indices" + (f", {met} of them reached" if met < d else "")
            yield f"{name} ({size}) {_words(found, column, index, known)}"
            column += 1


def _words(found: Extracted, column: int, index: Ints, known: Sequence[Invariant]) -> str:
    """What a head does, in words."""
    if len(np.unique(index)) == 1:
        return "never moves"
    tracked = [name for name, values in known if _tells(index, values) and _tells(values, index)]
    if tracked:
        return f"tracks {' = '.join(tracked)}"
    shown = habit(found, column) or late(found, column, known) or just_before(found, column)
    if shown is not None:
        return f"tracks {shown}"
    told = [name for name, values in known if len(np.unique(values[values >= 0])) > 1 and _tells(index, values)]
    return f"determines {', '.join(told)}" if told else "tracks no known invariant"


def _tells(index: Ints, values: Ints) -> bool:
    """Whether the index tells the value, wherever there are both."""
    both = (index >= 0) & (values >= 0)
    index, values = index[both], values[both]
    value_of = np.zeros(index.max(initial=0) + 1, values.dtype)
    value_of[index] = values
    return np.array_equal(value_of[index], values)


def _of_configurations(found: Extracted, known: Sequence[Invariant]) -> Iterator[Invariant]:
    """Invariants of labels, and residues where labels add up, as values of the configurations that have a label."""
    labels = arrivals(found)
    if labels is not None:
        for name, values in (*known, *_residues(found, labels)):
            yield name, np.where(labels >= 0, numbered(values)[labels], -1)


def _of_permutations(labels: Sequence[str]) -> Iterator[Invariant]:
    """The sign and the images of points, for labels that are permutations written in cycles."""
    images = _permutations(labels)
    if images is not None:
        yield "the sign", _signs(images)
        for point in range(images.shape[1]):
            yield f"the image of point {point}", images[:, point]
        for point in range(images.shape[1]):
            yield f"the point that goes to {point}", images.argsort(axis=1)[:, point]


def _residues(found: Extracted, labels: Ints) -> Iterator[Invariant]:
    """Remainders of the labels' numbers, if every symbol adds a number of its own modulo how many labels there are."""
    n = len(found.outputs)
    symbols, before = np.nonzero((found.tables >= 0) & (labels >= 0))
    added = (labels[found.tables[symbols, before]] - labels[before]) % n
    by = np.zeros(len(found.symbols), np.int64)
    by[symbols] = added
    if np.array_equal(by[symbols], added) and set(labels[labels >= 0]) == set(range(n)):
        for k in range(2, n + 1):
            if n % k == 0:
                yield ("the parity" if k == 2 else f"the residue mod {k}"), np.arange(n) % k


def _given(found: Extracted, registers: Mapping[str, Sequence[int] | Ints]) -> Iterator[Invariant]:
    for name, values in registers.items():
        if len(values) != len(found.outputs):
            raise InvalidInput(f"register {name!r} has {len(values)} values; wanted one for each of the "
                               f"{len(found.outputs)} labels.")  # fmt: skip
        yield name, np.asarray(values)


def _permutations(names: Sequence[str]) -> Ints | None:
    """The images of 0 .. d-1 (n d) if every name is a permutation written in cycles, 'e' for the identity."""
    cycles = []
    for name in names:
        if name != "e" and not re.fullmatch(r"(\(\d{1,4}( \d{1,4})+\))+", name):
            return None
        cycles.append([[int(point) for point in cycle.split()] for cycle in re.findall(r"\(([\d ]+)\)", name)])
    degree = 1 + max((point for one in cycles for cycle in one for point in cycle), default=0)
    images = np.tile(np.arange(degree), (len(names), 1))
    for row, one in zip(images, cycles, strict=True):
        for cycle in one:
            row[cycle] = [*cycle[1:], cycle[0]]
    proper = np.array_equal(np.sort(images, axis=1), np.tile(np.arange(degree), (len(names), 1)))
    return images if proper and degree > 1 else None


def _signs(images: Ints) -> Ints:
    """0 for even and 1 for odd permutations: the parity of the number of pairs out of order."""
    odd = np.zeros(len(images), np.int64)
    for point in range(images.shape[1] - 1):
        odd += (images[:, point + 1 :] < images[:, point, None]).sum(axis=1)
    return odd % 2
