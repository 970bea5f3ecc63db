"""Compare the target inside a certificate with a task: is it that task's machine, over the same words?

A certificate proves that a machine computes the target in the same file. What that target is, only a comparison with
another source can tell: names in the file are only names.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exactstate.automata import Mealy, Moore, distinguishing_word, format_word
from exactstate.certify.target import QuestionMachine, Target
from exactstate.errors import InvalidMachine
from exactstate.extract.result import REFUSED
from exactstate.tasks import AnswerTask, Task
from exactstate.tasks.shuffled_objects import PEOPLE
from exactstate.tasks.task import UNLABELED

PERMITTED = "permitted"


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
        here, there = (machine.outputs[_last(machine, word)] for machine in (inside, _mealy(wanted)))
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


def _last(machine: Mealy, word: tuple[str, ...]) -> int:
    """The output at the last symbol of a word."""
    state, output = machine.start, 0
    for name in word:
        symbol = machine.symbols.index(name)
        state, output = int(machine.tables[symbol, state]), int(machine.readout[symbol, state])
    return output


def _some(names: tuple[str, ...]) -> str:
    shown = ", ".join(map(repr, names[:4]))
    return f"{shown}, ... ({len(names)})" if len(names) > 4 else shown
