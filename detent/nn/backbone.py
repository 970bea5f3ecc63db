"""The backbone that every recurrent block is put into: embed, layers, read out.

    B  batch     L  length     m  width     V  vocabulary     n  labels

Tokens are embedded, passed through a gated MLP and a layer norm. Each layer adds block(conv(LN h)), then MLP(LN h).
A final layer norm, gated MLP and linear map give the logits of the label at every position, and where there are
answers, a second linear map gives theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from detent.errors import InvalidConfig
from detent.nn.conv import CausalConvolution
from detent.nn.init import fan_in_
from detent.nn.mlp import GatedMLP
from detent.nn.nfsm import NFSM

State = list[tuple[Tensor | None, Any]]
"""For every layer, the last inputs of its convolution and the state of its block."""


class Layer(nn.Module):
    """h + block(conv(LN h)), then h + MLP(LN h)."""

    def __init__(
        self,
        block: nn.Module,
        width: int,
        *,
        reach: int,
        hidden: int,
        dropout: float,
        generator: torch.Generator | None,
    ) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.convolution = CausalConvolution(width, reach, generator=generator) if reach > 1 else None
        self.block = block
        self.mlp = GatedMLP(width, hidden, dropout=dropout, generator=generator)

    def forward(self, h: Tensor, state: tuple[Tensor | None, Any], **call: Any) -> tuple[Tensor, tuple[Any, Any]]:
        u, last = self.read(h, state[0])
        y, held = self.block(u, state[1], **call)
        return self.mix(h + y), (last, held)

    def read(self, h: Tensor, last: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """What the block reads, and the convolution's last inputs."""
        u = self.before(h)
        return (u, None) if self.convolution is None else self.convolution(u, last)

    def mix(self, h: Tensor) -> Tensor:
        """What follows the block, position by position."""
        return h + self.mlp(self.after(h))


class Backbone(nn.Module):
    """Embed, layers of recurrent blocks, read out."""

    def __init__(
        self, vocabulary: int, labels: int, blocks: Sequence[nn.Module], *, width: int = 128, reach: int = 1,
        hidden: int | None = None, dropout: float = 0.1, answers: int = 0, generator: torch.Generator | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        hidden = 2 * width if hidden is None else hidden
        self.vocabulary, self.labels, self.answers, self.width, self.reach = vocabulary, labels, answers, width, reach
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, generator=generator)
        self.encoder = GatedMLP(width, hidden, dropout=dropout, generator=generator)
        self.encoded = nn.LayerNorm(width)
        shared = {"reach": reach, "hidden": hidden, "dropout": dropout, "generator": generator}
        self.layers = nn.ModuleList(Layer(block, width, **shared) for block in blocks)  # type: ignore[arg-type]
        self.final = nn.LayerNorm(width)
        self.decoder = GatedMLP(width, hidden, dropout=dropout, generator=generator)
        self.readout = nn.Linear(width, labels)
        self.reply = nn.Linear(width, answers) if answers else None
        for linear in (self.readout, *(() if self.reply is None else (self.reply,))):
            fan_in_(linear, generator)

    def initial_state(self) -> State:
        """Nothing read yet."""
        return [(None, None) for _ in self.layers]

    def forward(self, tokens: Tensor, state: State | None = None, **call: Any) -> tuple[Tensor, State]:
        """(logits of the labels: B L n, state); `call` goes to every block (lengths, resets, seed)."""
        h, state = self.hidden(tokens, state, **call)
        return self.label(h), state

    def hidden(self, tokens: Tensor, state: State | None = None, **call: Any) -> tuple[Tensor, State]:
        """What the read-outs read: B L m."""
        h, left = self.encode(tokens), []
        seed = call.pop("seed", None)
        for depth, (layer, held) in enumerate(zip(self.layers, state or self.initial_state(), strict=True)):
            own = {} if seed is None or not isinstance(layer.block, NFSM) else {"seed": seed + depth}
            h, after = layer(h, held, **call, **own)
            left.append(after)
        return h, left

    def encode(self, tokens: Tensor) -> Tensor:
        """... -> ... m: what depends on the token alone."""
        return self.encoded(self.encoder(self.embedding(tokens)))

    def decode(self, h: Tensor) -> Tensor:
        """The last layer norm and MLP."""
        return self.decoder(self.final(h))

    def label(self, h: Tensor) -> Tensor:
        """... m -> ... n: logits of the label."""
        return self.readout(self.decode(h))

    def answer(self, h: Tensor) -> Tensor:
        """... m -> ... answers: logits of the answer, for a model that gives any."""
        if self.reply is None:
            raise InvalidConfig("this model gives no answers: it was built with answers=0.")
        return self.reply(self.decode(h))
