"""Tasks: a machine, and a sampler of the words that it reads.

    B  words     L  their length     n  states of the machine

`Task.sample` draws a batch; the label at every position is the state of the machine, or its output in an
`OutputTask`; in an `AnswerTask` only the answer at the end of a word is a label.
Labels come from running the machine, never from a formula.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol

import numpy as np

from exactstate._types import Ints
from exactstate.automata import Mealy, Moore
from exactstate.errors import InvalidConfig
from exactstate.tasks.access_words import AccessWords
from exactstate.tasks.samplers import IidLetters, Sampler

CHUNK = 1 << 16
LabelKind = Literal["states", "outputs"]
UNLABELED = "unlabeled"
"""The label of every symbol where only answers are labels."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Words, or a chunk of their columns, with a label at every symbol."""

    inputs: Ints
    """B L: symbol numbers."""
    states: Ints
    """B L: the labels; the state of the machine after every symbol, or its output in an OutputTask."""
    before: Ints
    """B: the state before the first symbol of this chunk."""
    position: int = 0
    """The index in the word of this chunk's first symbol."""
    queries: Ints | None = None
    """B: what the question at the end of the word asks for, in tasks with a question."""
    answers: Ints | None = None
    """B: the answer to it."""


class Question(Protocol):
    """The question at the end of a word, and its answer."""

    @property
    def n_answers(self) -> int:
        """The number of possible answers."""

    def query(self, ends: Ints) -> Ints:
        """B: what is asked for, from the last two symbols of every word (B 2)."""

    def answer(self, queries: Ints, states: Ints) -> Ints:
        """B: the answers, given the states at the end (B)."""


@dataclass(frozen=True, eq=False)
class Register:
    """A named component of the state."""

    name: str
    values: tuple[str, ...]
    of_state: Ints
    """n: the number of its value in every state."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A machine and a sampler; the label at every position is the machine's state.

    >>> from exactstate.automata import cyclic
    >>> parity = Task.of(cyclic(2), name="parity")
    >>> parity.sample(batch=2, length=3, generator=np.random.default_rng(0)).states.shape
    (2, 3)
    """

    name: str
    machine: Moore | Mealy
    """Its states are the labels."""
    sampler: Sampler
    """How words are drawn."""
    sweep_sampler: Sampler | None = None
    """How words are drawn in length sweeps, if differently."""
    question: Question | None = None
    """The question in the last two symbols of a word, if there is one."""
    layers: tuple[tuple[int, ...], ...] | None = None
    """Head sizes of every layer, for a task that needs a stack; None for one layer, whose heads are computed."""
    registers: tuple[Register, ...] = ()
    """The components of a state, if it has named ones."""
    about: str = ""
    """One sentence."""

    def __post_init__(self) -> None:
        for sampler in (self.sampler, self.sweep_sampler or self.sampler):
            if sampler.n_symbols != self.machine.n_symbols:
                raise InvalidConfig(
                    f"the sampler of task {self.name} draws {sampler.n_symbols} symbols, "
                    f"but its machine reads {self.machine.n_symbols}."
                )

    @classmethod
    def of(cls, machine: Moore | Mealy, *, name: str, about: str = "") -> Task:
        """The task of a machine, its symbols drawn uniformly."""
        return cls(name=name, machine=machine, sampler=IidLetters.uniform(machine.n_symbols), about=about)

    @classmethod
    def reaching(cls, machine: Moore | Mealy, *, name: str, about: str = "") -> Task:
        """The task of a machine, its words such that every state is reached; see `access_words`."""
        return cls(name=name, machine=machine, sampler=AccessWords(machine, machine.start), about=about)

    def with_words(self, words: Sequence[Sequence[str]], share: float = 0.25) -> Task:
        """The task of whose words this share begins with one of these, such as counterexamples to a network."""
        if not words or not isinstance(self.sampler, AccessWords | IidLetters) or self.question is not None:
            return self
        more = tuple(tuple(self.machine.encode(word).tolist()) for word in words)
        return replace(self, sampler=AccessWords(self.machine, self.machine.start, more, share))

    @property
    def label_kind(self) -> LabelKind:
        """Whether the labels are the machine's states or its outputs."""
        return "states"

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels."""
        return self.machine.states

    @cached_property
    def grammar(self) -> Moore:
        """Which symbols may follow: a machine that runs beside `machine`, see `exactstate.tasks.grammar`."""
        return self.sampler.grammar(self.machine.symbols)

    def for_length_sweep(self) -> Task:
        """The task with the words that length sweeps draw."""
        return self if self.sweep_sampler is None else replace(self, sampler=self.sweep_sampler, sweep_sampler=None)

    def sample(self, batch: int, length: int, generator: np.random.Generator) -> Batch:
        """Words of one length with their labels, as one batch."""
        whole = next(self.stream(batch, length, generator, chunk=max(length, 1)), None)
        if whole is not None:
            return whole
        empty = np.zeros((batch, 0), np.uint8)
        return Batch(inputs=empty, states=empty, before=self._starts(batch))

    def stream(self, batch: int, length: int, generator: np.random.Generator, *, chunk: int = CHUNK) -> Iterator[Batch]:
        """The same words in chunks of consecutive columns; no more than a chunk is in memory.

        The question, if there is one, comes with the last chunk.
        """
        if batch < 0 or length < 0 or chunk < 1:
            raise InvalidConfig(
                f"batch and length are at least 0 and chunk is at least 1; "
                f"got batch {batch}, length {length}, chunk {chunk}."
            )
        self.sampler.check_length(length)
        # one draw, so that the caller's generator advances by the same amount for every length and chunk
        own = np.random.Generator(np.random.SFC64(generator.integers(0, 1 << 63, 4)))
        return self._chunks(batch, length, own, chunk)

    def outputs(self, batch: Batch) -> Ints:
        """B L: the machine's output at every symbol of a batch whose labels are states."""
        if isinstance(self.machine, Moore):
            return self.machine.readout[batch.states]
        sources = np.concatenate([batch.before[:, None], batch.states], axis=1)[:, :-1]
        return self.machine.readout[batch.inputs, sources]

    def _chunks(self, batch: int, length: int, generator: np.random.Generator, chunk: int) -> Iterator[Batch]:
        state, position, ends = self._starts(batch), 0, np.zeros((batch, 0), np.uint8)
        for inputs in _rechunk(self.sampler.blocks(batch, length, generator), batch, length, chunk):
            states = self.machine.trajectory(inputs, state)
            part = Batch(inputs=inputs, states=states, before=state, position=position)
            position, state = position + inputs.shape[1], states[:, -1]
            ends = np.concatenate([ends, inputs[:, -2:]], axis=1)[:, -2:]
            if self.question is not None and position == length:
                queries = self.question.query(ends)
                part = replace(part, queries=queries, answers=self.question.answer(queries, state))
            yield part

    def _starts(self, batch: int) -> Ints:
        return np.full(batch, self.machine.start, self.machine.tables.dtype)


