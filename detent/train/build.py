"""The network for a task, and the judge of it: one layer for symbols, a stack with a convolution for stories.

    run.model = network(task("TSO3"), ((4, 4, 4, 4), (4, 4, 4)))

A task that asks a question gets a second read-out, and is explored and judged on the words of its grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from detent.certify import QuestionMachine, Verdict, certify
from detent.errors import InvalidConfig, unknown
from detent.extract import Budget, Extracted, extract
from detent.nn import AUSSM, BMRU, NFSM, PDSSM, Backbone, MambaMinus
from detent.tasks import Task
from detent.tasks.shuffled_objects import PEOPLE

# -- The recurrent blocks by name, and the backbones they are put into: `detent train TASK --cell NAME`.

CELLS = {
    "nfsm": "the neural finite-state machine",
    "mamba": "Mamba-, eigenvalues in (-1, 1)",
    "aussm": "AUSSM, eigenvalues of modulus one",
    "pdssm": "PD-SSM, one-hot columns times a diagonal with moduli below one",
    "bmru": "bistable memory recurrent units",
}
BASELINES = tuple(name for name in CELLS if name != "nfsm")


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """How large a baseline is."""

    layers: int
    width: int
    """m, of the backbone."""
    channels: int
    """Channels of Mamba- and the AUSSM, entries of a PD-SSM, units of a BMRU."""
    states: int
    """Entries of a channel's state, or matrices in the dictionary of a PD-SSM; a BMRU has no use for it."""
    dropout: float = 0.1

    def __post_init__(self) -> None:
        for name in ("layers", "width", "channels", "states"):
            if getattr(self, name) < 1:
                raise InvalidConfig(f"{name} must be at least 1; got {getattr(self, name)}.")


def block(cell: str, size: Size, generator: torch.Generator | None = None) -> nn.Module:
    """One recurrent block of a baseline."""
    m, d, n = size.width, size.channels, size.states
    made: dict[str, Callable[..., nn.Module]] = {
        "mamba": partial(MambaMinus, m, d, n),
        "aussm": partial(AUSSM, m, d, n),
        "pdssm": partial(PDSSM, m, d, n),
        "bmru": partial(BMRU, m, d),
    }
    if cell not in made:
        raise unknown("baseline", cell, BASELINES)
    return made[cell](generator=generator)


def cell_network(cell: str, size: Size, task: Task, generator: torch.Generator | None = None) -> Backbone:
    """The backbone with this block in every layer; a task with questions gets a convolution and answers."""
    question = task.question
    return Backbone(
        task.machine.n_symbols, task.machine.n_states, [block(cell, size, generator) for _ in range(size.layers)],
        width=size.width, dropout=size.dropout, kernel_size=1 if question is None else 2,
        answers=0 if question is None else question.n_answers, generator=generator,
    )  # fmt: skip


Heads = Sequence[Sequence[int]]
"""Indices of every head of every layer."""


def network(
    task: Task, heads: Heads, starts: Heads | None = None, *, width: int = 128, dropout: float = 0.1,
    temperature: float = 0.5, generator: torch.Generator | None = None,
) -> Backbone:  # fmt: skip
    """A backbone with a block for every layer; `starts` are the indices to begin with, zeros by default."""
    blocks = [
        NFSM(width, sizes, initial_state=start, temperature=temperature, generator=generator)
        for sizes, start in zip(heads, starts or [(0,) * len(sizes) for sizes in heads], strict=True)
    ]
    return Backbone(
        task.machine.n_symbols, len(task.labels), blocks, width=width, dropout=dropout,
        kernel_size=1 if task.layers is None else 2, generator=generator,
        answers=0 if task.question is None else task.question.n_answers,
    )  # fmt: skip


def judged(model: Backbone, task: Task, budget: Budget | None = None) -> tuple[Extracted, Verdict]:
    """The machine read out of a model, and whether it is the task's: on all words, or on all stories and questions."""
    machine = task.machine
    if task.question is None:
        read = extract(model.eval(), symbols=machine.symbols, labels=task.labels)
        return read, certify(read, machine, labels=task.label_kind)
    people = PEOPLE[: task.question.n_answers]
    question = QuestionMachine.at_end(task.question, machine, task.grammar, people)
    read = extract(model.eval(), labels=machine.states, answers=people, grammar=task.grammar, budget=budget or Budget())
    return read, certify(read, machine, question=question)
