"""Random models out of the operations that are read, with weights, offsets and epsilons that are hard on rounding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import exactstate

WIDTH, TOKENS, LABELS = 8, 3, 4


class Block(nn.Module):
    """h -> f(h, parameters, modules), with its name."""

    def __init__(self, name: str, apply: Callable[..., Tensor], *parts: nn.Module | Tensor) -> None:
        super().__init__()
        self.name, self.apply_to = name, apply
        self.modules_ = nn.ModuleList(part for part in parts if isinstance(part, nn.Module))
        self.numbers = nn.ParameterList(part for part in parts if isinstance(part, Tensor))

    def forward(self, h: Tensor) -> Tensor:
        return self.apply_to(h, *self.modules_, *self.numbers)


def batch_norm(rng: np.random.Generator) -> nn.Module:
    norm = nn.BatchNorm1d(WIDTH)
    with torch.no_grad():
        norm.running_var.uniform_(0.1, 2.0).mul_(10.0 ** float(rng.integers(-4, 6)))
        norm.running_mean.normal_(0, 10.0 ** float(rng.integers(-2, 3)))
        norm.weight.normal_()
        norm.bias.normal_()
    return norm


def earlier(h: Tensor) -> Tensor:
    return F.pad(h, (0, 0, 1, 0))[:, :-1]


def vector(scale: float = 1.0, offset: float = 0.0) -> Tensor:
    return offset + scale * torch.randn(WIDTH)


def gated(h: Tensor, gate: nn.Module, up: nn.Module, down: nn.Module) -> Tensor:
    return h + down(F.silu(gate(h)) * up(h))


def mlp(activation: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    return lambda h, up, down: h + down(activation(up(h)))


def scaled(name: str, factor: float) -> Block:
    return Block(name, lambda h: h * factor)


BLOCKS: dict[str, Callable[[np.random.Generator], Block]] = {
    "linear": lambda rng: Block("linear", lambda h, map_: map_(h), nn.Linear(WIDTH, WIDTH)),
    "layer norm": lambda rng: Block("layer norm", lambda h, norm: norm(h),
                                    nn.LayerNorm(WIDTH, eps=10.0 ** -float(rng.integers(3, 20)))),
    "RMS norm": lambda rng: Block("RMS norm", lambda h, norm: norm(h),
                                  nn.RMSNorm(WIDTH, eps=None if rng.random() < 0.5 else 1e-6)),
    "batch norm": lambda rng: Block("batch norm", lambda h, norm: norm(h.transpose(1, 2)).transpose(1, 2),
                                    batch_norm(rng)),
    "SwiGLU": lambda rng: Block("SwiGLU", gated, nn.Linear(WIDTH, 12), nn.Linear(WIDTH, 12), nn.Linear(12, WIDTH)),
    "GELU": lambda rng: Block("GELU", mlp(F.gelu), nn.Linear(WIDTH, 12), nn.Linear(12, WIDTH)),
    "tanh": lambda rng: Block("tanh", mlp(torch.tanh), nn.Linear(WIDTH, 12), nn.Linear(12, WIDTH)),
    "ReLU": lambda rng: Block("ReLU", lambda h: torch.relu(h)),
    "weight norm": lambda rng: Block(
        "weight norm", lambda h, map_: map_(h), nn.utils.parametrizations.weight_norm(nn.Linear(WIDTH, WIDTH))
    ),
    "low rank": lambda rng: Block("low rank", lambda h, base, down, up: base(h) + 4.0 * up(down(h)),
                                  nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2, bias=False),
                                  nn.Linear(2, WIDTH, bias=False)),
    "merged low rank": lambda rng: Block("merged low rank", lambda h, a, b, c: F.linear(h, a + 2.0 * (b @ c)),
                                         torch.randn(WIDTH, WIDTH) / 3, torch.randn(WIDTH, 2), torch.randn(2, WIDTH)),
    "convolution": lambda rng: Block(
        "convolution", lambda h, conv: h + conv(F.pad(h.transpose(1, 2), (1, 0))).transpose(1, 2),
        nn.Conv1d(WIDTH, WIDTH, 2, groups=2)
    ),
    "shift": lambda rng: Block("shift", lambda h, c: h * c + earlier(h) * (1 - c), vector(0.3, 0.5)),
    "gate": lambda rng: Block(
        "gate", lambda h, c: h * (1 - torch.sigmoid(c)), vector(3.0, float(rng.integers(-2, 17)))
    ),
    "decay": lambda rng: Block("decay", lambda h, c: h * torch.exp(-torch.exp(c)), vector(1.0)),
    "temperature": lambda rng: Block(
        "temperature", lambda h, c: h * torch.log(1 + torch.exp(c)), vector(4.0, -6.0)
    ),
    "product of parameters": lambda rng: Block(
        "product of parameters", lambda h, c, d: h * (c * d), vector(), vector()
    ),
    "difference of parameters": lambda rng: Block(
        "difference of parameters", lambda h, c, d: h * (c - d), vector(1.0, 30.0), vector(1.0, 30.0)
    ),
    "division": lambda rng: Block("division", lambda h, c: h / c, vector()),
    "cancellation": lambda rng: Block(
        "cancellation", lambda h, c: (h + c) - c, vector(1.0, 10.0 ** float(rng.integers(0, 4)))
    ),
    "product of steps": lambda rng: Block("product of steps", lambda h: h * earlier(h) + h),
    "clamped": lambda rng: Block("clamped", lambda h: torch.clamp(h, max=earlier(h) + 0.5)),
    "softmax": lambda rng: Block("softmax", lambda h: torch.softmax(h, -1) + h),
    "mean": lambda rng: Block("mean", lambda h: h - h.mean(-1, keepdim=True)),
    "large": lambda rng: scaled("large", 10.0 ** float(rng.integers(1, 5))),
    "small": lambda rng: scaled("small", 10.0 ** -float(rng.integers(1, 6))),
}  # fmt: skip


class Model(nn.Module):
    """Tokens, blocks, one or two NFSM layers, blocks, logits."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self.shift = int(rng.integers(0, 3))
        self.embedding = nn.Embedding(TOKENS + self.shift, WIDTH)
        chosen = [[BLOCKS[name](rng) for name in rng.choice(list(BLOCKS), int(count))]
                  for count in (rng.integers(0, 2), *rng.integers(0, 3, rng.integers(1, 3)))]  # fmt: skip
        self.parts = nn.ModuleList(nn.ModuleList(part) for part in chosen)
        self.layers = nn.ModuleList(
            exactstate.NFSM(WIDTH, tuple(int(d) for d in rng.integers(2, 4, rng.integers(1, 3))), remember=0.0)
            for _ in self.parts[1:]
        )
        self.readout = nn.Linear(WIDTH, LABELS)
        with torch.no_grad():
            for parameter in self.parameters():
                if rng.random() < 0.1:
                    parameter.mul_(10.0 ** float(rng.integers(-4, 5)))

    @property
    def names(self) -> list[str]:
        return [block.name for part in self.parts for block in part]

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.embedding(tokens + self.shift)
        for place, part in enumerate(self.parts):
            if place:
                h = h + self.layers[place - 1](h)[0]
            for block in part:
                h = block(h)
        return self.readout(h)
