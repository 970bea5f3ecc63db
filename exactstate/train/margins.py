"""Margins: train a network on the machine that was extracted from it, until its choices exceed rounding."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

from exactstate.extract import Extracted
from exactstate.nn import Backbone
from exactstate.ops.tables import entry_offsets, offsets
from exactstate.ops.torch_kernels import project_values
from exactstate.train.config import GradientConfig
from exactstate.train.optimizer import Adam
from exactstate.train.wide import block_of, encode_symbols


def widen_margins(model: Backbone, extracted: Extracted, settings: GradientConfig) -> int:
    """Train the network on the machine that was extracted from it, until margins are large; the number of steps.

    A squared hinge on every used column of the transition logits and on every read-out: where a margin is large enough
    there is no gradient, so choices do not change.
    """
    block, (layer,) = block_of(model), extracted.layers
    symbols = torch.from_numpy(layer.symbols.astype(np.int64))
    used = torch.from_numpy(layer.used.copy())
    tables = torch.from_numpy(layer.tables.astype(np.int64))
    reads = torch.from_numpy(extracted.readout_inputs.astype(np.int64))
    labels = torch.from_numpy(extracted.label_ids.astype(np.int64))
    positions = reads[:, 1:] + torch.tensor(offsets(block.heads))
    optimizer = Adam(model.parameters(), settings.prune_lr)
    chooser = torch.Generator().manual_seed(0)
    most, sizes = max(64, (1 << 21) // model.labels), list(block.heads)
    for step in range(settings.margin_steps):
        encoded, rows = encode_symbols(model)
        flat = linear(block.logit_input(rows[symbols]), block.weight, block.bias)
        lacking = []
        for d, at, mine, to in zip(sizes, entry_offsets(block.heads), used.split(sizes, 1), tables.split(sizes, 1),
                                   strict=True):  # fmt: skip
            if d > 1:
                columns = flat[:, at : at + d * d].view(-1, d, d)
                lacking.append(margin_shortfall(columns[mine], to[mine], settings.margin))
        some = slice(None) if len(reads) <= most else torch.randint(len(reads), (most,), generator=chooser)
        vectors = project_values(block.values, block.out_proj.weight, block.heads)
        h = encoded[reads[some, 0]] + vectors[positions[some]].sum(1) + block.out_proj.bias
        scores = model.label_logits(model.layers[0].feed_forward(h))  # type: ignore[operator]
        lacking.append(margin_shortfall(scores, labels[some], settings.margin))
        if all(float(part.detach().max()) <= 0.5 * settings.margin for part in lacking if len(part)):
            return step
        optimizer.zero_grad(set_to_none=True)
        torch.stack([part.square().sum() for part in lacking]).sum().backward()
        optimizer.step()
    return settings.margin_steps


def margin_shortfall(logits: Tensor, best: Tensor, margin: float) -> Tensor:
    """What the lead of the best entry over the next lacks to the margin."""
    if logits.shape[-1] == 1:
        return logits.new_zeros(len(logits))
    lead = logits.gather(1, best[:, None]).flatten() - logits.scatter(1, best[:, None], -torch.inf).amax(1)
    return (margin - lead).clamp(min=0.0)
