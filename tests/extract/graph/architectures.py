"""Models as people write them: ten that are finite-state, and some that are not. Small and untrained."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import exactstate

WIDTH, TOKENS, LABELS = 8, 3, 4


class Plain(nn.Module):
    """Embedding, norm, layer, residual, MLP."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.norm = nn.Embedding(TOKENS, WIDTH), nn.LayerNorm(WIDTH)
        self.memory = exactstate.NFSM(WIDTH, (3, 2), remember=0.0)
        self.mlp = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 16), nn.SiLU(), nn.Dropout(0.1),
                                 nn.Linear(16, WIDTH))  # fmt: skip
        self.readout = nn.Linear(WIDTH, LABELS)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.embedding(tokens)
        h = h + self.memory(self.norm(h))[0]
        return self.readout(h + self.mlp(h))


class TwoLayers(nn.Module):
    """Pre-norm blocks in a ModuleList; RMS norms, GELU, in-place addition."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.norms = nn.ModuleList(nn.RMSNorm(WIDTH) for _ in range(4))
        self.memories = nn.ModuleList(exactstate.NFSM(WIDTH, heads) for heads in ((2, 2), (3,)))
        self.mlps = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 16), nn.GELU(), nn.Linear(16, WIDTH)) for _ in range(2)
        )
        self.readout = nn.Linear(WIDTH, LABELS, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.embedding(tokens)
        for at, (memory, mlp) in enumerate(zip(self.memories, self.mlps, strict=True)):
            h = h + memory(self.norms[2 * at](h))[0]
            h += mlp(self.norms[2 * at + 1](h))
        return self.readout(h)


class CausalConv(nn.Module):
    """A padded convolution that is cut to the length, in the residual stream: the read-out sees three steps."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.conv = nn.Conv1d(WIDTH, WIDTH, 3, padding=2, groups=2)
        self.memory, self.readout = exactstate.NFSM(WIDTH, (2, 2), remember=0.0), nn.Linear(WIDTH, LABELS)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.embedding(tokens)
        mixed = self.conv(h.transpose(1, 2))[..., : tokens.shape[1]].transpose(1, 2)
        h = torch.relu(h + mixed)
        return self.readout(h + self.memory(h)[0])


class ShiftMix(nn.Module):
    """Token shift, as in RWKV: each step is mixed with the one before, also behind the layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.mix = nn.Embedding(TOKENS, WIDTH), nn.Parameter(torch.rand(WIDTH))
        self.memory, self.readout = exactstate.NFSM(WIDTH, (3,), remember=0.0), nn.Linear(WIDTH, LABELS)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.embedding(tokens)
        y = self.memory(h * self.mix + F.pad(h, (0, 0, 1, -1)) * (1 - self.mix))[0]
        before = torch.cat([torch.zeros_like(y[:, :1]), y[:, :-1]], dim=1)
        return self.readout(torch.tanh(y + before))


class Parallel(nn.Module):
    """Two layers beside each other, concatenated."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.left, self.right = exactstate.NFSM(WIDTH, (2, 2), remember=0.0), exactstate.NFSM(WIDTH, (3,))
        self.readout = nn.Linear(2 * WIDTH, LABELS)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.embedding(tokens)
        return self.readout(torch.cat([self.left(h)[0], torch.sigmoid(self.right(h)[0])], dim=-1))


class SharedTwice(nn.Module):
    """One layer called twice: two states."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.norm = nn.Embedding(TOKENS, WIDTH), nn.LayerNorm(WIDTH, elementwise_affine=False)
        self.memory, self.readout = exactstate.NFSM(WIDTH, (2, 2), initial_state=(1, 0)), nn.Linear(WIDTH, LABELS)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.embedding(tokens)
        for _ in range(2):
            h = h + self.memory(self.norm(h))[0]
        return self.readout(h)


class Gated(nn.Module):
    """chunk, products, reshapes to heads and back, a flat batch, einsum, a scale."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.up = nn.Embedding(TOKENS, WIDTH), nn.Linear(WIDTH, 2 * WIDTH)
        self.memory, self.mix = (
            exactstate.NFSM(WIDTH, (3, 2), dictionary=4, remember=0.0),
            nn.Parameter(torch.randn(4, 4) / 2),
        )
        self.readout = nn.Linear(WIDTH, LABELS)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        h = self.embedding(tokens)
        B, L, m = h.shape
        gate, value = self.up(h.reshape(-1, m)).view(B, L, 2 * m).chunk(2, dim=-1)
        h = F.silu(gate) * value / m**0.5
        h = torch.einsum("blhd,de->blhe", h.view(B, L, 2, 4), self.mix).flatten(2)
        y, state = self.memory(h)
        return self.readout(h - y), state


