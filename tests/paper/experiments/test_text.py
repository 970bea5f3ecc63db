"""The languages of the text experiment against a slow reading of them, and its attention against the dense one."""

from __future__ import annotations

from itertools import count, pairwise

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


def test_text_rows_have_answers_and_nats_at_both_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "LONG", 130)
    monkeypatch.setattr(text, "TEXTS", 64)
    rows = text.text_rows("key_value", tuple(text.CELLS), 1, 0.05)
    assert [row["cell"] for row in rows] == list(text.CELLS)
    for row in rows:
        assert row["steps"] >= 1
        assert row["cells"] == list(text.CELLS)
        for length in ("64", "130"):
            assert 0 <= row[length]["answers"] <= 1
            assert row[length]["nats"] > 0


def test_paired_reads_the_last_two_tokens_at_every_step() -> None:
    torch.manual_seed(0)
    embedding, tokens = torch.randn(5, text.WIDTH), torch.randint(0, 5, (3, 40))
    block = text.Paired(text.memory()).eval()
    normed = block.norm(embedding)
    before = torch.cat([torch.zeros(3, 1, text.WIDTH), normed[tokens[:, :-1]]], 1)
    x = torch.nn.functional.silu(block.pair_proj(torch.cat([before, normed[tokens]], 2)))
    h = embedding[tokens]
    torch.testing.assert_close(block(h, embedding, tokens), h + block.layer(x)[0], rtol=0, atol=1e-5)


def test_registers_can_hold_and_exchange_values() -> None:
    """Four registers for the keys, four constants: written by hand, they know the value of every key in every text."""
    pairs, d = (text.VOCABULARY + 1) * text.VOCABULARY, text.KEYS + text.VALUES
    layer = text.Registers(text.WIDTH, 1, d, value_width=1, inputs=pairs)
    block = text.RegisterPairs(layer).eval()
    key, value = range(text.FIRST_KEY, text.FIRST_KEY + text.KEYS), range(text.FIRST_VALUE, text.FIRST_FILLER)
    tables = torch.zeros(pairs, d, d)
    for k in key:
        for v in value:  # after `set` or `get`
            tables[k * text.VOCABULARY + v, k - text.FIRST_KEY, v - text.FIRST_VALUE + text.KEYS] = 99
        for other in set(key) - {k}:
            pair = tables[k * text.VOCABULARY + other]
            pair[k - text.FIRST_KEY, other - text.FIRST_KEY] = pair[other - text.FIRST_KEY, k - text.FIRST_KEY] = 99
    with torch.no_grad():
        layer.tables.copy_(tables.flatten(1))
        layer.values[text.KEYS :, 0] = torch.arange(4.0)
        layer.out_proj.weight.fill_(1.0)
        layer.read_proj.weight.zero_()
    drawn = text.LANGUAGES["swaps"][1](20, 66, np.random.default_rng(0))
    tokens, seen = torch.from_numpy(drawn.tokens), []
    for register in range(text.KEYS):  # a step reads one register
        layer.read_proj.bias.data = torch.eye(d)[register]
        seen.append(block(torch.zeros(20, 66, text.WIDTH), torch.randn(text.VOCABULARY, text.WIDTH), tokens)[..., 0])
    for b, t in zip(*drawn.answers.nonzero(), strict=True):
        asked = drawn.tokens[b, t - 1] - text.FIRST_KEY
        assert seen[asked][b, t - 1] == drawn.tokens[b, t] - text.FIRST_VALUE


