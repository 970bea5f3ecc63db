"""Which symbol and which label of a machine is which of the target: by name, or by number where it has no names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from detent._types import Ints
from detent.automata import Mealy, Moore, minimize
from detent.errors import InvalidInput, InvalidMachine

if TYPE_CHECKING:
    from detent.certify.subject import Subject

# -- What a machine is compared with: a target, what it wants to be said at every step, and what it asks at the end.

Says = Literal["states", "outputs"]


@dataclass(frozen=True, eq=False)
class Target:
    """Tables, and the label that is wanted when a symbol is read in a state."""

    symbols: tuple[str, ...]
    states: tuple[str, ...]
    start: int
    tables: Ints
    """A n"""
    says: Says
    labels: tuple[str, ...]
    """Names of the labels: those of the states, or of the outputs."""
    wanted: Ints
    """A n: the label after reading a symbol in a state."""

    @classmethod
    def of(cls, machine: Moore | Mealy, says: Says) -> Target:
        """A machine whose states are the labels, or whose outputs are.

        Where outputs are, states that respond alike are one state: only behaviour counts.
        """
        if says not in ("states", "outputs"):
            raise InvalidInput(f"labels are the target's 'states' or its 'outputs'; got {says!r}.")
        if says == "states":
            return cls(
                symbols=machine.symbols, states=machine.states, start=machine.start, tables=machine.tables, says=says,
                labels=machine.states, wanted=machine.tables,
            )  # fmt: skip
        small = minimize(machine.to_mealy())
        return cls(
            symbols=small.symbols, states=small.states, start=small.start, tables=small.tables, says=says,
            labels=small.outputs, wanted=small.readout,
        )  # fmt: skip


class Asking(Protocol):
    """What the end of a word asks, and the answer: see `detent.tasks.Question`."""

    @property
    def n_answers(self) -> int: ...
    def query(self, ends: Ints) -> Ints: ...
    def answer(self, queries: Ints, states: Ints) -> Ints: ...


@dataclass(frozen=True, eq=False)
class Question:
    """Where something is asked, what, and which answer is right.

    A small machine reads the same symbols as the target; reading symbol a in its state z, it asks for asked[a, z].
    """

    answers: tuple[str, ...]
    """Names of the answers."""
    start: int
    tables: Ints
    """A z"""
    asked: Ints
    """A z: what is asked for, -1 for nothing."""
    right: Ints
    """n i: the right answer when the target is in a state, after the step, and this is asked for."""

    @classmethod
    def at_the_end(
        cls, asking: Asking, target: Moore | Mealy, grammar: Moore, answers: Sequence[str] | None = None
    ) -> Question:
        """The question that the last two symbols of every complete word of the grammar ask.

        The grammar says 'refused' where a word may not go on and 'complete' where it may end.
        """
        says = np.array(grammar.outputs)[grammar.readout]
        first, place = np.nonzero((says != "refused")[None, :] & (says != "refused")[grammar.tables])
        then = grammar.tables[first, place]
        asked = np.full((grammar.n_symbols, grammar.n_symbols + 1), -1)
        for last in range(grammar.n_symbols):
            ends = np.unique(first[says[grammar.tables[last, then]] == "complete"])
            if len(ends):
                asked[last, ends + 1] = asking.query(np.stack([ends, np.full_like(ends, last)], axis=1))
        if asked.max() < 0:
            raise InvalidMachine("no word of this grammar is complete, so nothing is ever asked.")
        kinds, kind = np.unique(asked, axis=1, return_inverse=True)
        items, states = np.arange(asked.max() + 1), np.arange(target.n_states)
        right = np.stack([asking.answer(np.full_like(states, item), states) for item in items], axis=1)
        names = tuple(answers or map(str, range(asking.n_answers)))
        after = np.broadcast_to(kind.ravel()[1:, None], kinds.shape)
        return cls(answers=names, start=int(kind.ravel()[0]), tables=after, asked=kinds, right=right.astype(np.int64))

    def checked(self, target: Target) -> Question:
        """The same, if it fits the target."""
        A, z = self.tables.shape
        if len(target.symbols) != A or self.asked.shape != (A, z) or self.right.shape[0] != len(target.states):
            raise InvalidInput(
                f"a question about {len(target.symbols)} symbols and {len(target.states)} states was wanted; "
                f"got tables of shape {self.tables.shape}, asked {self.asked.shape}, right {self.right.shape}."
            )
        if self.asked.max() >= self.right.shape[1] or not 0 <= self.tables.min() <= self.tables.max() < z:
            raise InvalidInput("a question asks for something, or goes to a state, that it does not have.")
        return replace(self, tables=self.tables.astype(np.int64))


def nothing_asked(target: Target) -> Question:
    """The question of a task that has none."""
    A, n = target.tables.shape
    nothing = np.zeros((A, 1), np.int64)
    return Question(answers=(), start=0, tables=nothing, asked=nothing - 1, right=np.zeros((n, 1), np.int64))


def refuse_strangers(subject: Subject, target: Target, question: Question | None) -> None:
    """Raise the error for a machine that reads other symbols, or gives no answers where some are wanted."""
    if subject.symbols != target.symbols and not (
        _unnamed(subject.symbols) and len(subject.symbols) == len(target.symbols)
    ):
        raise InvalidMachine(
            f"the machine reads {_some(subject.symbols)} and the target {_some(target.symbols)}; "
            "both read the same symbols in the same order."
        )
    if question is not None and subject.answers is None:
        raise InvalidMachine("the target asks questions, and the machine gives no answers: it has no second read-out.")


def label_numbers(subject: Subject, target: Target) -> Ints:
    """For every label of the machine the number that the target knows it by."""
    number = {name: n for n, name in enumerate(target.labels)}
    if all(name in number for name in subject.outputs):
        return np.array([number[name] for name in subject.outputs])
    if _unnamed(subject.outputs) and len(subject.outputs) == len(target.labels):
        return np.arange(len(target.labels))
    raise InvalidMachine(
        f"the machine says {_some(subject.outputs)}, and the {target.says} of the target are {_some(target.labels)}; "
        "give the labels those names when extracting, or compare with the target's "
        f"{'outputs' if target.says == 'states' else 'states'}."
    )


def _unnamed(names: tuple[str, ...]) -> bool:
    return names == tuple(map(str, range(len(names))))


def _some(names: tuple[str, ...]) -> str:
    shown = ", ".join(map(repr, names[:4]))
    return f"{shown}, ... ({len(names)})" if len(names) > 4 else shown
