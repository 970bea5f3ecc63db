"""The machine that an extracted one is compared with: a target, the correct label at every step, and what is asked.

    A  symbols     n  states of the target     z  states of the question     i  queries

Symbols and labels are matched by name, or by number where the machine has no names.

A certificate proves that a machine computes the target in the same file. What that target is, only a comparison with
another source can tell, because names in the file are only names: `difference_from_task`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from exactstate._types import Ints
from exactstate.automata import Mealy, Moore, distinguishing_word, format_word, minimize
from exactstate.errors import InvalidInput, InvalidMachine
from exactstate.extract.result import REFUSED
from exactstate.tasks.shuffled_objects import PEOPLE
from exactstate.tasks.task import UNLABELED, AnswerTask, Question, Task

LabelKind = Literal["states", "outputs"]
PERMITTED = "permitted"


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


def difference_from_task(content: dict[str, Any], task: Task) -> str | None:
    """Why the target of a certificate that was checked is not that of a task; None if it is.

    Machines and grammars are compared on all words, symbols and labels by name; questions entry by entry. A certificate
    about answers alone is one of the task if the answers are.
    """
    if task.question is not None and content["target"].get("outputs") == [UNLABELED]:
        task = AnswerTask.of_task(task)
    inside = target_machine(content["target"], content["symbols"])
    wanted = Target.of(task.machine, content["target"]["says"])
    if inside.symbols != wanted.symbols:
        return f"it reads {_some(inside.symbols)}, and {task.name} {_some(wanted.symbols)}"
    try:
        word = distinguishing_word(inside, _mealy(wanted))
    except InvalidMachine as error:
        return str(error).rstrip(".")
    if word is not None:
        here, there = (one.outputs[one.output_ids(list(word))[-1]] for one in (inside, _mealy(wanted)))
        return f"after {format_word(word)} it outputs {here!r}, and {task.name} {there!r}"
    return _grammar_difference(content, task) or _question_difference(content, task)


def target_machine(target: dict[str, Any], symbols: list[str]) -> Mealy:
    """The target of a certificate, as a machine that outputs the correct label at every step."""
    by_output = target["says"] == "outputs"
    return Mealy(
        symbols=tuple(symbols), states=tuple(target["states"]), tables=target["tables"], start=target["start"],
        outputs=tuple(target["outputs"] if by_output else target["states"]),
        readout=target["readout"] if by_output else target["tables"],
    )  # fmt: skip


def grammar_machine(grammar: dict[str, Any], symbols: list[str]) -> Moore:
    """The grammar of a certificate, as a machine that outputs 'refused' where a word is not permitted."""
    return Moore(
        symbols=tuple(symbols), states=tuple(grammar["places"]), tables=grammar["tables"], start=grammar["start"],
        outputs=(PERMITTED, REFUSED), readout=grammar["refused"],
    )  # fmt: skip


def question_machine(question: dict[str, Any]) -> QuestionMachine:
    """The question of a certificate."""
    return QuestionMachine(
        answers=tuple(question["answers"]), start=question["start"], tables=np.array(question["tables"], np.int64),
        queries=np.array(question["asked"], np.int64), correct=np.array(question["right"], np.int64),
    )  # fmt: skip


def task_question(task: Task) -> QuestionMachine | None:
    """What a task asks, in the form that certificates hold; None if it asks nothing."""
    if task.question is None:
        return None
    return QuestionMachine.at_end(task.question, task.machine, task.grammar, PEOPLE[: task.question.n_answers])


def _grammar_difference(content: dict[str, Any], task: Task) -> str | None:
    inside, wanted = content["grammar"], task.grammar
    if inside is None:
        return None  # all words are more than any grammar permits
    verdicts = [int(wanted.outputs[output] == REFUSED) for output in wanted.readout.tolist()]
    plain = Moore(
        symbols=wanted.symbols, states=wanted.states, tables=wanted.tables, start=wanted.start,
        outputs=(PERMITTED, REFUSED), readout=np.array(verdicts),
    )  # fmt: skip
    word = distinguishing_word(grammar_machine(inside, content["symbols"]), plain)
    return None if word is None else f"the grammars of the file and of {task.name} differ at {format_word(word)}"


def _question_difference(content: dict[str, Any], task: Task) -> str | None:
    wanted = task_question(task)
    if (content["question"] is None) != (wanted is None):
        return f"{'the file' if wanted is None else task.name} asks a question, and the other does not"
    if wanted is None:
        return None
    # answers belong to states by number, and equal outputs may hide different states
    target, machine = content["target"], task.machine
    same = tuple(target["states"]) == machine.states and target["start"] == machine.start
    if not same or not np.array_equal(target["tables"], machine.tables):
        return f"its questions are about other states, or in another order, than those of {task.name}"
    inside = question_machine(content["question"])
    same = (
        inside.answers == wanted.answers
        and inside.start == wanted.start
        and all(
            np.array_equal(getattr(inside, name), getattr(wanted, name)) for name in ("tables", "queries", "correct")
        )
    )
    return None if same else f"it asks other questions, or wants other answers, than {task.name}"


def _mealy(target: Target) -> Mealy:
    return Mealy(
        symbols=target.symbols, states=target.states, tables=target.tables, start=target.start, outputs=target.labels,
        readout=target.wanted,
    )  # fmt: skip
