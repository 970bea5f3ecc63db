"""Positions of a batch that the network after an NFSM block cannot tell apart, evaluated once; gradients by hand.

    R  rows     m  width     r  heads     P  pairs of a row and a right label

A row is an input and the heads' indices. Rows are few and pairs are several times as many: the forward pass and the
gradients of the weights are computed row by row, only the gradient of the input pair by pair. Autograd would compute
all three pair by pair.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from exactstate._types import Ints
from exactstate.nn import NFSM, Backbone
from exactstate.nn.mlp import GatedMLP
from exactstate.ops.tables import offsets
from exactstate.train.chunked_cross_entropy import ChunkedCrossEntropy, predict


class SharedRows:
    """The distinct rows so far, their likeliest labels, and what the backward pass needs."""

    def __init__(self, model: Backbone, block: NFSM, encoded: Tensor, vectors: Tensor) -> None:
        self.model, self.heads = model, block.heads
        self.encoded, self.vectors = encoded.detach(), vectors.detach()
        self.offset = block.out_proj.bias.detach()
        layer = model.layers[0]
        self.entropy = ChunkedCrossEntropy(model.readout)
        self.feed_forward = NormedMLP(layer.norm2, layer.mlp)  # type: ignore[arg-type]
        self.decoder = NormedMLP(model.final_norm, model.decoder)
        self.keys: Ints = np.empty(0, np.int64)
        """Sorted; the number of a row is its place in the order in which rows were added."""
        self.numbers: Ints = np.empty(0, np.int64)
        self.read = torch.empty(0, dtype=torch.int64)
        """R: which encoded row."""
        self.places = torch.empty(0, len(block.heads), dtype=torch.int64)
        """R r: which value vectors."""
        self.predicted = torch.empty(0, dtype=torch.int64)
        """R: the arg max label."""

    def find(self, read: Tensor, states: Tensor) -> Tensor:
        """The number of the row of every position; rows that are new are computed."""
        key: Ints = read.numpy()
        for column, size in zip(states.long().numpy().T, self.heads, strict=True):
            key = key * size + column
        different, here, which = np.unique(key, return_index=True, return_inverse=True)
        place = np.searchsorted(self.keys, different)
        known = np.zeros(len(different), bool)
        if len(self.keys):
            known = self.keys[np.minimum(place, len(self.keys) - 1)] == different
        number = np.empty(len(different), np.int64)
        number[known] = self.numbers[place[known]]
        number[~known] = len(self.read) + np.arange(int((~known).sum()))
        self.keys = np.insert(self.keys, place[~known], different[~known])
        self.numbers = np.insert(self.numbers, place[~known], number[~known])
        new = torch.from_numpy(here[~known])
        if len(new):
            self._compute(read[new], states[new].long())
        return torch.from_numpy(number[which])

    def _compute(self, read: Tensor, states: Tensor) -> None:
        places, learning = states + torch.tensor(offsets(self.heads)), torch.is_grad_enabled()
        with torch.no_grad():
            into = self.encoded[read] + self.offset + self.vectors[places].sum(dim=1)
            into = into + self.feed_forward(into, learning)
            features = self.decoder(into, learning)
            predicted = self.entropy.add(features) if learning else predict(features, self.model.readout)
        self.read, self.places = torch.cat([self.read, read]), torch.cat([self.places, places])
        self.predicted = torch.cat([self.predicted, predicted])

    @torch.no_grad()
    def backward(self, row: Tensor, label: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """(the cross-entropy of every pair; the gradient of sum(weights * cross-entropy) in the input of the network
        after the block, P m). That in the parameters is added to them."""
        losses, grad = self.entropy.backward(row, label, weights)
        grad = self.decoder.backward(row, grad)
        return losses, grad + self.feed_forward.backward(row, grad)


class NormedMLP:
    """A layer norm and the gated MLP behind it, on rows; the gradient is asked for pair by pair."""

    def __init__(self, norm: nn.LayerNorm, mlp: GatedMLP) -> None:
        self.norm, self.mlp = norm, mlp
        self.kept: list[tuple[Tensor, ...]] = []

    def __call__(self, x: Tensor, learning: bool) -> Tensor:
        mlp = self.mlp
        if not learning:
            return mlp(self.norm(x))
        centered = x - x.mean(1, keepdim=True)
        scale = (centered.square().mean(1, keepdim=True) + self.norm.eps).rsqrt_()
        normed = centered.mul_(scale)
        into = torch.addcmul(self.norm.bias, normed, self.norm.weight)
        gate, up = mlp.gate(into), mlp.up(into)
        open_, mask = gate.sigmoid(), mlp.dropout(torch.ones_like(up))
        silu = gate * open_
        hidden = (silu * up).mul_(mask)
        slope = (1 - silu).mul_(open_).add_(silu)  # of the SiLU
        self.kept.append((scale, normed, into, hidden, silu.mul_(mask), slope.mul_(up).mul_(mask)))
        return linear(hidden, mlp.down.weight, mlp.down.bias)

    def backward(self, row: Tensor, grad: Tensor) -> Tensor:
        """P m: the gradient in the input of every pair, from that in the output; that in the weights is added."""
        scale, normed, into, hidden, of_up, of_gate = (torch.cat(part) for part in zip(*self.kept, strict=True))
        mlp, norm = self.mlp, self.norm
        of_hidden = grad @ mlp.down.weight
        up_grad = of_hidden * of_up[row]
        gate_grad = of_hidden.mul_(of_gate[row])
        into_grad = torch.addmm(up_grad @ mlp.up.weight, gate_grad, mlp.gate.weight)
        for one, given, entered in (
            (mlp.down, grad, hidden), (mlp.up, up_grad, into), (mlp.gate, gate_grad, into),
        ):  # fmt: skip
            shared = given.new_zeros(len(entered), given.shape[1]).index_add_(0, row, given)
            _add(one.weight, shared.T @ entered)
            _add(one.bias, shared.sum(0))
        shared = torch.zeros_like(normed).index_add_(0, row, into_grad)
        _add(norm.weight, (shared * normed).sum(0))
        _add(norm.bias, shared.sum(0))
        normed, into_grad = normed[row], into_grad.mul_(norm.weight)
        along = (into_grad * normed).mean(1, keepdim=True)
        return (into_grad - into_grad.mean(1, keepdim=True) - normed.mul_(along)).mul_(scale[row])


def _add(parameter: Tensor, gradient: Tensor) -> None:
    parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
