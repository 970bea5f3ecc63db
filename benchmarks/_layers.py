"""The four layers of the paper's wall-time figure, one training step of each, and the check that scan and loop agree.

Size d means one head of d indices for the NFSM, d channels with states of 16 entries for Mamba- and AUSSM, and N = d
with a dictionary of 16 matrices for PD-SSM. Inputs are 16 sequences of Gaussian vectors of width 256.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, one_hot

from benchmarks.harness import Report, Unequal
from exactstate.baselines import AUSSM, PDSSM, MambaMinus
from exactstate.nn import NFSM
from exactstate.ops.gumbel import gumbel

B, WIDTH, STATES, MATRICES, SEED = 16, 256, 16, 16, 7
PAPER: dict[str, Any] = {"noise": True, "temperature": 0.5, "remember": 0.0, "dictionary": None}
"""An NFSM as in the paper: tables are sampled in training, and logits are affine in the input itself."""
MODELS: dict[str, Callable[..., nn.Module]] = {
    "NFSM": lambda d, **settings: NFSM(WIDTH, (d,), **PAPER, **settings),
    "Mamba-": lambda d, **settings: MambaMinus(WIDTH, d, STATES, **settings),
    "AUSSM": lambda d, **settings: AUSSM(WIDTH, d, STATES, **settings),
    "PD-SSM": lambda d, **settings: PDSSM(WIDTH, d, MATRICES, **settings),
}
ROUNDING = 1e-9
"""Of the largest entry, between two orders of summation in float64 at the sizes that are compared."""


def layer_of(model: str, d: int, *, form: str = "scan", chunk: int = 0) -> nn.Module:
    """The layer as a scan, or as a loop over time in plain torch."""
    backend = "auto" if form == "scan" or model == "NFSM" else "reference"
    layer = MODELS[model](d, backend=backend, chunk=chunk, generator=torch.Generator().manual_seed(SEED))
    return layer if form == "scan" or not isinstance(layer, NFSM) else Loop(layer)


class Loop(nn.Module):
    """An NFSM of one head as the paper writes it: a one-hot state times the matrix of each step, hard forward and soft
    backward, one step after another. The `reference` backend is no match: it also sums logits one product at a time."""

    def __init__(self, layer: NFSM) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        layer, (d,), (B, L) = self.layer, self.layer.heads, x.shape[:2]
        noise = gumbel(torch.tensor(SEED), torch.arange(B).repeat_interleave(L), torch.arange(L).repeat(B), d * d)
        scores = linear(x, layer.weight, layer.bias) / layer.config.temperature + noise.view(B, L, d * d).to(x.dtype)
        soft = scores.unflatten(-1, (d, d)).softmax(-1)  # B L d d: [k, j] for the move from k to j
        hard = one_hot(soft.argmax(-1), d).to(x.dtype)
        h, states = one_hot(torch.zeros(B, dtype=torch.int64), d).to(x.dtype), []
        for move in (hard + (soft - soft.detach())).unbind(1):
            h = torch.bmm(h[:, None], move)[:, 0]
            states.append(h)
        return layer.out_proj(torch.stack(states, dim=1) @ layer.values), h.argmax(-1, keepdim=True)


def inputs(length: int, batch: int = B) -> Tensor:
    return torch.randn(batch, length, WIDTH, generator=torch.Generator().manual_seed(SEED))


def training_step(layer: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """Forward, and the gradient of the mean squared output with respect to the parameters: (output, last state)."""
    layer.zero_grad(set_to_none=True)
    y, state = layer(x, seed=SEED) if isinstance(layer, NFSM) else layer(x)
    y.backward(y.detach() * (2 / y.numel()))
    return y.detach(), state.detach()


def agree(report: Report, model: str, *, d: int = 16, length: int = 100) -> None:
    """The scan, whole and in chunks, is the loop to rounding, and a compiled NFSM its reference to the bit; or Unequal
    is raised."""
    x = inputs(length, batch=3)
    wanted = outcome(layer_of(model, d, form="loop").double(), x.double())
    for chunk in (0, 37):
        computed = outcome(layer_of(model, d, chunk=chunk).double(), x.double())
        for name, right in wanted.items():
            if not float((computed[name] - right).abs().max()) <= ROUNDING * float(right.abs().max()):
                raise Unequal(f"{model}: the scan and the loop differ in {name}; nothing was timed.")
    report.checks.append(f"{model}: scan, scan in chunks and loop, in outputs, last states and gradients")
    if model == "NFSM" and (layer := layer_of(model, d)).backend == "cpu":
        slow = NFSM(WIDTH, (d,), **PAPER, backend="reference")
        slow.load_state_dict(layer.state_dict())
        if not all(map(torch.equal, training_step(layer, x), training_step(slow, x))):
            raise Unequal("NFSM: the compiled backend is not the reference to the bit; nothing was timed.")
        report.checks.append("NFSM: compiled and reference backends, outputs and last states to the bit")


def outcome(layer: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """Outputs, states and gradients of a training step, by name."""
    y, state = training_step(layer, x)
    learned = (layer.layer if isinstance(layer, Loop) else layer).named_parameters()
    of = {f"the gradient of {name}": part.grad for name, part in learned if part.grad is not None}
    return {"the output": y, "the last state": state, **of}
