"""A task of which only the outputs are heard: its labels are what the machine puts out, its states stay hidden."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol

import numpy as np

from detent._types import Ints
from detent.automata import Mealy, Moore
from detent.errors import InvalidConfig
from detent.tasks.samplers import Law, Letters

# -- A task is a machine and a way of speaking it.

CHUNK = 1 << 16
Says = Literal["states", "outputs"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Words, or a stretch of them, with the state after every symbol."""

    inputs: Ints
    """B L: symbol numbers."""
    states: Ints
    """B L: the state of the machine after every symbol."""
    before: Ints
    """B: the state before the first symbol of this stretch."""
    position: int = 0
    """Where in the word the first symbol of this stretch stands."""
    asked: Ints | None = None
    """B: what the question at the end of the word asks for, where there is one."""
    answers: Ints | None = None
    """B: the answer to it."""


class Question(Protocol):
    """What the end of a word asks, and the answer."""

    @property
    def n_answers(self) -> int:
        """How many answers there are to choose from."""

    def ask(self, ends: Ints) -> Ints:
        """What is asked for (B), from the last two symbols of every word (B 2)."""

    def answer(self, asked: Ints, states: Ints) -> Ints:
        """The answers (B), given the states at the end (B)."""


@dataclass(frozen=True, eq=False)
class Register:
    """A part of the state that people have a name for."""

    name: str
    values: tuple[str, ...]
    of_state: Ints
    """n: the number of its value in every state."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A machine and a way of speaking it; the target at every position is the machine's state.

    >>> from detent.automata import cyclic
    >>> parity = Task.of(cyclic(2), name="parity")
    >>> parity.sample(batch=2, length=3, generator=np.random.default_rng(0)).states.shape
    (2, 3)
    """

    name: str
    machine: Moore | Mealy
    """Its states are the labels."""
    law: Law
    """How words are drawn."""
    sweep_law: Law | None = None
    """How they are drawn in length sweeps, where that differs."""
    question: Question | None = None
    """What the last two symbols ask, where they do."""
    layers: tuple[tuple[int, ...], ...] | None = None
    """Heads of every layer, for a task that takes a stack; None where one layer will do and its heads are computed."""
    registers: tuple[Register, ...] = ()
    """What a state is made of, where it is made of parts."""
    about: str = ""
    """One sentence."""

    def __post_init__(self) -> None:
        for law in (self.law, self.sweep_law or self.law):
            if law.n_symbols != self.machine.n_symbols:
                raise InvalidConfig(
                    f"task {self.name} draws {law.n_symbols} symbols, but its machine reads {self.machine.n_symbols}."
                )

    @classmethod
    def of(cls, machine: Moore | Mealy, *, name: str, about: str = "") -> Task:
        """The task of a machine, its symbols drawn uniformly."""
        return cls(name=name, machine=machine, law=Letters.uniform(machine.n_symbols), about=about)

    @property
    def says(self) -> Says:
        """What the labels of its batches are of the machine."""
        return "states"

    @property
    def labels(self) -> tuple[str, ...]:
        """Their names."""
        return self.machine.states

    @cached_property
    def grammar(self) -> Moore:
        """Which symbols may follow: a machine beside `machine`, see `detent.tasks.grammar`."""
        return self.law.grammar(self.machine.symbols)

    def for_sweeps(self) -> Task:
        """The task as length sweeps draw it."""
        return self if self.sweep_law is None else replace(self, law=self.sweep_law, sweep_law=None)

    def sample(self, batch: int, length: int, generator: np.random.Generator) -> Batch:
        """Words of one length, with their labels, at once."""
        whole = next(self.stream(batch, length, generator, chunk=max(length, 1)), None)
        if whole is not None:
            return whole
        nothing = np.zeros((batch, 0), np.uint8)
        return Batch(inputs=nothing, states=nothing, before=self._begin(batch))

    def stream(self, batch: int, length: int, generator: np.random.Generator, *, chunk: int = CHUNK) -> Iterator[Batch]:
        """The same words in chunks of consecutive columns, never holding more than a chunk.

        The question, where there is one, comes with the last chunk.
        """
        if batch < 0 or length < 0 or chunk < 1:
            raise InvalidConfig(
                f"words come in batches and lengths of 0 or more, in chunks of 1 or more; "
                f"got batch {batch}, length {length}, chunk {chunk}."
            )
        self.law.refuse_length(length)
        # one draw, so that the caller's generator moves on alike for every length and chunk
        own = np.random.Generator(np.random.SFC64(generator.integers(0, 1 << 63, 4)))
        return self._chunks(batch, length, own, chunk)

    def outputs(self, batch: Batch) -> Ints:
        """What the machine puts out at every symbol (B L): another thing to ask for than its states."""
        if isinstance(self.machine, Moore):
            return self.machine.readout[batch.states]
        came_from = np.concatenate([batch.before[:, None], batch.states], axis=1)[:, :-1]
        return self.machine.readout[batch.inputs, came_from]

    def _chunks(self, batch: int, length: int, generator: np.random.Generator, chunk: int) -> Iterator[Batch]:
        state, position, ends = self._begin(batch), 0, np.zeros((batch, 0), np.uint8)
        for inputs in _regroup(self.law.blocks(batch, length, generator), batch, length, chunk):
            states = self.machine.trajectory(inputs, state)
            part = Batch(inputs=inputs, states=states, before=state, position=position)
            position, state = position + inputs.shape[1], states[:, -1]
            ends = np.concatenate([ends, inputs[:, -2:]], axis=1)[:, -2:]
            if self.question is not None and position == length:
                asked = self.question.ask(ends)
                part = replace(part, asked=asked, answers=self.question.answer(asked, state))
            yield part

    def _begin(self, batch: int) -> Ints:
        return np.full(batch, self.machine.start, self.machine.tables.dtype)


def _regroup(blocks: Iterator[Ints], batch: int, length: int, chunk: int) -> Iterator[Ints]:
    """The same columns in chunks: all of the given width, but for the last."""
    spare: Ints = np.zeros((batch, 0), np.uint8)
    for begin in range(0, length, chunk):
        width = min(chunk, length - begin)
        parts = [spare]
        while (held := sum(part.shape[1] for part in parts)) < width:
            parts.append(next(blocks))
        spare = parts[-1][:, parts[-1].shape[1] - (held - width) :]
        parts[-1] = parts[-1][:, : parts[-1].shape[1] - (held - width)]
        yield np.ascontiguousarray(np.concatenate(parts, axis=1))


@dataclass(frozen=True, kw_only=True)
class OutputsOnly(Task):
    """The same words, with outputs in the place of states.

    >>> from detent.automata import tomita
    >>> OutputsOnly.of_task(Task.of(tomita(4), name="no three 0s")).labels
    ('reject', 'accept')
    """

    @classmethod
    def of_task(cls, task: Task) -> OutputsOnly:
        """What is heard of a task."""
        if task.layers is not None or task.question is not None:
            raise InvalidConfig(
                f"{task.name} is told by its states and answers; outputs alone are heard of tasks for one layer."
            )
        return cls(name=task.name, machine=task.machine, law=task.law, sweep_law=task.sweep_law, about=task.about)

    @property
    def says(self) -> Says:
        return "outputs"

    @property
    def labels(self) -> tuple[str, ...]:
        return self.machine.outputs

    def sample(self, batch: int, length: int, generator: np.random.Generator) -> Batch:
        """Words of one length, with outputs as `states`."""
        drawn = super().sample(batch, length, generator)
        return replace(drawn, states=self.outputs(drawn))
