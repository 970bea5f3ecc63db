"""An exact memory of machines in two NFSM layers: one reads commands out of tokens, the other holds a state each.

B  batch     L  length     V  vocabulary     N  nodes of the parser     C  commands     r  machines
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from exactstate._types import MISSING, Ints
from exactstate.nn import NFSM
from exactstate.ops.tables import entry_offsets, offsets
from exactstate.ops.torch_kernels import project_values

Words = tuple[int, ...]
Pair = tuple[Tensor, Tensor]
LOGIT = 8.0
"""Of the moves that are made; all others have the logit 0."""


@dataclass(frozen=True, eq=False)
class Machine:
    """Of one question: a Moore machine whose symbols are commands and whose outputs are answers."""

    question: Words
    tables: Ints
    """C n: the state after every command."""
    outputs: Ints
    """n: the token that answers the question."""
    start: int


class MachineMemory(nn.Module):
    """Tokens to width: what was read of the current command, and the state of every machine.

    The first layer has one head, whose indices are the beginnings of commands; its value vectors are one-hot, and the
    second layer reads them: at the end of a command every head moves as its machine says, elsewhere it stays. All
    transition tables are fixed; how they are read is trained.
    """

    def __init__(self, vocabulary: int, width: int, commands: Sequence[Words], machines: Sequence[Machine]) -> None:
        super().__init__()
        nodes, table, command_at = parser(commands, vocabulary)
        N = max(len(nodes), vocabulary)
        self.token = nn.Embedding.from_pretrained(torch.eye(vocabulary, N))
        self.parser = NFSM(N, (len(nodes),), value_width=N)
        sizes = tuple(len(machine.outputs) for machine in machines) or (1,)
        starts = tuple(machine.start for machine in machines) or (0,)
        self.machines = NFSM(N, sizes, value_width=width, initial_state=starts)
        self.node_proj, self.state_proj = nn.Linear(N, width), nn.Linear(N, width)
        stay = [torch.arange(d).expand(len(nodes), d).clone() for d in sizes]
        for node, c in enumerate(command_at):
            for moves, machine in zip(stay, machines, strict=False):
                if c != MISSING:
                    moves[node] = torch.from_numpy(machine.tables[c])
        with torch.no_grad():
            set_tables(self.parser, [torch.from_numpy(table)])
            set_tables(self.machines, stay)
            self.parser.values.copy_(torch.eye(len(nodes), N))
            self.parser.out_proj.weight.copy_(torch.eye(N))
            self.parser.out_proj.bias.zero_()
        for fixed in (*self.parser.parameters(), self.machines.weight, self.machines.bias):
            fixed.requires_grad_(False)

    @torch.no_grad()
    def indices(self, tokens: Tensor) -> Tensor:
        """B L (1 + r): the beginning of a command that was read, and the state of every machine, after every token."""
        unit = torch.eye(self.parser.config.width)
        node = self.parser.states((self.token.weight, tokens))
        return torch.cat([node, self.machines.states((unit, node[..., 0].contiguous()))], -1)

    def read(self, indices: Tensor) -> Tensor:
        """What `forward` gives where these are the indices: ... (1 + r) -> ... width."""
        values = project_values(self.machines.values, self.machines.out_proj.weight, self.machines.heads)
        first = torch.tensor(offsets(self.machines.heads))
        held = nn.functional.embedding(indices[..., 1:] + first, values).sum(-2) + self.machines.out_proj.bias
        return (
            nn.functional.embedding(indices[..., 0], self.node_proj.weight.T)
            + self.node_proj.bias
            + self.state_proj(held)
        )

    def forward(
        self, tokens: Tensor, state: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """(B L width, the indices of both layers after the last token)."""
        before = (None, None) if state is None else state
        node, parsed = self.parser(self.token(tokens), before[0])
        held, states = self.machines(node, before[1])
        return self.node_proj(node) + self.state_proj(held), (parsed, states)


@torch.no_grad()
def set_tables(layer: NFSM, tables: Sequence[Tensor]) -> None:
    """Let row n of the input, the n-th unit vector, move every head by row n of its table (rows d)."""
    layer.weight.zero_()
    layer.bias.zero_()
    for d, at, moves in zip(layer.heads, entry_offsets(layer.heads), tables, strict=True):
        rows = torch.arange(len(moves))[:, None].expand_as(moves)
        layer.weight[at + torch.arange(d) * d + moves, rows] = LOGIT


def parser(commands: Sequence[Words], vocabulary: int) -> tuple[list[Words], Ints, list[int]]:
    """(beginnings of commands, V N: the one after every token, the command that ends at each, MISSING for none).

    After a whole command, and where no command goes on like this, the token begins a new one.
    """
    nodes: list[Words] = [()]
    for words in commands:
        nodes += [words[:k] for k in range(1, len(words) + 1) if words[:k] not in nodes]
    place = {words: n for n, words in enumerate(nodes)}
    whole = {words: c for c, words in enumerate(commands)}
    table = np.zeros((vocabulary, len(nodes)), np.int64)
    for n, words in enumerate(nodes):
        for token in range(vocabulary):
            longer = () if words in whole else words
            table[token, n] = place.get((*longer, token), place.get((token,), 0))
    return nodes, table, [whole.get(words, MISSING) for words in nodes]
