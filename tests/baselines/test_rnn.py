"""GRU and LSTM: the fused pass, the loop over single steps and streaming agree."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from exactstate.baselines import GRU, LSTM
from exactstate.errors import InvalidConfig

CLOSE = {"rtol": 0, "atol": 1e-12}
"""float64: the fused pass multiplies matrices in another order than the loop."""
both = pytest.mark.parametrize("kind", [GRU, LSTM])


def make(kind: type[GRU] | type[LSTM], **settings: object) -> GRU | LSTM:
    return kind(6, 5, generator=torch.Generator().manual_seed(1), **settings).double()  # type: ignore[arg-type]


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("L", [0, 1, 2, 17])
@both
def test_the_fused_pass_is_the_loop(kind: type[GRU], L: int) -> None:
    x = draw(3, L, 6)
    (y, last), (expected, state) = make(kind)(x), make(kind, backend="reference")(x)
    torch.testing.assert_close(y, expected, **CLOSE)
    torch.testing.assert_close(last, state, **CLOSE)


@both
def test_steps_are_the_pass(kind: type[GRU]) -> None:
    layer, x = make(kind), draw(3, 12, 6)
    y, last = layer(x)
    state = None
    for t in range(12):
        output, state = layer.step(x[:, t], state)
        torch.testing.assert_close(output, y[:, t], **CLOSE)
    torch.testing.assert_close(state, last, **CLOSE)


@pytest.mark.parametrize("cut", [0, 1, 9, 12])
@both
def test_continuing_is_one_long_call(kind: type[GRU], cut: int) -> None:
    layer, x = make(kind), draw(3, 12, 6)
    first, between = layer(x[:, :cut])
    then, last = layer(x[:, cut:], between)
    torch.testing.assert_close(torch.cat([first, then], dim=1), layer(x)[0], **CLOSE)
    torch.testing.assert_close(last, layer(x)[1], **CLOSE)


@both
def test_lengths_hold_the_state_and_resets_begin_anew(kind: type[GRU]) -> None:
    layer, x = make(kind), draw(2, 9, 6)
    _, last = layer(x, lengths=torch.tensor([9, 4]))
    torch.testing.assert_close(last[1], layer(x[1:, :4])[1][0], **CLOSE)
    resets = torch.zeros(2, 9, dtype=torch.bool)
    resets[0, 3] = True
    torch.testing.assert_close(layer(x, resets=resets)[0][0, 3:], layer(x[:1, 3:])[0][0], **CLOSE)


@both
def test_the_recurrence_is_that_of_torch(kind: type[GRU]) -> None:
    layer, x = make(kind), draw(2, 9, 6)
    theirs, _ = layer.rnn(x)
    torch.testing.assert_close(layer(x)[0], layer.out_proj(theirs), **CLOSE)


def test_an_untrained_lstm_remembers() -> None:
    layer = make(LSTM)
    assert torch.equal(layer.rnn.bias_ih_l0[5:10], torch.ones(5).double())
    assert torch.equal(layer.rnn.bias_hh_l0[5:10], torch.zeros(5).double())


@both
def test_save_pretrained_gives_the_same_layer_back(kind: type[GRU], tmp_path: Path) -> None:
    layer, x = make(kind), draw(1, 4, 6)
    layer.save_pretrained(tmp_path)
    assert torch.equal(kind.from_pretrained(tmp_path)(x)[0], layer(x)[0])


@both
def test_the_hidden_size_is_the_width_unless_given(kind: type[GRU]) -> None:
    assert kind(7).hidden == 7
    with pytest.raises(InvalidConfig, match="hidden must be at least 1; got 0"):
        kind(7, 0)
