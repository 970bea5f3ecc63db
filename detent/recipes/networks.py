"""The network for a task, and the judge of it: one layer for symbols, a stack with a convolution for stories.

    run.model = network(task("TSO3"), ((4, 4, 4, 4), (4, 4, 4)))

A task that asks a question gets a second read-out, and is explored and judged on the words of its grammar.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from detent.certification import Question, Verdict, certify
from detent.extraction import Budget, Extracted, extract
from detent.layers import NFSM
from detent.models import Backbone
from detent.tasks import Task
from detent.tasks.vocabulary import PEOPLE

Heads = Sequence[Sequence[int]]
"""Indices of every head of every layer."""


def network(
    speaker: Task, heads: Heads, starts: Heads | None = None, *, width: int = 128, dropout: float = 0.1,
    temperature: float = 0.5, generator: torch.Generator | None = None,
) -> Backbone:  # fmt: skip
    """A backbone with a block for every layer; `starts` are the indices to begin with, zeros by default."""
    blocks = [
        NFSM(width, sizes, start=start, temperature=temperature, generator=generator)
        for sizes, start in zip(heads, starts or [(0,) * len(sizes) for sizes in heads], strict=True)
    ]
    return Backbone(
        speaker.machine.n_symbols, len(speaker.labels), blocks, width=width, dropout=dropout,
        reach=1 if speaker.layers is None else 2, generator=generator,
        answers=0 if speaker.question is None else speaker.question.n_answers,
    )  # fmt: skip


def judged(model: Backbone, speaker: Task, budget: Budget | None = None) -> tuple[Extracted, Verdict]:
    """The machine read out of a model, and whether it is the task's: on all words, or on all stories and questions."""
    machine = speaker.machine
    if speaker.question is None:
        read = extract(model.eval(), symbols=machine.symbols, labels=speaker.labels)
        return read, certify(read, machine, labels=speaker.says)
    people = PEOPLE[: speaker.question.n_answers]
    question = Question.at_the_end(speaker.question, machine, speaker.grammar, people)
    read = extract(
        model.eval(), labels=machine.states, answers=people, grammar=speaker.grammar, budget=budget or Budget()
    )
    return read, certify(read, machine, question=question)
