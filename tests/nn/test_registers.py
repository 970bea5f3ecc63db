"""The layer of registers against a loop that copies lists, and its training pass against that."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
import torch
from torch import Tensor

import exactstate
from exactstate.errors import BrokenFile, InvalidConfig, InvalidInput
from exactstate.nn import Registers, register_states, soften
from exactstate.ops.interface import available

HEADS = (3, 3, 1, 4)
LENGTHS = (0, 1, 2, 7, 64, 65)


def build(**options: object) -> Registers:
    """A layer whose tables copy much and keep little."""
    generator = torch.Generator().manual_seed(0)
    layer = Registers(5, HEADS, value_width=2, remember=0.0, generator=generator, **options)  # type: ignore[arg-type]
    return layer.eval()


def rows(length: int, batch: int = 3) -> Tensor:
    return torch.randn(batch, length, 5, generator=torch.Generator().manual_seed(1))


def by_lists(
    tables: Tensor, start: Tensor, heads: tuple[int, ...], lengths: list[int] | None = None,
    resets: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """B L S: registers as lists, copied one by one; tables B L S."""
    B, L, S = tables.shape
    held = torch.empty(B, L, S, dtype=torch.int64)
    for b in range(B):
        at = 0
        for d in heads:
            registers = start[b, at : at + d].tolist()
            for t in range(L):
                if lengths is None or t < lengths[b]:
                    before = list(range(d)) if resets is not None and resets[b, t] else registers
                    registers = [before[k] for k in tables[b, t, at : at + d].tolist()]
                held[b, t, at : at + d] = torch.tensor(registers)
            at += d
    return held


def random_tables(count: int, heads: tuple[int, ...] = HEADS) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.cat([torch.randint(0, d, (count, d), generator=generator) for d in heads], 1)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("batch", [0, 1, 3])
@pytest.mark.parametrize("special", ["plain", "lengths", "resets", "both"])
def test_register_states_are_lists_that_copy(length: int, batch: int, special: str) -> None:
    generator = torch.Generator().manual_seed(length)
    tables, start = random_tables(6), random_tables(batch)
    index = torch.randint(0, 6, (batch, length), generator=generator)
    lengths = torch.randint(0, length + 1, (batch,), generator=generator) if special in ("lengths", "both") else None
    resets = torch.rand(batch, length, generator=generator) < 0.1 if special in ("resets", "both") else None
    expected = by_lists(tables[index], start, HEADS, None if lengths is None else lengths.tolist(), resets)
    held = register_states(tables, index, start, HEADS, lengths, resets)
    assert torch.equal(held, expected)
    last = register_states(tables, index, start, HEADS, lengths, resets, last=True)
    assert torch.equal(last, expected[:, -1] if length else start)


def test_register_states_differ_where_a_table_does() -> None:
    tables, start = random_tables(6), random_tables(1)
    index = torch.arange(6)[None]
    wrong = tables.clone()
    wrong[5, 0] = (wrong[5, 0] + 1) % 3
    start[0, :3] = torch.tensor([0, 1, 2])
    tables[:5, :3] = wrong[:5, :3] = torch.tensor([1, 2, 0])
    assert not torch.equal(*(register_states(one, index, start, HEADS) for one in (tables, wrong)))


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("backend", available())
def test_registers_hold_what_a_loop_copies(length: int, backend: str) -> None:
    """From the logits: the arg max of every row, a loop over lists, a sum over registers."""
    layer, x = build(backend=backend), rows(length)
    assert layer.weight is not None
    logits = x @ layer.weight.T + layer.bias
    parts, at = [], 0
    for d in HEADS:
        parts.append(logits[..., at : at + d * d].unflatten(-1, (d, d)).argmax(-1))
        at += d * d
    states = by_lists(torch.cat(parts, -1), layer.initial_state(3), HEADS)
    with torch.no_grad():
        y, state = layer(x)
    assert torch.equal(layer.states(x), states)
    assert torch.equal(state, states[:, -1] if length else layer.initial_state(3))
    held, queries, read, at = layer.values, layer.read_proj(x), [], 0
    for d in HEADS:
        vectors = held[at : at + d][states[..., at : at + d]]
        read.append((queries[..., at : at + d, None] * vectors).sum(-2))
        at += d
    torch.testing.assert_close(y, layer.out_proj(torch.cat(read, -1)), rtol=1e-5, atol=1e-5)  # sums in another order


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("free", [False, True])
def test_registers_continue_and_stream_as_one_call(backend: str, free: bool) -> None:
    layer, x = build(backend=backend, inputs=6 if free else None), rows(65)
    ids = torch.randint(0, 6, (3, 65), generator=torch.Generator().manual_seed(3)) if free else None

    def part(begin: int, end: int) -> dict[str, Tensor]:
        return {} if ids is None else {"ids": ids[:, begin:end]}

    with torch.no_grad():
        whole, last = layer(x, **part(0, 65))
        first, state = layer(x[:, :37], **part(0, 37))
        rest, state = layer(x[:, 37:], state, **part(37, 65))
        assert torch.equal(state, last)
        if backend != "tree":  # whose matrix products sum in another order for other shapes
            assert torch.equal(torch.cat([first, rest], 1), whole)
        streamed, state = [], None
        for t in range(65):
            y, state = layer.step(x[:, t], state, **({} if ids is None else {"ids": ids[:, t]}))
            streamed.append(y)
        assert torch.equal(state, last)
        torch.testing.assert_close(torch.stack(streamed, 1), whole, rtol=1e-5, atol=1e-5)
        if backend != "tree":
            assert torch.equal(torch.stack(streamed, 1), whole)


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("special", ["plain", "state", "lengths", "resets", "all"])
@pytest.mark.parametrize("length", LENGTHS)
def test_registers_train_on_what_they_are_evaluated_on(backend: str, special: str, length: int) -> None:
    """With exact tables the pass that has a gradient gives the outputs and states of evaluation."""
    layer, x = build(backend=backend, inputs=6), rows(length)
    ids = torch.randint(0, 6, (3, length), generator=torch.Generator().manual_seed(3))
    call: dict[str, Tensor] = {"ids": ids}
    if special in ("lengths", "all"):
        call["lengths"] = torch.tensor([length, length // 2, 0])
    if special in ("resets", "all"):
        call["resets"] = torch.rand(3, length, generator=torch.Generator().manual_seed(4)) < 0.1
    state = random_tables(3) if special in ("state", "all") else None
    with torch.no_grad():
        expected, last = layer(x, state, **call)
    for mode in (True, False):
        y, final = layer.train(mode)(x, state, **call)
        assert y.requires_grad
        assert torch.equal(final, last)
        torch.testing.assert_close(y, expected, rtol=1e-6, atol=1e-6)  # soft + (exact - soft) is 1 to rounding


@pytest.mark.parametrize("backend", available())
def test_registers_take_distinct_rows(backend: str) -> None:
    layer, distinct = build(backend=backend), rows(7, 1)[0]
    index = torch.randint(0, 7, (3, 20), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        dense, indexed = layer(distinct[index]), layer((distinct, index))
    assert torch.equal(dense[1], indexed[1])
    torch.testing.assert_close(dense[0], indexed[0], rtol=1e-6, atol=1e-6)


def test_free_tables_are_those_of_the_ids() -> None:
    """Two registers exchange at input 1, and the third copies the first at input 2."""
    layer = Registers(4, (3,), value_width=1, inputs=3).eval()
    with torch.no_grad():
        layer.tables.zero_()
        layer.tables[1].view(3, 3)[torch.tensor([0, 1]), torch.tensor([1, 0])] = 9.0
        layer.tables[2].view(3, 3)[2, 0] = 9.0
        states = layer.states(torch.randn(1, 5, 4), ids=torch.tensor([[1, 0, 2, 1, 0]]))
    assert states[0].tolist() == [[1, 0, 2], [1, 0, 2], [1, 0, 1], [0, 1, 1], [0, 1, 1]]


def test_ids_change_tables_and_not_what_is_read() -> None:
    layer, x = build(inputs=6), rows(1)
    with torch.no_grad():
        layer.tables.zero_()
        same = [layer(x, ids=torch.full((3, 1), at))[0] for at in (0, 5)]
    assert torch.equal(*same)


def gradient(layer: Registers, backend: str, **call: Tensor) -> list[Tensor]:
    layer.backend = backend
    torch.manual_seed(0)
    y, _ = layer(rows(20).double(), **call)
    weights = torch.randn(y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(5))
    return [one for one in torch.autograd.grad((y * weights).sum(), list(layer.parameters())) if one is not None]


@pytest.mark.parametrize("temperature", [None, 0.6, 1.0])
def test_compiled_registers_have_the_gradient_of_the_loop(temperature: float | None) -> None:
    if "cpu" not in available():
        pytest.skip("the kernels are not compiled")
    layer = build().double().train()
    soften(layer, temperature)
    call = {"state": random_tables(3), "lengths": torch.tensor([20, 9, 0])}
    for got, expected in zip(gradient(layer, "cpu", **call), gradient(layer, "reference", **call), strict=True):
        torch.testing.assert_close(got, expected)


def test_soft_registers_have_a_true_gradient() -> None:
    layer = build(backend="reference").double().train()
    soften(layer, 1.0)
    x = rows(6).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: layer(x)[0], (x,))


def test_soften_rounds_rows_at_random_and_only_in_training() -> None:
    layer, x = build(), rows(30)
    with torch.no_grad():
        exact = layer(x)[0]
        soften(layer, 0.5)
        assert torch.equal(layer(x)[0], exact)
        layer.train()
        one, again, other = (layer(x, seed=seed)[0] for seed in (3, 3, 4))
        assert torch.equal(one, again)
        assert not torch.equal(one, other)
        assert (one - exact).abs().max() > 1e-3
        torch.manual_seed(0)
        drawn = layer(x)[0]
        torch.manual_seed(0)
        assert torch.equal(layer(x)[0], drawn)
        soften(layer, 1.0)
        assert torch.equal(layer(x, seed=3)[0], layer(x, seed=4)[0])  # all soft, nothing to draw
        soften(layer, None)
        assert torch.equal(layer(x)[0], exact)


def test_rows_are_soft_with_the_probability_of_the_temperature(monkeypatch: pytest.MonkeyPatch) -> None:
    from exactstate.nn import registers

    seen: list[Tensor] = []
    original = registers.register_values

    def record(sources: Tensor, *args: object, **kwargs: object) -> Tensor:
        seen.append(sources.detach())
        return original(sources, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(registers, "register_values", record)
    layer = Registers(5, (4,) * 8, inputs=500, remember=0.0).train()
    soften(layer, 0.3)
    layer(rows(500, 1), ids=torch.arange(500)[None])
    (sources,) = seen
    soft = (sources.amax(-1) < 0.999).float().mean()
    assert 0.27 < float(soft) < 0.33
    torch.testing.assert_close(sources.sum(-1), torch.ones(500, 8, 4))


def test_an_untrained_register_keeps_what_it_holds() -> None:
    layer = Registers(16).eval()
    states = layer.states(torch.randn(2, 100, 16))
    assert torch.equal(states, layer.initial_state(2)[:, None].expand(2, 100, 48))


def test_registers_save_and_load(tmp_path: Path) -> None:
    layer, x = build(inputs=6), rows(9)
    layer.save_pretrained(tmp_path)
    loaded = Registers.from_pretrained(tmp_path).eval()
    assert loaded.config == layer.config
    ids = torch.arange(9).remainder(6).expand(3, 9)
    with torch.no_grad():
        assert torch.equal(loaded(x, ids=ids)[0], layer(x, ids=ids)[0])
    with pytest.raises(BrokenFile, match="not the configuration of a NFSM"):
        exactstate.NFSM.from_pretrained(tmp_path)
    other = Registers(5, (3, 4, 3, 1), value_width=2, inputs=6)
    with pytest.raises(RuntimeError, match=r"the state dict is of heads \(3, 3, 1, 4\)"):
        other.load_state_dict(layer.state_dict())


def test_half_precision_weights_and_inputs_give_tables_in_float32() -> None:
    layer, x = build().to(torch.bfloat16), rows(20).to(torch.bfloat16)
    with torch.no_grad():
        y, state = layer(x)
        assert y.dtype == torch.bfloat16
        assert torch.equal(state, layer.float()(x.float())[1])


def test_the_configuration_is_frozen_and_checked() -> None:
    config = Registers(5).config
    assert config.heads == (24,) * 2
    with pytest.raises(FrozenInstanceError):
        config.width = 6  # type: ignore[misc]
    for wrong, sentence in (
        ({"heads": ()}, "heads must be one or more sizes"), ({"heads": (3, 0)}, "heads must be one or more sizes"),
        ({"heads": 12}, r"pass heads=\(12,\) for one head of 12 registers"), ({"width": 0}, "width must be at least 1"),
        ({"inputs": 0}, "inputs must be at least 1"), ({"inputs": True}, "inputs is a whole number"),
        ({"value_width": 2.5}, "value_width is a whole number"),
        ({"remember": float("inf")}, "remember must be finite"), ({"remember": "8"}, "remember must be finite"),
    ):  # fmt: skip
        with pytest.raises(InvalidConfig, match=sentence):
            Registers(**{"width": 5, **wrong})  # type: ignore[arg-type]


def test_wrong_calls_of_registers_are_refused() -> None:
    free, affine, x = build(inputs=6), build(), rows(4)
    ids = torch.zeros(3, 4, dtype=torch.int64)
    for layer, args, call, sentence in (
        (free, (x,), {}, "pass ids, which of them stands where"),
        (affine, (x,), {"ids": ids}, "this layer has none: build it with inputs=N"),
        (free, (x,), {"ids": ids[:2]}, r"ids are integers of shape \(3, 4\); got torch.int64 of shape \(2, 4\)"),
        (free, (x,), {"ids": ids.float()}, r"ids are integers of shape \(3, 4\); got torch.float32"),
        (free, (x,), {"ids": ids + 6}, r"ids\[0, 0\] is 6, but there are 6 inputs \(0..5\)"),
        (affine, (x, ids), {}, r"a state has one vector per sequence and register: expected shape \(3, 11\)"),
        (affine, (x, "state"), {}, "a state is a tensor of integers"),
        (affine, (x, torch.full((3, 11), 4)), {}, r"state\[0, 0\] is 4, but that head has 3 vectors"),
        (affine, (x, torch.zeros(3, 11)), {}, "a state is integers, as an earlier call gave it; got torch.float32"),
        (affine, (x,), {"lengths": [1, 2]}, r"lengths are integers of shape \(3,\)"),
        (affine, (x[..., :3],), {}, "the input has width 5"),
        (affine, (x * float("nan"),), {}, "NaN|finite"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=sentence):
            layer(*args, **call)
    with pytest.raises(InvalidInput, match=r"a step takes one row per sequence"):
        affine.step(x)
    with pytest.raises(InvalidInput, match="the ids of a step are a tensor of 3 integers; got list"):
        free.step(x[:, 0], ids=[0, 1, 2])  # type: ignore[arg-type]


@pytest.mark.parametrize("training", [True, False])
def test_registers_do_not_read_what_stands_beyond_a_length(training: bool) -> None:
    layer, x, lengths = build().train(training), rows(6), torch.tensor([6, 2, 0])
    wanted, state = layer(x, lengths=lengths)
    padded = x.detach().clone()
    padded[1, 2:], padded[2] = float("nan"), float("inf")
    found, last = layer(padded.requires_grad_(), lengths=lengths)
    assert torch.equal(found, wanted)
    assert torch.equal(last, state)
    found.sum().backward()
    assert bool(padded.grad.isfinite().all())


def test_extraction_refuses_registers() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.memory = torch.nn.Embedding(4, 5), build()

        def forward(self, tokens: Tensor) -> Tensor:
            return self.memory(self.embedding(tokens))[0]

    with pytest.raises(InvalidInput, match=r"memory is a Registers layer: a head of d registers can hold d \*\* d"):
        exactstate.extract(Model(), symbols=["a", "b", "c", "d"])
