"""What does a head track? Its index, compared with quantities that have a name.

    A  symbols     n  configurations     d  indices of a head

A head partitions the configurations by its index, and a quantity partitions them by its value. A head *tracks* a
quantity when the two partitions are equal, and *determines* it when the index fixes the value. Quantities come from
registers that the caller names, now or one symbol ago; from the names of the labels, where these are permutations in
cycle notation; from the numbers of the labels, where symbols add; and from what symbols do to the index.

`sentences` describes every head of a machine; `meanings` gives the value that every index of a head stands for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactstate._types import MISSING, Ints
from exactstate.automata.minimize import numbered
from exactstate.errors import InvalidInput
from exactstate.extract.result import Extracted, labels_on_arrival

Registers = Mapping[str, Sequence[Any] | Ints]
"""The name of a quantity -> its value at every label."""
Quantity = tuple[str, Ints]
"""A name, and a number for the value at every label or configuration; -1 where there is none."""
MAX_LISTED = 6


def sentences(extracted: Extracted, registers: Registers) -> Iterator[str]:
    """One sentence for the machine, and one for every head."""
    reached, configurations = len(extracted.reached), len(extracted.configurations)
    several = f" in {configurations:,} configurations" if configurations > reached else ""
    yield (
        f"{len(extracted.symbols)} symbols, {extracted.joint_indices:,} joint indices, {reached:,} of them reached"
        f"{several}"
    )
    known = list(_quantities(extracted, registers))
    heads = [(layer, head, d) for layer, sizes in enumerate(extracted.heads) for head, d in enumerate(sizes)]
    for column, (layer, head, d) in enumerate(heads):
        met = len(np.unique(extracted.configurations[:, column]))
        name = f"head {head}" if len(extracted.layers) == 1 else f"layer {layer}, head {head}"
        size = f"{d} indices" + (f", {met} of them reached" if met < d else "")
        yield f"{name} ({size}) {_describe_head(extracted, column, known)}"


def _describe_head(extracted: Extracted, column: int, known: Sequence[Quantity]) -> str:
    index = extracted.configurations[:, column]
    if len(np.unique(index)) == 1:
        return "never moves"
    tracked = [name for name, values in known if _determines(index, values) and _determines(values, index)]
    if tracked:
        return f"tracks {' = '.join(tracked)}"
    other = (
        _by_symbol_action(extracted, column)
        or _one_symbol_late(extracted, column, known)
        or _previous_symbol(extracted, column)
    )
    if other is not None:
        return f"tracks {other}"
    fixed = [name for name, values in known if len(np.unique(values[values >= 0])) > 1 and _determines(index, values)]
    return f"determines {', '.join(fixed)}" if fixed else "tracks no known invariant"


def _determines(index: Ints, values: Ints) -> bool:
    """Whether equal indices have equal values, wherever both are known."""
    both = (index >= 0) & (values >= 0)
    index, values = index[both], values[both]
    value_of = np.zeros(index.max(initial=0) + 1, values.dtype)
    value_of[index] = values
    return np.array_equal(value_of[index], values)


# Quantities that depend on the label


def _quantities(extracted: Extracted, registers: Registers) -> Iterator[Quantity]:
    """Quantities as values of the configurations, if every configuration has at most one label."""
    of_labels = [*_registers(extracted, registers), *_of_permutations(extracted.label_names)]
    labels = labels_on_arrival(extracted)
    if labels is not None:
        for name, values in (*of_labels, *_residues(extracted, labels)):
            yield name, np.where(labels >= 0, numbered(values)[labels], MISSING)


def _registers(extracted: Extracted, registers: Registers) -> Iterator[Quantity]:
    count = len(extracted.label_names)
    for name, values in registers.items():
        if len(values) != count:
            raise InvalidInput(
                f"register {name!r} has {len(values)} values; wanted one for each of the {count} labels."
            )
        yield name, np.unique(np.asarray(values), return_inverse=True)[1].ravel()


def _of_permutations(labels: Sequence[str]) -> Iterator[Quantity]:
    """The sign and the images of points, for labels that are permutations in cycle notation."""
    images = _permutations(labels)
    if images is not None:
        yield "the sign", _signs(images)
        for point in range(images.shape[1]):
            yield f"the image of point {point}", images[:, point]
        for point in range(images.shape[1]):
            yield f"the point that goes to {point}", images.argsort(axis=1)[:, point]


def _permutations(names: Sequence[str]) -> Ints | None:
    """The images of 0 .. d-1 (labels x d) if every name is a permutation in cycle notation, 'e' for the identity."""
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
    """0 for even and 1 for odd permutations: the parity of the number of inversions."""
    odd = np.zeros(len(images), np.int64)
    for point in range(images.shape[1] - 1):
        odd += (images[:, point + 1 :] < images[:, point, None]).sum(axis=1)
    return odd % 2


def _residues(extracted: Extracted, labels: Ints) -> Iterator[Quantity]:
    """Residues of the labels' numbers, if every symbol adds a constant modulo the number of labels."""
    n = len(extracted.label_names)
    symbols, before = np.nonzero((extracted.tables >= 0) & (labels >= 0))
    added = (labels[extracted.tables[symbols, before]] - labels[before]) % n
    constant = np.zeros(len(extracted.symbols), np.int64)
    constant[symbols] = added
    if np.array_equal(constant[symbols], added) and set(labels[labels >= 0]) == set(range(n)):
        for k in range(2, n + 1):
            if n % k == 0:
                yield ("the parity" if k == 2 else f"the residue mod {k}"), np.arange(n) % k


