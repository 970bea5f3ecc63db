"""A small language model whose state is an NFSM's, a GRU's, an LSTM's or nobody's.

B  batch     L  length     m  width     V  vocabulary
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from exactstate.baselines import GRU, LSTM
from exactstate.errors import InvalidInput, unknown
from exactstate.nn.backbone import BackboneLayer
from exactstate.nn.mlp import GatedMLP
from exactstate.text.memory import Machine, MachineMemory, Words

CELLS = ("nfsm", "gru", "lstm", "none")
WINDOW = 4
"""Tokens that the convolution before a GRU or LSTM sees."""

State = list[tuple[Tensor | None, Any]]
"""For every block, the last inputs of its convolution and the state of its cell."""


class TextModel(nn.Module):
    """Logits of the next token after every token, B L -> B L V; the same for every language.

    >>> model = TextModel(vocabulary=17, cell="lstm")
    >>> model(torch.zeros(2, 30, dtype=torch.int64)).shape
    torch.Size([2, 30, 17])

    - "nfsm": machines in two NFSM layers (`exactstate.text.memory`), h + MLP(norm h), read-out. Before `fit` there are
      no machines, and it sees the last token.
    - "gru", "lstm": embedding, h + cell(conv(norm h)), h + MLP(norm h), read-out. The gates that keep the state begin
      with biases from 0 to 4.
    - "none": the same twice, without a cell; it sees the last seven tokens.
    """

    def __init__(self, vocabulary: int, width: int = 64, cell: str = "nfsm") -> None:
        super().__init__()
        if cell not in CELLS:
            raise unknown("cell", cell, CELLS)
        self.vocabulary, self.width, self.cell = vocabulary, width, cell
        if cell != "nfsm":
            self.embedding = nn.Embedding(vocabulary, width)
            nn.init.normal_(self.embedding.weight, std=0.5)
        made: dict[str, type[GRU | LSTM]] = {"gru": GRU, "lstm": LSTM}
        cells: list[nn.Module] = [Nothing(), Nothing()] if cell == "none" else []
        cells += [remembering(made[cell](width))] if cell in made else []
        self.blocks = nn.ModuleList(
            BackboneLayer(one, width, kernel_size=WINDOW, hidden=2 * width, dropout=0.0, generator=None)
            for one in cells
        )
        self.norm, self.readout = nn.LayerNorm(width), nn.Linear(width, vocabulary)
        if cell == "nfsm":
            self.hold([(token,) for token in range(vocabulary)], [])
            self.mlp, self.mlp_norm = GatedMLP(width, 4 * width), nn.LayerNorm(width)

    def hold(self, commands: Sequence[Words], machines: Sequence[Machine]) -> None:
        """Let the NFSM layers hold these machines over these commands."""
        self.memory = MachineMemory(self.vocabulary, self.width, commands, machines)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.run(tokens)[0]

    def run(self, tokens: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """(logits, state after the last token); `state` continues an earlier call."""
        if tokens.ndim != 2 or not tokens.shape[1]:
            raise InvalidInput(f"tokens are B L, with L at least 1; got {tuple(tokens.shape)}.")
        if self.cell == "nfsm":
            read, indices = self.memory(tokens, None if state is None else state[0][1])
            return self.predict(read), [(None, indices)]
        h, after = self.embedding(tokens), State()
        for block, before in zip(self.blocks, state or [(None, None)] * len(self.blocks), strict=True):
            h, one = block(h, before)
            after.append(one)
        return self.readout(self.norm(h)), after

    def predict(self, h: Tensor) -> Tensor:
        """Logits, from what the memory of an NFSM gives."""
        h = h + self.mlp(self.mlp_norm(h))
        return self.readout(self.norm(h))


class Nothing(nn.Module):
    """In the place of a cell: what the convolution says."""

    def forward(self, u: Tensor, state: None = None) -> tuple[Tensor, None]:
        return u, None


def remembering(layer: GRU | LSTM) -> GRU | LSTM:
    """A bias of the gate that keeps the state, from 0 in the first unit to 4 in the last.

    It is the second of three gates of PyTorch's GRU and the second of four of its LSTM.
    """
    with torch.no_grad():
        layer.rnn.get_parameter("bias_ih_l0")[layer.hidden : 2 * layer.hidden] = torch.linspace(0, 4, layer.hidden)
    return layer
