"""The text model: causal, continued as in one call, the same for every cell."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from exactstate.errors import ExactstateError, InvalidInput
from exactstate.text import TextModel

CELLS = ("gru", "lstm", "none", "nfsm")


@pytest.mark.parametrize("cell", CELLS)
def test_text_model_sees_no_later_token_and_continues(cell: str) -> None:
    torch.manual_seed(0)
    model = TextModel(7, width=8, cell=cell).eval()
    tokens = torch.randint(0, 7, (3, 20))
    logits = model(tokens)
    changed = tokens.clone()
    changed[:, 12] = (tokens[:, 12] + 1) % 7
    assert torch.equal(model(changed)[:, :12], logits[:, :12])
    assert not torch.equal(model(changed)[:, 12:], logits[:, 12:])
    first, state = model.run(tokens[:, :9])
    rest, _ = model.run(tokens[:, 9:], state)
    torch.testing.assert_close(torch.cat([first, rest], 1), logits, rtol=1e-5, atol=1e-5)  # float32, other shapes


def test_none_sees_seven_tokens() -> None:
    model = TextModel(7, width=8, cell="none").eval()
    tokens = torch.randint(0, 7, (3, 20))
    changed = tokens.clone()
    changed[:, 5] = (tokens[:, 5] + 1) % 7
    differs = (model(changed) != model(tokens)).any(-1).any(0)
    assert differs.nonzero().flatten().tolist() == list(range(5, 12))


def test_text_model_says_which_cells_there_are() -> None:
    with pytest.raises(ExactstateError, match="gru"):
        TextModel(7, cell="rnn")
    with pytest.raises(InvalidInput, match="tokens are B L"):
        TextModel(7, cell="gru")(torch.zeros(5, dtype=torch.int64))


def test_units_of_gru_and_lstm_keep_their_state() -> None:
    """Without inputs, recurrence and other biases a unit keeps the share that its bias says."""
    for cell in ("gru", "lstm"):
        layer: Any = TextModel(7, width=8, cell=cell).blocks[0].block
        bias = layer.rnn.bias_ih_l0.data[8:16].clone()
        for parameter in layer.rnn.parameters():
            parameter.data.zero_()
        layer.rnn.bias_ih_l0.data[8:16] = bias
        state = layer(torch.zeros(1, 1, 8), torch.ones_like(layer.initial_state(1)))[1][0]
        kept = state if cell == "gru" else state[1]
        torch.testing.assert_close(kept.detach(), torch.linspace(0, 4, 8).sigmoid())
