"""Models made by hand: a cascade of tables is thought up, and the weights of a real network are solved for it.

A `Cascade` says what a stack shall do, as plain Python. `realise` writes it into the weights of a random backbone by
linear algebra (random features of few different inputs are independent); nothing is trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from exactstate.automata import Moore
from exactstate.extract import Budget, Extracted
from exactstate.extract.argmax import ArgmaxMargins
from exactstate.extract.extract import extract_network
from exactstate.extract.network import EvaluatedNetwork
from exactstate.extract.result import head_offsets
from exactstate.nn import NFSM, Backbone

Input = tuple[Any, ...]
"""(symbol, indices of layer 0, indices of layer 1, ...) after the step."""
MARGIN = 4.0


@dataclass
class Cascade:
    """What a stack of layers shall do."""

    symbols: int
    heads: tuple[tuple[int, ...], ...]
    rule: Callable[[int, list[Input | None]], list[Sequence[int]]]
    """(layer, window) -> the table of every head; an input is None before the word began."""
    say: Callable[[Input], int]
    labels: int
    kernel_size: int = 1
    start: tuple[tuple[int, ...], ...] = ()
    answer: Callable[[Input], int] | None = None
    answers: int = 0
    nbytes: int = 0
    inputs: list[list[Input]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start = self.start or tuple((0,) * len(heads) for heads in self.heads)
        self.inputs = [[(symbol,) for symbol in range(self.symbols)], *([] for _ in self.heads[1:])]

    def add_inputs(self, layer: int, inputs: np.ndarray) -> None:
        self.inputs[layer] += [self._above(layer - 1, row) for row in inputs.tolist()]

    def tables(self, layer: int, windows: np.ndarray) -> ArgmaxMargins:
        held = self.inputs[layer]
        best = [
            np.concatenate(self.rule(layer, [held[i] if i >= 0 else None for i in window]))
            for window in windows.tolist()
        ]
        return _sure(np.array(best), np.repeat(self.heads[layer], self.heads[layer]))

    def read_out(self, inputs: np.ndarray) -> Iterator[tuple[ArgmaxMargins, ArgmaxMargins | None]]:
        seen = [self._above(len(self.heads) - 1, row) for row in inputs.tolist()]
        answers = None if self.answer is None else _sure(np.array([self.answer(one) for one in seen]), self.answers)
        yield _sure(np.array([self.say(one) for one in seen]), self.labels), answers

    def _above(self, layer: int, row: list[int]) -> Input:
        return (*self.inputs[layer][row[0]], tuple(row[1:]))

    def read(self, *, symbols: Sequence[str] | None = None, grammar: Moore | None = None) -> Extracted:
        """What an exploration finds in it."""
        names = tuple(symbols or map(str, range(self.symbols)))
        return extract_network(
            self, symbols=names, labels=tuple(map(str, range(self.labels))),
            answers=tuple(map(str, range(self.answers))), grammar=grammar, weights="0" * 64, format="float64",
            budget=Budget(),
        )  # fmt: skip


def _sure(best: np.ndarray, among: np.ndarray | int) -> ArgmaxMargins:
    margins = np.broadcast_to(np.where(np.asarray(among) > 1, MARGIN, np.inf), best.shape)
    return ArgmaxMargins(best.astype(np.int32), margins, np.zeros(best.shape, np.int32))


def backbone(cascade: Cascade, *, width: int, seed: int = 0, **more: Any) -> Backbone:
    """A random network of the cascade's shape."""
    seeded = torch.Generator().manual_seed(seed)
    blocks = [
        NFSM(width, heads, initial_state=start, remember=0.0, generator=seeded)
        for heads, start in zip(cascade.heads, cascade.start, strict=True)
    ]
    return Backbone(
        cascade.symbols, cascade.labels, blocks, width=width, kernel_size=cascade.kernel_size, answers=cascade.answers,
        generator=seeded, **more,
    ).eval()  # fmt: skip


