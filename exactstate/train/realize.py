"""Realize state codes in a network: its tables become those of the codes by a margin, its read-outs tell them apart.

    V  symbols     m  width     n  labels     r  heads of a layer     d  indices of a head     R  rows

    phase = Realize(model, codes, generator=np.random.default_rng(42))
    trainer.run_phase(phase)
    model = phase.network()

With the index of every head known, nothing depends on time: a layer is trained on the distinct inputs that it can
have, and the read-outs on the distinct inputs of theirs. Where labels determine indices of heads, and these together
the label, a linear reader is trained for each such head, and `network` adds them up to the read-out of the model; where
labels are outputs, the read-out itself is trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from exactstate._types import MISSING, Ints
from exactstate.automata import Mealy, Moore
from exactstate.errors import InvalidConfig
from exactstate.learning.passive_learning import infer_machine
from exactstate.nn import NFSM, Backbone
from exactstate.nn.backbone import BackboneLayer
from exactstate.nn.init import truncated_
from exactstate.ops.tables import entry_offsets, offsets
from exactstate.ops.torch_kernels import project_values
from exactstate.records import Row
from exactstate.tasks import OutputTask, Task
from exactstate.train.build import build_model
from exactstate.train.codes import (
    StateCodes,
    codes_of_counts,
    codes_of_machine,
    complete,
    count_transitions,
    is_function_of,
)
from exactstate.train.config import TrainConfig
from exactstate.train.optimizer import AdamW
from exactstate.train.phases import Phase, Rate
from exactstate.train.registers import codes_of_registers
from exactstate.train.trainer import Trainer

RATE, WEIGHT_DECAY = Rate(3e-3, 3e-4, 150), 1e-4
STEPS, CHECK_EVERY = 3_000, 10
"""The most steps; steps between two checks."""
ROWS = 1024
"""Read-outs trained per step, at most."""
TABLE_MARGIN, READ_MARGIN = 4.0, 3.0
"""How far a right logit must exceed every other in its column, in units of the temperature; a right read-out."""
UNLABELED = 4096
"""Rows without a label or an answer that read-outs are trained on, about."""
NEVER = -1e3
"""Bias of labels that no row has: they must not be the arg max."""


@dataclass(frozen=True, eq=False)
class HeadTargets:
    """The tables of one head."""

    table: Tensor
    """R d: the index after every window at every index; see `complete` for what no row shows."""
    shown: Tensor
    """R d: whether a row shows it."""


class Targets:
    """The distinct inputs, transitions and read-outs of every layer that the rows of codes have."""

    def __init__(self, codes: StateCodes, symbols: int) -> None:
        rows, r = codes.rows.astype(np.int64), sum(map(len, codes.heads))
        last: Ints = rows[:, 0]
        now: Ints = rows[:, 1]
        before, after = rows[:, 2 : 2 + r], rows[:, 2 + r : 2 + 2 * r]
        self.windows: list[Tensor] = []
        """R 2 for every layer: rows of the stream below it; MISSING before a word began."""
        self.moves: list[list[HeadTargets]] = []
        """For every head of every layer."""
        self.inputs: list[Tensor] = []
        """For every layer R (1 + r): a row of the stream below it, and the indices of its heads: one row above it."""
        begin = 0
        for sizes in codes.heads:
            own = slice(begin, begin + len(sizes))
            windows, window = np.unique(np.column_stack([last, now]), axis=0, return_inverse=True)
            steps = zip(before[:, own].T, after[:, own].T, sizes, strict=True)
            self.windows.append(torch.from_numpy(windows))
            self.moves.append([head_targets(window.ravel(), k, to, len(windows), d) for k, to, d in steps])
            if own.stop == r:
                self._collect_reads(np.column_stack([now, after[:, own]]), after, rows[:, -2:], codes)
                break
            inputs, number = np.unique(np.column_stack([now, after[:, own]]), axis=0, return_inverse=True)
            self.inputs.append(torch.from_numpy(inputs))
            last = _numbers(np.column_stack([last, before[:, own]]), inputs)
            now, begin = number.ravel(), own.stop
        if codes.tables is not None:
            tables = [(complete(table, table != MISSING), table != MISSING) for table in codes.tables]
            self.windows = [torch.tensor([[MISSING, symbol] for symbol in range(symbols)])]
            self.moves = [[HeadTargets(torch.from_numpy(table), torch.from_numpy(known)) for table, known in tables]]

    def _collect_reads(self, inputs: Ints, after: Ints, said: Ints, codes: StateCodes) -> None:
        """What read-outs are trained on: inputs of the last layer, indices of all heads, labels and answers."""
        blank = np.flatnonzero((said == MISSING).all(axis=1))  # many, and some of them are enough
        kept = np.ones(len(said), bool)
        kept[blank] = False
        kept[blank[:: max(1, len(blank) // UNLABELED)]] = True
        parts = self._parts(said[kept, 0], after[kept], [d for layer in codes.heads for d in layer])
        reads: Ints = np.unique(np.column_stack([inputs[kept], parts, said[kept]]), axis=0)
        self.inputs.append(torch.from_numpy(reads[:, : inputs.shape[1]]))
        self.parts = torch.from_numpy(reads[:, inputs.shape[1] : -2])
        self.labels, self.answers = (torch.from_numpy(column) for column in reads[:, -2:].T)

    def _parts(self, labels: Ints, after: Ints, sizes: Sequence[int]) -> Ints:
        """R p: indices that labels determine, if they together determine the label; no column where they do not."""
        seen = labels != MISSING
        chosen, self.sizes = dict[bytes, int](), list[int]()
        for h, column in enumerate(after.T):
            if sizes[h] > 1 and is_function_of(labels[seen], column[seen]):
                chosen.setdefault(column.tobytes(), h)
        parts: Ints = after[:, list(chosen.values())]
        if not chosen or not seen.any() or not is_function_of(parts[seen], labels[seen]):
            return after[:, :0]
        self.sizes = [sizes[h] for h in chosen.values()]
        return parts


def head_targets(window: Ints, before: Ints, after: Ints, windows: int, d: int) -> HeadTargets:
    """The tables of a head from its steps: window, index before, index after."""
    table, shown = np.zeros((windows, d), np.int64), np.zeros((windows, d), bool)
    table[window, before] = after
    shown[window, before] = True
    assert np.array_equal(table[window, before], after), (
        "the index of a head is not a function of its window and the index before"
    )
    return HeadTargets(torch.from_numpy(complete(table, shown)), torch.from_numpy(shown))


def _numbers(rows: Ints, among: Ints) -> Ints:
    """The number of every row among others; MISSING for those before the beginning of a word."""
    numbers = {tuple(row): i for i, row in enumerate(among.tolist())}
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    return np.array([numbers.get(tuple(row), MISSING) for row in distinct.tolist()])[which.ravel()]


class Realize(Phase):
    """Columns and read-outs are known; done when both margins hold at two checks, or at the last step."""

    def __init__(
        self, model: Backbone, codes: StateCodes, *, generator: np.random.Generator,
        weights: torch.Generator | None = None,
    ) -> None:  # fmt: skip
        """`weights` draws the readers."""
        self.model = model
        self.targets = Targets(codes, model.vocabulary)
        self.readers = nn.ParameterList(nn.Parameter(torch.empty(d, model.width)) for d in self.targets.sizes)
        for reader in self.readers:
            truncated_(reader, weights)
        self.layers: list[BackboneLayer] = list(model.layers)  # type: ignore[arg-type]
        module = nn.ModuleDict({"model": model, "readers": self.readers})
        optimizer = AdamW(module.parameters(), RATE.first, weight_decay=WEIGHT_DECAY)
        super().__init__("realize", module, optimizer, generator, CHECK_EVERY)

    @property
    def done(self) -> bool:
        return self.streak >= 2 or self.steps >= STEPS

    def step(self) -> None:
        self.module.train()
        RATE.set(self.optimizer, self.steps)
        self.optimizer.zero_grad(set_to_none=True)
        streams = self._streams()
        tables = [cross_entropy(theta.flatten(0, 1), head.table.flatten()) for theta, head in self._columns(streams)]
        reads = [cross_entropy(*pair) for pair in self._scores(streams[-1], self._sample_reads())]
        loss = torch.stack([*tables, *reads]).sum()
        loss.backward()
        nn.utils.clip_grad_norm_(self.module.parameters(), 1.0)
        self.optimizer.step()
        self.steps, self.loss = self.steps + 1, float(loss.detach())

    def check(self) -> Row:
        tables, reads = self.margins()
        reached = tables >= TABLE_MARGIN and reads >= READ_MARGIN
        self.streak = self.streak + 1 if reached else 0
        return {"loss": self.loss, "table_margin": tables, "read_margin": reads}

    @torch.no_grad()
    def margins(self) -> tuple[float, float]:
        """(the smallest margin of a right logit, in units of the temperature; of a right read-out), without dropout.

        Of transitions that rows show; the others are trained and need not hold.
        """
        self.model.eval()
        streams = self._streams()
        tables = [min_margin(theta[head.shown], head.table[head.shown]) for theta, head in self._columns(streams)]
        reads = [min_margin(*pair) for pair in self._scores(streams[-1], torch.arange(len(self.targets.labels)))]
        return min(tables), min(reads, default=float("inf"))

    @torch.no_grad()
    def network(self) -> Backbone:
        """The model, which needs the readers no longer."""
        readout, targets = self.model.readout, self.targets
        if not self.readers:  # what all labels share changes no arg max, and rounding errors grow with it
            for shared in (readout.weight, readout.bias):
                shared.sub_(shared.mean(dim=0))
            return self.model
        readout.weight.zero_()
        readout.bias.fill_(NEVER)
        at = (targets.labels != MISSING).nonzero().flatten()
        total = torch.zeros_like(readout.weight)[targets.labels[at]]
        for k, reader in enumerate(self.readers):
            index = targets.parts[at, k]
            total += reader[index] - reader[index.unique()].mean(dim=0)
        readout.weight[targets.labels[at]] = total
        readout.bias[targets.labels[at]] = 0.0
        return self.model

    def _streams(self) -> list[Tensor]:
        """What every layer reads, row by row: symbols, then the distinct outputs of the layer below."""
        streams = [self.model.encode(torch.arange(self.model.vocabulary))]
        for layer, inputs in zip(self.layers[:-1], self.targets.inputs[:-1], strict=True):
            streams.append(_above(layer, streams[-1], inputs))
        return streams

    def _columns(self, streams: Sequence[Tensor]) -> list[tuple[Tensor, HeadTargets]]:
        """For every head its logits / temperature, R d d as [window, from, to], and its targets."""
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

    def _scores(self, stream: Tensor, reads: Tensor) -> list[tuple[Tensor, Tensor]]:
        """(scores, what is right) of every read-out at these reads."""
        targets = self.targets
        features = self.model.decode(_above(self.layers[-1], stream, targets.inputs[-1][reads]))
        scores = [(linear(features, reader), targets.parts[reads, k]) for k, reader in enumerate(self.readers)]
        heads = [] if self.readers else [(self.model.readout, targets.labels)]
        if self.model.answer_head is not None:
            heads.append((self.model.answer_head, targets.answers))
        for readout, column in heads:
            right = column[reads]
            known = (right != MISSING).nonzero().flatten()
            if len(known) and readout.out_features > 1:
                scores.append((readout(features[known]), right[known]))
        return scores

    def _sample_reads(self) -> Tensor:
        """Reads for one step: half of them with an answer, where there are so many."""
        asked = (self.targets.answers != MISSING).numpy()
        most = ROWS // 2 if asked.any() else ROWS
        chosen = [
            rows if len(rows) <= most else self.generator.choice(rows, most, replace=False)
            for rows in (np.flatnonzero(~asked), np.flatnonzero(asked))
        ]
        return torch.from_numpy(np.concatenate(chosen))


def _block(layer: BackboneLayer) -> NFSM:
    assert isinstance(layer.block, NFSM)
    return layer.block


def _read(layer: BackboneLayer, stream: Tensor, windows: Tensor) -> Tensor:
    """The input of the block in every window (R m); before a word begins, a convolution holds zeros."""
    if layer.conv is None:
        return layer.block_input(stream[windows[:, 1]])[0]
    last = layer.norm1(stream[windows[:, :-1]]) * (windows[:, :-1, None] != MISSING)
    return layer.block_input(stream[windows[:, -1:]], last)[0][:, 0]


def _above(layer: BackboneLayer, stream: Tensor, rows: Tensor) -> Tensor:
    """The residual stream above a layer: rows of (its input, its indices after it)."""
    block = _block(layer)
    vectors = project_values(block.values, block.out_proj.weight, block.heads)
    output = block.out_proj.bias + vectors[rows[:, 1:] + torch.tensor(offsets(block.heads))].sum(dim=1)
    return layer.feed_forward(stream[rows[:, 0]] + output)


def min_margin(scores: Tensor, target: Tensor) -> float:
    """The smallest margin over the rows: the right score minus the largest other."""
    if scores.shape[-1] == 1 or not len(scores):
        return float("inf")
    right = scores.gather(1, target[:, None])
    others = scores.scatter(1, target[:, None], -torch.inf)
    return float((right - others.max(dim=1, keepdim=True).values).min())


def realize(
    config: TrainConfig, task: Task, codes: StateCodes, trainer: Trainer, model: Backbone | None = None
) -> Backbone:
    """A network with these codes; by default one that is built with their heads."""
    weights = torch.Generator().manual_seed(config.seed)
    if model is None:
        model = build_model(config, task, heads=codes.heads, initial_states=codes.starts, generator=weights)
    generator = np.random.default_rng([config.seed, 1])
    phase = Realize(model, codes, generator=generator, weights=weights)
    trainer.run_phase(phase)
    return phase.network()


def induce(config: TrainConfig, task: Task, trainer: Trainer) -> Backbone:
    """The recipe `induce`: count labeled transitions, factor them, realize them.

    From outputs alone a machine is inferred first, by state merging; what is certified is that the network's outputs
    are the target's.
    """
    if task.layers is not None:
        return realize_registers(config, task, trainer)
    words, label_of = np.random.default_rng(config.seed), None
    states = f"states of {task.name}"
    if isinstance(task, OutputTask):
        source, task_of_states = task.name, infer_machine(task, words).task
        label_of = task_of_states.machine.readout.astype(np.int64)
        states = f"{task_of_states.machine.n_states} states that were inferred from the outputs of {source}"
    else:
        task_of_states = task
    counts = count_transitions(task_of_states, words, batch=config.end_to_end.batch, length=config.end_to_end.length)
    codes = codes_of_counts(counts, config.heads, seed=config.seed, label_of=label_of)
    return realize(config, task, fitting(codes, states, config), trainer)


def distill(config: TrainConfig, task: Task, trainer: Trainer) -> Backbone:
    """The recipe `distill`: factor the target machine, or take the registers that the task names; realize them."""
    if task.layers is not None:
        return realize_registers(config, task, trainer)
    return realize_machine(config, task, task.machine, np.arange(task.machine.n_states), trainer)


def realize_machine(
    config: TrainConfig, task: Task, machine: Moore | Mealy, label_of: Ints, trainer: Trainer
) -> Backbone:
    """A network whose states are those of a machine that is given; `label_of` (n) is the label of every state."""
    codes = codes_of_machine(machine, machine.start, config.heads, seed=config.seed, label_of=label_of)
    return realize(config, task, fitting(codes, f"{machine.n_states} states", config), trainer)


def realize_registers(config: TrainConfig, task: Task, trainer: Trainer) -> Backbone:
    """Two layers that hold the registers of a task."""
    codes = codes_of_registers(task, np.random.default_rng(config.seed))
    return realize(config, task, codes, trainer)


def fitting(codes: StateCodes | None, states: str, config: TrainConfig) -> StateCodes:
    """The codes, if there are any; raises InvalidConfig if not."""
    if codes is None:
        raise InvalidConfig(
            f"no quotients that distinguish the {states} fit into heads {config.heads}; "
            "leave the heads out, and they are chosen."
        )
    return codes
