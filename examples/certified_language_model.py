"""A language-model-like network with NFSM layers and position-wise blocks: trained, extracted, certified, drawn.

The language: brackets of two kinds nested to depth two, and `.` for the end of a sentence at depth zero. The network
predicts at every position which symbols may follow (one class per set of symbols). Words that are not of the language
are never read: a grammar says so, and the certificate is about all words of the grammar. The network is written in
plain PyTorch: an embedding, two blocks of RMS norm, NFSM, residual, gated MLP, and a read-out.

    python examples/certified_language_model.py [machine.svg]
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from torch import Tensor, nn

import exactstate
from exactstate.automata import Mealy, Moore
from exactstate.automata.draw import draw
from exactstate.certify import Certificate
from exactstate.certify.check import check
from exactstate.extract import rounding_errors
from exactstate.extract.result import REFUSED
from exactstate.tasks.access_words import access_words

SYMBOLS = ("(", ")", "[", "]", ".")
DEPTH = 2


class Block(nn.Module):
    """h + NFSM(norm h), then h + MLP(norm h)."""

    def __init__(self, width: int, heads: tuple[int, ...]) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.memory = exactstate.NFSM(width, heads, noise=False, remember=1.0, temperature=1.0)
        self.gate, self.up, self.down = nn.Linear(width, 32), nn.Linear(width, 32), nn.Linear(32, width)

    def forward(self, h: Tensor) -> Tensor:
        h = h + self.memory(self.norm1(h))[0]
        u = self.norm2(h)
        return h + self.down(nn.functional.silu(self.gate(u)) * self.up(u))


class LanguageModel(nn.Module):
    def __init__(self, classes: int, width: int = 24, heads: tuple[tuple[int, ...], ...] = ((8, 4), (4,))) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(SYMBOLS), width)
        self.blocks = nn.Sequential(*(Block(width, sizes) for sizes in heads))
        self.readout = nn.Sequential(nn.RMSNorm(width), nn.Linear(width, classes))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.readout(self.blocks(self.embedding(tokens)))


def language() -> Moore:
    """States are the open brackets; the output is the set of symbols that may follow, 'refused' after an error."""
    stacks = [""]
    for stack in stacks:
        stacks += [stack + bracket for bracket in "([" if len(stack) < DEPTH]
    states, outputs = [*stacks, "error"], []
    tables = np.full((len(SYMBOLS), len(states)), len(states) - 1)
    for state, stack in enumerate(stacks):
        allowed = []
        for at, symbol in enumerate(SYMBOLS):
            after = None
            if symbol in "([" and len(stack) < DEPTH:
                after = stack + symbol
            elif stack and symbol == {"(": ")", "[": "]"}[stack[-1]]:
                after = stack[:-1]
            elif symbol == "." and not stack:
                after = stack
            if after is not None:
                allowed.append(symbol)
                tables[at, state] = stacks.index(after)
        outputs.append("".join(allowed))
    outputs.append(REFUSED)  # the last of them: the network has no class for it
    names = tuple(dict.fromkeys(outputs))
    return Moore(symbols=SYMBOLS, tables=tables, states=tuple(stack or "empty" for stack in states), outputs=names,
                 readout=np.array([names.index(output) for output in outputs]))  # fmt: skip


def words(target: Moore, count: int, length: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Random words of the language, and the class at every position."""
    tokens, labels = np.zeros((count, length), int), np.zeros((count, length), int)
    state, error = np.full(count, target.start), len(target.states) - 1
    for at in range(length):
        legal = error != target.tables[:, state].T
        draw = (legal / legal.sum(1, keepdims=True)).cumsum(1) > rng.random((count, 1))
        tokens[:, at] = draw.argmax(1)
        state = target.tables[tokens[:, at], state]
        labels[:, at] = target.readout[state]
    return torch.from_numpy(tokens), torch.from_numpy(labels)


def train(target: Moore, steps: int, seed: int) -> LanguageModel:
    torch.manual_seed(seed)
    model, rng = LanguageModel(len(target.outputs) - 1), np.random.default_rng(seed)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    for step in range(steps):
        tokens, labels = words(target, 64, 4 + 20 * step // steps, rng)
        loss = nn.functional.cross_entropy(model.train()(tokens).flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


def diagram(machine: Mealy) -> Moore:
    """For the drawing: states named by a shortest word that leads there, with the class that every step there has."""
    outputs = np.zeros(machine.n_states, int)
    outputs[machine.tables] = machine.readout
    words = access_words(machine, machine.start)
    names = ["".join(machine.symbols[symbol] for symbol in words[state]) or "empty" for state in range(len(words))]
    names[list(outputs).index(machine.outputs.index(REFUSED))] = REFUSED
    return Moore(symbols=machine.symbols, tables=machine.tables, states=tuple(names), outputs=machine.outputs,
                 readout=outputs)  # fmt: skip


def main(picture: str | None = None, steps: int = 600, seeds: int = 5) -> bool:
    target = language()
    for seed in range(seeds):
        model = train(target, steps, seed)
        machine = exactstate.extract(model, symbols=SYMBOLS, labels=target.outputs[:-1], grammar=target)
        verdict = exactstate.certify(machine, target, labels="outputs")
        print(f"seed {seed}: {verdict.explain()}")
        if not verdict:
            continue
        rounding = {format: rounding_errors(model, machine, format) for format in ("float64", "float32")}
        certificate = Certificate.of(machine, verdict, name="brackets", rounding=rounding)
        print(
            f"smallest margin {machine.weakest.margin:.3g}; rounding changes nothing in", ", ".join(certificate.proved)
        )
        if "float32" in certificate.proved:
            break
    else:
        return False
    print("the certificate checks:", bool(check(certificate.content)))
    if picture is not None:
        draw(diagram(machine.minimized), picture)
        print(f"drawn: {picture}")
    return True


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("picture", nargs="?")
    main(parser.parse_args().picture)