class BatchNormed(nn.Module):
    """Batch norm in evaluation mode, one-hot tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.norm = nn.Linear(TOKENS, WIDTH), nn.BatchNorm1d(WIDTH)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 2.0)
        self.memory, self.readout = exactstate.NFSM(WIDTH, (3, 2), remember=0.0), nn.Linear(WIDTH, LABELS)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.into(F.one_hot(tokens, TOKENS).to(self.into.weight.dtype))
        h = self.norm(h.transpose(1, 2)).transpose(1, 2)
        return self.readout(F.relu(self.memory(h)[0]))


class LowRank(nn.Module):
    """LoRA by hand around a linear map; a softmax over features, whose rounding is not bounded."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.base = nn.Embedding(TOKENS, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.down, self.up = nn.Linear(WIDTH, 2, bias=False), nn.Linear(2, WIDTH, bias=False)
        self.memory, self.readout = exactstate.NFSM(WIDTH, (3, 2), remember=0.0), nn.Linear(WIDTH, LABELS)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.embedding(tokens)
        h = self.base(h) + 2.0 * self.up(self.down(h))
        return self.readout(torch.softmax(self.memory(h)[0], dim=-1))


class Vectors(nn.Module):
    """Reads vectors."""

    def __init__(self, inputs: int = 2) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, 16), nn.Tanh(), nn.Linear(16, WIDTH))
        self.memory, self.readout = exactstate.NFSM(WIDTH, (3, 2), remember=0.0), nn.Linear(WIDTH, LABELS)

    def forward(self, x: Tensor) -> Tensor:
        return self.readout(self.memory(self.encoder(x))[0])


FINITE = (Plain, TwoLayers, CausalConv, ShiftMix, Parallel, SharedTwice, Gated, BatchNormed, LowRank, Vectors)


class Around(nn.Module):
    """Something between the embedding and a layer."""

    def __init__(self, inner: nn.Module | None, mixing: Callable[..., Tensor]) -> None:
        super().__init__()
        self.embedding, self.inner, self.mixing = nn.Embedding(TOKENS, WIDTH), inner, mixing
        self.memory, self.readout = exactstate.NFSM(WIDTH, (3, 2), remember=0.0), nn.Linear(WIDTH, LABELS)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.embedding(tokens)
        return self.readout(self.memory(h + self.mixing(self.inner, h))[0])


def attention(inner: nn.Module, h: Tensor) -> Tensor:
    mask = torch.ones(h.shape[1], h.shape[1], dtype=torch.bool).triu(1)
    return inner(h, h, h, attn_mask=mask, need_weights=False)[0]


def positions(inner: nn.Module, h: Tensor) -> Tensor:
    return inner(torch.arange(h.shape[1]))


REFUSED = {
    "attention": lambda: Around(nn.MultiheadAttention(WIDTH, 2, batch_first=True), attention),
    "recurrence": lambda: Around(nn.GRU(WIDTH, WIDTH, batch_first=True), lambda gru, h: gru(h)[0]),
    "batch statistics": lambda: Around(
        nn.BatchNorm1d(WIDTH, track_running_stats=False), lambda norm, h: norm(h.transpose(1, 2)).transpose(1, 2)
    ),
    "mean over steps": lambda: Around(nn.Identity(), lambda inner, h: inner(h).mean(1, keepdim=True)),
    "running sum": lambda: Around(None, lambda inner, h: h.cumsum(1)),
    "positions": lambda: Around(nn.Embedding(64, WIDTH), positions),
    "future": lambda: Around(
        nn.Conv1d(WIDTH, WIDTH, 3, padding=1), lambda conv, h: conv(h.transpose(1, 2)).transpose(1, 2)
    ),
    "reversal": lambda: Around(None, lambda inner, h: h.flip(1)),
}
"""By what is wrong with them."""


def build(model: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return model().eval()
