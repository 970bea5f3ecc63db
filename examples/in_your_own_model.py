"""An NFSM layer in a plain PyTorch model, between attention layers: a small language model of a flip-flop language.

    w 1 i 0 i 1 r 1 ...      write a bit, ignore one, read the last one written

The bit after `r` is the one after the last `w`, any number of tokens earlier. Attention has to find it; a head of the
NFSM remembers it. The model is trained on lines of 32 tokens and tested on lines of 512, with and without the NFSM.

    python examples/in_your_own_model.py
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import exactstate

WRITE, IGNORE, READ, ZERO, ONE = range(5)
WIDTH, TOKENS = 32, 5


class Attention(nn.Module):
    """Causal attention over a window."""

    def __init__(self, width: int, window: int = 4) -> None:
        super().__init__()
        self.norm, self.window = nn.LayerNorm(width), window
        self.in_proj, self.out_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, h: Tensor) -> Tensor:
        query, key, value = self.in_proj(self.norm(h)).chunk(3, dim=-1)
        mask = torch.ones(h.shape[1], h.shape[1], dtype=torch.bool).tril().triu(1 - self.window)
        return h + self.out_proj(F.scaled_dot_product_attention(query, key, value, attn_mask=mask))


class Memory(nn.Module):
    """The NFSM where a Mamba or a linear attention layer would be."""

    def __init__(self, width: int, heads: tuple[int, ...]) -> None:
        super().__init__()
        self.norm, self.layer = nn.LayerNorm(width), exactstate.NFSM(width, heads)

    def forward(self, h: Tensor) -> Tensor:
        y, _ = self.layer(self.norm(h))
        return h + y


class Model(nn.Module):
    def __init__(self, heads: tuple[int, ...]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        memory = Memory(WIDTH, heads) if heads else nn.Identity()
        self.layers = nn.Sequential(Attention(WIDTH), memory, Attention(WIDTH))
        self.readout = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, TOKENS))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.readout(self.layers(self.embedding(tokens)))


def lines(count: int, length: int, generator: torch.Generator) -> Tensor:
    """Lines of (instruction, bit) pairs; the first instruction is a write."""
    kinds = torch.multinomial(torch.tensor([0.15, 0.65, 0.2]), count * (length // 2), True, generator=generator)
    kinds = kinds.view(count, -1)
    kinds[:, 0] = WRITE
    bits = torch.randint(0, 2, kinds.shape, generator=generator)
    last_write = torch.where(kinds == WRITE, torch.arange(kinds.shape[1]), 0).cummax(1).values
    bits = torch.where(kinds == READ, bits.gather(1, last_write), bits)
    return torch.stack([kinds, bits + ZERO], dim=-1).flatten(1)


def read_accuracy(model: Model, tokens: Tensor) -> float:
    """The share of correct predictions after `r`."""
    with torch.no_grad():
        predictions = model(tokens)[:, :-1].argmax(-1)
    reads = tokens[:, :-1] == READ
    return float((predictions == tokens[:, 1:])[reads].float().mean())


def main(steps: int = 200) -> None:
    for name, heads in (("attention alone", ()), ("attention, NFSM, attention", (3, 3, 3, 3))):
        print(name)
        train(heads, steps)


def train(heads: tuple[int, ...], steps: int) -> None:
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = Model(heads)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    for step in range(1, steps + 1):
        tokens = lines(32, 32, generator)
        model.train()
        logits = model(tokens)[:, :-1]
        reads = tokens[:, :-1] == READ
        loss = F.cross_entropy(logits[reads], tokens[:, 1:][reads])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0 or step == 1:
            model.eval()
            short, long = (read_accuracy(model, lines(64, length, generator)) for length in (32, 512))
            accuracy = f"32 tokens {short:.1%}, 512 tokens {long:.1%}"
            print(f"  step {step}: loss {loss.item():.4f}; read accuracy: {accuracy}")


if __name__ == "__main__":
    main()
