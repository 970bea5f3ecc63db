"""Heads: small machines in parallel that read the same symbols, and their joint machine.

    A  symbols     r  heads     d  indices of a head     n  tuples of indices reached from the start

The tables of head h are A d, and it starts at index starts[h]. The joint machine has the reached tuples as states,
numbered breadth-first from the start in the order of the symbols; 4 heads of 11 may reach 7,920 of 14,641.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from exactstate._types import Ints
from exactstate.automata import Semiautomaton
from exactstate.automata.run import smallest_dtype
from exactstate.errors import BudgetExceeded, InvalidMachine

MAX_TUPLES = 1 << 22


@dataclass(frozen=True, eq=False)
class Heads:
    """Tables and a start for every head.

    >>> Heads(tables=([[1, 0], [0, 1]], [[1, 2, 0], [0, 1, 2]]), starts=(0, 0)).joint.tables.shape
    (2, 6)
    """

    tables: tuple[Ints, ...]
    """For every head A d: tables[h][a, k] is where symbol a sends index k; kept read-only and small."""
    starts: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.tables or len(self.starts) != len(self.tables):
            raise InvalidMachine(
                f"heads have one table and one start each, and there is at least one; "
                f"got {len(self.tables)} tables and {len(self.starts)} starts."
            )
        kept = tuple(_checked(h, table, self.starts[h]) for h, table in enumerate(self.tables))
        symbols = {len(table) for table in kept}
        if len(symbols) > 1:
            raise InvalidMachine(f"heads read the same symbols; these have tables for {sorted(symbols)} symbols.")
        object.__setattr__(self, "tables", kept)
        object.__setattr__(self, "starts", tuple(int(start) for start in self.starts))

    @property
    def sizes(self) -> tuple[int, ...]:
        """d of every head."""
        return tuple(table.shape[1] for table in self.tables)

    @property
    def n_symbols(self) -> int:
        return len(self.tables[0])

    @cached_property
    def joint(self) -> Joint:
        """The tuples that are reached, and where each symbol sends them."""
        return _reach(self)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Heads)
            and self.starts == other.starts
            and len(self.tables) == len(other.tables)
            and all(np.array_equal(mine, yours) for mine, yours in zip(self.tables, other.tables, strict=True))
        )

    def __hash__(self) -> int:
        return hash((self.starts, *(table.tobytes() for table in self.tables)))

    def __repr__(self) -> str:
        return f"Heads({' '.join(map(str, self.sizes))}; {self.n_symbols} symbols)"


@dataclass(frozen=True, eq=False)
class Joint:
    """The joint machine of heads; state 0 is the start."""

    tables: Ints
    """A n: where each symbol sends each tuple."""
    indices: Ints
    """n r: the index of every head in each state."""
    parents: Ints
    """n 2: the state and the symbol that first reached each one; (0, -1) for the start."""

    def word_to(self, state: int) -> list[int]:
        """A shortest word from the start to a state."""
        word: list[int] = []
        while state:
            state, symbol = (int(i) for i in self.parents[state])
            word.append(symbol)
        return word[::-1]


def states_of(heads: Heads, machine: Semiautomaton, start: int) -> Ints:
    """For every joint state of the heads, the state of the machine (n); refused if there could be two.

    The heads determine the machine's state when this map exists and reaches every state. Several tuples may map to the
    same state.
    """
    if heads.n_symbols != machine.n_symbols:
        raise InvalidMachine(f"the heads read {heads.n_symbols} symbols, the machine {machine.n_symbols}.")
    joint = heads.joint
    state = np.empty(len(joint.indices), np.int64)
    state[0] = start
    for q, (before, symbol) in enumerate(joint.parents[1:].tolist(), start=1):
        state[q] = machine.tables[symbol, state[before]]
    wrong = np.argwhere((state[joint.tables] != machine.tables[:, state]).T)
    if len(wrong):
        q, symbol = (int(i) for i in wrong[0])
        reached = int(joint.tables[symbol, q])
        one, other = (
            " ".join(machine.symbols[a] for a in word) or "the empty word"
            for word in (joint.word_to(reached), [*joint.word_to(q), symbol])
        )
        raise InvalidMachine(
            f"the heads do not determine the state: {one!r} and {other!r} lead them to the same indices "
            f"{tuple(joint.indices[reached].tolist())}, but the machine to states {machine.states[state[reached]]!r} "
            f"and {machine.states[machine.tables[symbol, state[q]]]!r}."
        )
    missing = np.setdiff1d(np.arange(machine.n_states), state)
    if len(missing):
        raise InvalidMachine(
            f"state {machine.states[missing[0]]!r} is never reached, so heads cannot represent it; "
            "drop such states first, with exactstate.automata.canonical."
        )
    return state


def _checked(h: int, table: Sequence[Sequence[int]] | Ints, start: int) -> Ints:
    array = np.asarray(table)
    if array.ndim != 2 or not array.size or not np.issubdtype(array.dtype, np.integer):
        raise InvalidMachine(
            f"the table of head {h} holds an integer for every symbol and index; "
            f"got {array.dtype} of shape {array.shape}."
        )
    d = array.shape[1]
    wrong = np.argwhere((array < 0) | (array >= d))
    if len(wrong):
        a, k = wrong[0]
        raise InvalidMachine(f"head {h}: symbol {a} sends index {k} to {array[a, k]}, but the head has {d} indices.")
    if not 0 <= start < d:
        raise InvalidMachine(f"head {h} starts at index {start}, but it has {d} indices.")
    kept = np.array(array, smallest_dtype(d), order="C")
    kept.setflags(write=False)
    return kept


def _reach(heads: Heads) -> Joint:
    """Breadth-first, a whole level at a time."""
    A, r = heads.n_symbols, len(heads.tables)
    number: dict[Any, int] = {}
    level = np.array([heads.starts], np.uint32)
    number[level.tobytes()] = 0
    levels, parents, moves = [level], [np.array([[0, -1]])], []
    while len(level):
        begin = len(number) - len(level)
        # level A r: where every symbol sends every tuple of the level
        after = np.stack([table[:, level[:, h]].T for h, table in enumerate(heads.tables)], axis=-1).astype(np.uint32)
        reached = after.reshape(-1, r)
        keys = np.ascontiguousarray(reached).view(np.dtype((np.void, 4 * r))).ravel().tolist()
        fresh = []
        for i, key in enumerate(keys):
            if key not in number:
                number[key] = len(number)
                fresh.append(i)
        if len(number) > MAX_TUPLES:
            raise BudgetExceeded(f"the heads reach more than {MAX_TUPLES:,} tuples of indices; use fewer or smaller.")
        moves.append(np.fromiter(map(number.__getitem__, keys), np.int64, len(keys)).reshape(len(level), A))
        level = reached[fresh]
        levels.append(level)
        parents.append(np.stack([begin + np.array(fresh, np.int64) // A, np.array(fresh, np.int64) % A], axis=1))
    return Joint(
        tables=np.concatenate(moves).T.astype(smallest_dtype(len(number))), indices=np.concatenate(levels),
        parents=np.concatenate(parents),
    )  # fmt: skip
