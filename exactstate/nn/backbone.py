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

from exactstate.errors import InvalidConfig
from exactstate.nn.conv import CausalConvolution
from exactstate.nn.init import fan_in_
from exactstate.nn.mlp import GatedMLP
from exactstate.nn.nfsm import NFSM

State = list[tuple[Tensor | None, Any]]
"""For every layer, the last inputs of its convolution and the state of its block."""


class BackboneLayer(nn.Module):
    """h + block(conv(LN h)), then h + MLP(LN h)."""

    def __init__(
        self,
        block: nn.Module,
        width: int,
        *,
        kernel_size: int,
        hidden: int,
        dropout: float,
        generator: torch.Generator | None,
    ) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.conv = CausalConvolution(width, kernel_size, generator=generator) if kernel_size > 1 else None
        self.block = block
        self.mlp = GatedMLP(width, hidden, dropout=dropout, generator=generator)

    def forward(self, h: Tensor, state: tuple[Tensor | None, Any], **call: Any) -> tuple[Tensor, tuple[Any, Any]]:
        u, last = self.block_input(h, state[0])
        y, block_state = self.block(u, state[1], **call)
        return self.feed_forward(h + y), (last, block_state)

    def block_input(self, h: Tensor, last: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """What the block reads, and the convolution's last inputs."""
        u = self.norm1(h)
        return (u, None) if self.conv is None else self.conv(u, last)

    def feed_forward(self, h: Tensor) -> Tensor:
        """What follows the block, position by position."""
        return h + self.mlp(self.norm2(h))


class Backbone(nn.Module):
    """Embed, layers of recurrent blocks, read out."""

    def __init__(
        self, vocabulary: int, labels: int, blocks: Sequence[nn.Module], *, width: int = 128, kernel_size: int = 1,
        hidden: int | None = None, dropout: float = 0.1, answers: int = 0, generator: torch.Generator | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        hidden = 2 * width if hidden is None else hidden
        self.vocabulary, self.labels, self.answers, self.width, self.kernel_size = (
            vocabulary,
            labels,
            answers,
            width,
            kernel_size,
        )
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, generator=generator)
        self.encoder = GatedMLP(width, hidden, dropout=dropout, generator=generator)
        self.encoder_norm = nn.LayerNorm(width)
        shared = {"kernel_size": kernel_size, "hidden": hidden, "dropout": dropout, "generator": generator}
        self.layers = nn.ModuleList(BackboneLayer(block, width, **shared) for block in blocks)  # type: ignore[arg-type]
        self.final_norm = nn.LayerNorm(width)
        self.decoder = GatedMLP(width, hidden, dropout=dropout, generator=generator)
        self.readout = nn.Linear(width, labels)
        self.answer_head = nn.Linear(width, answers) if answers else None
        for linear in (self.readout, *(() if self.answer_head is None else (self.answer_head,))):
            fan_in_(linear, generator)

    def initial_state(self) -> State:
        """Nothing read yet."""
        return [(None, None) for _ in self.layers]

    def forward(self, tokens: Tensor, state: State | None = None, **call: Any) -> tuple[Tensor, State]:
        """(logits of the labels: B L n, state); `call` goes to every block (lengths, resets, seed)."""
        h, state = self.hidden(tokens, state, **call)
        return self.label_logits(h), state

    def hidden(self, tokens: Tensor, state: State | None = None, **call: Any) -> tuple[Tensor, State]:
        """What the read-outs read: B L m."""
        h, new_state = self.encode(tokens), []
        seed = call.pop("seed", None)
        for depth, (layer, block_state) in enumerate(zip(self.layers, state or self.initial_state(), strict=True)):
            own = {} if seed is None or not isinstance(layer.block, NFSM) else {"seed": seed + depth}
            h, after = layer(h, block_state, **call, **own)
            new_state.append(after)
        return h, new_state

    def encode(self, tokens: Tensor) -> Tensor:
        """... -> ... m: what depends on the token alone."""
        return self.encoder_norm(self.encoder(self.embedding(tokens)))

    def decode(self, h: Tensor) -> Tensor:
        """The last layer norm and MLP."""
        return self.decoder(self.final_norm(h))

    def label_logits(self, h: Tensor) -> Tensor:
        """... m -> ... n: logits of the label."""
        return self.readout(self.decode(h))

    def answer_logits(self, h: Tensor) -> Tensor:
        """... m -> ... answers: logits of the answer, for a model that gives any."""
        if self.answer_head is None:
            raise InvalidConfig("this model gives no answers: it was built with answers=0.")
        return self.answer_head(self.decode(h))
