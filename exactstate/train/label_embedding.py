"""Heads that begin with label embeddings: for thousands of states, where words alone show a head too little.

    n  labels     g  groups     c  copies     d  indices of a head     r  heads     N  positions

With many states almost every short word has a state of its own, so that a head is rewarded for the last symbols and not
for the state. Where labels are states, a label says where the target is, and a position can start from it:

1. `LabelEmbedding` gives every label c vectors of d numbers, and every symbol a d x d matrix. The matrices of k symbols
   in a row, applied to the vectors of the label before them, are to give the vectors of the label after them. This is a
   linear recurrence, which has few bad minima. `EmbeddingPhase` trains several of these (groups) at once by gradient,
   until one of them still predicts after `FAR` symbols.
2. `HeadPhase` trains the tables of an NFSM layer: a softmax of a linear map of the embedding says at which index a head
   is, and the softmaxes of the columns say where k symbols move it. Few parameters decide the index of all labels, so
   that most draws come to follow the state.
3. `share_tables`: a table that follows the state does so from every index. Heads that have found nothing become copies
   of those that have, and start at other indices of the same table.

Everything is learned by gradient from words and their labels; no transition is counted. Embeddings are discarded, and
the search for heads (`search.py`) begins with these tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from exactstate.errors import InvalidConfig, NotLearned
from exactstate.nn import NFSM, Backbone
from exactstate.nn.init import fan_in_
from exactstate.nn.renewal import agreement
from exactstate.ops.tables import entry_offsets
from exactstate.records import Row
from exactstate.tasks import Task
from exactstate.train.optimizer import Adam
from exactstate.train.phases import Phase, labels_of, tokens_of
from exactstate.train.trainer import Trainer
from exactstate.train.wide import block_of

GROUPS, COPIES = 4, 3
"""Embeddings that are trained at once, and vectors of a label in each, which share the matrices of the symbols."""
SPAN = 3
"""Most symbols between the label that a position starts from and the one that it predicts."""
FAR, FAR_CORRELATION = 8, 0.75
"""An embedding has found something when its prediction after so many symbols correlates this much with the truth."""
SETTLE = 200
"""Further steps of an embedding that has found something, at a falling rate."""
LENGTH = 128
"""Of the words: with shorter ones the labels near the start would count most."""
FOLLOWS = 0.99
"""Agreement of a head that follows the state."""
STEPS, HEAD_STEPS = 1_000, 800
"""The most steps of both phases: what has not been found by then is drawn anew, in another attempt."""
ADVICE = "Try --recipe induce, which counts transitions, another seed, or more heads (--heads)."


class LabelEmbedding(nn.Module):
    """Vectors for every label and matrices for every symbol, so that symbols act on labels linearly."""

    def __init__(self, labels: int, symbols: int, d: int, generator: torch.Generator) -> None:
        super().__init__()
        self.d = d
        self.vectors = nn.Parameter(torch.randn(labels, GROUPS * COPIES * d, generator=generator))
        matrices = torch.linalg.qr(torch.randn(GROUPS, symbols, d, d, generator=generator))[0]
        self.matrices = nn.Parameter(matrices.contiguous())

    def embed(self, labels: Tensor) -> Tensor:
        """N -> g N (c d)."""
        return self.vectors[labels].view(len(labels), GROUPS, COPIES * self.d).transpose(0, 1)

    def predict(self, words: Tensor, labels: Tensor, span: int) -> tuple[Tensor, Tensor]:
        """(what `span` symbols make of the vectors of the label before them, those of the label after): g N (c d)."""
        count = labels.shape[1] - span
        held = self.embed(labels[:, :count].reshape(-1))
        for i in range(1, span + 1):
            rows = held.reshape(GROUPS, -1, COPIES, self.d).flatten(2)
            held = by_symbol(rows, self.matrices, words[:, i : count + i].reshape(-1))
        return held, self.embed(labels[:, span:].reshape(-1))

    def losses(self, words: Tensor, labels: Tensor, span: int) -> Tensor:
        """g: squared loss of predicting the label, where its score is the product with its vectors.

        The mean square of all scores is a product of two covariances, so that no score of another label is computed.
        """
        predicted, wanted = self.predict(words, labels, span)
        N = predicted.shape[1]
        right = (predicted * wanted).sum((1, 2)) / N
        covariances = [torch.bmm(part.transpose(1, 2), part) / N for part in (predicted, wanted)]
        return ((covariances[0] * covariances[1]).sum((1, 2)) - 2 * right) / (COPIES * self.d)

    @torch.no_grad()
    def correlations(self, words: Tensor, labels: Tensor, span: int) -> Tensor:
        """g: of predicted and true vectors."""
        predicted, wanted = self.predict(words, labels, span)
        norms = predicted.square().sum((1, 2)) * wanted.square().sum((1, 2))
        return (predicted * wanted).sum((1, 2)) / norms.sqrt()


def by_symbol(rows: Tensor, matrices: Tensor, symbols: Tensor) -> Tensor:
    """Multiply rows (r N m) by the matrix of their symbol (r V d d), d numbers at a time."""
    (r, N, m), d = rows.shape, matrices.shape[-1]
    order = symbols.argsort(stable=True)
    parts = rows[:, order].split(torch.bincount(symbols, minlength=matrices.shape[1]).tolist(), 1)
    moved = [torch.bmm(part.reshape(r, -1, d), matrices[:, s]) for s, part in enumerate(parts)]
    return torch.cat(moved, 1).view(r, N, m)[:, order.argsort()]


class EmbeddingPhase(Phase):
    """Trains label embeddings until one of them predicts far ahead, then for `SETTLE` more steps."""

    STATE = (*Phase.STATE, "found_at", "best")

    def __init__(
        self, embedding: LabelEmbedding, task: Task, generator: np.random.Generator, steps: int = STEPS
    ) -> None:  # fmt: skip
        optimizer = Adam(
            [{"params": [embedding.vectors], "lr": 0.1}, {"params": [embedding.matrices], "lr": 0.03}],
            betas=(0.9, 0.99),
        )
        super().__init__("embed", embedding, optimizer, generator, 50)
        self.embedding, self.task, self.most, self.words = embedding, task, steps, words_per_step(len(task.labels))
        self.rates = [group["lr"] for group in optimizer.param_groups]
        self.found_at, self.best = -1, 0

    @property
    def done(self) -> bool:
        return self.steps >= (self.most if self.found_at < 0 else self.found_at + SETTLE)

    def step(self) -> None:
        batch = self.task.sample(self.words, LENGTH, self.generator)
        losses = self.embedding.losses(tokens_of(batch), labels_of(batch), 1 + self.steps % SPAN)
        self.optimizer.zero_grad()
        losses.sum().backward()
        left = 1.0 if self.found_at < 0 else 1 - 0.9 * (self.steps - self.found_at) / SETTLE
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * left
        self.optimizer.step()
        self.steps, self.loss = self.steps + 1, float(losses.detach().min())

    def check(self) -> Row:
        batch = self.task.sample(self.words, LENGTH, self.generator)
        far = self.embedding.correlations(tokens_of(batch), labels_of(batch), FAR)
        self.best = int(far.argmax())
        if self.found_at < 0 and float(far[self.best]) >= FAR_CORRELATION:
            self.found_at = self.steps
        if self.done and self.found_at < 0:
            raise NotLearned(
                f"{self.task.name} was not learned: after {self.steps} steps the best label embedding correlates with "
                f"the truth by {float(far[self.best]):.2f} after {FAR} symbols. {ADVICE}"
            )
        return {"loss": self.loss, "correlation": round(float(far[self.best]), 4)}


class HeadPhase(Phase):
    """Trains tables to move heads as the embedding says; done when some of them follow the state."""

    STATE = (*Phase.STATE, "following")

    def __init__(
        self, model: Backbone, embedding: LabelEmbedding, best: int, task: Task, generator: np.random.Generator,
        weights: torch.Generator, steps: int = HEAD_STEPS,
    ) -> None:  # fmt: skip
        block = block_of(model)
        features = embedding.vectors.detach().view(-1, GROUPS, COPIES * embedding.d)[:, best]
        encoder = nn.Linear(features.shape[1], sum(block.heads))
        fan_in_(encoder, weights)
        module = nn.ModuleDict({"model": model, "encoder": encoder})
        module.register_buffer("features", features / features.square().mean(0).sqrt())
        # tables that are quicker than the encoder settle before it, on a wrong partition of the labels
        groups = [
            {"params": list(encoder.parameters()), "lr": 0.03},
            {"params": [block.weight, block.bias], "lr": 6e-4},
        ]
        optimizer = Adam(groups, betas=(0.9, 0.99))
        super().__init__("heads", module, optimizer, generator, 50)
        self.model, self.block, self.encoder, self.task = model, block, encoder, task
        self.most, self.words, self.following = steps, words_per_step(len(task.labels)) // 2, 0

    @property
    def done(self) -> bool:
        return bool(self.following) or self.steps >= self.most

    def symbol_rows(self) -> Tensor:
        """V m: the input of the layer for every symbol."""
        encoded = self.model.encode(torch.arange(self.model.vocabulary))
        rows: Tensor = self.model.layers[0].block_input(encoded)[0]  # type: ignore[operator]
        return rows

    def indices(self, labels: Tensor) -> Tensor:
        """r N d: the distribution over indices that the embedding of a label gives every head."""
        d = self.block.heads[0]
        features = self.module.get_buffer("features")
        return self.encoder(features[labels]).view(len(labels), -1, d).softmax(-1).transpose(0, 1)

    def step(self) -> None:
        batch = self.task.sample(self.words, LENGTH, self.generator)
        words, labels, d = tokens_of(batch), labels_of(batch), self.block.heads[0]
        logits = linear(self.symbol_rows(), self.block.weight, self.block.bias)
        moves = logits.view(len(logits), -1, d, d).softmax(-1).transpose(0, 1)
        count = labels.shape[1] - SPAN
        held, total = self.indices(labels[:, :count].reshape(-1)), torch.zeros(())
        for i in range(1, SPAN + 1):
            held = by_symbol(held, moves, words[:, i : count + i].reshape(-1))
            total = total - match(held, self.indices(labels[:, i : count + i].reshape(-1))).sum() / SPAN
        self.optimizer.zero_grad()
        total.backward()
        self.optimizer.step()
        self.steps, self.loss = self.steps + 1, float(total.detach()) / len(self.block.heads)

    def check(self) -> Row:
        follows = self.agreements()
        found = (follows >= FOLLOWS).nonzero().flatten().tolist()
        if found and (len(found) >= len(self.block.heads) // 8 or self.steps >= self.most):
            self.following = len(found)
            share_tables(self.block, found)
        elif self.done:
            raise NotLearned(
                f"{self.task.name} was not learned: after {self.steps} steps none of {len(self.block.heads)} heads "
                f"follows the state, with an agreement of {float(follows.max()):.2f} at most. {ADVICE}"
            )
        return {"loss": self.loss, "agreement": round(float(follows.max()), 4), "following": len(found)}

    @torch.no_grad()
    def agreements(self) -> Tensor:
        """r: of every head, run from its initial index over fresh words, at their ends."""
        n = len(self.task.labels)
        batch = self.task.sample(max(256, 3 * n // 2), 32, self.generator)
        states = [self.block.states((self.symbol_rows(), some))[:, -1] for some in tokens_of(batch).split(1024)]
        return agreement(torch.cat(states), labels_of(batch)[:, -1])


def embed_heads(model: Backbone, task: Task, trainer: Trainer, seed: int) -> None:
    """Tables that follow the state, from label embeddings; raises NotLearned where there are none."""
    block = block_of(model)
    if len(set(block.heads)) > 1:
        raise InvalidConfig(f"label embeddings are for heads of one size; got {block.heads}. Give all the same size.")
    words, weights = np.random.default_rng([seed, 5]), torch.Generator().manual_seed(seed)
    embedding = LabelEmbedding(len(task.labels), task.machine.n_symbols, block.heads[0], weights)
    embed = EmbeddingPhase(embedding, task, words)
    trainer.run_phase(embed, keep=True)
    with torch.no_grad():
        block.bias.zero_()  # every index moves
    trainer.run_phase(HeadPhase(model, embedding, embed.best, task, words, weights), keep=True)


def match(first: Tensor, second: Tensor) -> Tensor:
    """r: how much likelier than by chance two distributions (r N d each) are at the same index: the mean logarithm."""
    chance = 0.5 * (first.mean(1, keepdim=True) + second.mean(1, keepdim=True))
    return (first * second / chance).sum(2).clamp_min(1e-9).log().mean(1)


@torch.no_grad()
def share_tables(layer: NFSM, heads: Sequence[int]) -> None:
    """Let all other heads have the tables of these in turn, each from another initial index."""
    entries, others = entry_offsets(layer.heads), [h for h in range(len(layer.heads)) if h not in heads]
    for i, h in enumerate(others):
        source = heads[i % len(heads)]
        d = layer.heads[source]
        start, old = 1 + i // len(heads) % (d - 1), layer.config.initial_state[source]
        order = torch.arange(d)  # the initial index changes places with another one
        order[[old, (old + start) % d]] = order[[(old + start) % d, old]]
        for parameter in (layer.weight, layer.bias):
            table = parameter[entries[source] : entries[source] + d * d].view(d, d, -1)
            parameter[entries[h] : entries[h] + d * d] = table[order][:, order].reshape(
                parameter[entries[h] : entries[h] + d * d].shape
            )


def words_per_step(labels: int) -> int:
    """Words of a batch: about half as many positions as there are labels."""
    return max(16, math.ceil(labels / 2 / LENGTH))
