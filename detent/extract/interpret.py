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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from detent._types import Ints
from detent.automata.minimize import numbered
from detent.errors import InvalidInput
from detent.extract.result import Extracted, arrivals

if TYPE_CHECKING:
    from detent.extract.result import Extracted

# -- What a head tracks of the past that a convolution lets it see: a value one symbol late, the symbol before another.


def late(found: Extracted, column: int, known: Sequence[tuple[str, Ints]]) -> str | None:
    """The name of an invariant whose value before the last symbol is the head's index now, and the other way round."""
    symbols, before = np.nonzero(found.tables >= 0)
    index = found.configurations[found.tables[symbols, before], column]
    for name, values in known:
        held = values[before]
        if len(np.unique(held[held >= 0])) > 1 and _same_parts(index[held >= 0], held[held >= 0]):
            return f"{name}, one symbol ago"
    return None


def just_before(found: Extracted, column: int) -> str | None:
    """Which of some symbols stood before another one, if the last two symbols tell the index."""
    if found.reach < 2:
        return None
    last = last_symbols(found)
    symbols, before = np.nonzero(found.tables >= 0)
    index = found.configurations[found.tables[symbols, before], column]
    pairs = np.unique(np.stack([last[before], symbols, index], axis=1), axis=0)
    if len(np.unique(pairs[:, :2], axis=0)) < len(pairs):
        return None
    rest = np.bincount(pairs[:, 2]).argmax()
    marked = pairs[pairs[:, 2] != rest]
    if len(np.unique(marked[:, 1])) != 1 or len(np.unique(marked[:, 2])) != len(marked) or (marked[:, 0] < 0).any():
        return None
    names = ", ".join(found.symbols[a] for a in marked[:, 0].tolist())
    return f"which of {names} stands before {found.symbols[int(marked[0, 1])]!r}"


def last_symbols(found: Extracted) -> Ints:
    """n: the symbol that was read last in every configuration, -1 at the start."""
    inputs = found.configurations[:, -1].astype(np.int64)
    for layer in found.layers[:0:-1]:
        inputs = np.where(inputs >= 0, layer.inputs[inputs, 0], -1)
    return inputs


def _same_parts(one: Ints, other: Ints) -> bool:
    """Whether two columns part the rows alike."""
    pairs = len(np.unique(np.stack([one, other], axis=1), axis=0))
    return pairs == len(np.unique(one)) == len(np.unique(other))


# -- What symbols do to the index of one head: which of them was read last, how many were read modulo a number.

_SHOWN = 6


def habit(found: Extracted, column: int) -> str | None:
    """What the head in this column of the configurations tracks by what symbols do to it; None if nothing simple."""
    moves = own_moves(found, column)
    if moves is None:
        return None
    return _last_read(moves, found.symbols) or _counted(moves, found.symbols)


def own_moves(found: Extracted, column: int) -> Ints | None:
    """A d: where each symbol sends the index, -1 where that never came up; None if it depends on more than those."""
    index = found.configurations[:, column].astype(np.int64)
    symbols, before = np.nonzero(found.tables >= 0)
    after = index[found.tables[symbols, before]]
    moves = np.full((len(found.symbols), int(index.max()) + 1), -1)
    moves[symbols, index[before]] = after
    return moves if np.array_equal(moves[symbols, index[before]], after) else None


def _last_read(moves: Ints, symbols: tuple[str, ...]) -> str | None:
    """Every symbol leaves the index alone or sends all indices to one."""
    resets = []
    for symbol, table in zip(symbols, moves, strict=True):
        met = np.flatnonzero(table >= 0)
        if len(np.unique(table[met])) == 1 and len(met) > 1:
            resets.append(symbol)
        elif not np.array_equal(table[met], met):
            return None
    return f"the last reset, which of {_listed(resets)} was read last" if resets else None


