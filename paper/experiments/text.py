"""Next-token prediction on text that needs a state: NFSM, GRU, LSTM or no recurrence, before a layer of attention.

    B  texts     L  tokens     m  width     K  keys     V  values

Three languages. `key_value` sets keys to values and asks for them; `swaps` also exchanges the values of two keys;
`automaton` is a random probabilistic automaton, whose state follows from the tokens and whose entropy is known. Every
model gets the same CPU time on texts of 64 tokens, and is then evaluated on 64 and on 16,384. The NFSM begins with soft
states, whose temperature falls, and trains the last quarter of the time with the exact ones it is evaluated with;
without convolution it has exact states from the start.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from detent import NFSM
from detent._types import Bools, Ints
from detent.nn import GRU, LSTM, CausalConvolution, soften
from detent.ops.tables import entry_offsets
from detent.records import Row

KEYS, VALUES, FILLERS = 4, 4, 8
SET, GET, SWAP, FILL = range(4)
FIRST_KEY, FIRST_VALUE, FIRST_FILLER = 3, 3 + KEYS, 3 + KEYS + VALUES
STATES, LETTERS = 12, 8
WIDTH, WINDOW, BATCH, LENGTH, LONG = 64, 4, 32, 64, 16_384
TEXTS = 20_000
LR, LR_NFSM = 3e-3, 6e-3
"""The best of 3e-3, 6e-3 and 1.2e-2 for the GRU and for the NFSM with exact states: one trial each on `key_value`."""
SOFT_UNTIL, EXACT_FROM, LAST_TEMPERATURE = 0.5, 0.75, 0.3
"""Shares of the time: soft states at temperature 1, then at falling ones down to the last, then exact states."""


@dataclass(frozen=True)
class Text:
    """Texts, which of their tokens answer a question, and the entropy of every token where it is known."""

    tokens: Ints
    """B L."""
    answers: Bools
    """B L booleans: tokens that the state determines."""
    entropy: float | None = None
    """Nats per token that no model can avoid."""


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
        spent -= np.log(emit[state, letter]).mean()
        tokens[:, t], state = letter, move[letter, state]
    return Text(tokens, np.zeros((batch, length), dtype=bool), spent / length)


LANGUAGES: dict[str, tuple[int, Callable[[int, int, np.random.Generator], Text]]] = {
    "key_value": (FIRST_FILLER + FILLERS, key_value),
    "swaps": (FIRST_FILLER + FILLERS, lambda batch, length, generator: key_value(batch, length, generator, swaps=True)),
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


class Recurrence(nn.Module):
    """h + layer(conv(norm(h))), for a recurrent layer; the convolution, if there is one, sees the last four tokens."""

    def __init__(self, layer: nn.Module, width: int = WIDTH, *, convolution: bool = True) -> None:
        super().__init__()
        self.norm, self.layer = nn.LayerNorm(width), layer
        self.conv = CausalConvolution(width, 4) if convolution else None

    def forward(self, h: Tensor) -> Tensor:
        x = self.norm(h)
        return h + self.layer(x if self.conv is None else self.conv(x)[0])[0]


def memory() -> NFSM:
    """32 gated heads of four indices; a bias towards staying from 0 in the first head to 4 in the last."""
    layer = NFSM(WIDTH, (4,) * 32, value_width=4, gate=True)
    with torch.no_grad():
        for d, at, bias in zip(layer.heads, entry_offsets(layer.heads), torch.linspace(0, 4, 32), strict=True):
            layer.bias[at : at + d * d : d + 1] = bias
    return layer


CELLS: dict[str, Callable[[], nn.Module | None]] = {
    "nfsm": lambda: Recurrence(memory()),
    "gru": lambda: Recurrence(GRU(WIDTH)),
    "lstm": lambda: Recurrence(LSTM(WIDTH)),
    "none": lambda: None,
    "nfsm_direct": lambda: Recurrence(NFSM(WIDTH, remember=0.0, temperature=2.0, dictionary=None), convolution=False),
    "gru_direct": lambda: Recurrence(GRU(WIDTH), convolution=False),
}
"""The recurrent part, the same for all languages; `_direct` is without convolution."""
SOFT = ("nfsm",)
"""Cells that begin with soft states; with heads of twelve a soft step takes several times as long as an exact one."""


class TextModel(nn.Module):
    """Recurrence, window attention and MLP; logits of the next token. Without recurrence, window attention twice."""

    def __init__(self, vocabulary: int, recurrence: nn.Module | None, width: int = WIDTH) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=0.5)
        first = WindowAttention(width) if recurrence is None else recurrence
        self.layers = nn.Sequential(first, WindowAttention(width))
        self.readout = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, vocabulary))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.readout(self.layers(self.embedding(tokens)))


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


def soft_temperature(progress: float) -> float | None:
    """The temperature of soft states at this share of the time; None for exact states."""
    if progress >= EXACT_FROM:
        return None
    return 1.0 - (1.0 - LAST_TEMPERATURE) * max(progress - SOFT_UNTIL, 0.0) / (EXACT_FROM - SOFT_UNTIL)


def fit(
    model: TextModel, texts: Tensor, generator: np.random.Generator, seconds: float, lr: float = LR, soft: bool = False
) -> int:
    """Train on random batches of the texts for so many CPU seconds, with soft states first or not; the steps."""
    optimizer = torch.optim.AdamW(model.parameters(), lr, weight_decay=0.0, fused=True)
    steps, used = 0, 0.0
    while used < seconds:
        started = time.process_time()
        for group in optimizer.param_groups:
            group["lr"] = lr * min(1.0, 2.0 * (1.0 - used / seconds) + 0.02)
        soften(model, soft_temperature(used / seconds) if soft else None)
        batch = texts[torch.from_numpy(generator.integers(0, len(texts), BATCH))]
        logits = model.train()(batch)[:, :-1]
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps, used = steps + 1, used + time.process_time() - started
    return steps


def text_row(language: str, cell: str, seed: int, seconds: float) -> Row:
    """Train one cell on a language; what it predicts on short and on long texts."""
    vocabulary, sample = LANGUAGES[language]
    torch.manual_seed(seed)
    generator = np.random.default_rng(seed)
    model, lr = TextModel(vocabulary, CELLS[cell]()), LR_NFSM if cell.startswith("nfsm") else LR
    texts = torch.from_numpy(sample(TEXTS, LENGTH, generator).tokens)
    row: Row = {
        "language": language, "cell": cell, "seed": seed, "budget_seconds": seconds,
        "lr": lr, "steps": fit(model, texts, generator, seconds, lr, cell in SOFT),
        "parameters": sum(one.numel() for one in model.parameters()), "threads": torch.get_num_threads(),
    }  # fmt: skip
    for count, length in ((256, LENGTH), (4, LONG)):
        text = sample(count, length, np.random.default_rng([seed, length]))
        answers, nats = evaluate(model, text)
        row[str(length)] = {"answers": round(answers, 4), "nats": round(nats, 4), "entropy": text.entropy}
    return row
