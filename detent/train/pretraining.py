"""The anchored phase where outputs are said: heads are taught their codes as ever, the read-out the outputs themselves.

    n  labels     m  width

Which output belongs to a joint index may be anything, a colouring of the states, so no reader of single heads can tell
it. The map to the outputs is taught as it stands, over the features of all heads together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from detent._types import MISSING, Ints
from detent.nn import NFSM, Backbone
from detent.nn.init import truncated_
from detent.ops.tables import entry_offsets, offsets
from detent.ops.torch_kernels import project_values
from detent.tasks import Batch
from detent.train.state_codes import Codes

# -- The anchored phase: teach the heads their codes, and the read-out to tell them, with the codes as teachers.


@dataclass(frozen=True, kw_only=True, slots=True)
class Anchoring:
    """How long and how firmly the codes are taught."""

    rate: float = 3e-3
    """Learning rate at the beginning; it falls in proportion to the steps after the first hundred."""
    weight_decay: float = 1e-4
    rows: int = 1024
    """Read-outs taught per step, at most."""
    table_margin: float = 4.0
    """How far the right logit must be ahead of every other in its column, in units of the sampling temperature."""
    read_margin: float = 3.0
    """How far the right index must be ahead in the read-out of every head."""
    check_every: int = 10
    longest: int = 3000
    """Steps after which it gives up."""


class Anchor(nn.Module):
    """A model of one NFSM layer, its codes, and a read-out per head."""

    def __init__(self, model: Backbone, codes: Codes, settings: Anchoring, generator: torch.Generator) -> None:
        super().__init__()
        self.model, self.codes, self.settings = model, codes, settings
        block = model.layers[0].block
        assert isinstance(block, NFSM)
        self.block = block
        self.readers = nn.ParameterList(nn.Parameter(torch.empty(d, model.width)) for d in codes.heads)
        for reader in self.readers:
            truncated_(reader, generator)
        # shared with the codes, so that a checkpoint knows the labels that were met on the way
        self.register_buffer("of_label", torch.from_numpy(codes.of_label))
        self.wanted = [_columns(table) for table in codes.tables]

    def loss(self, symbols: Ints, labels: Ints) -> Tensor:
        """Cross-entropy of the used columns, and of what each head's read-out says at (symbol, label) rows."""
        encoded = self.model.encode(torch.arange(self.model.vocabulary))
        total = encoded.new_zeros(())
        for theta, (symbol, column, target) in zip(self._logits(encoded), self.wanted, strict=True):
            total = total + cross_entropy(theta[symbol, column] / self.block.config.temperature, target)
        for scores, right in self._said(encoded, symbols, labels):
            total = total + cross_entropy(scores, right)
        return total

    @torch.no_grad()
    def margins(self, symbols: Ints, labels: Ints) -> tuple[float, float]:
        """(smallest lead of a right logit, in units of the temperature; of a right index), without noise."""
        training = self.model.training
        self.model.eval()
        encoded = self.model.encode(torch.arange(self.model.vocabulary))
        tables = [
            lead(theta[symbol, column], target) / self.block.config.temperature
            for theta, (symbol, column, target) in zip(self._logits(encoded), self.wanted, strict=True)
        ]
        reads = [lead(scores, right) for scores, right in self._said(encoded, symbols, labels)]
        self.model.train(training)
        return min(tables), min(reads)

    @torch.no_grad()
    def release(self) -> None:
        """Write the read-outs of the heads into the map to the labels; from here on the model stands alone."""
        codes = torch.from_numpy(self.codes.of_label)
        known = (codes != MISSING).all(dim=1)
        total = torch.zeros_like(self.model.readout.weight)
        for h, reader in enumerate(self.readers):
            # what all indices share decides nothing, and rounding errors grow with it
            used = reader[codes[known, h]]
            total[known] += used - reader[codes[known, h].unique()].mean(dim=0)
        # a label that never occurred must never be said
        self.model.readout.weight.copy_(total)
        self.model.readout.bias.copy_(torch.where(known, 0.0, -1e3))

    def _said(self, encoded: Tensor, symbols: Ints, labels: Ints) -> list[tuple[Tensor, Tensor]]:
        """For every reader the scores at (symbol, label) rows, and which is right."""
        code = torch.from_numpy(self.codes.of_label[labels])
        features = self._features(encoded, torch.from_numpy(symbols), code)
        return [(linear(features, reader), code[:, h]) for h, reader in enumerate(self.readers)]

    def _logits(self, encoded: Tensor) -> list[Tensor]:
        """One array per head, V d d: [symbol, from, to]."""
        read, _ = self.model.layers[0].block_input(encoded)  # type: ignore[operator]
        flat = linear(self.block.logit_input(read), self.block.weight, self.block.bias)
        places = zip(self.codes.heads, entry_offsets(self.codes.heads), strict=True)
        return [flat[:, at : at + d * d].view(-1, d, d) for d, at in places]

    def _features(self, encoded: Tensor, symbol: Tensor, code: Tensor) -> Tensor:
        """What the read-out reads after this symbol, with the heads at these indices."""
        vectors = project_values(self.block.values, self.block.out_proj.weight, self.codes.heads)
        said = self.block.out_proj.bias + vectors[code + torch.tensor(offsets(self.codes.heads))].sum(dim=1)
        return self.model.decode(self.model.layers[0].feed_forward(encoded[symbol] + said))  # type: ignore[operator]


def rows_of(batch: Batch, labels: int, limit: int | None, generator: np.random.Generator) -> tuple[Ints, Ints]:
    """The different (symbol, label) pairs of a batch, or some of them: after which symbol which label was right."""
    pairs = np.unique(batch.inputs.astype(np.int64) * labels + batch.states)
    if limit is not None and len(pairs) > limit:
        pairs = generator.choice(pairs, limit, replace=False)
    return pairs // labels, pairs % labels


def _columns(table: Ints) -> tuple[Tensor, Tensor, Tensor]:
    """(symbol, index before, index after) of every move that is known."""
    symbol, column = np.nonzero(table != MISSING)
    return torch.from_numpy(symbol), torch.from_numpy(column), torch.from_numpy(table[symbol, column])


def lead(scores: Tensor, target: Tensor) -> float:
    """By how much the smallest right score leads all others of its row."""
    if scores.shape[-1] == 1 or not len(scores):
        return float("inf")
    right = scores.gather(1, target[:, None])
    others = scores.scatter(1, target[:, None], -torch.inf)
    return float((right - others.max(dim=1, keepdim=True).values).min())


class OutputAnchor(Anchor):
    """A model that says outputs, the codes of states, and the output of every state."""

    def __init__(
        self, model: Backbone, codes: Codes, settings: Anchoring, generator: torch.Generator, *, output_of: Ints
    ) -> None:
        super().__init__(model, codes, settings, generator)
        self.readers = nn.ParameterList()
        self.output_of = torch.from_numpy(output_of.astype("int64"))

    @torch.no_grad()
    def release(self) -> None:
        """The model says outputs already; what all of them share decides nothing, and is taken away."""
        for shared in (self.model.readout.weight, self.model.readout.bias):
            shared.sub_(shared.mean(dim=0))

    def _said(self, encoded: Tensor, symbols: Ints, labels: Ints) -> list[tuple[Tensor, Tensor]]:
        code = torch.from_numpy(self.codes.of_label[labels])
        features = self._features(encoded, torch.from_numpy(symbols), code)
        return [(self.model.readout(features), self.output_of[torch.from_numpy(labels)])]
