"""Next-token prediction on text that needs a state: NFSM, GRU, LSTM or no recurrence, before a layer of attention.

    B  texts     L  tokens     m  width     K  keys     V  values

Three languages. `key_value` sets keys to values and asks for them; `swaps` also exchanges the values of two keys;
`automaton` is a random probabilistic automaton, whose state follows from the tokens and whose entropy is known. Every
model gets the same CPU time on texts of 64 tokens, and is then evaluated on 64 and on 16,384. The models of a language
and seed are trained by turns in one process, so that all have the same load beside them. The NFSM begins with soft
states, whose temperature falls, and trains the last part of the time with the exact ones it is evaluated with.

The recurrent layer reads a convolution of the last four tokens, a map of the last two, or the token alone. The last two
have few distinct inputs, and the NFSM computes its tables and gates once for each of them. `registers` is the layer
of `registers.py` with free tables for each pair of tokens; its tables say where an index comes from and not where it
goes, so that values are exchanged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from exactstate import NFSM, native
from exactstate._types import Bools, Ints
from exactstate.baselines import GRU, LSTM
from exactstate.nn import CausalConvolution, soften
from exactstate.ops.tables import entry_offsets
from exactstate.records import Row, stamp
from paper.experiments.registers import Registers

KEYS, VALUES, FILLERS = 4, 4, 8
SET, GET, SWAP, FILL = range(4)
FIRST_KEY, FIRST_VALUE, FIRST_FILLER = 3, 3 + KEYS, 3 + KEYS + VALUES
STATES, LETTERS = 12, 8
WIDTH, WINDOW, BATCH, LENGTH, LONG = 64, 4, 32, 64, 16_384
VOCABULARY = FIRST_FILLER + FILLERS
TEXTS = 20_000
SLICE = 0.5
"""CPU seconds after which the next model has its turn."""


@dataclass(frozen=True)
class Text:
    """Texts, which of their tokens answer a question, and the entropy of every token where it is known."""

    tokens: Ints
    """B L."""
    answers: Bools
    """B L booleans: tokens that the state determines."""
    entropy: float | None = None
    """Nats per token, of all but the first, that no model can avoid."""


def key_value(batch: int, length: int, generator: np.random.Generator, swaps: bool = False) -> Text:
    """`set k v`, `get k v`, fillers and, with `swaps`, `swap k k`; a text begins by setting every key."""
    values = np.zeros((batch, KEYS), dtype=np.int64)
    tokens = np.empty((batch, -(-length // 3), 3), dtype=np.int64)
    asks = np.zeros((batch, tokens.shape[1]), dtype=bool)
    every, chances = np.arange(batch), (0.25, 0.35, 0.2, 0.2) if swaps else (0.3, 0.45, 0.0, 0.25)
    order = generator.permuted(np.tile(np.arange(KEYS), (batch, 1)), axis=1)
    for at in range(tokens.shape[1]):
        kind, first = generator.choice(4, batch, p=chances), generator.integers(0, KEYS, batch)
        if at < KEYS:
            kind, first = np.full(batch, SET), order[:, at]
        second = (first + generator.integers(1, KEYS, batch)) % KEYS
        values[every, first] = np.where(kind == SET, generator.integers(0, VALUES, batch), values[every, first])
        third = np.where(kind == SWAP, FIRST_KEY + second, FIRST_VALUE + values[every, first])
        filler = FIRST_FILLER + generator.integers(0, FILLERS, (batch, 3))
        tokens[:, at] = np.where((kind == FILL)[:, None], filler, np.stack([kind, FIRST_KEY + first, third], 1))
        asks[:, at] = kind == GET
        swapped = values[every, first], values[every, second]
        for key, value in zip((second, first), swapped, strict=True):
            values[every, key] = np.where(kind == SWAP, value, values[every, key])
    answers = np.stack([np.zeros_like(asks), np.zeros_like(asks), asks], 2)
    return Text(tokens.reshape(batch, -1)[:, :length], answers.reshape(batch, -1)[:, :length])


def automaton(batch: int, length: int, generator: np.random.Generator) -> Text:
    """Letters of a fixed random automaton with 12 states: the state chooses a letter, the letter the next state."""
    fixed = np.random.default_rng(12)
    emit = fixed.dirichlet(np.full(LETTERS, 0.5), STATES)
    move = fixed.integers(0, STATES, (LETTERS, STATES))
    state = np.zeros(batch, dtype=np.int64)
    tokens = np.empty((batch, length), dtype=np.int64)
    cumulative, spent = emit.cumsum(1), 0.0
    for t in range(length):
        letter = (generator.random(batch)[:, None] > cumulative[state]).sum(1).clip(max=LETTERS - 1)
        spent -= np.log(emit[state, letter]).mean() if t else 0.0
        tokens[:, t], state = letter, move[letter, state]
    return Text(tokens, np.zeros((batch, length), dtype=bool), spent / max(length - 1, 1))


LANGUAGES: dict[str, tuple[int, Callable[[int, int, np.random.Generator], Text]]] = {
    "key_value": (VOCABULARY, key_value),
    "swaps": (VOCABULARY, lambda batch, length, generator: key_value(batch, length, generator, swaps=True)),
    "automaton": (LETTERS, automaton),
}
"""For each language the size of its vocabulary and its sampler."""


class WindowAttention(nn.Module):
    """Causal attention over the last few tokens, with a learned bias for each distance; then an MLP."""

    def __init__(self, width: int, window: int = WINDOW, heads: int = 4) -> None:
        super().__init__()
        self.window, self.heads = window, heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.in_proj, self.out_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.distance = nn.Parameter(torch.zeros(heads, window))
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))

    def forward(self, h: Tensor) -> Tensor:
        (B, L, m), r, w = h.shape, self.heads, self.window
        query, key, value = self.in_proj(self.norm1(h)).view(B, L, 3, r, m // r).unbind(2)
        keys, values = (F.pad(part, (0, 0, 0, 0, w - 1, 0)) for part in (key, value))  # position t at row t + w - 1
        scores = torch.stack([(query * keys[:, j : j + L]).sum(-1) for j in range(w)], -1) / (m // r) ** 0.5
        outside = torch.arange(w) + torch.arange(L)[:, None] < w - 1  # before the text
        weights = (scores + self.distance.flip(1)).masked_fill(outside[:, None], -torch.inf).softmax(-1)
        read = torch.stack([weights[..., j, None] * values[:, j : j + L] for j in range(w)]).sum(0)
        h = h + self.out_proj(read.flatten(2))
        return h + self.mlp(self.norm2(h))


class Convolved(nn.Module):
    """h + layer(conv(norm(h))): the recurrent layer reads a convolution of the last four tokens."""

    def __init__(self, layer: nn.Module, width: int = WIDTH) -> None:
        super().__init__()
        self.norm, self.layer, self.conv = nn.LayerNorm(width), layer, CausalConvolution(width, 4)

    def forward(self, h: Tensor, embedding: Tensor, tokens: Tensor) -> Tensor:
        return h + self.layer(self.conv(self.norm(h))[0])[0]


class Pairs(nn.Module):
    """SiLU(linear(last two tokens)), once for each pair of tokens that occurs in the batch."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.norm, self.pair_proj = nn.LayerNorm(width), nn.Linear(2 * width, width)

    def read(self, embedding: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(the R pairs as numbers, their rows: R m, which of them stands where: B L)."""
        normed = F.pad(self.norm(embedding), (0, 0, 0, 1))  # the last row, zeros, stands before the text
        before = F.pad(tokens[:, :-1], (1, 0), value=len(embedding))
        pairs, index = torch.unique(before * len(embedding) + tokens, return_inverse=True)
        first, second = normed[pairs // len(embedding)], normed[pairs % len(embedding)]
        return pairs, F.silu(self.pair_proj(torch.cat([first, second], 1))), index


class Paired(Pairs):
    """h + layer(last two tokens)."""

    def __init__(self, layer: nn.Module, width: int = WIDTH) -> None:
        super().__init__(width)
        self.layer = layer

    def forward(self, h: Tensor, embedding: Tensor, tokens: Tensor) -> Tensor:
        return h + self.layer(self.read(embedding, tokens)[1:])[0]


class RegisterPairs(Pairs):
    """h + registers(last two tokens), with a free table for each pair of tokens."""

    def __init__(self, layer: Registers, width: int = WIDTH) -> None:
        super().__init__(width)
        self.layer = layer

    def forward(self, h: Tensor, embedding: Tensor, tokens: Tensor) -> Tensor:
        pairs, rows, index = self.read(embedding, tokens)
        return h + self.layer((rows, index), pairs[index])[0]


class PairTable(nn.Module):
    """h + layer(a free row for each pair of tokens)."""

    def __init__(self, layer: nn.Module, vocabulary: int = VOCABULARY, width: int = WIDTH) -> None:
        super().__init__()
        self.layer, self.tables = layer, nn.Parameter(torch.randn((vocabulary + 1) * vocabulary, width))

    def forward(self, h: Tensor, embedding: Tensor, tokens: Tensor) -> Tensor:
        before = F.pad(tokens[:, :-1], (1, 0), value=len(embedding))
        return h + self.layer(self.tables[before * len(embedding) + tokens])[0]


class Direct(nn.Module):
    """h + layer(norm(token)), from the distinct tokens and which of them stands where."""

    def __init__(self, layer: nn.Module, width: int = WIDTH) -> None:
        super().__init__()
        self.norm, self.layer = nn.LayerNorm(width), layer

    def forward(self, h: Tensor, embedding: Tensor, tokens: Tensor) -> Tensor:
        return h + self.layer((self.norm(embedding), tokens))[0]


def memory() -> NFSM:
    """32 gated heads of four indices; a bias towards staying from 0 in the first head to 7 in the last.

    Soft states leak: at a bias of 4 an untrained head forgets half of what it holds in about 10 steps, at 7 in about
    150.
    """
    layer = NFSM(WIDTH, (4,) * 32, value_width=4, gate=True)
    with torch.no_grad():
        for d, at, bias in zip(layer.heads, entry_offsets(layer.heads), torch.linspace(0, 7, 32), strict=True):
            layer.bias[at : at + d * d : d + 1] = bias
    return layer


def registers() -> Registers:
    """Two heads of 24 registers, with free tables for each pair of tokens."""
    return Registers(WIDTH, 2, 24, value_width=4, inputs=(VOCABULARY + 1) * VOCABULARY)


def remembering(layer: GRU | LSTM) -> GRU | LSTM:
    """The same for the gate that keeps the state: a bias from 0 in the first unit to 4 in the last.

    It is the second of three gates of PyTorch's GRU and the second of four of its LSTM.
    """
    with torch.no_grad():
        layer.rnn.get_parameter("bias_ih_l0")[layer.hidden : 2 * layer.hidden] = torch.linspace(0, 4, layer.hidden)
    return layer


@dataclass(frozen=True)
class Cell:
    """A recurrent part, and how it is trained: settings chosen in trials with the seeds 7 to 16."""

    recurrence: Callable[[], nn.Module | None]
    lr: float = 8e-3
    tables: float = 1.0
    """The learning rate of free tables, and of the logits common to all of them, is so many times the other one."""
    batch: int = BATCH
    soft: tuple[float, float, float] | None = None
    """Soft states at temperature 1 until this share of the time, at falling ones down to the last one, exact from this
    share on: (until, last temperature, exact from)."""


CELLS: dict[str, Cell] = {
    "nfsm": Cell(lambda: Paired(memory()), soft=(0.6, 0.3, 0.85)),
    "registers": Cell(lambda: RegisterPairs(registers()), tables=12.0, batch=16, soft=(0.5, 0.3, 0.8)),
    "gru": Cell(lambda: Convolved(remembering(GRU(WIDTH)))),
    "gru_pairs": Cell(lambda: PairTable(remembering(GRU(WIDTH)))),
    "lstm": Cell(lambda: Convolved(remembering(LSTM(WIDTH)))),
    "none": Cell(lambda: None),
    "nfsm_direct": Cell(lambda: Direct(NFSM(WIDTH, (32,) * 4)), lr=6e-3, soft=(0.4, 0.3, 0.85)),
    "gru_direct": Cell(lambda: Direct(GRU(WIDTH))),
    "lstm_direct": Cell(lambda: Direct(LSTM(WIDTH))),
}
"""`_direct` reads the token alone, `_pairs` and `registers` a free row or table for each pair of tokens."""


class TextModel(nn.Module):
    """Recurrence, window attention and MLP; logits of the next token. Without recurrence, window attention twice."""

    def __init__(self, vocabulary: int, recurrence: nn.Module | None, width: int = WIDTH) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=0.5)
        self.recurrence = recurrence
        self.layers = nn.Sequential(*(WindowAttention(width) for _ in range(2 if recurrence is None else 1)))
        self.readout = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, vocabulary))

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.embedding(tokens)
        if self.recurrence is not None:
            h = self.recurrence(h, self.embedding.weight, tokens)
        return self.readout(self.layers(h))


@torch.no_grad()
def evaluate(model: TextModel, text: Text) -> tuple[float, float]:
    """(share of answers that are right, nats per token), of all tokens but the first."""
    right = asked = tokens = 0
    nats = 0.0
    batches = (torch.from_numpy(array).split(32) for array in (text.tokens, text.answers))
    for part, answers in zip(*batches, strict=True):
        logits, wanted, counted = model.eval()(part)[:, :-1], part[:, 1:], answers[:, 1:]
        nats += float(F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="sum"))
        right += int((logits.argmax(-1) == wanted)[counted].sum())
        asked, tokens = asked + int(counted.sum()), tokens + wanted.numel()
    return right / max(asked, 1), nats / tokens


def soft_temperature(progress: float, until: float, last: float, exact_from: float) -> float | None:
    """The temperature of soft states at this share of the time; None for exact states."""
    if progress >= exact_from:
        return None
    return 1.0 - (1.0 - last) * max(progress - until, 0.0) / (exact_from - until)


class Fit:
    """Training of one model on random batches of the texts, for so many CPU seconds."""

    def __init__(
        self, model: TextModel, cell: Cell, texts: Tensor, generator: np.random.Generator, seconds: float
    ) -> None:  # fmt: skip
        self.model, self.cell, self.texts, self.generator, self.seconds = model, cell, texts, generator, seconds
        rates: dict[float, list[nn.Parameter]] = {}
        for name, parameter in model.named_parameters():
            free = name.endswith(("tables", "layer.bias"))
            rates.setdefault(cell.tables if free else 1.0, []).append(parameter)
        groups = [{"params": parameters, "rate": cell.lr * rate} for rate, parameters in rates.items()]
        self.optimizer = torch.optim.AdamW(groups, cell.lr, weight_decay=0.0, fused=True)
        self.steps, self.used = 0, 0.0

    def step(self) -> None:
        started, progress = time.process_time(), self.used / self.seconds
        for group in self.optimizer.param_groups:
            group["lr"] = group["rate"] * min(1.0, 2.0 * (1.0 - progress) + 0.02)
        soften(self.model, None if self.cell.soft is None else soft_temperature(progress, *self.cell.soft))
        batch = self.texts[torch.from_numpy(self.generator.integers(0, len(self.texts), self.cell.batch))]
        logits = self.model.train()(batch)[:, :-1]
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.steps, self.used = self.steps + 1, self.used + time.process_time() - started


def train_by_turns(fits: Sequence[Fit]) -> None:
    """Train all models until the time of each is used up; each has a short turn before the first has its next one."""
    while unfinished := [fit for fit in fits if fit.used < fit.seconds]:
        for fit in unfinished:
            until = min(fit.used + SLICE, fit.seconds)
            while fit.used < until:
                fit.step()


def text_rows(language: str, cells: Sequence[str], seed: int, seconds: float) -> list[Row]:
    """Train the cells on a language by turns, on one thread; what each predicts on short and on long texts."""
    threads = native.set_threads(1)
    try:
        return _text_rows(language, cells, seed, seconds)
    finally:
        native.set_threads(threads)


def _text_rows(language: str, cells: Sequence[str], seed: int, seconds: float) -> list[Row]:
    vocabulary, sample = LANGUAGES[language]
    texts = torch.from_numpy(sample(TEXTS, LENGTH, np.random.default_rng(seed)).tokens)
    fits = []
    for cell in cells:
        torch.manual_seed(seed)
        model = TextModel(vocabulary, CELLS[cell].recurrence())
        fits.append(Fit(model, CELLS[cell], texts, np.random.default_rng([seed, 0]), seconds))
    train_by_turns(fits)
    drawn = [
        sample(count, length, np.random.default_rng([seed, length])) for count, length in ((256, LENGTH), (4, LONG))
    ]
    rows = []
    for cell, fit in zip(cells, fits, strict=True):
        row: Row = {
            "language": language, "cell": cell, "seed": seed, "budget_seconds": seconds, "cells": list(cells),
            "lr": fit.cell.lr, "batch": fit.cell.batch, "steps": fit.steps,
            "parameters": sum(one.numel() for one in fit.model.parameters()), "threads": torch.get_num_threads(),
        }  # fmt: skip
        for text in drawn:
            answers, nats = evaluate(fit.model, text)
            row[str(text.tokens.shape[1])] = {
                "answers": round(answers, 4), "nats": round(nats, 4), "entropy": text.entropy,
            }  # fmt: skip
        rows.append({**row, **stamp()})
    return rows
