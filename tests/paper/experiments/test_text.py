"""The languages of the text experiment against a slow reading of them, and its attention against the dense one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from paper.experiments import text


@pytest.mark.parametrize("swaps", [False, True])
def test_answers_of_key_value_texts_follow_from_the_text(swaps: bool) -> None:
    drawn = text.key_value(40, 65, np.random.default_rng(0), swaps=swaps)
    assert drawn.tokens.shape == drawn.answers.shape == (40, 65)
    asked = 0
    for tokens, answers in zip(drawn.tokens.tolist(), drawn.answers.tolist(), strict=True):
        values: dict[int, int] = {}
        for at in range(0, 63, 3):
            kind, key, third = tokens[at : at + 3]
            assert answers[at : at + 3] == [False, False, kind == text.GET]
            if kind == text.SET:
                values[key] = third
            elif kind == text.GET:
                assert values[key] == third
                asked += 1
            elif kind == text.SWAP:
                assert swaps
                values[key], values[third] = values[third], values[key]
    assert asked > 100


def test_automaton_texts_cost_their_entropy() -> None:
    drawn = text.automaton(200, 300, np.random.default_rng(0))
    assert drawn.entropy is not None
    letters = np.bincount(drawn.tokens.flatten(), minlength=text.LETTERS) / drawn.tokens.size
    assert 0 < drawn.entropy < -(letters * np.log(letters)).sum()  # knowing the state helps


@pytest.mark.parametrize("length", [1, 3, 64, 65, 150])
def test_window_attention_is_dense_attention_with_a_band(length: int) -> None:
    torch.manual_seed(0)
    layer = text.WindowAttention(16, window=4, heads=2)
    torch.nn.init.normal_(layer.distance)
    h = torch.randn(2, length, 16)
    query, key, value = layer.in_proj(layer.norm1(h)).view(2, length, 3, 2, 8).permute(2, 0, 3, 1, 4)
    distance = torch.arange(length)[:, None] - torch.arange(length)
    band = layer.distance[:, distance.clamp(0, 3)].masked_fill((distance < 0) | (distance > 3), -torch.inf)
    read = (query @ key.transpose(-1, -2) / 8**0.5 + band).softmax(-1) @ value
    dense = h + layer.out_proj(read.transpose(1, 2).flatten(2))
    dense = dense + layer.mlp(layer.norm2(dense))
    torch.testing.assert_close(layer(h), dense, rtol=0, atol=1e-5)  # float32 sums in another order


@pytest.mark.parametrize("cell", text.CELLS)
def test_text_row_has_answers_and_nats_at_both_lengths(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "LONG", 130)
    monkeypatch.setattr(text, "TEXTS", 64)
    row = text.text_row("key_value", cell, 1, 0.05)
    assert row["steps"] >= 1
    for length in ("64", "130"):
        assert 0 <= row[length]["answers"] <= 1
        assert row[length]["nats"] > 0


def test_soft_states_become_sharper_and_then_exact() -> None:
    temperatures = [text.soft_temperature(share / 100) for share in range(100)]
    assert temperatures[0] == temperatures[60] == 1.0
    assert temperatures[70] == pytest.approx(0.72)
    assert temperatures[85:] == [None] * 15
    assert all(after <= before for before, after in pairwise(temperatures[:85]))


def test_models_are_evaluated_with_exact_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "LENGTH", 16)
    torch.manual_seed(0)
    generator = np.random.default_rng(0)
    model = text.TextModel(19, text.CELLS["nfsm"]())
    layer = model.recurrence.layer
    seen = []
    layer.register_forward_pre_hook(lambda module, args: seen.append(module.soft_temperature))
    text.fit(model, torch.from_numpy(text.key_value(64, 16, generator).tokens), generator, 1.5, soft=True)
    assert seen[0] == 1.0
    assert seen[-1] is layer.soft_temperature is None
    assert sorted(filter(None, seen), reverse=True) == [one for one in seen if one is not None]
