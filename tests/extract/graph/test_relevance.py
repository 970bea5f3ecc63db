"""Heads that influence nothing: dropped with a proof, and kept without one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import exactstate
from exactstate.certify import Certificate
from exactstate.extract import rounding_errors
from exactstate.extract.graph.network import TracedNetwork
from exactstate.extract.graph.relevance import _tried, ranked


class Wide(nn.Module):
    """Ten heads, of which the last eight add little: a small multiple of their weights."""

    def __init__(self, faint: float) -> None:
        super().__init__()
        self.embedding, self.norm = nn.Embedding(3, 12), nn.LayerNorm(12)
        self.memory = exactstate.NFSM(12, (3, 2) + (4,) * 8)
        self.mlp = nn.Sequential(nn.LayerNorm(12), nn.Linear(12, 16), nn.SiLU(), nn.Linear(16, 12))
        self.readout = nn.Linear(12, 4)
        with torch.no_grad():
            width = self.memory.value_width
            self.memory.out_proj.weight[:, 2 * width :] *= faint
            self.memory.out_proj.weight[:, : 2 * width] *= 3.0
            self.readout.weight *= 3.0

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        h = self.embedding(tokens)
        h = h + self.memory(self.norm(h))[0]
        return self.readout(h + self.mlp(h))


def test_irrelevant_heads_are_dropped_with_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exactstate.extract.graph.redundancy.drop_redundant", lambda network: (network, ()))
    torch.manual_seed(0)
    model = Wide(1e-4).eval()
    machine = exactstate.extract(model, symbols=list("abc"))
    assert machine.heads == ((3, 2),)
    assert machine.dropped[0].startswith("layer 0: 8 of 10 heads are left out (2, 3, 4, 5, 6, 7, 8, 9)")
    assert machine.dropped[0] in machine.describe()
    whole = exactstate.extract(model, symbols=list("abc"), prune=False)
    assert len(whole.configurations) > 10 * len(machine.configurations)
    assert exactstate.certify(machine, whole.minimized, labels="outputs")
    errors = rounding_errors(model, machine, "float32")
    verdict = exactstate.certify(machine, whole.minimized, labels="outputs")
    assert Certificate.of(machine, verdict, rounding={"float32": errors}).proved == ("float32",)


def test_relevant_heads_are_kept() -> None:
    torch.manual_seed(0)
    model = Wide(1.0).eval()
    network = TracedNetwork(model, 3, "float64")
    order = ranked(network)
    for layer, head in order[-2:]:
        # a head that changes a label somewhere cannot be proved irrelevant
        if _changes_a_label(model, head):
            assert _tried(network, [(layer, head)]) is None


def _changes_a_label(model: Wide, head: int) -> bool:
    words = torch.from_numpy(np.random.default_rng(0).integers(0, 3, (64, 20)))
    with torch.no_grad():
        before = model(words).argmax(-1)
        width = model.memory.value_width
        kept = model.memory.out_proj.weight.clone()
        model.memory.out_proj.weight[:, head * width : (head + 1) * width] = 0
        after = model(words).argmax(-1)
        model.memory.out_proj.weight.copy_(kept)
    return not torch.equal(before, after)
