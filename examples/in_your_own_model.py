"""NFSM layers in a plain PyTorch model, between layers of attention: a small language model of a flip-flop language.

    w 1 i 0 i 1 r 1 ...      write a bit, ignore one, read the last one written

The bit after `r` is the one after the last `w`, however long ago. Attention has to find it; a head of the NFSM carries
it. Trained on lines of 32 tokens, the model is asked on lines of 512; so is the same model without the NFSM.

    python examples/in_your_own_model.py
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import detent

WRITE, IGNORE, READ, ZERO, ONE = range(5)
WIDTH, TOKENS = 32, 5


class Attention(nn.Module):
    """Causal attention over a window, with nothing special about it."""

    def __init__(self, width: int, window: int = 4) -> None:
        super().__init__()
        self.norm, self.window = nn.LayerNorm(width), window
        self.project, self.leave = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, h: Tensor) -> Tensor:
        query, key, value = self.project(self.norm(h)).chunk(3, dim=-1)
        far = torch.ones(h.shape[1], h.shape[1], dtype=torch.bool).tril().triu(1 - self.window)
        return h + self.leave(F.scaled_dot_product_attention(query, key, value, attn_mask=far))


class Memory(nn.Module):
    """The layer of this library where a Mamba or a linear attention would stand."""

    def __init__(self, width: int, heads: tuple[int, ...]) -> None:
        super().__init__()
        self.norm, self.layer = nn.LayerNorm(width), detent.NFSM(width, heads)

    def forward(self, h: Tensor) -> Tensor:
        y, _ = self.layer(self.norm(h))
        return h + y


class Model(nn.Module):
    def __init__(self, heads: tuple[int, ...]) -> None:
        super().__init__()
        self.embed = nn.Embedding(TOKENS, WIDTH)
        memory = Memory(WIDTH, heads) if heads else nn.Identity()
        self.layers = nn.Sequential(Attention(WIDTH), memory, Attention(WIDTH))
        self.read_out = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, TOKENS))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.read_out(self.layers(self.embed(tokens)))


def lines(count: int, length: int, generator: torch.Generator) -> Tensor:
    """Pairs of an instruction and a bit; the first one writes."""
    kinds = torch.multinomial(torch.tensor([0.15, 0.65, 0.2]), count * (length // 2), True, generator=generator)
    kinds = kinds.view(count, -1)
    kinds[:, 0] = WRITE
    bits = torch.randint(0, 2, kinds.shape, generator=generator)
    place = torch.where(kinds == WRITE, torch.arange(kinds.shape[1]), 0).cummax(1).values
    bits = torch.where(kinds == READ, bits.gather(1, place), bits)
    return torch.stack([kinds, bits + ZERO], dim=-1).flatten(1)


def recalled(model: Model, tokens: Tensor) -> float:
    """The share of reads that were answered rightly."""
    with torch.no_grad():
        said = model(tokens)[:, :-1].argmax(-1)
    asked = tokens[:, :-1] == READ
    return float((said == tokens[:, 1:])[asked].float().mean())


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
        asked = tokens[:, :-1] == READ
        loss = F.cross_entropy(logits[asked], tokens[:, 1:][asked])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0 or step == 1:
            model.eval()
            shares = [f"{length} tokens {recalled(model, lines(64, length, generator)):.1%}" for length in (32, 512)]
            print(f"  step {step}: loss {loss.item():.4f}; reads answered: {', '.join(shares)}")


if __name__ == "__main__":
    main()
