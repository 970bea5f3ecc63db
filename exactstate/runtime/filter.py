"""A machine as a filter of text: symbols in, outputs out, chunk by chunk.

The symbols of one line of input give one line of output, separated by blanks unless all outputs are single letters. An
output with an empty name is not written, and neither is an empty line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from ctypes import byref, c_int
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from exactstate import native
from exactstate._text import one_line
from exactstate._types import Ints
from exactstate.automata import Mealy, Moore
from exactstate.errors import InvalidConfig
from exactstate.native import address
from exactstate.runtime.heads import Heads
from exactstate.runtime.machine import Machine
from exactstate.runtime.tokenizer import TokenChunk, Tokenizer, Unknown

Form = Literal["text", "json"]


SYMBOLS_PER_PIECE = 1 << 18
"""Symbols that `Filter.piece` processes at a time."""


@dataclass(frozen=True)
class Piece:
    """What a stretch of text gives from a known state, whatever stands before it in its first line."""

    first: bytes
    """The outputs of the first line, joined."""
    first_latest: int | None
    """The last output of the first line."""
    breaks: int
    """Ends of lines."""
    rest: bytes
    """The text behind the first end of line."""
    begun: bool
    """Whether the last line of the rest has outputs."""
    latest: int | None
    """The last output of the line in progress, or without lines of the rest."""
    symbols: int
    in_line: int
    """Symbols behind the last end of line."""


@dataclass(kw_only=True, eq=False)
class Filter:
    """Text in chunks of bytes -> text of the machine's outputs.

    Call `filter.tokenizer.refuse_unknown()` after every chunk: the symbols before an unknown one are still processed.
    """

    machine: Machine
    states: bool = False
    """Write the state after every symbol instead of the output."""
    each_line: bool = False
    """Restart at every line."""
    last: bool = False
    """Write only the last output: of every line with each_line, of the whole text otherwise. A Moore machine has an
    output for the empty word too."""
    at: tuple[str, ...] = ()
    """Write only the outputs at these symbols; empty for all."""
    form: Form = "text"
    unknown: Unknown = "error"
    strategy: str = "auto"
    escape: bool = False
    """Escape control characters in names, for a terminal."""
    symbols_read: int = field(default=0, init=False)
    state: int = field(default=0, init=False)
    """The number of the state now."""

    def __post_init__(self) -> None:
        machine = self.machine
        for symbol in self.at:
            if symbol not in machine.symbols:
                raise machine.alphabet.unknown(symbol, "to answer at")
        if self.unknown not in ("error", "skip"):
            raise InvalidConfig(f"unknown={self.unknown!r} is neither 'error' nor 'skip'.")
        self.tokenizer = Tokenizer(machine.alphabet, unknown=self.unknown)
        self.state = machine.start
        self._running = with_reset(machine) if self.each_line else machine
        self._running.interpreter.resolve(self.strategy)
        names = machine.states if self.states else machine.output_names
        if self.escape:
            names = tuple(one_line(name) for name in names)
        self._names = [name.encode("utf-8", "surrogatepass") for name in names]
        self._quoted = [json.dumps(name).encode() for name in names]
        self._unnamed = np.array([not name for name in names])
        self._selected = np.isin(np.arange(machine.n_symbols + 1), [machine.symbols.index(a) for a in self.at])
        self._between = b"" if all(len(name) <= 1 for name in names) and self.form == "text" else b" "
        self._line, self._begun = 1, False
        plain = native.available() and self.form == "text" and not self.last
        self._writer = NameWriter(self._names, self._between) if plain else None
        self._latest = self._first = self._initial_output()

    def feed(self, chunk: bytes) -> bytes:
        """The output text for a chunk."""
        return self._process(self.tokenizer.feed(chunk))

    def finish(self) -> bytes:
        """The output text for the rest, once the text has ended."""
        text = self._process(self.tokenizer.finish())
        if self.last and not self.each_line and self.form == "json":
            outputs = None if self._latest is None else self._quoted[self._latest]
            state = json.dumps(self.machine.states[self.state]).encode()
            return b'{"symbols": %d, "state": %b, "output": %b}\n' % (self.symbols_read, state, outputs or b"null")
        if self.last and (not self.each_line or self.tokenizer.in_line):
            text += self._written([] if self._latest is None else [self._latest])
        return text + self._line_end()

    def abort(self) -> bytes:
        """The end of the line in progress, when no more text follows."""
        return self._line_end()

    def _initial_output(self) -> int | None:
        """The output for the empty word, if there is one."""
        if self.at:
            return None
        if self.states:
            return self.machine.start
        automaton = self.machine.automaton
        outputs = int(automaton.readout[automaton.start]) if isinstance(automaton, Moore) else None
        return None if outputs is None or self._unnamed[outputs] else outputs

    def piece(self, chunk: TokenChunk, state: int, line: int) -> Piece:
        """What the symbols of a stretch give from a state; `line` is the number of its first line. Uses up a filter."""
        self.state, self._line = state, line
        first: list[bytes] = []
        rest: list[bytes] = []
        first_latest: int | None = None
        self._latest = None
        ended = False
        for part in _slices(chunk):
            outputs, ends = self._outputs(part)
            if not ended:
                end = int(ends[0]) if len(ends) else len(outputs)
                if end:
                    first_latest = int(outputs[end - 1])
                    first += [] if self.last else [self._joined(outputs[:end])]
                if not len(ends):
                    continue
                ended, self._latest = True, self._first if self.each_line else None
                self._line, self._begun = line + 1, False
                outputs, ends = outputs[end:], ends[1:] - end
            rest.append(self._text(outputs, ends))
        breaks = len(chunk.breaks)
        in_line = len(chunk.numbers) - int(chunk.breaks[-1] if breaks else 0)
        return Piece(
            self._between_names.join(first), first_latest, breaks, b"".join(rest), self._begun, self._latest,
            len(chunk.numbers), in_line,
        )  # fmt: skip

    def append(self, piece: Piece, state: int) -> bytes:
        """The output text for a piece that follows what was fed; `state` is that at its end."""
        self.state, tokenizer = state, self.tokenizer
        self.symbols_read += piece.symbols
        tokenizer.line += piece.breaks
        tokenizer.in_line = piece.in_line + (0 if piece.breaks else tokenizer.in_line)
        firsts = [] if piece.first_latest is None else [piece.first_latest]
        if self.last and not self.each_line:
            for latest in (*firsts, piece.latest):
                self._latest = self._latest if latest is None else latest
            return b""
        text = self._part(firsts, ended=piece.breaks > 0) if self.last else self._begin(piece.first)
        if not piece.breaks:
            return text
        text += self._line_end() + piece.rest
        self._line, self._begun = self._line + piece.breaks - 1, piece.begun
        self._latest = piece.latest if self.last else self._latest
        return text

    def _process(self, chunk: TokenChunk) -> bytes:
        return self._text(*self._outputs(chunk))

    def _text(self, outputs: Ints, ends: Ints) -> bytes:
        """The lines that end in a chunk, and the beginning of one that does not: compiled where that is possible."""
        if self._writer is None:
            return self._lines(outputs.tolist(), ends.tolist())
        text, self._begun = self._writer.write(outputs, ends, begun=self._begun)
        self._line += len(ends)
        return text

    def _outputs(self, chunk: TokenChunk) -> tuple[Ints, Ints]:
        """(the outputs to write, and how many of them stand before every end of line)."""
        numbers, breaks, reset = chunk.numbers, chunk.breaks, self.machine.n_symbols
        self.symbols_read += len(numbers)
        if self.each_line:
            numbers = np.insert(numbers, breaks, reset)
        emit: Literal["states", "outputs"] = "states" if self.states else "outputs"
        running = self._running
        outputs, self.state = running.interpreter.run(
            running.alphabet.encode(numbers), self.state, emit, self.strategy
        )  # fmt: skip
        assert outputs is not None
        written = numbers != reset
        if self.at:
            written &= self._selected[numbers]
        written &= ~self._unnamed[np.where(written, outputs, 0)]
        if self.each_line:  # a reset stands before each end of line, and moves it by one
            breaks = breaks + np.arange(1, len(breaks) + 1)
        counts = np.concatenate([[0], np.cumsum(written)])
        return outputs[written], counts[breaks]

    def _lines(self, outputs: list[int], breaks: list[int]) -> bytes:
        """The same in Python."""
        if self.last and not self.each_line:
            self._latest = outputs[-1] if outputs else self._latest
            return b""
        out, begin = [], 0
        for end in breaks:
            out += [self._part(outputs[begin:end], ended=True), self._line_end()]
            begin = end
        out.append(self._part(outputs[begin:], ended=False))
        return b"".join(out)

    def _part(self, outputs: list[int], *, ended: bool) -> bytes:
        if not self.last:
            return self._written(outputs)
        self._latest = outputs[-1] if outputs else self._latest
        latest, self._latest = self._latest, self._first if ended else self._latest
        return self._written([latest]) if ended and latest is not None else b""

    def _written(self, outputs: Iterable[int]) -> bytes:
        return self._begin(self._joined(outputs))

    @property
    def _between_names(self) -> bytes:
        return b", " if self.form == "json" else self._between

    def _joined(self, outputs: Iterable[int] | Ints) -> bytes:
        if isinstance(outputs, np.ndarray):
            if self._writer is not None:
                return self._writer.write(outputs, np.zeros(0, np.int64), begun=False)[0]
            outputs = outputs.tolist()
        names = self._quoted if self.form == "json" else self._names
        return self._between_names.join([names[number] for number in outputs])

    def _begin(self, text: bytes) -> bytes:
        """The text with what comes before it in its line."""
        if not text:
            return b""
        before = self._between_names if self._begun else b""
        if self.form == "json" and not self._begun:
            before = b'{"line": %d, "outputs": [' % self._line
        self._begun = True
        return before + text

    def _line_end(self) -> bytes:
        ended = b"" if not self._begun else b"]}\n" if self.form == "json" else b"\n"
        self._line, self._begun = self._line + 1, False
        return ended


class NameWriter:
    """Names by number, to be written with something between them."""

    def __init__(self, names: Sequence[bytes], between: bytes) -> None:
        self._letters = np.frombuffer(b"".join(names) + b"\0", np.uint8)
        self._begins = np.cumsum([0, *map(len, names)]).astype(np.int64)
        self._lengths = np.diff(self._begins)
        self.between = between

    def write(self, numbers: Ints, ends: Ints, *, begun: bool) -> tuple[bytes, bool]:
        """(the text, whether its last line has something); `ends` as in `TokenChunk.breaks`."""
        numbers, ends = np.ascontiguousarray(numbers, np.int32), np.ascontiguousarray(ends, np.int64)
        most = int(self._lengths[numbers].sum()) + len(self.between) * len(numbers) + len(ends)
        out, state = np.empty(most + 1, np.uint8), c_int(begun)
        written = native.library().exactstate_write_names(
            address(numbers), len(numbers), address(ends), len(ends), address(self._letters),
            address(self._begins), self.between, len(self.between), byref(state), address(out),
        )  # fmt: skip
        return out[:written].tobytes(), bool(state.value)


def _slices(chunk: TokenChunk) -> Iterator[TokenChunk]:
    """The chunk, SYMBOLS_PER_PIECE symbols at a time; an end of line stands in the slice of the symbol before it."""
    numbers, breaks = chunk.numbers, chunk.breaks
    for at in range(0, max(len(numbers), 1), SYMBOLS_PER_PIECE):
        low = int(np.searchsorted(breaks, at, "right")) if at else 0
        high = int(np.searchsorted(breaks, at + SYMBOLS_PER_PIECE, "right"))
        yield TokenChunk(numbers[at : at + SYMBOLS_PER_PIECE], breaks[low:high] - at)


def with_reset(machine: Machine) -> Machine:
    """The machine with one more symbol, the last, that leads back to the start; its output is not used."""
    automaton = machine.automaton
    tables = np.vstack([automaton.tables, np.full((1, machine.n_states), machine.start)])
    name = "reset"
    while name in machine.symbols:
        name += "'"
    outputs = np.vstack([machine.readout, np.zeros((1, machine.n_states), machine.readout.dtype)])
    fields: dict[str, Any] = {"symbols": (*machine.symbols, name), "states": machine.states, "tables": tables}
    heads = machine.heads
    if heads is not None:
        extended = tuple(_with_constant(table, start) for table, start in zip(heads.tables, heads.starts, strict=True))
        heads = Heads(extended, heads.starts)
    return Machine(
        automaton=Mealy(**fields, start=machine.start, outputs=machine.output_names, readout=outputs), heads=heads
    )  # fmt: skip


def _with_constant(table: Ints, start: int) -> Ints:
    return np.vstack([table, np.full((1, table.shape[1]), start)])
