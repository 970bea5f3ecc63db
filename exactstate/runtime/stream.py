"""A run in chunks: push symbols, get the outputs, save the position, resume elsewhere.

    stream = machine.stream()
    outputs = stream.push(b"abba")            # or an array, a list, a string
    for outputs in stream.pull(chunks): ...   # no more than a chunk in memory
    saved = stream.position                   # a small dict for JSON
    stream = machine.stream(saved)            # resumes there

One long push and many short ones give the same outputs. A refused push leaves the stream unchanged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from exactstate._types import Ints
from exactstate.errors import InvalidWord
from exactstate.runtime.alphabet import Word
from exactstate.runtime.machine import Machine


class Stream:
    """A machine at a position in an unbounded word."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.state = machine.start
        """The number of the state."""
        self.symbols_read = 0
        self._events = machine.events
        self._outputs = np.arange(len(machine.output_names), dtype=machine.readout.dtype)[:, None]

    @classmethod
    def at(cls, machine: Machine, position: Mapping[str, Any]) -> Stream:
        """The stream at a saved position of this machine."""
        stream = cls(machine)
        if not isinstance(position, Mapping) or set(position) != {"machine", "state", "symbols_read"}:
            raise InvalidWord("a position has the entries machine, state and symbols_read, as `stream.position` gives.")
        if position["machine"] != fingerprint(machine):
            raise InvalidWord("the position was saved by another machine; its tables or symbols are not these.")
        for name, limit in (("state", machine.n_states), ("symbols_read", None)):
            value = position[name]
            if type(value) is not int or value < 0 or (limit is not None and value >= limit):
                raise InvalidWord(f"the {name} of the position is {value!r}; wanted a number that was saved.")
        stream.state, stream.symbols_read = position["state"], position["symbols_read"]
        return stream

    @property
    def position(self) -> dict[str, Any]:
        """What is needed to resume, as plain data."""
        return {"machine": fingerprint(self.machine), "state": self.state, "symbols_read": self.symbols_read}

    def push(self, symbols: Word) -> Ints:
        """Read symbols; the number of the output at each."""
        kind = type(symbols)
        if (kind is list or kind is tuple) and len(symbols) == 1 and self._events is not None:
            number_of, successors, outputs = self._events
            symbol: Any = symbols[0]
            number = number_of.get(symbol) if type(symbol) is str or type(symbol) is int else None
            if number is not None:
                out = self._outputs[outputs[number][self.state]].copy()
                self.state = successors[number][self.state]
                self.symbols_read += 1
                return out
        word = self.machine.alphabet.encode(symbols)
        out, self.state = self.machine.interpreter.run(word, self.state, "outputs")
        self.symbols_read += len(word)
        assert out is not None
        return out

    def skip(self, symbols: Word) -> int:
        """Read symbols without outputs, which is faster; the state after them."""
        word = self.machine.alphabet.encode(symbols)
        _, self.state = self.machine.interpreter.run(word, self.state, None)
        self.symbols_read += len(word)
        return self.state

    def pull(self, chunks: Iterable[Word]) -> Iterator[Ints]:
        """The outputs of each chunk, lazily."""
        return map(self.push, chunks)

    def __repr__(self) -> str:
        name = self.machine.states[self.state]
        return f"Stream({self.machine!r}, after {self.symbols_read} symbols in state {name!r})"


def fingerprint(machine: Machine) -> str:
    """A digest of the machine's symbols, tables and read-out; FORMAT.md."""
    automaton = machine.automaton
    digest = hashlib.sha256()
    for part in (*automaton.symbols, f"{type(automaton).__name__} {automaton.tables.shape} {automaton.start}"):
        digest.update(len(part).to_bytes(8, "little") + part.encode("utf-8", "surrogatepass"))
    for table in (automaton.tables, automaton.readout):
        digest.update(table.astype("<u4").tobytes())
    return digest.hexdigest()[:32]
