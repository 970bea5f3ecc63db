"""What `diagnose` reports, against heads whose behavior is known."""

from __future__ import annotations

import pytest
import torch

from exactstate.errors import InvalidInput
from exactstate.nn import NFSM, Diagnosis
from exactstate.ops.tables import entry_offsets


def layer_of_known_heads() -> NFSM:
    """Head 0 counts modulo three, head 1 never moves, head 2 moves between two of its four indices."""
    layer = NFSM(5, (3, 3, 4), generator=torch.Generator().manual_seed(0))
    moves = {0: (1, 2, 0), 1: (0, 1, 2), 2: (1, 0, 3, 2)}
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.zero_()
        for h, (d, at) in enumerate(zip(layer.heads, entry_offsets(layer.heads), strict=True)):
            for k, j in enumerate(moves[h]):
                layer.bias[at + k * d + j] = 20.0 if h == 0 else 1.0
    return layer


def test_diagnose_names_idle_heads_unused_indices_and_frozen_columns() -> None:
    layer = layer_of_known_heads()
    found = layer.diagnose(torch.randn(2, 30, 5))
    assert isinstance(found, Diagnosis)
    assert found.idle == (1,)
    assert found.frozen == (0,)
    assert [one.used for one in found.heads] == [(0, 1, 2), (0,), (0, 1)]
    assert [one.unused for one in found.heads] == [(), (1, 2), (2, 3)]
    assert [one.moves for one in found.heads] == [1.0, 0.0, 1.0]
    assert sum(one.share for one in found.heads) == pytest.approx(1.0)
    assert found.steps == 60
    assert "1 of 3 heads carry nothing, 4 of 10 indices are never used, 1 heads are frozen (60 steps)." in str(found)


def test_diagnose_finds_a_moving_head_idle_when_its_indices_have_equal_values() -> None:
    layer = layer_of_known_heads()
    with torch.no_grad():
        layer.values[:3] = layer.values[0]
    assert layer.diagnose(torch.randn(2, 30, 5)).idle == (0, 1)


def test_diagnose_starts_from_a_given_state_and_leaves_the_layer_as_it_is() -> None:
    layer = layer_of_known_heads().train()
    found = layer.diagnose(torch.randn(1, 7, 5), torch.tensor([[0, 2, 3]]))
    assert [one.used for one in found.heads] == [(0, 1, 2), (2,), (2, 3)]
    assert layer.training


def test_diagnose_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"at least one step, of shape \(B, L, m\); got \(2, 0, 5\)"):
        layer_of_known_heads().diagnose(torch.zeros(2, 0, 5))
