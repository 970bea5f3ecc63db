"""The machine that an extracted one is compared with: a target, the correct label at every step, and what is asked.

    A  symbols     n  states of the target     z  states of the question     i  queries

Symbols and labels are matched by name, or by number where the machine has no names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from exactstate._types import Ints
from exactstate.automata import Mealy, Moore, minimize
from exactstate.errors import InvalidInput, InvalidMachine
from exactstate.extract.result import REFUSED
from exactstate.tasks.task import Question

LabelKind = Literal["states", "outputs"]


@dataclass(frozen=True, eq=False)
class Target:
    """Tables, and the correct label when a symbol is read in a state."""

    symbols: tuple[str, ...]
    states: tuple[str, ...]
    start: int
    tables: Ints
    """A n"""
    label_kind: LabelKind
    labels: tuple[str, ...]
    """The names of the states, or of the outputs."""
    wanted: Ints
    """A n: the correct label when a symbol is read in a state."""

    @classmethod
    def of(cls, machine: Moore | Mealy, label_kind: LabelKind, *, merged: bool = True) -> Target:
        """A machine whose states are the labels, or whose outputs are.

        With outputs, equivalent states are merged, because only behavior counts; but not where a question is asked
        about states, which may have equal outputs and different answers: `merged=False`.
        """
        if label_kind not in ("states", "outputs"):
            raise InvalidInput(f"labels must be 'states' or 'outputs' of the target; got {label_kind!r}.")
        if label_kind == "states":
            return cls(
                symbols=machine.symbols, states=machine.states, start=machine.start, tables=machine.tables,
                label_kind=label_kind, labels=machine.states, wanted=machine.tables,
            )  # fmt: skip
        small = minimize(machine.to_mealy()) if merged else machine.to_mealy()
        return cls(
            symbols=small.symbols, states=small.states, start=small.start, tables=small.tables,
            label_kind=label_kind, labels=small.outputs, wanted=small.readout,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class QuestionMachine:
    """Where an answer is asked for, what is asked, and which answer is correct.

    A small machine reads the same symbols as the target; reading symbol a in its state z, it asks for queries[a, z].
    """

    answers: tuple[str, ...]
    """Names of the answers."""
    start: int
    tables: Ints
    """A z"""
    queries: Ints
    """A z: what is asked, -1 for nothing."""
    correct: Ints
    """n i: the correct answer to what is asked, for the state of the target after the step."""

    @classmethod
    def at_end(
        cls, question: Question, target: Moore | Mealy, grammar: Moore, answers: Sequence[str] | None = None
    ) -> QuestionMachine:
        """The question that the last two symbols of every complete word of the grammar ask.

        The grammar outputs 'refused' where a word is not permitted and 'complete' where it may end.
        """
        verdicts = np.array(grammar.outputs)[grammar.readout]
        first, place = np.nonzero((verdicts != REFUSED)[None, :] & (verdicts != REFUSED)[grammar.tables])
        then = grammar.tables[first, place]
        queries = np.full((grammar.n_symbols, grammar.n_symbols + 1), -1)
        for last in range(grammar.n_symbols):
            ends = np.unique(first[verdicts[grammar.tables[last, then]] == "complete"])
            if len(ends):
                queries[last, ends + 1] = question.query(np.stack([ends, np.full_like(ends, last)], axis=1))
        if queries.max() < 0:
            raise InvalidMachine("no word of this grammar is complete, so nothing is ever asked.")
        kinds, kind = np.unique(queries, axis=1, return_inverse=True)
        items, states = np.arange(queries.max() + 1), np.arange(target.n_states)
        correct = np.stack([question.answer(np.full_like(states, item), states) for item in items], axis=1)
        return cls(
            answers=tuple(answers or map(str, range(question.n_answers))), start=int(kind.ravel()[0]),
            tables=np.broadcast_to(kind.ravel()[1:, None], kinds.shape), queries=kinds,
            correct=correct.astype(np.int64),
        )  # fmt: skip

    @classmethod
    def silent(cls, target: Target) -> QuestionMachine:
        """The question of a task that asks nothing."""
        A, n = target.tables.shape
        zeros = np.zeros((A, 1), np.int64)
        return cls(answers=(), start=0, tables=zeros, queries=zeros - 1, correct=np.zeros((n, 1), np.int64))

    def checked(self, target: Target) -> QuestionMachine:
        """The same, if it fits the target."""
        A, z = self.tables.shape
        if len(target.symbols) != A or self.queries.shape != (A, z) or self.correct.shape[0] != len(target.states):
            raise InvalidInput(
                f"wanted a question for {len(target.symbols)} symbols and {len(target.states)} states; "
                f"got tables of shape {self.tables.shape}, queries {self.queries.shape}, correct {self.correct.shape}."
            )
        if self.queries.max() >= self.correct.shape[1] or not 0 <= self.tables.min() <= self.tables.max() < z:
            raise InvalidInput("the question asks for something, or moves to a state, that it does not have.")
        return replace(self, tables=self.tables.astype(np.int64))


def in_order(target: Target, symbols: tuple[str, ...]) -> Target:
    """The target with its symbols in the order of a machine's; another set of symbols is an error."""
    if symbols == target.symbols or (_unnamed(symbols) and len(symbols) == len(target.symbols)):
        return target
    if set(symbols) != set(target.symbols):
        raise InvalidMachine(
            f"the machine reads {_some(symbols)} and the target {_some(target.symbols)}; they must read the same "
            "symbols. `exactstate diff` compares machines over the symbols that both read."
        )
    rows = [target.symbols.index(name) for name in symbols]
    return replace(target, symbols=symbols, tables=target.tables[rows], wanted=target.wanted[rows])


def target_labels(names: tuple[str, ...], target: Target) -> Ints:
    """For every label of the machine its number in the target."""
    number = {name: n for n, name in enumerate(target.labels)}
    if all(name in number for name in names):
        return np.array([number[name] for name in names])
    if _unnamed(names) and len(names) == len(target.labels):
        return np.arange(len(target.labels))
    raise InvalidMachine(
        f"the labels of the machine are {_some(names)}, and the {target.label_kind} of the target are "
        f"{_some(target.labels)}; pass these names to `extract(labels=...)`, or compare with the target's "
        f"{'outputs' if target.label_kind == 'states' else 'states'}."
    )


def _unnamed(names: tuple[str, ...]) -> bool:
    return names == tuple(map(str, range(len(names))))


def _some(names: tuple[str, ...]) -> str:
    shown = ", ".join(map(repr, names[:4]))
    return f"{shown}, ... ({len(names)})" if len(names) > 4 else shown
