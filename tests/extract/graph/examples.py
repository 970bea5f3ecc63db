"""Small models with nothing zero in them, and what is asked of them."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import torch

from exactstate.extract.graph.arithmetic import ASSUMED
from exactstate.extract.graph.backbone import LoweredBackbone
from exactstate.extract.graph.leads import LeadBounds
from exactstate.nn import NFSM, Backbone


def build(width=8, heads=((3, 2),), *, symbols=3, labels=5, reach=1, seed=1, dictionary=None, answers=0, hidden=None):
    seeded = torch.Generator().manual_seed(seed)
    blocks = [NFSM(width, some, dictionary=dictionary, generator=seeded) for some in heads]
    model = Backbone(
        symbols, labels, blocks, width=width, kernel_size=reach, answers=answers, hidden=hidden, generator=seeded
    ).eval()  # fmt: skip
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.2 * torch.randn(parameter.shape, generator=seeded))
    return model


def rows_of(model, count, seed=0):
    """Some rows of (symbol, index of every head)."""
    sizes = (model.vocabulary, *model.layers[0].block.heads)
    everything = np.array(list(product(*map(range, sizes))))
    return np.random.default_rng(seed).permutation(everything)[:count]


def flat(parts):
    """Logits of every head (A d d) as the block lays them out (A e)."""
    return np.concatenate([part.swapaxes(1, 2).reshape(len(part), -1) for part in parts], axis=1)


class Bounded:
    """The intervals of the logits of a backbone in a format."""

    def __init__(self, model, format, *, assumptions=None, inputs=(), quick=False):
        """`inputs` are those of the layers above the first."""
        tokens = np.arange(model.vocabulary)[:, None]
        layers = [SimpleNamespace(inputs=rows) for rows in (tokens, *inputs)]
        self.network = LoweredBackbone(model, SimpleNamespace(layers=layers))
        self.leads = LeadBounds(self.network, (assumptions or ASSUMED[format]).arithmetic(format))
        self.quick = quick

    def logits(self, layer, windows):
        """Of all heads, at windows of one length: R e."""
        return self._logits(layer, self.network.layer_steps(layer, windows))

    def labels(self, rows):
        """Of labels, and of answers behind them: R n."""
        return self._logits(len(self.network.blocks), self.network.read_steps(rows))

    def _logits(self, layer, steps):
        bounds, choices = self.leads.bounds(steps, self.leads.streams, quick=self.quick), self.leads.choices(layer)
        with np.errstate(all="ignore"):
            return choices._logits(bounds, bounds.at(choices.root))
