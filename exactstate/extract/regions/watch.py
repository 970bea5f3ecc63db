"""Run a network on real inputs and say, step by step, whether they lie in a certified region.

L  steps     n  width of an input     r  heads of all layers
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from exactstate._types import Bools, Floats, Ints
from exactstate.errors import InvalidInput
from exactstate.extract.graph.network import TracedNetwork
from exactstate.extract.result import Extracted

CHUNK = 8192


@dataclass(frozen=True, eq=False)
class Watched:
    """What a network did on some inputs."""

    labels: Ints
    """L: the label of the network."""
    symbols: Ints
    """L: the symbol whose certified region the input lies in; -1 if it lies in none."""
    nearest: Ints
    """L: the symbol of the nearest prototype."""
    distances: Floats
    """L: how far that is, in the norm of the regions."""
    margins: Floats
    """L: the smallest lead of the entries that the heads used, and of the label."""
    indices: Ints
    """L r: where the heads are."""
    known: Bools
    """L: whether the heads were, before the step, where words of certified inputs lead."""
    state: Any
    """To continue: `machine.watch(more, state=...)`."""
    names: tuple[str, ...]

    @property
    def certified(self) -> Bools:
        """L: whether the step is covered by the certificate: its input, and the configuration it is read in.

        An input outside all regions may lead to a configuration that no word of certified inputs reaches; steps are
        covered again when the heads are back in one that is.
        """
        return (self.symbols >= 0) & self.known

    @property
    def warnings(self) -> list[str]:
        """A sentence for every input outside all certified regions, at most ten of them and a count."""
        outside = np.flatnonzero(self.symbols < 0)
        some = [
            f"step {step}: the input lies in no certified region; the nearest prototype is "
            f"{self.names[self.nearest[step]]!r}, {self.distances[step]:.4g} away; margin {self.margins[step]:.4g}"
            for step in outside[:10].tolist()
        ]
        return some + ([f"and {len(outside) - 10:,} more steps"] if len(outside) > 10 else [])


@torch.no_grad()
def watch(machine: Extracted, x: Tensor, state: Any = None) -> Watched:
    """Run the network on inputs (L n), from its initial state or from where an earlier call ended."""
    network = machine.source
    if not isinstance(network, TracedNetwork) or network.region is None:
        raise InvalidInput("watch is for machines whose symbols are input vectors: extract with inputs={name: vector}.")
    width = network.region.centers.shape[1]
    if not isinstance(x, Tensor) or x.ndim != 2 or x.shape[1] != width or not x.is_floating_point():
        got = f"{x.dtype} of shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        raise InvalidInput(f"watch reads floating-point inputs of shape (L, {width}); got {got}.")
    if x.device.type != "cpu":
        raise InvalidInput(f"watch runs on the CPU; the inputs are on {x.device}: pass x.cpu().")
    if not bool(torch.isfinite(x).all()):
        step = int((~torch.isfinite(x).all(1)).nonzero()[0, 0])
        raise InvalidInput(f"the input of step {step} is not finite (NaN or infinity).")
    if network.kernel_size > 1 and (state is not None or len(x) > CHUNK):
        raise InvalidInput(
            f"this model reads {network.kernel_size} steps at once; watch up to {CHUNK} steps from the beginning."
        )
    parts = []
    for begin in range(0, max(1, len(x)), CHUNK):
        part = _watched(machine, network, x[begin : begin + CHUNK], state)
        state = part.state
        parts.append(part)
    fields = ("labels", "symbols", "nearest", "distances", "margins", "indices", "known")
    return Watched(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in fields}, state=state,
        names=machine.symbols,
    )  # fmt: skip


def _watched(machine: Extracted, network: TracedNetwork, x: Tensor, state: Any) -> Watched:
    region = network.region
    assert region is not None
    logits, states, arguments, state = network.run(x, state)
    margins = _smallest_gap(logits)
    for block, argument, (before, _) in zip(network.blocks, arguments, states, strict=True):
        for head, scores in enumerate(block.logits(argument)):
            column = scores.gather(-1, before[:, head, None, None].expand(-1, scores.shape[1], 1))[..., 0]
            margins = torch.minimum(margins, _smallest_gap(column))
    earlier = torch.cat([before for before, _ in states], 1).numpy()
    apart = x.double().numpy()[:, None] - region.centers
    far = np.abs(apart).max(-1) if region.norm == "linf" else np.sqrt((apart**2).sum(-1))
    nearest = far.argmin(1)
    inside = far <= region.radii
    symbols = np.where(inside.any(1), inside.argmax(1), -1)
    return Watched(
        labels=logits.argmax(-1).numpy(), symbols=symbols, nearest=nearest,
        distances=far[np.arange(len(far)), nearest], margins=margins.double().numpy(),
        indices=torch.cat([after for _, after in states], 1).numpy(), state=state,
        known=_reached(machine, network, earlier), names=machine.symbols,
    )  # fmt: skip


def _reached(machine: Extracted, network: TracedNetwork, indices: Ints) -> Bools:
    """L: whether these indices (L r) belong to a configuration of the machine."""
    sizes, kept, begin = [d for block in network.blocks for d in block.heads], [], 0
    for block, dropped in zip(network.blocks, network.dropped, strict=True):
        kept += [begin + head for head in range(len(block.heads)) if head not in dropped]
        begin += len(block.heads)
    weights = np.cumprod([1, *(sizes[head] for head in kept[:-1])], dtype=object)
    reached = {int(code) for code in machine.configurations[:, : len(kept)].astype(object) @ weights}
    codes, number = np.unique(indices[:, kept], axis=0, return_inverse=True)
    return np.array([int(code) in reached for code in codes.astype(object) @ weights], bool)[number.reshape(-1)]


def _smallest_gap(logits: Tensor) -> Tensor:
    """... d -> ...: the largest less the second largest."""
    if logits.shape[-1] == 1:
        return torch.full(logits.shape[:-1], float("inf"), dtype=logits.dtype)
    top = logits.topk(2, dim=-1).values
    return top[..., 0] - top[..., 1]
