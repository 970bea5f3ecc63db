"""What the heads of a layer do on given inputs: which indices are used, which heads carry nothing, what is frozen.

    print(layer.diagnose(x))

    B  batch     L  length     m  width     r  heads     d  indices of a head

A head carries nothing when its contribution to the output is the same at every step. A column is frozen when the
softmax of its logits gives all other entries together less than FROZEN: sampling would not change it, and its gradient
has all but vanished.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from exactstate.errors import InvalidInput
from exactstate.nn.nfsm import NFSM
from exactstate.nn.pruning import head_contributions

FROZEN = 1e-3
"""A column is frozen when the probability of all entries but the chosen one is below this."""
IDLE = 1e-3
"""A head carries nothing when its share of the variation of the output is below this."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadDiagnosis:
    """One head on the given inputs."""

    head: int
    indices: int
    """d."""
    used: tuple[int, ...]
    """Indices that it was at after some step."""
    moves: float
    """Share of steps at which the index changed."""
    share: float
    """Of the variation of the output that all heads contribute, summed over heads."""
    frozen: float
    """Share of steps whose column sampling could hardly change."""

    @property
    def unused(self) -> tuple[int, ...]:
        """Indices that it never was at."""
        return tuple(k for k in range(self.indices) if k not in self.used)

    @property
    def idle(self) -> bool:
        """Whether it carries nothing."""
        return self.share < IDLE


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """All heads of a layer on the given inputs."""

    heads: tuple[HeadDiagnosis, ...]
    steps: int
    """Steps that were looked at."""

    @property
    def idle(self) -> tuple[int, ...]:
        """Heads that carry nothing."""
        return tuple(one.head for one in self.heads if one.idle)

    @property
    def frozen(self) -> tuple[int, ...]:
        """Heads of which at least nine tenths of the used columns are frozen."""
        return tuple(one.head for one in self.heads if one.frozen >= 0.9)

    def __str__(self) -> str:
        lines = ["head  indices  used  moves  share of output  frozen"]
        for one in self.heads:
            note = "  carries nothing" if one.idle else ""
            lines.append(
                f"{one.head:4}  {one.indices:7}  {len(one.used):4}  {one.moves:5.1%}  {one.share:15.1%}  "
                f"{one.frozen:6.1%}{note}"
            )
        unused = sum(len(one.unused) for one in self.heads)
        total = sum(one.indices for one in self.heads)
        lines.append(
            f"{len(self.idle)} of {len(self.heads)} heads carry nothing, {unused} of {total} indices are never used, "
            f"{len(self.frozen)} heads are frozen ({self.steps} steps)."
        )
        return "\n".join(lines)


@torch.no_grad()
def diagnose(layer: NFSM, x: Tensor, state: Tensor | None = None) -> Diagnosis:
    """What every head does in evaluation on these inputs (B L m), from a state or from the initial one."""
    if x.ndim != 3 or not x.shape[0] or not x.shape[1]:
        raise InvalidInput(f"diagnose takes inputs of at least one step, of shape (B, L, m); got {tuple(x.shape)}.")
    states = layer.states(x, state)
    start = layer.initial_state(len(x)) if state is None else layer._start(state, len(x))[0]
    before = torch.cat([start.to(states)[:, None], states[:, :-1]], 1).flatten(0, 1)
    after = states.flatten(0, 1)
    contributions, variation = head_contributions(layer), []
    for h, vectors in enumerate(contributions):
        rows = vectors[after[:, h]]
        variation.append(float((rows - rows.mean(0)).square().sum()))
    total = sum(variation) or 1.0
    heads = []
    for h, (d, theta) in enumerate(zip(layer.heads, layer.logits(x), strict=True)):
        column = theta.flatten(0, 1).transpose(1, 2)[torch.arange(len(before)), before[:, h]]
        others = 1 - (column / layer.config.temperature).softmax(-1).amax(-1)
        heads.append(
            HeadDiagnosis(
                head=h, indices=d, used=tuple(int(k) for k in after[:, h].unique()),
                moves=float((before[:, h] != after[:, h]).float().mean()), share=variation[h] / total,
                frozen=float((others < FROZEN).float().mean()) if d > 1 else 1.0,
            )
        )  # fmt: skip
    return Diagnosis(heads=tuple(heads), steps=len(after))