# What symbols do to the index: the last reset, a count modulo a number


def _by_symbol_action(extracted: Extracted, column: int) -> str | None:
    """What the head tracks according to what symbols do to its index; None if that is not simple."""
    moves = _own_moves(extracted, column)
    if moves is None:
        return None
    return _last_reset(moves, extracted.symbols) or _count(moves, extracted.symbols)


def _own_moves(extracted: Extracted, column: int) -> Ints | None:
    """A d: the successor of the index under each symbol, -1 where that does not occur; None if it is not a function."""
    index = extracted.configurations[:, column].astype(np.int64)
    symbols, before = np.nonzero(extracted.tables >= 0)
    after = index[extracted.tables[symbols, before]]
    moves = np.full((len(extracted.symbols), int(index.max()) + 1), MISSING)
    moves[symbols, index[before]] = after
    return moves if np.array_equal(moves[symbols, index[before]], after) else None


def _last_reset(moves: Ints, symbols: tuple[str, ...]) -> str | None:
    """Every symbol keeps the index or sends all indices to one."""
    resets = []
    for symbol, table in zip(symbols, moves, strict=True):
        known = np.flatnonzero(table >= 0)
        if len(np.unique(table[known])) == 1 and len(known) > 1:
            resets.append(symbol)
        elif not np.array_equal(table[known], known):
            return None
    return f"the last reset, which of {_listed(resets)} was read last" if resets else None


def _count(moves: Ints, symbols: tuple[str, ...]) -> str | None:
    """Every symbol moves the index a number of steps along one cycle."""
    known = np.flatnonzero((moves >= 0).any(axis=0))
    k = len(known)
    for table in moves:
        order = _cycle(table, int(known[0]), k)
        if order is None:
            continue
        place = np.full(moves.shape[1], MISSING)
        place[order] = np.arange(k)
        steps = [np.unique((place[row[row >= 0]] - place[np.flatnonzero(row >= 0)]) % k) for row in moves]
        if any(len(step) > 1 for step in steps):
            return None
        by = {symbol: int(step[0]) for symbol, step in zip(symbols, steps, strict=True) if len(step) and step[0]}
        if k == 2:
            return f"the parity of the number of {_listed(list(by))}"
        weighted = [symbol if count == 1 else f"{symbol} counted {count} times" for symbol, count in by.items()]
        return f"the number mod {k} of {_listed(weighted)}"
    return None


def _cycle(table: Ints, first: int, k: int) -> list[int] | None:
    """The k indices in the order in which a table visits them, if it is one cycle."""
    order = [first]
    while (after := int(table[order[-1]])) >= 0 and after not in order:
        order.append(after)
    return order if len(order) == k and after == first else None


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:MAX_LISTED])
    return f"{shown} and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else shown


# What a convolution lets a head see: a value one symbol late, the previous symbol