@dataclass(frozen=True, kw_only=True)
class OutputTask(Task):
    """The same words labeled with the machine's outputs; its states stay hidden.

    >>> from exactstate.automata import tomita
    >>> OutputTask.of_task(Task.of(tomita(4), name="no three 0s")).labels
    ('reject', 'accept')
    """

    @classmethod
    def of_task(cls, task: Task) -> OutputTask:
        """The task with outputs for labels."""
        if task.layers is not None or task.question is not None:
            raise InvalidConfig(
                f"task {task.name} needs state labels and answers; output labels alone are for tasks of one layer."
            )
        return cls(
            name=task.name, machine=task.machine, sampler=task.sampler, sweep_sampler=task.sweep_sampler,
            about=task.about,
        )  # fmt: skip

    @property
    def label_kind(self) -> LabelKind:
        return "outputs"

    @property
    def labels(self) -> tuple[str, ...]:
        return self.machine.outputs

    def sample(self, batch: int, length: int, generator: np.random.Generator) -> Batch:
        """Words of one length, with outputs as labels."""
        drawn = super().sample(batch, length, generator)
        return replace(drawn, states=self.outputs(drawn))


@dataclass(frozen=True, kw_only=True)
class AnswerTask(OutputTask):
    """The same words, of which the answer to the question at their end is the only label; states stay hidden.

    The machine has one output, so that comparing outputs is comparing answers.

    >>> from exactstate.tasks import task
    >>> AnswerTask.of_task(task("TSO3")).labels
    ('unlabeled',)
    """

    @classmethod
    def of_task(cls, task: Task) -> AnswerTask:
        """The task with answers for labels."""
        machine = task.machine
        if task.question is None or not isinstance(machine, Moore):
            raise InvalidConfig(
                f"{task.name} asks no question; answers are labels of tasks that ask one, such as TSO3."
            )
        unlabeled = Moore(
            symbols=machine.symbols, tables=machine.tables, states=machine.states, start=machine.start,
            outputs=(UNLABELED,), readout=np.zeros(machine.n_states, np.int64),
        )  # fmt: skip
        return cls(
            name=task.name, machine=unlabeled, sampler=task.sampler, sweep_sampler=task.sweep_sampler,
            question=task.question, layers=task.layers, about=task.about,
        )  # fmt: skip


def _rechunk(blocks: Iterator[Ints], batch: int, length: int, chunk: int) -> Iterator[Ints]:
    """The same columns in chunks of the given width; the last chunk may be narrower."""
    spare: Ints = np.zeros((batch, 0), np.uint8)
    for begin in range(0, length, chunk):
        width = min(chunk, length - begin)
        parts = [spare]
        while (held := sum(part.shape[1] for part in parts)) < width:
            parts.append(next(blocks))
        spare = parts[-1][:, parts[-1].shape[1] - (held - width) :]
        parts[-1] = parts[-1][:, : parts[-1].shape[1] - (held - width)]
        yield np.ascontiguousarray(np.concatenate(parts, axis=1))
