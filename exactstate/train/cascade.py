"""A cascade of two layers of free tables: small heads, each learned by itself as a hidden Markov model of the labels.

    B  words     L  their length     W  inputs of a layer     r  heads in training     d  indices of a head
    n  labels

For tasks of two layers, such as stories. A head runs on distributions over its indices (`exactstate.nn.soft`). The
logits of every input are free parameters, with a bias towards staying. Each head has a read-out and a loss of its
own: an index predicts a distribution over labels, and the likelihood of a label is their mixture. So heads do not
share the state in a code that breaks at the next symbol; each finds a part of the state that it can follow alone. A
mixture is certain only where its indices agree, so that states become exact without a schedule.

After some hundred steps the arg max tables are run on words, and every head is read: indices that occur with the same
label are one, and so are those to which an input leads from there. Heads that tell labels apart are kept, the best
first. The others then predict the label given those that are kept, so that nothing is rewarded twice. Heads of the
first layer read the symbol. Heads of the second read the symbol and the joint index of the first layer before it. When
all labels are told apart, the kept heads are a machine, their indices are registers of its states, and `Realize`
puts it into a network of two layers.

Inputs are words and labels that are states; only the verdict at the end looks at the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from exactstate._types import MISSING, Ints
from exactstate.automata import Moore
from exactstate.errors import NotLearned
from exactstate.nn import Backbone
from exactstate.nn.soft import soft_states
from exactstate.ops.interface import resolve
from exactstate.records import Row, write_atomically
from exactstate.tasks import Task
from exactstate.tasks.task import Register
from exactstate.train.build import build_model
from exactstate.train.config import TrainConfig
from exactstate.train.optimizer import Adam
from exactstate.train.phases import Phase
from exactstate.train.realize import realize_registers
from exactstate.train.registers import has_words
from exactstate.train.trainer import Trainer

LR, BATCH, TINY = 0.1, 64, 1e-9
READ_EVERY, FIRST_READ = 100, 300
"""Steps between two readings of the heads, and of a layer before the first one."""
SYMBOLS_MORE, GROW_EVERY, LONGEST = 5, 10, 85
"""Training words gain so many symbols after so many steps, up to this length."""
READ_WORDS, READ_LENGTHS = 512, (60, 120)
"""Words by which heads are read: so many of the shortest length, and of each of these."""
CERTAIN = 1e-9
"""Nats below which labels are told apart."""
MOST_JOINTS = 96
"""Joint indices of the first layer that the second tells apart; more are one."""
STAGE = "cascade"
"""The kept heads, in the folder of a run."""


@dataclass(frozen=True)
class LayerConfig:
    """The heads of a layer in training."""

    heads: int
    size: int
    remember: float
    """Bias of the logits that keep an index where it is. Soft states leak: at 6 an untrained head of eight indices
    forgets half of what it holds in about 25 steps, at 2 in about one."""
    gain: float
    """Nats by which a head must reduce the entropy of the label to be kept, or by half of it."""
    steps: int
    """The most steps."""


LOWER = LayerConfig(heads=8, size=32, remember=2.0, gain=0.1, steps=600)
UPPER = LayerConfig(heads=16, size=8, remember=6.0, gain=0.03, steps=1_500)


@dataclass(frozen=True, eq=False)
class KeptHead:
    """A head that follows a part of the state exactly, on all words by which it was read."""

    tables: Ints
    """W d: the index after every input, at every index."""
    of_label: Ints
    """n: the index at every label, MISSING for labels that no word showed."""

    @property
    def used(self) -> int:
        """How many indices occur."""
        return len(np.unique(self.of_label[self.of_label != MISSING]))


@dataclass(eq=False)
class Cascade:
    """The kept heads of two layers, and what they know of the label."""

    symbols: int
    labels: int
    layers: tuple[list[KeptHead], list[KeptHead]] = field(default_factory=lambda: ([], []))
    entropy: float = float("inf")
    """Nats of the label that they leave open, on the words of the last reading."""
    joints: Ints = field(default_factory=lambda: np.zeros(1, np.int64))
    """The joint indices of the first layer that words reach, ascending; the second layer reads their places."""

    @property
    def learned(self) -> bool:
        """Whether they tell all labels apart."""
        return self.entropy < CERTAIN

    @property
    def heads(self) -> list[KeptHead]:
        """Of both layers."""
        return [*self.layers[0], *self.layers[1]]

    @property
    def groups(self) -> Ints:
        """n: labels that the kept heads do not tell apart have the same number."""
        groups: Ints = np.zeros(self.labels, np.int64)
        for head in self.heads:
            groups = refined(groups, head.of_label)
        return groups

    @property
    def upper_inputs(self) -> int:
        """W of the second layer: a symbol and a joint index of the first, the last of which stands for all others."""
        return self.symbols * (len(self.joints) + 1)

    def joint(self, words: Ints) -> Ints:
        """B L -> B (L + 1): the number of the joint index of the first layer before, between and after symbols."""
        joint = self._joint(words)
        place = np.searchsorted(self.joints, joint).clip(max=len(self.joints) - 1)
        return np.where(self.joints[place] == joint, place, len(self.joints))

    def _joint(self, words: Ints) -> Ints:
        joint = np.zeros((len(words), words.shape[1] + 1), np.int64)
        for head in self.layers[0]:
            joint = joint * head.tables.shape[1] + run_tables(head.tables, words)
        return joint

    def reach(self, words: Sequence[Ints]) -> None:
        """Number the joint indices of the first layer that these words reach."""
        self.joints = np.unique(np.concatenate([self._joint(part).ravel() for part in words]))[:MOST_JOINTS]

    def inputs(self, layer: int, words: Ints) -> Ints:
        """B L: what a layer reads."""
        return words * (len(self.joints) + 1) + self.joint(words)[:, :-1] if layer else words

    def to_tensors(self) -> dict[str, Tensor]:
        """As a file holds it; `from_tensors` reads it."""
        content = {"joints": torch.from_numpy(self.joints)}
        for layer, heads in enumerate(self.layers):
            for number, head in enumerate(heads):
                content[f"{layer}.{number}.tables"] = torch.from_numpy(head.tables)
                content[f"{layer}.{number}.of_label"] = torch.from_numpy(head.of_label)
        return content

    def from_tensors(self, content: dict[str, Tensor]) -> None:
        """Restore what `to_tensors` gave; of heads that tell all labels apart."""
        self.joints = content["joints"].numpy()
        for layer, heads in enumerate(self.layers):
            heads.clear()
            while f"{layer}.{len(heads)}.tables" in content:
                parts = (content[f"{layer}.{len(heads)}.{name}"].numpy() for name in ("tables", "of_label"))
                heads.append(KeptHead(*parts))

    def to_json(self) -> dict[str, Any]:
        """As a checkpoint holds it."""
        content = {name: tensor.tolist() for name, tensor in self.to_tensors().items()}
        return {"kept": content, "entropy": None if self.entropy == float("inf") else self.entropy}

    def from_json(self, content: dict[str, Any]) -> None:
        self.from_tensors({name: torch.tensor(value) for name, value in content["kept"].items()})
        self.entropy = float("inf") if content["entropy"] is None else content["entropy"]


def run_tables(tables: Ints, inputs: Ints) -> Ints:
    """B L -> B (L + 1): the index before, between and after inputs, from index 0."""
    path = np.zeros((inputs.shape[0], inputs.shape[1] + 1), np.int64)
    for t in range(inputs.shape[1]):
        path[:, t + 1] = tables[inputs[:, t], path[:, t]]
    return path


class FreeHeads(nn.Module):
    """Heads with free logits for every input, and a read-out for each."""

    def __init__(self, inputs: int, labels: int, config: LayerConfig, generator: torch.Generator) -> None:
        super().__init__()
        r, d = config.heads, config.size
        self.config, self.backend = config, resolve("auto")
        self.logits = nn.Parameter(torch.empty(inputs, r, d, d))
        """W r d d: entry [a, h, k, j] scores the move of head h from index k to index j at input a."""
        self.readout = nn.Parameter(torch.empty(labels, r, d))
        self.draw(range(r), generator)

    @torch.no_grad()
    def draw(
        self, heads: Iterable[int], generator: torch.Generator, optimizer: torch.optim.Optimizer | None = None
    ) -> None:
        """Draw the logits and the read-out of these heads; the optimizer's moments of them are zero."""
        (W, _, d, _), n = self.logits.shape, len(self.readout)
        for h in heads:
            self.logits[:, h] = torch.randn(W, d, d, generator=generator) + self.config.remember * torch.eye(d)
            self.readout[:, h] = 0.5 * torch.randn(n, d, generator=generator)
            for parameter in (self.logits, self.readout):
                for moment in ("exp_avg", "exp_avg_sq") if optimizer is not None else ():
                    optimizer.state[parameter][moment][:, h] = 0.0  # type: ignore[union-attr]

    def losses(self, inputs: Tensor, rows: int, labels: Tensor, groups: Tensor) -> Tensor:
        """r: minus the log-likelihood of the labels by every head, given their groups; the inputs are below `rows`."""
        r, d = self.config.heads, self.config.size
        weight, start = self.logits[:rows].flatten(1).T, torch.zeros(len(inputs), r, dtype=torch.int64)
        states = soft_states(torch.eye(rows), weight, torch.zeros(r * d * d), (d,) * r, start, 1.0, row_index=inputs,
                             backend=self.backend)  # fmt: skip
        scores = self.readout.exp()
        totals = scores.new_zeros(int(groups.max()) + 1, r, d).index_add(0, groups, scores)
        chances = (scores / totals[groups]).flatten(1)
        likelihoods = nn.functional.embedding(labels.flatten(), chances).mul(states.flatten(0, 1))
        return -(likelihoods.view(-1, r, d).sum(-1) + TINY).log().mean(0)


