"""The machine without the network: run it, stream it, save it. NumPy and compiled code, no torch.

    A  symbols     n  states     B  words     L  their length

`run`, `trajectory` and `output_ids` are those of `exactstate.automata.Moore` and `Mealy`: the state at the end, the
states after every symbol, the outputs at every symbol, all as numbers. `outputs` gives the names of the outputs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from exactstate._types import Ints
from exactstate.automata import Mealy, Moore, Semiautomaton
from exactstate.errors import InvalidMachine
from exactstate.records import InvalidJson, parse_strict_json
from exactstate.runtime.alphabet import Alphabet, Word
from exactstate.runtime.heads import Heads, states_of
from exactstate.runtime.interpreter import Emit, Interpreter, Words, run_words
from exactstate.runtime.strategies import NAMES, Shape

if TYPE_CHECKING:
    from exactstate.runtime.stream import Stream


About = Mapping[str, Any]
MAX_EVENT_ENTRIES = 1 << 20
"""Table entries of a machine that single events are looked up in without compiled code, which takes longer to call."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Machine:
    """A Moore or Mealy machine, made to be run.

    >>> from exactstate.automata import cyclic
    >>> clock = Machine.of(cyclic(12))
    >>> clock.run([5, 9, 11])
    1
    >>> clock.outputs(["5", "9", "11"])
    ['5', '2', '1']
    """

    automaton: Moore | Mealy
    heads: Heads | None = None
    """Small machines in parallel that determine the state; run instead of it where that is cheaper."""
    about: About = field(default_factory=dict)
    """Where it comes from: anything that JSON can hold."""
    _states_of: Ints | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.automaton, Moore | Mealy):
            raise InvalidMachine(f"a runtime machine needs a Moore or a Mealy machine; got {self.automaton!r}.")
        object.__setattr__(self, "about", about_data(self.about))
        if self.heads is not None:
            object.__setattr__(self, "_states_of", states_of(self.heads, self.automaton, self.automaton.start))

    @classmethod
    def of(cls, automaton: Semiautomaton, *, heads: Heads | None = None, about: About | None = None) -> Machine:
        """The machine of an automaton; a semiautomaton starts in its first state and outputs its states."""
        if isinstance(automaton, Moore | Mealy):
            return cls(automaton=automaton, heads=heads, about=about or {})
        return cls(automaton=Moore.of(automaton), heads=heads, about=about or {})

    def with_heads(self) -> Machine:
        """The same machine with the heads that `exactstate.automata.factor` finds; itself if one head is cheapest."""
        from exactstate.automata import factor

        factoring = factor(self.automaton)
        if len(factoring.partitions) == 1:
            return self
        starts = tuple(int(chi[self.automaton.start]) for chi in factoring.partitions)
        return replace(self, heads=Heads(factoring.tables, starts))

    @property
    def symbols(self) -> tuple[str, ...]:
        return self.automaton.symbols

    @property
    def states(self) -> tuple[str, ...]:
        return self.automaton.states

    @property
    def output_names(self) -> tuple[str, ...]:
        """The output alphabet; `output_ids` are numbers into it."""
        return self.automaton.outputs

    @property
    def start(self) -> int:
        return self.automaton.start

    @property
    def n_states(self) -> int:
        return self.automaton.n_states

    @property
    def n_symbols(self) -> int:
        return self.automaton.n_symbols

    @cached_property
    def readout(self) -> Ints:
        """A n: the output when a symbol is read in a state, for Moore machines too."""
        return np.ascontiguousarray(self.automaton.to_mealy().readout)

    @cached_property
    def _output_names(self) -> NDArray[np.object_]:
        return np.array([*self.output_names, None], dtype=object)[:-1]

    @cached_property
    def events(self) -> tuple[dict[Any, int], list[list[int]], list[list[int]]] | None:
        """For one symbol at a time in plain Python: (symbol by name or number, successors, outputs); None if large."""
        if self.automaton.tables.size > MAX_EVENT_ENTRIES:
            return None
        numbers: dict[Any, int] = {name: a for a, name in enumerate(self.symbols)}
        numbers.update((a, a) for a in range(self.n_symbols))
        return numbers, self.automaton.tables.tolist(), self.readout.tolist()

    @cached_property
    def alphabet(self) -> Alphabet:
        return Alphabet(self.symbols)

    @cached_property
    def interpreter(self) -> Interpreter:
        shape = Shape(self.automaton.tables, self.heads, self.readout.itemsize)
        return Interpreter(shape, self.alphabet, self.readout, self._states_of)

    @property
    def strategy(self) -> str:
        """The strategy that "auto" selects for this machine on this processor."""
        return self.interpreter.auto

    @property
    def strategies(self) -> tuple[str, ...]:
        """Every strategy that is possible for this machine on this processor."""
        return tuple(name for name in NAMES if self.interpreter.shape.why_not(name) is None)

    def run(self, words: Words, state: int | str | None = None, *, strategy: str = "auto") -> Any:
        """The state at the end of a word, or of every word (B)."""
        return self._run(words, state, None, strategy)

    def trajectory(self, words: Words, state: int | str | None = None, *, strategy: str = "auto") -> Any:
        """The states after every symbol of a word (L), or of words of one length (B L); a list for other words."""
        return self._run(words, state, "states", strategy)

    def output_ids(self, words: Words, state: int | str | None = None, *, strategy: str = "auto") -> Any:
        """The number of the output at every symbol, in the same shapes."""
        return self._run(words, state, "outputs", strategy)

    def outputs(self, word: Word, state: int | str | None = None) -> list[str]:
        """The name of the output at every symbol of a word."""
        return self._output_names[self.output_ids(word, state)].tolist()

    def stream(self, position: Mapping[str, Any] | None = None) -> Stream:
        """A run in chunks, from the start or from a saved position."""
        from exactstate.runtime.stream import Stream

        return Stream(self) if position is None else Stream.at(self, position)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the machine: .json for people, .exactstate for programs, .dot without heads."""
        from exactstate.runtime.io import save

        save(self, path)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the machine as a program: .c, .js or .mjs, .onnx; or as a grammar: .ebnf, .gbnf, .lark."""
        from exactstate.runtime.export.write import write

        write(self, path)

    def _run(self, words: Words, state: int | str | None, emit: Emit | None, strategy: str) -> Any:
        first = self.start if state is None else self.automaton.state_number(state)
        return run_words(self.interpreter, words, first, emit, strategy)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the tables laid out for a strategy, which are rebuilt on use."""
        return {name: value for name, value in self.__dict__.items() if name not in ("interpreter", "events")}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Machine) and (self.automaton, self.heads, self.about) == (
            other.automaton, other.heads, other.about,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.automaton, self.heads))

    def __repr__(self) -> str:
        heads = "" if self.heads is None else f", heads of {' '.join(map(str, self.heads.sizes))}"
        return f"Machine({self.n_states} states, {self.n_symbols} symbols{heads}; {self.strategy})"


def about_data(about: About) -> dict[str, Any]:
    """The metadata as it reads back from JSON; refused if JSON cannot hold it."""
    try:
        text = json.dumps(dict(about), allow_nan=False, ensure_ascii=False)
        text.encode()
        return dict(json.loads(text))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidMachine(f"`about` holds plain JSON data: {error}.") from None


def about_to_text(about: About) -> str:
    """The metadata on one line; empty for none."""
    return json.dumps(about, ensure_ascii=False, separators=(",", ":")) if about else ""


def about_from_text(text: str) -> dict[str, Any]:
    """The metadata in a text that `about_to_text` wrote."""
    if not text:
        return {}
    try:
        about = parse_strict_json(text)
    except InvalidJson as error:
        raise InvalidMachine(f"its metadata is not JSON: {error}.") from None
    if not isinstance(about, dict) or not about:
        raise InvalidMachine("its metadata is not a JSON object with entries.")
    return about