def _counted(moves: Ints, symbols: tuple[str, ...]) -> str | None:
    """Every symbol goes a number of steps along one circle."""
    met = np.flatnonzero((moves >= 0).any(axis=0))
    k = len(met)
    for table in moves:
        order = _circle(table, int(met[0]), k)
        if order is None:
            continue
        place = np.full(moves.shape[1], -1)
        place[order] = np.arange(k)
        steps = [np.unique((place[row[row >= 0]] - place[np.flatnonzero(row >= 0)]) % k) for row in moves]
        if any(len(step) > 1 for step in steps):
            return None
        by = {symbol: int(step[0]) for symbol, step in zip(symbols, steps, strict=True) if len(step) and step[0]}
        if k == 2:
            return f"the parity of the number of {_listed(list(by))}"
        weighed = [symbol if count == 1 else f"{symbol} counted {count} times" for symbol, count in by.items()]
        return f"the number mod {k} of {_listed(weighed)}"
    return None


def _circle(table: Ints, first: int, k: int) -> list[int] | None:
    """The k indices in the order in which a table goes through them, if it does."""
    order = [first]
    while (then := int(table[order[-1]])) >= 0 and then not in order:
        order.append(then)
    return order if len(order) == k and then == first else None


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


# -- What the indices of a head mean, one by one: found by counting over all configurations that words lead to.


class Register(Protocol):
    """A part of the label that has a name, see `detent.tasks.Task.registers`."""

    @property
    def name(self) -> str: ...
    @property
    def values(self) -> tuple[str, ...]: ...
    @property
    def of_state(self) -> Ints: ...


@dataclass(frozen=True)
class Meaning:
    """What a head stands for."""

    name: str
    values: dict[int, str]
    """For every index that is reached."""


def meanings(found: Extracted, registers: Sequence[Register]) -> list[Meaning | None]:
    """For every head of every layer what its indices mean; None where they determine none of the registers."""
    labels = arrivals(found)
    if labels is None:
        return [None] * len(found.start)
    symbols, before = np.nonzero(found.tables >= 0)
    after = found.tables[symbols, before]
    parts = [(register, np.where(labels >= 0, register.of_state[labels], -1)) for register in registers]
    previous = last_symbols(found)[before] if found.reach > 1 else np.full_like(before, -1)
    found_meanings = []
    for column in range(len(found.start)):
        index = found.configurations[after, column].astype(np.int64)
        candidates = [(register.name, register.values, values[after]) for register, values in parts]
        candidates += [
            (f"{register.name}, one symbol ago", register.values, values[before]) for register, values in parts
        ]
        meaning = next((one for one in (_meaning(index, *each) for each in candidates) if one is not None), None)
        found_meanings.append(meaning or _stood_before(index, previous, found.symbols))
    return found_meanings


def _meaning(index: Ints, name: str, names: tuple[str, ...], values: Ints) -> Meaning | None:
    """The meaning of the indices, if they tell these values and more than one of them."""
    known = values >= 0
    pairs = np.unique(np.stack([index[known], values[known]], axis=1), axis=0)
    if len(np.unique(pairs[:, 0])) < len(pairs) or len(np.unique(pairs[:, 1])) < 2:
        return None
    return Meaning(name, {k: names[value] for k, value in pairs.tolist()})


def _stood_before(index: Ints, previous: Ints, symbols: tuple[str, ...]) -> Meaning | None:
    """The meaning of indices that, but for the commonest, are each taken after one symbol alone."""
    rest = int(np.bincount(index).argmax())
    pairs = np.unique(np.stack([index, previous], axis=1)[(index != rest) & (previous >= 0)], axis=0)
    if not len(pairs) or len(np.unique(pairs[:, 0])) < len(pairs) or len(np.unique(pairs[:, 1])) < len(pairs):
        return None
    return Meaning("the symbol before, when it is asked for", {rest: "", **{k: symbols[a] for k, a in pairs.tolist()}})


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