class CascadePhase(Phase):
    """The heads of one layer after the other; done when the kept heads tell all labels apart, or at the last step.

    The first layer ends at a reading that finds nothing more to keep.
    """

    STATE = (*Phase.STATE, "layer", "begun")

    def __init__(self, task: Task, generator: np.random.Generator, weights: torch.Generator) -> None:
        symbols, labels = task.machine.n_symbols, task.machine.n_states
        self.lower = FreeHeads(symbols, labels, LOWER, weights)
        self.upper = FreeHeads(symbols * (MOST_JOINTS + 1), labels, UPPER, weights)
        module = nn.ModuleList([self.lower, self.upper])
        super().__init__("cascade", module, Adam(module.parameters(), LR, fused=True), generator, READ_EVERY)
        self.task, self.cascade = task, Cascade(symbols, labels)
        self.lengths = [length for length in range(1, max(READ_LENGTHS) + 1) if has_words(task, length)]
        self.layer, self.begun = 0, 0
        """Which layer is trained, and the step at which it began."""

    @property
    def heads(self) -> FreeHeads:
        """Those in training."""
        return self.upper if self.layer else self.lower

    @property
    def done(self) -> bool:
        return self.cascade.learned or (self.layer == 1 and self.steps - self.begun >= UPPER.steps)

    def sample(self, batch: int, length: int) -> tuple[Ints, Ints]:
        """(symbols, labels), B L each, of words about as long."""
        at = np.searchsorted(self.lengths, length - int(self.generator.integers(SYMBOLS_MORE)), "right") - 1
        drawn = self.task.sample(batch, self.lengths[max(0, int(at))], self.generator)
        return drawn.inputs.astype(np.int64), drawn.states.astype(np.int64)

    def step(self) -> None:
        begun = self.steps - self.begun
        words, labels = self.sample(BATCH, min(LONGEST, self.lengths[0] + SYMBOLS_MORE * (begun // GROW_EVERY)))
        rows = self.cascade.upper_inputs if self.layer else self.cascade.symbols
        inputs = torch.from_numpy(self.cascade.inputs(self.layer, words))
        loss = self.heads.losses(inputs, rows, torch.from_numpy(labels), torch.from_numpy(self.cascade.groups)).sum()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.steps, self.loss = self.steps + 1, float(loss.detach()) / self.heads.config.heads

    def check(self) -> Row:
        """Read the heads, keep those that tell labels apart, and begin the second layer after the first."""
        begun, kept = self.steps - self.begun, 0
        if begun >= FIRST_READ:
            kept = self.keep_heads()
        row = {
            "loss": self.loss, "layer": self.layer, "kept": [head.used for head in self.cascade.layers[self.layer]],
            "open": None if self.cascade.entropy == float("inf") else round(self.cascade.entropy, 6),
        }  # fmt: skip
        enough = begun >= LOWER.steps or (begun >= FIRST_READ and not kept and bool(self.cascade.layers[0]))
        if self.layer == 0 and enough and not self.cascade.learned:
            self.layer, self.begun = 1, self.steps
            self.cascade.reach([self.sample(READ_WORDS, length)[0] for length in 2 * self.read_lengths])
        return row

    @property
    def read_lengths(self) -> list[int]:
        return [self.lengths[0], *READ_LENGTHS]

    def keep_heads(self) -> int:
        """Read the heads on fresh words, keep those that tell labels apart, draw others in their place; how many."""
        cascade, layer = self.cascade, self.layer
        batches: list[tuple[Ints, Ints, Ints]] = []
        for length in self.read_lengths:
            words, labels = self.sample(READ_WORDS, length)
            below = cascade.joint(words)[:, 1:] if layer else np.zeros_like(words)
            batches.append((cascade.inputs(layer, words), below, labels))
        tables, joints = self.heads.logits.detach().argmax(-1).numpy(), len(cascade.joints) + 1 if layer else 1
        counts = np.bincount(np.concatenate([labels.ravel() for *_, labels in batches]), minlength=cascade.labels)
        read = {h: read_head(tables[:, h], batches, joints, cascade.labels) for h in range(tables.shape[1])}
        groups, kept = cascade.groups, list[int]()
        cascade.entropy = entropy(groups, counts)
        while read and not cascade.learned:
            finer = {h: refined(groups, head.of_label) for h, head in read.items()}
            left = {h: entropy(one, counts) for h, one in finer.items()}
            best = min(left, key=left.__getitem__)
            if cascade.entropy - left[best] < min(self.heads.config.gain, cascade.entropy / 2):
                break
            cascade.layers[layer].append(read.pop(best))
            groups, cascade.entropy = finer[best], left[best]
            kept.append(best)
        drawing = torch.Generator().manual_seed(int(self.generator.integers(2**62)))
        self.heads.draw(kept, drawing, self.optimizer)
        return len(kept)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "cascade": self.cascade.to_json()}

    def load_state(self, state: dict[str, Any]) -> None:
        super().load_state(state)
        self.cascade.from_json(state["cascade"])


def read_head(
    tables: Ints, batches: Sequence[tuple[Ints, Ints, Ints]], below: int, labels: int
) -> KeptHead:  # fmt: skip
    """What a head with these tables (W d) holds, without redundant indices.

    A batch is (inputs: B L, numbers of the joint index below after them: B L, labels: B L). A node is a joint index
    below and an index of the head. Nodes that occur with the same label are one, and so are those to which an input
    leads from one node: what remains follows the label exactly, on these words, and changes with the input alone.
    """
    d = tables.shape[1]
    occurs, moves = [], []
    for inputs, after, label in batches:
        path = run_tables(tables, inputs)
        node = after * d + path[:, 1:]
        occurs.append(np.unique(label.astype(np.int64) * (below * d) + node))
        moves.append(np.unique((inputs * d + path[:, :-1]) * (below * d) + node))
    parent = list(range(below * d))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    def merge(one: int, other: int) -> bool:
        """The smaller root stays; whether anything changed."""
        one, other = sorted((root(one), root(other)))
        parent[other] = one
        return one != other

    first: dict[int, int] = {}
    for row in distinct(occurs):
        label_number, node = divmod(row, below * d)
        merge(first.setdefault(label_number, node), node)
    steps = [(*divmod(at, d), node) for at, node in (divmod(row, below * d) for row in distinct(moves))]
    leads: dict[tuple[int, int], int] = {}
    changed = True
    while changed:
        changed = False
        leads.clear()
        for input, index, node in steps:
            at = (input, root(input % below * d + index))
            changed |= merge(leads.setdefault(at, node), node)
    of_label = np.full(labels, MISSING)
    for label_number, node in first.items():
        of_label[label_number] = root(node) % d
    smaller = np.tile(np.arange(d), (len(tables), 1))
    for (input, node), to in leads.items():
        smaller[input, node % d] = root(to) % d
    return KeptHead(smaller, of_label)


def learned_task(task: Task, cascade: Cascade) -> Task:
    """The task with the machine that was learned instead of its own, and the kept heads as registers of its states.

    Labels that no word showed have no transitions; the initial state is where all heads are at index 0.
    """
    heads, lower, labels = cascade.heads, len(cascade.layers[0]), np.arange(cascade.labels)
    codes = np.stack([head.of_label for head in heads], axis=1)
    codes[task.machine.start] = 0
    seen = (codes != MISSING).all(axis=1)
    codes = np.where(seen[:, None], codes, 0)
    joint = np.zeros_like(labels)
    for h, head in enumerate(cascade.layers[0]):
        joint = joint * head.tables.shape[1] + codes[:, h]
    below = np.searchsorted(cascade.joints, joint).clip(max=len(cascade.joints) - 1)
    number = {tuple(code): label for label, code in enumerate(codes.tolist()) if seen[label]}
    tables = np.tile(labels, (cascade.symbols, 1))
    for symbol in range(cascade.symbols):
        inputs = [symbol * (len(cascade.joints) + 1) + below if h >= lower else symbol for h in range(len(heads))]
        after = np.stack([head.tables[inputs[h], codes[:, h]] for h, head in enumerate(heads)], axis=1)
        for label in labels[seen].tolist():
            tables[symbol, label] = number.get(tuple(after[label].tolist()), label)
    machine = task.machine
    learned = Moore(
        symbols=machine.symbols, tables=tables, states=machine.states, outputs=machine.outputs,
        readout=machine.readout, start=machine.start,
    )  # fmt: skip
    registers = []
    for h in range(len(heads)):
        values, of_state = np.unique(codes[:, h], return_inverse=True)
        names = tuple(f"index {value}" for value in values)
        registers.append(Register(f"head {h} of the cascade", names, of_state.ravel()))
    sizes = tuple(len(register.values) for register in registers)
    queries = () if task.question is None else (task.question.n_answers + 1,)
    layers = (*sizes[:lower], *sizes[:lower], *queries), sizes[lower:] or sizes[:lower]
    return replace(task, machine=learned, registers=tuple(registers), layers=layers)


def train_cascade(config: TrainConfig, task: Task, trainer: Trainer) -> Backbone:
    """Learn the heads of two layers from words and labels, and distill what they are into a network."""
    phase = CascadePhase(task, np.random.default_rng([config.seed, 3]), torch.Generator().manual_seed(config.seed))
    trainer.run_phase(phase, keep=True)
    cascade, path = phase.cascade, None if trainer.run_dir is None else trainer.run_dir.stage_path(STAGE)
    if trainer.paused:
        return build_model(config, task)
    if path is not None and trainer.has_stage(STAGE):
        cascade.from_tensors(load_file(path))
    elif not cascade.learned:
        raise NotLearned(_not_learned(task, phase, trainer.checkpointer.attempt + 1))
    elif path is not None:
        _save(path, cascade, trainer.checkpointer.attempt)
    return realize_registers(config, learned_task(task, cascade), trainer, free_order=False)


def _save(path: Path, cascade: Cascade, attempt: int) -> None:
    tensors = {name: tensor.contiguous() for name, tensor in cascade.to_tensors().items()}
    write_atomically(path, to_bytes(tensors, {"attempt": str(attempt)}))


def _not_learned(task: Task, phase: CascadePhase, attempt: int) -> str:
    which, sizes = f", attempt {attempt}" if attempt > 1 else "", [head.used for head in phase.cascade.heads]
    return (
        f"{task.name} was not learned in {phase.steps} steps{which}: heads of {', '.join(map(str, sizes)) or 'no'} "
        f"indices were found, which leave {phase.cascade.entropy:.2f} nats of the state open. Try another seed, or "
        "--recipe distill, which is given the registers of the task."
    )


def distinct(parts: Sequence[Ints]) -> list[int]:
    """The distinct numbers, ascending."""
    numbers: list[int] = np.unique(np.concatenate(parts)).tolist()
    return numbers


def refined(groups: Ints, indices: Ints) -> Ints:
    """n: labels of the same group at the same index have the same number."""
    finer: Ints = np.unique(np.stack([groups, indices], axis=1), axis=0, return_inverse=True)[1].ravel()
    return finer


def entropy(groups: Ints, counts: Ints) -> float:
    """Nats of the label, given its group."""
    shares = counts / counts.sum()
    of_group = np.bincount(groups, shares)[groups]
    seen = shares > 0
    return max(0.0, float(-(shares[seen] * np.log(shares[seen] / of_group[seen])).sum()))