def test_registers_read_the_tables_of_the_last_two_tokens() -> None:
    torch.manual_seed(0)
    block, embedding = text.RegisterPairs(text.registers()).eval(), torch.randn(text.VOCABULARY, text.WIDTH)
    tokens = torch.randint(0, text.VOCABULARY, (2, 30))
    torch.nn.init.normal_(block.layer.tables, std=9)
    normed = block.norm(embedding)
    before = torch.cat([torch.zeros(2, 1, text.WIDTH), normed[tokens[:, :-1]]], 1)
    x = torch.nn.functional.silu(block.pair_proj(torch.cat([before, normed[tokens]], 2)))
    earlier = torch.nn.functional.pad(tokens[:, :-1], (1, 0), value=text.VOCABULARY)
    read = block.layer((x.flatten(0, 1), torch.arange(60).view(2, 30)), earlier * text.VOCABULARY + tokens)[0]
    h = embedding[tokens]
    torch.testing.assert_close(block(h, embedding, tokens), h + read, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", [text.GRU, text.LSTM])
def test_remembering_units_keep_their_state(kind: type[text.GRU | text.LSTM]) -> None:
    """Without input and with weights of zero, a unit keeps sigmoid(bias) of its state: more from unit to unit."""
    layer = text.remembering(kind(text.WIDTH))
    with torch.no_grad():
        for name, parameter in layer.rnn.named_parameters():
            if name != "bias_ih_l0":
                parameter.zero_()
        layer.rnn.bias_ih_l0[2 * text.WIDTH : 3 * text.WIDTH] = 0.0  # the new content is tanh(0)
    after = layer(torch.zeros(1, 1, text.WIDTH), torch.ones_like(layer.initial_state(1)))[1][0]
    kept = after if kind is text.GRU else after[1]
    torch.testing.assert_close(kept, torch.linspace(0, 4, text.WIDTH).sigmoid())


def test_soft_states_become_sharper_and_then_exact() -> None:
    temperatures = [text.soft_temperature(share / 100, 0.6, 0.3, 0.85) for share in range(100)]
    assert temperatures[0] == temperatures[60] == 1.0
    assert temperatures[70] == pytest.approx(0.72)
    assert temperatures[85:] == [None] * 15
    assert all(after <= before for before, after in pairwise(temperatures[:85]))


def small_fit(cell: str, seconds: float) -> text.Fit:
    torch.manual_seed(0)
    generator = np.random.default_rng(0)
    texts = torch.from_numpy(text.key_value(64, 16, generator).tokens)
    return text.Fit(text.TextModel(19, text.CELLS[cell].recurrence()), text.CELLS[cell], texts, generator, seconds)


@pytest.mark.parametrize("cell", ["nfsm", "registers", "nfsm_direct"])
def test_models_are_evaluated_with_exact_states(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count(0.0, 0.05)  # a step takes a thirtieth of the time
    monkeypatch.setattr(text.time, "process_time", lambda: next(clock))
    fit = small_fit(cell, 1.5)
    layer, seen = fit.model.recurrence.layer, []
    layer.register_forward_pre_hook(lambda module, args: seen.append(module.soft_temperature))
    text.train_by_turns([fit])
    assert seen[0] == 1.0
    assert seen[-1] is layer.soft_temperature is None
    assert sorted(filter(None, seen), reverse=True) == [one for one in seen if one is not None]


def test_free_tables_have_a_rate_of_their_own() -> None:
    fit = small_fit("registers", 1.0)
    fit.step()
    tables = [fit.model.recurrence.layer.tables, fit.model.recurrence.layer.bias]
    rates = {id(one): group["lr"] for group in fit.optimizer.param_groups for one in group["params"]}
    for parameter in fit.model.parameters():
        times = 12 if any(parameter is one for one in tables) else 1
        assert rates[id(parameter)] == pytest.approx(fit.cell.lr * times)


def test_models_train_by_turns_for_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = []

    def step(self: text.Fit) -> None:
        turns.append(self)
        self.used += 0.2 if self is quick else 0.3
        self.steps += 1

    quick, slow = small_fit("none", 2.0), small_fit("gru", 2.0)
    monkeypatch.setattr(text.Fit, "step", step)
    text.train_by_turns([quick, slow])
    assert turns[:5] == [quick, quick, quick, slow, slow]
    assert 2.0 <= quick.used < 2.2
    assert 2.0 <= slow.used < 2.3
    assert quick.steps > slow.steps