def _one_symbol_late(extracted: Extracted, column: int, known: Sequence[Quantity]) -> str | None:
    """The name of a quantity whose value before the last symbol corresponds one to one to the index."""
    symbols, before = np.nonzero(extracted.tables >= 0)
    index = extracted.configurations[extracted.tables[symbols, before], column]
    for name, values in known:
        earlier = values[before]
        some = earlier >= 0
        if len(np.unique(earlier[some])) > 1 and _same_partition(index[some], earlier[some]):
            return f"{name}, one symbol ago"
    return None


def _same_partition(one: Ints, other: Ints) -> bool:
    pairs = len(np.unique(np.stack([one, other], axis=1), axis=0))
    return pairs == len(np.unique(one)) == len(np.unique(other))


def _previous_symbol(extracted: Extracted, column: int) -> str | None:
    """Which of some symbols precedes another one, if the last two symbols determine the index."""
    if extracted.kernel_size < 2:
        return None
    last = last_symbols(extracted)
    symbols, before = np.nonzero(extracted.tables >= 0)
    index = extracted.configurations[extracted.tables[symbols, before], column]
    pairs = np.unique(np.stack([last[before], symbols, index], axis=1), axis=0)
    if len(np.unique(pairs[:, :2], axis=0)) < len(pairs):
        return None
    most_common = np.bincount(pairs[:, 2]).argmax()
    others = pairs[pairs[:, 2] != most_common]
    if len(np.unique(others[:, 1])) != 1 or len(np.unique(others[:, 2])) != len(others) or (others[:, 0] < 0).any():
        return None
    names = ", ".join(extracted.symbols[a] for a in others[:, 0].tolist())
    return f"which of {names} stands before {extracted.symbols[int(others[0, 1])]!r}"


def last_symbols(extracted: Extracted) -> Ints:
    """n: the last symbol read in every configuration, -1 in the initial one. For convolutions."""
    inputs = extracted.configurations[:, -1].astype(np.int64)
    for layer in extracted.layers[:0:-1]:
        inputs = np.where(inputs >= 0, layer.inputs[inputs, 0], MISSING)
    return inputs


# The meaning of single indices


@dataclass(frozen=True)
class Meaning:
    """A quantity that the index of a head determines."""

    name: str
    values: dict[int, str]
    """The value for every index that is reached."""


def meanings(extracted: Extracted, registers: Registers) -> list[Meaning | None]:
    """For every head of every layer the register that its index determines; None if it determines none."""
    labels = labels_on_arrival(extracted)
    if labels is None:
        return [None] * len(extracted.start)
    symbols, before = np.nonzero(extracted.tables >= 0)
    after = extracted.tables[symbols, before]
    named = [(name, np.array([*values, None], object)[labels]) for name, values in registers.items()]
    candidates = [(name, values[after]) for name, values in named]
    candidates += [(f"{name}, one symbol ago", values[before]) for name, values in named]
    previous = last_symbols(extracted)[before] if extracted.kernel_size > 1 else np.full_like(before, MISSING)
    all_meanings = []
    for column in range(len(extracted.start)):
        index = extracted.configurations[after, column].astype(np.int64)
        by_register = (_meaning(index, name, values) for name, values in candidates)
        all_meanings.append(next(filter(None, by_register), None) or _symbol_before(index, previous, extracted.symbols))
    return all_meanings


def _meaning(index: Ints, name: str, values: Any) -> Meaning | None:
    """The meaning of the indices, if they determine these values and there are several; None stands for no value."""
    pairs = sorted({(k, str(value)) for k, value in zip(index.tolist(), values, strict=True) if value is not None})
    value_of = dict(pairs)
    return Meaning(name, value_of) if len(value_of) == len(pairs) and len(set(value_of.values())) > 1 else None


def _symbol_before(index: Ints, previous: Ints, symbols: tuple[str, ...]) -> Meaning | None:
    """The meaning of indices that, except for the most common one, each occur after one symbol only."""
    rest = int(np.bincount(index).argmax())
    pairs = np.unique(np.stack([index, previous], axis=1)[(index != rest) & (previous >= 0)], axis=0)
    if not len(pairs) or len(np.unique(pairs[:, 0])) < len(pairs) or len(np.unique(pairs[:, 1])) < len(pairs):
        return None
    return Meaning("the symbol before, when it is asked for", {rest: "", **{k: symbols[a] for k, a in pairs.tolist()}})
