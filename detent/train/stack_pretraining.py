"""Teach a stack of two layers: the registers of the task as teachers, then the task's own loss alone.

Given are the registers that a state is made of, and the sizes of the layers. Found in the stories are which register
goes into which layer, what the end of a story asks about, and every table. An arm that is told so much is called
`anchored`, whatever it was asked for by.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from detent._types import MISSING, Ints
from detent.errors import InvalidConfig
from detent.nn import NFSM, Backbone
from detent.nn.backbone import BackboneLayer
from detent.nn.init import truncated_
from detent.ops.tables import entry_offsets, offsets
from detent.ops.torch_kernels import project_values
from detent.tasks import Task
from detent.tasks.free_order_stories import free_order_grammar
from detent.tasks.grammar import random_prefixes
from detent.train.build import network
from detent.train.checkpointer import Keeper
from detent.train.config import Plan
from detent.train.loop import Watcher, take
from detent.train.phases import Taught, Tracking
from detent.train.pretraining import Anchoring, lead
from detent.train.settings import Settings
from detent.train.stack_supervision import Lessons, Moves, Stages, learn_from, stage, stories

# -- The anchored phase of a stack: teach two layers their registers, and the read-outs to tell them, row by row.


class StackAnchor(nn.Module):
    """A model of two NFSM layers with a convolution, what its heads carry, and a reader for every register."""

    def __init__(
        self, model: Backbone, stages: Stages, lessons: Lessons, settings: Anchoring, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.model, self.stages, self.lessons, self.settings = model, stages, lessons, settings
        self.layers: list[BackboneLayer] = list(model.layers)  # type: ignore[arg-type]
        sizes = stages.parts.max(axis=0) + 1
        self.readers = nn.ParameterList(nn.Parameter(torch.empty(int(d), model.width)) for d in sizes)
        for reader in self.readers:
            truncated_(reader, generator)

    def loss(self, reads: Ints) -> Tensor:
        """Cross-entropy of every column of every window, and of what is said and answered at some of the reads."""
        streams = self._streams()
        total = streams[0].new_zeros(())
        for theta, moves in self._columns(streams):
            total = total + cross_entropy(theta.flatten(0, 1), torch.from_numpy(moves.table).flatten())
        for scores, right in self._said(streams[1], reads):
            total = total + cross_entropy(scores, right)
        return total

    @torch.no_grad()
    def margins(self) -> tuple[float, float]:
        """(smallest lead of a right logit, in units of the temperature; of a right value or answer), without noise.

        Of moves that stories showed; the others are taught and need not hold.
        """
        training = self.model.training
        self.model.eval()
        streams = self._streams()
        tables = []
        for theta, moves in self._columns(streams):
            seen = torch.from_numpy(moves.seen)
            tables.append(lead(theta[seen], torch.from_numpy(moves.table)[seen]))
        reads = [lead(*pair) for pair in self._said(streams[1], np.arange(len(self.lessons.reads)))]
        self.model.train(training)
        return min(tables), min(reads)

    @torch.no_grad()
    def release(self) -> None:
        """Write the readers into the map to the labels; from here on the model stands alone."""
        parts = torch.from_numpy(self.stages.parts)
        self.model.readout.bias.zero_()
        self.model.readout.weight.zero_()
        for k, reader in enumerate(self.readers):
            self.model.readout.weight += reader[parts[:, k]]

    def _streams(self) -> tuple[Tensor, Tensor]:
        """What the layers read: one row for every symbol, and one for every input of the second layer."""
        symbols = self.model.encode(torch.arange(self.model.vocabulary))
        return symbols, _above(self.layers[0], symbols, self.lessons.inputs)

    def _columns(self, streams: tuple[Tensor, Tensor]) -> list[tuple[Tensor, Moves]]:
        """For every head of both layers its logits over the temperature, R d d as [window, from, to], and its moves."""
        found = []
        for layer, stream, windows, moves in zip(
            self.layers, streams, self.lessons.windows, self.lessons.moves, strict=True
        ):
            block = _block(layer)
            flat = linear(block.logit_input(_read(layer, stream, windows)), block.weight, block.bias)
            flat = flat / block.config.temperature
            for d, at, head in zip(block.heads, entry_offsets(block.heads), moves, strict=True):
                found.append((flat[:, at : at + d * d].view(-1, d, d), head))
        return found

    def _said(self, inputs: Tensor, reads: Ints) -> list[tuple[Tensor, Tensor]]:
        """(scores, what is right) of every reader at these reads, and of the answers at those that ask for one."""
        lessons = self.lessons
        seen = self.model.decode(_above(self.layers[1], inputs, lessons.reads[reads]))
        parts = torch.from_numpy(lessons.parts[reads])
        found = [(linear(seen, reader), parts[:, k]) for k, reader in enumerate(self.readers)]
        answers = torch.from_numpy(lessons.answers[reads])
        asked = (answers != MISSING).nonzero().flatten()
        if self.model.answer_head is not None and len(asked):
            found.append((self.model.answer_head(seen[asked]), answers[asked]))
        return found


class AnchoredStack(Taught):
    """Registers as teachers."""

    def __init__(self, anchor: StackAnchor, generator: np.random.Generator) -> None:
        super().__init__(anchor, anchor.settings)
        self.anchor, self.generator = anchor, generator

    def lesson(self) -> Tensor:
        return self.anchor.loss(self._some())

    def margins(self) -> tuple[float, float]:
        return self.anchor.margins()

    def _some(self) -> Ints:
        """Reads for one step: half of them ask for an answer, where there are so many."""
        lessons, half = self.anchor.lessons, self.anchor.settings.rows // 2
        chosen = []
        for kind in (lessons.answers == MISSING, lessons.answers != MISSING):
            rows = np.flatnonzero(kind)
            chosen.append(rows if len(rows) <= half else self.generator.choice(rows, half, replace=False))
        return np.concatenate(chosen)


def _read(layer: BackboneLayer, stream: Tensor, windows: Ints) -> Tensor:
    """What the block reads in every window (R m); before a word began, a convolution holds zeros."""
    rows = torch.from_numpy(windows)
    last = layer.norm1(stream[rows[:, :-1]]) * (rows[:, :-1, None] != MISSING)
    return layer.block_input(stream[rows[:, -1:]], last)[0][:, 0]


def _above(layer: BackboneLayer, stream: Tensor, rows: Ints) -> Tensor:
    """The residual stream above a layer: rows of (what it read, the indices it has moved to)."""
    block, read = _block(layer), torch.from_numpy(rows)
    vectors = project_values(block.values, block.out_proj.weight, block.heads)
    said = block.out_proj.bias + vectors[read[:, 1:] + torch.tensor(offsets(block.heads))].sum(dim=1)
    return layer.feed_forward(stream[read[:, 0]] + said)


def _block(layer: BackboneLayer) -> NFSM:
    assert isinstance(layer.block, NFSM)
    return layer.block


WATCHED = 8
"""Batches of stories from which it is told what registers depend on."""


def fitted(plan: Plan, task: Task) -> Plan:
    """The plan as a task that takes a stack needs it: named for what it is given, with the paper's long stories."""
    if task.layers is None:
        return plan
    if plan.heads is not None:
        raise InvalidConfig(
            f"{task.name} takes layers of {' and '.join(str(len(heads)) for heads in task.layers)} heads, "
            f"and their sizes are given; got heads {plan.heads}. Leave them out."
        )
    tracking = replace(plan.tracking, batch=64, length=256) if plan.tracking == Settings() else plan.tracking
    return replace(plan, arm="paper" if plan.arm == "paper" else "anchored", tracking=tracking)


def teach(plan: Plan, task: Task, note: Watcher, keeper: Keeper) -> Backbone:
    """A trained stack."""
    words, weights = np.random.default_rng(plan.seed), torch.Generator().manual_seed(plan.seed)
    told = stories(task, words)
    stages = stage(task, list(islice(told, WATCHED)))
    lessons = learn_from(told, stages, _tellings(task, words))
    model = network(
        task, stages.heads, stages.starts, width=plan.width, dropout=plan.dropout, temperature=plan.temperature,
        generator=weights,
    )  # fmt: skip
    anchor = StackAnchor(model, stages, lessons, plan.anchoring, weights)
    take(AnchoredStack(anchor, words), note, keeper)
    anchor.release()
    longer = replace(plan.release, batch=32, length=max(plan.release.length, 64))
    take(Tracking(model, task, longer, words, name="released"), note, keeper)
    return model


def _tellings(task: Task, words: np.random.Generator) -> Iterator[Ints]:
    """Text without labels: stories in any order, with questions on the way."""
    assert task.question is not None
    grammar = free_order_grammar(task.question.n_answers)
    while True:
        yield random_prefixes(grammar, 128, 100, words)
