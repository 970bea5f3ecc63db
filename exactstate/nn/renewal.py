"""Reinitialize the heads that do not follow the state, and keep those that do.

    N  words     r  heads     d  indices of a head

Every head of a wide layer is a random draw. Some learn to follow the state: wherever two words lead to the same state,
they are at the same index. The others hold the last few symbols, which is enough for short words, and rarely learn
more. `agreement` distinguishes the two kinds, and `renew` draws the second kind again while the first trains on:

    states = layer.states(x)[:, -1]                        # after long words, N r
    lost = (agreement(states, labels) < 0.3).nonzero().flatten().tolist()
    renew(layer, lost, optimizer)
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from exactstate.errors import InvalidInput
from exactstate.nn.init import truncated_
from exactstate.nn.nfsm import NFSM
from exactstate.ops.tables import entry_offsets, offsets


def agreement(states: Tensor, labels: Tensor) -> Tensor:
    """r numbers: how far the label determines the index of each head, corrected for chance (Cohen's kappa).

    - `states`: N r, the index of every head after every word; the words should be long.
    - `labels`: N, the state of the target after every word.

    1: any two words with the same label are at the same index. 0: as often as two words at random. A head that is
    always at one index has 0. NaN if no two words have the same label.
    """
    if states.ndim != 2 or labels.shape != states.shape[:1] or states.is_floating_point() or labels.is_floating_point():
        raise InvalidInput(
            f"agreement takes the indices after N words (N, r) and their labels (N), both integers; got {states.dtype} "
            f"of shape {tuple(states.shape)} and {labels.dtype} of shape {tuple(labels.shape)}."
        )
    order = labels.argsort(stable=True)
    states, labels = states[order].long(), labels[order]
    pairs = labels[1:] == labels[:-1]
    same = (states[1:][pairs] == states[:-1][pairs]).double().mean(0)
    shares = [torch.bincount(column).double() / max(len(states), 1) for column in states.unbind(1)]
    chance = torch.stack([share.square().sum() for share in shares]) if shares else same
    return (same - chance) / (1 - chance).clamp(min=1e-9)


@torch.no_grad()
def renew(
    layer: NFSM, heads: Sequence[int], optimizer: torch.optim.Optimizer | None = None,
    generator: torch.Generator | None = None, *, remember: float | None = None,
) -> None:  # fmt: skip
    """Draw the tables and values of these heads as `reset_parameters` does; the optimizer's moments of them are zero.

    `remember` is their bias towards staying where they are, by default that of the layer's configuration. In a layer
    with a dictionary the weights of the mixture are those of all heads, and stay; the heads' own matrices are drawn.
    """
    entries, starts = entry_offsets(layer.heads), offsets(layer.heads)
    stay = layer.config.remember if remember is None else remember
    for h in heads:
        if not 0 <= h < len(layer.heads):
            raise InvalidInput(f"this layer has heads 0 to {len(layer.heads) - 1}; got {h}.")
        d = layer.heads[h]
        logits, values = slice(entries[h], entries[h] + d * d), slice(starts[h], starts[h] + d)
        truncated_(layer.weight[logits], generator, layer.logit_gain)
        layer.bias[logits] = stay * torch.eye(d).flatten().to(layer.bias)
        layer.values[values].normal_(generator=generator)
        for parameter, rows in ((layer.weight, logits), (layer.bias, logits), (layer.values, values)):
            moments = {} if optimizer is None else optimizer.state.get(parameter, {})
            for part in moments.values():
                if isinstance(part, Tensor) and part.shape == parameter.shape:
                    part[rows] = 0.0