@torch.no_grad()
def realise(cascade: Cascade, *, width: int, grammar: Moore | None = None, seed: int = 0) -> Backbone:
    """A network that does what the cascade says, on all words or on those of a grammar."""
    model = backbone(cascade, width=width, seed=seed)
    wanted = cascade.read(symbols=None if grammar is None else grammar.symbols, grammar=grammar)
    network = EvaluatedNetwork(model, cascade.symbols, "float64")
    for number, layer in enumerate(wanted.layers):
        if number:
            network.add_inputs(number, layer.inputs)
        block: NFSM = model.layers[number].block
        columns = []
        for head, d in enumerate(layer.heads):
            table = torch.from_numpy(layer.tables[:, layer.columns(head)].copy()).long()
            columns.append(MARGIN * torch.nn.functional.one_hot(table, d).double().flatten(1))
        _solve(network.block_input(number, layer.windows), torch.cat(columns, dim=1), block.weight, block.bias)
    seen = network.model.decode(network.residual_above(len(wanted.heads) - 1, wanted.readout_inputs))
    said = torch.nn.functional.one_hot(torch.from_numpy(wanted.label_ids.copy()).long(), cascade.labels)
    _solve(seen, MARGIN * said.double(), model.readout.weight, model.readout.bias)
    if model.answer_head is not None:
        replied = torch.nn.functional.one_hot(torch.from_numpy(wanted.answer_ids.copy()).long(), cascade.answers)
        _solve(seen, MARGIN * replied.double(), model.answer_head.weight, model.answer_head.bias)
    return model


def _solve(seen: torch.Tensor, wanted: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> None:
    """The smallest weights that send every row seen to the row wanted."""
    ones = torch.ones(len(seen), 1, dtype=seen.dtype)
    found = torch.linalg.lstsq(torch.cat([seen, ones], dim=1), wanted, driver="gelsd").solution
    assert torch.allclose(torch.cat([seen, ones], dim=1) @ found, wanted, atol=1e-6), "too many rows for this width"
    weight.copy_(found[:-1].T)
    bias.copy_(found[-1])


def side_by_side(tables: Sequence[np.ndarray], say: Callable[[Input], int], labels: int, **more: Any) -> Cascade:
    """One layer without a convolution, from the tables (A d) of every head."""
    return Cascade(
        symbols=len(tables[0]), heads=(tuple(table.shape[1] for table in tables),), labels=labels, say=say,
        rule=lambda layer, window: [table[window[-1][0]] for table in tables], **more,
    )  # fmt: skip


@torch.no_grad()
def spelling(
    tables: Sequence[np.ndarray], label_of: dict[tuple[int, ...], int], start: Sequence[int], *, seed: int = 0
) -> Backbone:
    """One layer whose read-out spells the joint index: every label belongs to one of them, and there may be thousands.

    The indices are written into coordinates of their own, and everything after the block passes them on.
    """
    sizes = tuple(table.shape[1] for table in tables)
    symbols, begin = len(tables[0]), max(8, 2 * len(tables[0]))
    cascade = side_by_side(tables, lambda seen: 0, labels=len(label_of))
    model = backbone(cascade, width=begin + sum(sizes), seed=seed)
    block = model.layers[0].block = NFSM(model.width, sizes, value_width=max(sizes), initial_state=start)
    model.encoder_norm.weight[begin:] = 0
    for linear in (block.out_proj, model.layers[0].mlp.down, model.decoder.gate, model.decoder.up,
                   model.decoder.down, model.readout):  # fmt: skip
        linear.weight.zero_()
        linear.bias.zero_()
    for head, (d, at) in enumerate(zip(sizes, head_offsets(sizes), strict=True)):
        block.values[at : at + d] = torch.eye(d, max(sizes))
        for k in range(d):
            block.out_proj.weight[begin + at + k, head * max(sizes) + k] = 8
    model.decoder.gate.bias.fill_(4.0)
    model.decoder.up.weight[: model.width] = torch.eye(model.width)
    model.decoder.down.weight[:, : model.width] = torch.eye(model.width)
    for indices, label in label_of.items():
        for k, at in zip(indices, head_offsets(sizes), strict=True):
            model.readout.weight[label, begin + at + k] = 4
    seen = EvaluatedNetwork(model, symbols, "float64").block_input(0, np.arange(symbols)[:, None])
    logits = [MARGIN * np.eye(d)[table].reshape(symbols, -1) for d, table in zip(sizes, tables, strict=True)]
    _solve(seen, torch.from_numpy(np.concatenate(logits, axis=1)), block.weight, block.bias)
    return model.eval()
