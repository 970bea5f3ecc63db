"""Pretraining on known transitions: train the tables of the heads on their state codes, and the read-out to tell them.

    n  labels     m  width

`TransitionPretrainer` adds a reader per head to the model: what is trained to be right is the index of every head, not
yet the label. `fold_readers` writes the readers into the read-out. Where labels are outputs (`OutputPretrainer`)
the output of a joint index may be anything, so no reader of single heads can tell it: the read-out itself is trained.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from exactstate._types import MISSING, Ints
from exactstate.nn import NFSM, Backbone
from exactstate.nn.init import truncated_
from exactstate.ops.tables import entry_offsets, offsets
from exactstate.ops.torch_kernels import project_values
from exactstate.tasks import Batch
from exactstate.train.config import PretrainConfig
from exactstate.train.state_codes import StateCodes


class TransitionPretrainer(nn.Module):
    """A model of one NFSM layer, the codes of its states, and a reader per head: a linear map to its indices."""

    def __init__(self, model: Backbone, codes: StateCodes, config: PretrainConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.model, self.codes, self.config = model, codes, config
        block = model.layers[0].block
        assert isinstance(block, NFSM)
        self.block = block
        self.readers = nn.ParameterList(nn.Parameter(torch.empty(d, model.width)) for d in codes.heads)
        for reader in self.readers:
            truncated_(reader, generator)
        # shared with the codes, so that a checkpoint holds the labels that were seen for the first time
        self.register_buffer("of_label", torch.from_numpy(codes.of_label))
        self.targets = [_columns(table) for table in codes.tables]

    def loss(self, symbols: Ints, labels: Ints) -> Tensor:
        """Cross-entropy of the used columns, and of each reader at (symbol, label) pairs."""
        encoded = self.model.encode(torch.arange(self.model.vocabulary))
        total = encoded.new_zeros(())
        for theta, (symbol, column, target) in zip(self._logits(encoded), self.targets, strict=True):
            total = total + cross_entropy(theta[symbol, column] / self.block.config.temperature, target)
        for scores, right in self._scores(encoded, symbols, labels):
            total = total + cross_entropy(scores, right)
        return total

    @torch.no_grad()
    def margins(self, symbols: Ints, labels: Ints) -> tuple[float, float]:
        """(smallest margin of a right logit, in units of the temperature; of a right index), without noise."""
        training = self.model.training
        self.model.eval()
        encoded = self.model.encode(torch.arange(self.model.vocabulary))
        tables = [
            min_margin(theta[symbol, column], target) / self.block.config.temperature
            for theta, (symbol, column, target) in zip(self._logits(encoded), self.targets, strict=True)
        ]
        reads = [min_margin(scores, right) for scores, right in self._scores(encoded, symbols, labels)]
        self.model.train(training)
        return min(tables), min(reads)

    @torch.no_grad()
    def fold_readers(self) -> None:
        """Write the readers into the read-out of the model, which needs them no longer."""
        codes = torch.from_numpy(self.codes.of_label)
        known = (codes != MISSING).all(dim=1)
        total = torch.zeros_like(self.model.readout.weight)
        for h, reader in enumerate(self.readers):
            # what all indices share changes no arg max, and rounding errors grow with it
            used = reader[codes[known, h]]
            total[known] += used - reader[codes[known, h].unique()].mean(dim=0)
        # a label that never occurred must never be the arg max
        self.model.readout.weight.copy_(total)
        self.model.readout.bias.copy_(torch.where(known, 0.0, -1e3))

    def _scores(self, encoded: Tensor, symbols: Ints, labels: Ints) -> list[tuple[Tensor, Tensor]]:
        """For every reader the scores at (symbol, label) pairs, and the right index."""
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
        """The input of the read-out after this symbol, with the heads at these indices."""
        vectors = project_values(self.block.values, self.block.out_proj.weight, self.codes.heads)
        output = self.block.out_proj.bias + vectors[code + torch.tensor(offsets(self.codes.heads))].sum(dim=1)
        return self.model.decode(self.model.layers[0].feed_forward(encoded[symbol] + output))  # type: ignore[operator]


def sample_pairs(batch: Batch, labels: int, limit: int | None, generator: np.random.Generator) -> tuple[Ints, Ints]:
    """The distinct pairs of a symbol and the label after it in a batch, at most `limit` of them, chosen at random."""
    pairs = np.unique(batch.inputs.astype(np.int64) * labels + batch.states)
    if limit is not None and len(pairs) > limit:
        pairs = generator.choice(pairs, limit, replace=False)
    return pairs // labels, pairs % labels


def _columns(table: Ints) -> tuple[Tensor, Tensor, Tensor]:
    """(symbol, index before, index after) of every known transition."""
    symbol, column = np.nonzero(table != MISSING)
    return torch.from_numpy(symbol), torch.from_numpy(column), torch.from_numpy(table[symbol, column])


def min_margin(scores: Tensor, target: Tensor) -> float:
    """The smallest margin over the rows: the right score minus the largest other."""
    if scores.shape[-1] == 1 or not len(scores):
        return float("inf")
    right = scores.gather(1, target[:, None])
    others = scores.scatter(1, target[:, None], -torch.inf)
    return float((right - others.max(dim=1, keepdim=True).values).min())


class OutputPretrainer(TransitionPretrainer):
    """The same for a model whose labels are outputs; given are the codes of the states, and their outputs."""

    def __init__(
        self, model: Backbone, codes: StateCodes, config: PretrainConfig, generator: torch.Generator, *, output_of: Ints
    ) -> None:
        super().__init__(model, codes, config, generator)
        self.readers = nn.ParameterList()
        self.output_of = torch.from_numpy(output_of.astype("int64"))

    @torch.no_grad()
    def fold_readers(self) -> None:
        """The read-out is trained already; what all labels share changes no arg max, and is subtracted."""
        for shared in (self.model.readout.weight, self.model.readout.bias):
            shared.sub_(shared.mean(dim=0))

    def _scores(self, encoded: Tensor, symbols: Ints, labels: Ints) -> list[tuple[Tensor, Tensor]]:
        code = torch.from_numpy(self.codes.of_label[labels])
        features = self._features(encoded, torch.from_numpy(symbols), code)
        return [(self.model.readout(features), self.output_of[torch.from_numpy(labels)])]
