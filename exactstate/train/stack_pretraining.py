"""Train a stack of two layers on a task with registers: pretrain on the registers, then fine-tune on the task's loss.

Given are the registers that a state consists of, and the sizes of the layers. Inferred from stories are the layer of
each register, what the question at the end of a story asks about, and every table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from exactstate._types import MISSING, Ints
from exactstate.nn import NFSM, Backbone
from exactstate.nn.backbone import BackboneLayer
from exactstate.nn.init import truncated_
from exactstate.ops.tables import entry_offsets, offsets
from exactstate.ops.torch_kernels import project_values
from exactstate.tasks import Task
from exactstate.tasks.free_order_stories import free_order_grammar
from exactstate.tasks.grammar import random_prefixes
from exactstate.train.build import build_model
from exactstate.train.config import PretrainConfig, TrainConfig
from exactstate.train.phases import EndToEndPhase, SupervisedPhase
from exactstate.train.pretraining import min_margin
from exactstate.train.stack_supervision import (
    HeadTargets,
    RegisterLayout,
    StackTargets,
    assign_registers,
    collect_targets,
    sample_stories,
)
from exactstate.train.trainer import Trainer


class StackPretrainer(nn.Module):
    """A model of two NFSM layers with a convolution, the layout of its registers, and a reader per register."""

    def __init__(
        self,
        model: Backbone,
        layout: RegisterLayout,
        targets: StackTargets,
        config: PretrainConfig,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.model, self.layout, self.targets, self.config = model, layout, targets, config
        self.layers: list[BackboneLayer] = list(model.layers)  # type: ignore[arg-type]
        sizes = layout.parts.max(axis=0) + 1
        self.readers = nn.ParameterList(nn.Parameter(torch.empty(int(d), model.width)) for d in sizes)
        for reader in self.readers:
            truncated_(reader, generator)

    def loss(self, reads: Ints) -> Tensor:
        """Cross-entropy of every column of every window, and of the readers and answers at some of the reads."""
        streams = self._streams()
        total = streams[0].new_zeros(())
        for theta, moves in self._columns(streams):
            total = total + cross_entropy(theta.flatten(0, 1), torch.from_numpy(moves.table).flatten())
        for scores, right in self._scores(streams[1], reads):
            total = total + cross_entropy(scores, right)
        return total

    @torch.no_grad()
    def margins(self) -> tuple[float, float]:
        """(smallest margin of a right logit, in units of the temperature; of a right value or answer), without noise.

        Of transitions that stories show; the others are trained and need not hold.
        """
        training = self.model.training
        self.model.eval()
        streams = self._streams()
        tables = []
        for theta, moves in self._columns(streams):
            seen = torch.from_numpy(moves.seen)
            tables.append(min_margin(theta[seen], torch.from_numpy(moves.table)[seen]))
        reads = [min_margin(*pair) for pair in self._scores(streams[1], np.arange(len(self.targets.reads)))]
        self.model.train(training)
        return min(tables), min(reads)

    @torch.no_grad()
    def fold_readers(self) -> None:
        """Write the readers into the read-out of the model, which needs them no longer."""
        parts = torch.from_numpy(self.layout.parts)
        self.model.readout.bias.zero_()
        self.model.readout.weight.zero_()
        for k, reader in enumerate(self.readers):
            self.model.readout.weight += reader[parts[:, k]]

    def _streams(self) -> tuple[Tensor, Tensor]:
        """The inputs of the layers: one row for every symbol, and one for every input of the second layer."""
        symbols = self.model.encode(torch.arange(self.model.vocabulary))
        return symbols, _above(self.layers[0], symbols, self.targets.inputs)

    def _columns(self, streams: tuple[Tensor, Tensor]) -> list[tuple[Tensor, HeadTargets]]:
        """For every head of both layers its logits / temperature, R d d as [window, from, to], and its targets."""
        columns = []
        for layer, stream, windows, moves in zip(
            self.layers, streams, self.targets.windows, self.targets.moves, strict=True
        ):
            block = _block(layer)
            flat = linear(block.logit_input(_read(layer, stream, windows)), block.weight, block.bias)
            flat = flat / block.config.temperature
            for d, at, head in zip(block.heads, entry_offsets(block.heads), moves, strict=True):
                columns.append((flat[:, at : at + d * d].view(-1, d, d), head))
        return columns

    def _scores(self, inputs: Tensor, reads: Ints) -> list[tuple[Tensor, Tensor]]:
        """(scores, right value) of every reader at these reads, and of the answers at those with a query."""
        targets = self.targets
        features = self.model.decode(_above(self.layers[1], inputs, targets.reads[reads]))
        parts = torch.from_numpy(targets.parts[reads])
        scores = [(linear(features, reader), parts[:, k]) for k, reader in enumerate(self.readers)]
        answers = torch.from_numpy(targets.answers[reads])
        queried = (answers != MISSING).nonzero().flatten()
        if self.model.answer_head is not None and len(queried):
            scores.append((self.model.answer_head(features[queried]), answers[queried]))
        return scores


class StackPretrainPhase(SupervisedPhase):
    """Two layers, pretrained on the transitions of their registers."""

    def __init__(self, pretrainer: StackPretrainer, generator: np.random.Generator) -> None:
        super().__init__(pretrainer, pretrainer.config, generator)
        self.pretrainer = pretrainer

    def compute_loss(self) -> Tensor:
        return self.pretrainer.loss(self._sample_reads())

    def margins(self) -> tuple[float, float]:
        return self.pretrainer.margins()

    def _sample_reads(self) -> Ints:
        """Reads for one step: half of them with a query, where there are so many."""
        targets, half = self.pretrainer.targets, self.config.rows // 2
        chosen = []
        for kind in (targets.answers == MISSING, targets.answers != MISSING):
            rows = np.flatnonzero(kind)
            chosen.append(rows if len(rows) <= half else self.generator.choice(rows, half, replace=False))
        return np.concatenate(chosen)


def _read(layer: BackboneLayer, stream: Tensor, windows: Ints) -> Tensor:
    """The input of the block in every window (R m); before a word begins, a convolution holds zeros."""
    rows = torch.from_numpy(windows)
    last = layer.norm1(stream[rows[:, :-1]]) * (rows[:, :-1, None] != MISSING)
    return layer.block_input(stream[rows[:, -1:]], last)[0][:, 0]


def _above(layer: BackboneLayer, stream: Tensor, rows: Ints) -> Tensor:
    """The residual stream above a layer: rows of (its input, its indices after it)."""
    block, read = _block(layer), torch.from_numpy(rows)
    vectors = project_values(block.values, block.out_proj.weight, block.heads)
    output = block.out_proj.bias + vectors[read[:, 1:] + torch.tensor(offsets(block.heads))].sum(dim=1)
    return layer.feed_forward(stream[read[:, 0]] + output)


def _block(layer: BackboneLayer) -> NFSM:
    assert isinstance(layer.block, NFSM)
    return layer.block


DEPENDENCY_BATCHES = 8
"""Batches of stories in which the dependencies of registers are counted."""


def train_stack(config: TrainConfig, task: Task, trainer: Trainer, *, free_order: bool = True) -> Backbone:
    """Assign registers to layers, pretrain on what stories show of them, fine-tune.

    With `free_order` also on what the rules of the registers say about sentences in any order.
    """
    words, weights = np.random.default_rng(config.seed), torch.Generator().manual_seed(config.seed)
    stories = sample_stories(task, words)
    layout = assign_registers(task, list(islice(stories, DEPENDENCY_BATCHES)))
    targets = collect_targets(stories, layout, _free_texts(task, words) if free_order else None)
    model = build_model(config, task, heads=layout.heads, initial_states=layout.starts, generator=weights)
    pretrainer = StackPretrainer(model, layout, targets, config.pretrain, weights)
    trainer.run_phase(StackPretrainPhase(pretrainer, words))
    pretrainer.fold_readers()
    finetune = replace(config.finetune, batch=32, length=max(config.finetune.length, 64))
    trainer.run_phase(EndToEndPhase(model, task, finetune, words, name="finetune"))
    return model


def _free_texts(task: Task, words: np.random.Generator) -> Iterator[Ints]:
    """Text without labels: sentences in any order, with questions on the way."""
    assert task.question is not None
    grammar = free_order_grammar(task.question.n_answers)
    while True:
        yield random_prefixes(grammar, 128, 100, words)
