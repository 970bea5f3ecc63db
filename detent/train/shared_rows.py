"""Shared rows: positions that agree in what was read, where the heads are and what is wanted are computed once.

    R  rows     r  heads     m  width

Without a convolution, what stands before the block depends on the symbol and its dropout mask alone, and what stands
after it on that and the heads' indices. A row is (what was read, joint index, wanted label), with a dropout mask of its
own after the block. The gradient of a position is that of its row, times the position's share of the row's weight.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from detent._types import Ints
from detent.nn import NFSM, Backbone
from detent.ops.tables import offsets
from detent.train.chunked_cross_entropy import Surprise, likeliest_of


class SharedRows:
    """The different rows met so far, what the read-out says at them, and what it takes to go back."""

    def __init__(self, model: Backbone, block: NFSM, encoded: Tensor, vectors: Tensor) -> None:
        self.model, self.heads = model, block.heads
        self.encoded, self.vectors = encoded.detach(), vectors.detach()
        self.offset = block.out_proj.bias.detach()
        self.entropy = Surprise(model.readout)
        self.sizes = (*block.heads, model.labels)
        self.keys: Ints = np.empty(0, np.int64)
        """Sorted; the number of a row is its place in the order in which rows came."""
        self.numbers: Ints = np.empty(0, np.int64)
        self.read = torch.empty(0, dtype=torch.int64)
        """R: which encoded row."""
        self.places = torch.empty(0, len(block.heads), dtype=torch.int64)
        """R r: which value vectors."""
        self.right = torch.empty(0, dtype=torch.bool)
        """R: whether the likeliest label is the wanted one."""
        self.surprise = self.encoded.new_empty(0)
        """R: the cross-entropy."""
        self.sheets: list[tuple[Tensor, Tensor]] = []
        """(what came into the network after the block, what went into the read-out), portion by portion."""

    def find(self, read: Tensor, states: Tensor, wanted: Tensor) -> Tensor:
        """The number of the row of every position; rows that are new are computed."""
        key: Ints = read.numpy()
        for column, size in zip((*states.long().numpy().T, wanted.numpy()), self.sizes, strict=True):
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
            self._compute(read[new], states[new].long(), wanted[new])
        return torch.from_numpy(number[which])

    def _compute(self, read: Tensor, states: Tensor, wanted: Tensor) -> None:
        places = states + torch.tensor(offsets(self.heads))
        into = self.encoded[read] + self.offset + self.vectors[places].sum(dim=1)
        learning = torch.is_grad_enabled()
        features = self.model.decode(self.model.layers[0].feed_forward(into.requires_grad_(learning)))  # type: ignore[operator]
        if learning:
            right, surprise = self.entropy.add(features.detach(), wanted)
            self.surprise = torch.cat([self.surprise, surprise])
            self.sheets.append((into, features))
        else:
            right = likeliest_of(features, self.model.readout) == wanted
        self.read, self.places = torch.cat([self.read, read]), torch.cat([self.places, places])
        self.right = torch.cat([self.right, right])

    def backward(self, weights: Tensor) -> Tensor:
        """R m: the gradient of sum(weights * cross-entropy) of what came into the network after the block."""
        slopes = self.entropy.backward(weights).split([len(into) for into, _ in self.sheets])
        torch.autograd.backward([features for _, features in self.sheets], list(slopes))
        return torch.cat([into.grad for into, _ in self.sheets])  # type: ignore[misc]


def countable(heads: tuple[int, ...], symbols: int, labels: int) -> bool:
    """Whether every row has a number of its own among 63 bits, however many masks there are."""
    return math.prod(heads) * labels * symbols < 1 << 53
