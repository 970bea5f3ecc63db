"""Machines: states, symbols, and where each symbol sends each state; with a start and outputs on top.

    A  symbols     n  states     B  words     L  their length

`tables[a, q]` is where symbol a sends state q. Machines are born valid, never change, compare by value and hash.
Symbols and states are numbered from 0; their names are for people, files and diagrams.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from exactstate._text import one_line
from exactstate._types import Ints
from exactstate.automata.run import smallest_dtype, trajectories
from exactstate.errors import InvalidMachine, InvalidWord

Word = Sequence[int] | Sequence[str] | str | Ints
Words = Sequence[Word] | Ints


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Semiautomaton:
    """States, symbols, and where each symbol sends each state.

    >>> parity = Semiautomaton(symbols=("even", "odd"), tables=[[0, 1], [1, 0]])
    >>> parity.run(["odd", "even", "odd"], state=0)
    0
    """

    symbols: tuple[str, ...]
    """Names of the input symbols."""
    tables: Ints
    """A n: tables[a, q] is where symbol a sends state q; kept read-only in the smallest type that holds a state."""
    states: tuple[str, ...] = ()
    """Names of the states; '0', '1', ... when not given."""

    def __post_init__(self) -> None:
        _keep(self, "symbols", _names("symbol", self.symbols))
        tables = _table("tables", self.tables, ndim=2)
        if tables.shape[0] != len(self.symbols):
            raise InvalidMachine(f"{len(self.symbols)} symbols need {len(self.symbols)} tables; got {tables.shape[0]}.")
        if tables.shape[1] == 0:
            raise InvalidMachine("a machine needs at least one state; got tables without entries.")
        _keep(self, "states", _names("state", self.states or map(str, range(tables.shape[1]))))
        if len(self.states) != tables.shape[1]:
            raise InvalidMachine(f"{len(self.states)} state names were given for {tables.shape[1]} states.")
        self._refuse_out_of_range(tables)
        _keep(self, "tables", _frozen(tables, self.n_states))

    def _refuse_out_of_range(self, tables: Ints) -> None:
        wrong = np.argwhere((tables < 0) | (tables >= self.n_states))
        if len(wrong):
            a, q = wrong[0]
            raise InvalidMachine(
                f"symbol {self.symbols[a]!r} sends state {self.states[q]!r} to {tables[a, q]}, "
                f"but this machine has {self.n_states} states (0..{self.n_states - 1})."
            )

    @property
    def n_states(self) -> int:
        return len(self.states)

    @property
    def n_symbols(self) -> int:
        return len(self.symbols)

    @cached_property
    def _symbol_number(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.symbols)}

    def encode(self, word: Word) -> Ints:
        """The word as symbol numbers: from names, from numbers, or from a string.

        A string is read letter by letter when every symbol is one letter, and split at white space otherwise.
        """
        if not isinstance(word, Iterable):
            raise InvalidWord(f"a word is a list of symbols, an array or text; got {word!r:.60}.")
        if isinstance(word, str):
            word = list(word) if all(len(name) == 1 for name in self.symbols) else word.split()
        if not isinstance(word, np.ndarray) and any(isinstance(symbol, str) for symbol in word):
            try:
                return np.array([self._symbol_number[symbol] for symbol in word], np.int64)  # type: ignore[index]
            except KeyError as error:
                known = ", ".join(self.symbols[:12]) + (", ..." if self.n_symbols > 12 else "")
                raise InvalidWord(f"unknown symbol {error.args[0]!r}; this machine reads {known}.") from None
        return _integers("word", word)

    def state_number(self, state: int | str) -> int:
        """The number of a state given by number or by name."""
        if isinstance(state, str):
            if state not in self.states:
                raise InvalidWord(f"unknown state {state!r}; this machine has {self.n_states} states.")
            return self.states.index(state)
        if isinstance(state, bool | np.bool_) or not isinstance(state, int | np.integer):
            raise InvalidWord(f"a state is given by its number or its name; got {state!r:.60}.")
        if not 0 <= state < self.n_states:
            raise InvalidWord(f"state {state} is out of range: this machine has {self.n_states} states.")
        return int(state)

    def run(self, word: Word, state: int | str) -> int:
        """The state reached from `state` by reading the word."""
        encoded = self.encode(word)[None, :]
        return int(trajectories(self.tables, encoded, np.array([self.state_number(state)]), keep=False)[1][0])

    def trajectory(self, words: Words, state: int | str | Ints) -> Ints:
        """States after every symbol, for one word (L) or a batch of words of one length (B L).

        `state` is where to begin: one for all words, or one for each. The result has the type of `tables`.
        """
        batch, single = self._batch(words)
        path, _ = trajectories(self.tables, batch, self._starts(state, len(batch)))
        assert path is not None
        return path[0] if single else path

    def act(self, word: Word) -> Ints:
        """Where the word sends every state: the composite of its tables."""
        encoded = np.broadcast_to(self.encode(word), (self.n_states, len(self.encode(word))))
        return trajectories(self.tables, encoded, np.arange(self.n_states), keep=False)[1]

    def _batch(self, words: Words) -> tuple[Ints, bool]:
        """(words as B L numbers, whether a single word came)."""
        if isinstance(words, np.ndarray):
            array = _integers("words", words)
        elif self._is_one(words):
            array = self.encode(words)  # type: ignore[arg-type]
        else:
            encoded = [self.encode(word) for word in words]
            if len({len(word) for word in encoded}) > 1:
                lengths = sorted({len(word) for word in encoded})
                raise InvalidWord(f"a batch holds words of one length; got lengths {lengths[0]} to {lengths[-1]}.")
            array = np.stack(encoded)
        if array.ndim not in (1, 2):
            raise InvalidWord(f"words are one word (L) or a batch (B L); got {array.ndim} dimensions.")
        return (array[None, :], True) if array.ndim == 1 else (array, False)

    def _is_one(self, words: Words) -> bool:
        """One word, rather than a batch: a string, numbers, or names of symbols all through."""
        if isinstance(words, str) or not any(isinstance(word, Sequence | np.ndarray) for word in words):
            return True
        return all(isinstance(word, str) and word in self._symbol_number for word in words)

    def _starts(self, state: int | str | Ints, count: int) -> Ints:
        if isinstance(state, int | str | np.integer):
            return np.full(count, self.state_number(state if isinstance(state, str) else int(state)))
        starts = _integers("states", state)
        if starts.shape != (count,):
            raise InvalidWord(f"one start state per word: wanted {count}, got an array of shape {starts.shape}.")
        if count and (starts.min() < 0 or starts.max() >= self.n_states):
            raise InvalidWord(f"a start state is out of range: this machine has {self.n_states} states.")
        return starts

    def _identity(self) -> tuple[Any, ...]:
        """Everything that makes this machine this machine, hashable."""
        return (type(self), self.symbols, self.states, self.tables.tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semiautomaton) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_states} states, {self.n_symbols} symbols)"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _Machine(Semiautomaton):
    """What Moore and Mealy machines share: a start and an output alphabet."""

    start: int = 0
    """The state before the first symbol."""
    outputs: tuple[str, ...]
    """Names of the output symbols."""
    readout: Ints
    """Numbers into `outputs`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.start < self.n_states:
            raise InvalidMachine(f"start state {self.start} is out of range: there are {self.n_states} states.")
        _keep(self, "outputs", _names("output", self.outputs))
        shape = self._readout_shape()
        readout = _table("readout", self.readout, ndim=len(shape))
        if readout.shape != shape:
            raise InvalidMachine(f"the read-out of this {type(self).__name__} has shape {shape}; got {readout.shape}.")
        wrong = np.argwhere((readout < 0) | (readout >= len(self.outputs)))
        if len(wrong):
            place = tuple(int(i) for i in wrong[0])
            where = f"state {self.states[place[-1]]!r}"
            where += f" on symbol {self.symbols[place[0]]!r}" if len(place) > 1 else ""
            raise InvalidMachine(
                f"{where} puts out {readout[place]}, but there are {len(self.outputs)} outputs "
                f"(0..{len(self.outputs) - 1})."
            )
        _keep(self, "readout", _frozen(readout, len(self.outputs)))

    def _readout_shape(self) -> tuple[int, ...]:
        raise TypeError("build a Moore or a Mealy machine")

    def _identity(self) -> tuple[Any, ...]:
        return (*super()._identity(), self.start, self.outputs, self.readout.tobytes())

    def run(self, word: Word, state: int | str | None = None) -> int:
        return super().run(word, self.start if state is None else state)

    def trajectory(self, words: Words, state: int | str | Ints | None = None) -> Ints:
        return super().trajectory(words, self.start if state is None else state)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Moore(_Machine):
    """A machine with an output in every state: readout[q] (n)."""

    def _readout_shape(self) -> tuple[int, ...]:
        return (self.n_states,)

    def output_ids(self, words: Words) -> Ints:
        """Output numbers after every symbol, for one word (L) or a batch (B L)."""
        return self.readout[self.trajectory(words)]

    def to_mealy(self) -> Mealy:
        """The Mealy machine that gives the same outputs: on each transition the output of the state it leads to."""
        return Mealy(
            symbols=self.symbols, tables=self.tables, states=self.states, start=self.start,
            outputs=self.outputs, readout=self.readout[self.tables],
        )  # fmt: skip

    @classmethod
    def of(cls, machine: Semiautomaton, *, start: int | str = 0) -> Moore:
        """The Moore machine whose output is its state."""
        return cls(
            symbols=machine.symbols, tables=machine.tables, states=machine.states, start=machine.state_number(start),
            outputs=machine.states, readout=np.arange(machine.n_states),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Mealy(_Machine):
    """A machine with an output on every transition: readout[a, q] for symbol a read in state q (A n)."""

    def _readout_shape(self) -> tuple[int, ...]:
        return (self.n_symbols, self.n_states)

    def output_ids(self, words: Words) -> Ints:
        """Output numbers at every symbol, for one word (L) or a batch (B L)."""
        batch, single = self._batch(words)
        path, _ = trajectories(self.tables, batch, self._starts(self.start, len(batch)))
        assert path is not None
        before = np.concatenate([np.full((len(batch), 1), self.start, path.dtype), path[:, :-1]], axis=1)
        outputs = self.readout[batch, before[:, : batch.shape[1]]]
        return outputs[0] if single else outputs

    def to_mealy(self) -> Mealy:
        """The machine itself."""
        return self

    def to_moore(self) -> Moore:
        """The Moore machine that gives the same outputs: its states are a state and the output on arriving there.

        Before the first symbol its output is one with which transitions arrive at the start, if there are any.
        """
        pairs = self.readout.astype(np.int64) + len(self.outputs) * self.tables.astype(np.int64)
        arriving = pairs[self.tables == self.start]
        first = int(arriving.min()) if len(arriving) else len(self.outputs) * self.start
        number, order = {first: 0}, [first]
        for pair in order:
            for after in pairs[:, pair // len(self.outputs)].tolist():
                if after not in number:
                    number[after] = len(order)
                    order.append(after)
        states, outputs = np.divmod(np.array(order), len(self.outputs))
        single = len(set(states.tolist())) == len(states)
        names = [
            self.states[q] if single else f"{self.states[q]}/{self.outputs[o]}"
            for q, o in zip(states, outputs, strict=True)
        ]
        tables = [[number[after] for after in row] for row in pairs[:, states].tolist()]
        return Moore(
            symbols=self.symbols, tables=np.array(tables), states=tuple(names), outputs=self.outputs, readout=outputs
        )


_SHOWN_SYMBOLS = 24
_HALF = _SHOWN_SYMBOLS // 2


def format_word(word: Sequence[str]) -> str:
    """The word in quotes, for messages; a long one is abbreviated to its two ends and its length.

    >>> format_word(("a", "b")), format_word(())
    ("'a b'", 'the empty word')
    """
    if not word:
        return "the empty word"
    shown = list(map(one_line, word if len(word) <= _SHOWN_SYMBOLS else (*word[:_HALF], *word[-_HALF:])))
    if len(word) <= _SHOWN_SYMBOLS:
        return f"'{' '.join(shown)}'"
    return f"'{' '.join(shown[:_HALF])} ... {' '.join(shown[_HALF:])}' ({len(word)} symbols)"


def _keep(machine: object, name: str, value: object) -> None:
    object.__setattr__(machine, name, value)


def _names(kind: str, names: Iterable[str]) -> tuple[str, ...]:
    named = tuple(names)
    for name in named:
        if not isinstance(name, str):
            raise InvalidMachine(f"{kind} names are strings; got {name!r}.")
    if not named:
        raise InvalidMachine(f"a machine needs at least one {kind}; got none.")
    if len(set(named)) < len(named):
        seen: set[str] = set()
        twice = next(name for name in named if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InvalidMachine(f"every {kind} has its own name; {twice!r} came twice.")
    return named


def _table(kind: str, values: object, *, ndim: int) -> Ints:
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidMachine(f"the {kind} are rows of one length; got rows of different lengths.") from None
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise InvalidMachine(f"the {kind} should hold integers; got {array.dtype}.")
    if array.ndim != ndim:
        raise InvalidMachine(f"the {kind} should have {ndim} dimensions; got shape {array.shape}.")
    return array


def _frozen(array: Ints, count: int) -> Ints:
    kept = np.ascontiguousarray(array, smallest_dtype(count))
    if kept is array:
        kept = kept.copy()
    kept.setflags(write=False)
    return kept


def _integers(kind: str, values: object) -> Ints:
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidWord(f"the {kind} are rows of one length; got rows of different lengths.") from None
    if array.size == 0:
        return array.astype(np.int64)
    if not np.issubdtype(array.dtype, np.integer):
        raise InvalidWord(f"the {kind} hold symbol names or integers; got {array.dtype}.")
    return array
