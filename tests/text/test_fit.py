"""Training of text models for so many CPU seconds."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from exactstate.errors import InvalidConfig, InvalidInput
from exactstate.text import TextModel, fit


@pytest.mark.parametrize("cell", ["gru", "lstm", "none", "nfsm"])
def test_fit_learns_which_token_follows(cell: str) -> None:
    torch.manual_seed(0)
    tokens = (torch.randint(0, 5, (50, 1)) + torch.arange(12)) % 5
    model = TextModel(5, width=16, cell=cell)
    assert fit(model, tokens, 4.0 if cell == "nfsm" else 1.5) > 1
    assert not model.training
    with torch.no_grad():
        assert float(F.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())) < 0.5


def test_fit_says_what_it_takes() -> None:
    model = TextModel(5, width=8, cell="none")
    with pytest.raises(InvalidInput, match=r"texts of one length.*got \(4,\)"):
        fit(model, torch.zeros(4, dtype=torch.int64), 1.0)
    with pytest.raises(InvalidConfig, match="cpu_seconds is positive"):
        fit(model, torch.zeros(4, 5, dtype=torch.int64), 0.0)
