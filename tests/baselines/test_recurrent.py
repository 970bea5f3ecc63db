"""Mamba-, AUSSM and PD-SSM: scan, loop, step and the paper's equations agree, whatever is asked of the layer."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from exactstate.baselines import AUSSM, PDSSM, MambaMinus
from exactstate.baselines.recurrent import Recurrent
from exactstate.errors import BackendUnavailable, BrokenFile, InvalidConfig, InvalidInput, UnknownName
from tests.baselines import paper_equations
from tests.baselines.close import ROUNDING, distance, gradients

WIDTH = 6
LAYERS: dict[str, Callable[..., Recurrent]] = {
    "mamba": lambda **settings: MambaMinus(WIDTH, 5, 4, **settings),
    "aussm": lambda **settings: AUSSM(WIDTH, 5, 4, **settings),
    "pdssm": lambda **settings: PDSSM(WIDTH, 5, 3, **settings),
}
every_layer = pytest.mark.parametrize("name", LAYERS)


def make(name: str, **settings: Any) -> Recurrent:
    """A layer whose weights depend on nothing but its name."""
    return LAYERS[name](generator=torch.Generator().manual_seed(1), **settings).double()


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def start(layer: Recurrent, batch: int) -> Tensor:
    return draw(*layer.initial_state(batch).shape, seed=9)


def outcome(layer: Recurrent, x: Tensor, state: Tensor, **call: Any) -> list[Tensor]:
    """Outputs, last state, and gradients of the input, the state and every parameter."""
    x, state = x.clone().requires_grad_(), state.clone().requires_grad_()
    y, last = layer(x, state, **call)
    return [y.detach(), last.detach(), *gradients([y, last], [x, state, *layer.parameters()])]


def assert_same(found: list[Tensor], wanted: list[Tensor]) -> None:
    for ours, theirs in zip(found, wanted, strict=True):
        assert distance(ours, theirs) < ROUNDING


@every_layer
def test_the_paper_s_equations(name: str) -> None:
    layer, x = make(name), draw(2, 40, WIDTH)
    state = start(layer, 2)
    y, last = layer(x, state)
    first = state if name == "mamba" else torch.view_as_complex(state)
    for row in range(2):
        outputs, h = getattr(paper_equations, name)(layer, x[row].numpy(), first[row].numpy())
        assert np.allclose(y[row].detach().numpy(), outputs, rtol=0, atol=1e-10)
        ended = last[row].detach() if name == "mamba" else torch.view_as_complex(last[row].detach())
        assert np.allclose(ended.numpy(), h, rtol=0, atol=1e-10)


@pytest.mark.parametrize("L", [1, 2, 15, 16, 17, 65, 200])
@every_layer
def test_the_scan_is_the_loop(name: str, L: int) -> None:
    scanned, looped = make(name), make(name, backend="reference")
    x, state = draw(3, L, WIDTH), start(scanned, 3)
    assert_same(outcome(scanned, x, state), outcome(looped, x, state))


@every_layer
def test_the_comparison_barks(name: str) -> None:
    scanned, looped = make(name), make(name, backend="reference")
    x, state = draw(3, 30, WIDTH), start(scanned, 3)
    state[1, 2] += 1e-6
    with pytest.raises(AssertionError):
        assert_same(outcome(scanned, x, state), outcome(looped, x, start(scanned, 3)))


@every_layer
def test_steps_are_the_scan(name: str) -> None:
    layer, x = make(name), draw(3, 37, WIDTH)
    y, last = layer(x)
    state, outputs = None, []
    for t in range(37):
        output, state = layer.step(x[:, t], state)
        outputs.append(output)
    assert distance(torch.stack(outputs, dim=1), y) < ROUNDING
    assert distance(state, last) < ROUNDING


@pytest.mark.parametrize("cut", [0, 1, 16, 29])
@every_layer
def test_continuing_is_one_long_call(name: str, cut: int) -> None:
    layer, x, state = make(name), draw(2, 30, WIDTH), start(make(name), 2)

    class Twice(torch.nn.Module):
        def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
            first, between = layer(x[:, :cut], state)
            then, last = layer(x[:, cut:], between)
            return torch.cat([first, then], dim=1), last

        parameters = layer.parameters

    assert_same(outcome(Twice(), x, state), outcome(layer, x, state))


@pytest.mark.parametrize("chunk", [1, 7, 16, 40])
@every_layer
def test_chunks_change_nothing(name: str, chunk: int) -> None:
    x, state = draw(2, 33, WIDTH), start(make(name), 2)
    call = {"lengths": torch.tensor([33, 20]), "resets": torch.rand(2, 33, generator=torch.Generator()) < 0.1}
    assert_same(outcome(make(name, chunk=chunk), x, state, **call), outcome(make(name), x, state, **call))
    with torch.no_grad():
        assert distance(make(name, chunk=chunk)(x, state)[0], make(name)(x, state)[0]) < ROUNDING


@pytest.mark.parametrize("backend", ["tree", "reference"])
@every_layer
def test_padding_holds_the_state(name: str, backend: str) -> None:
    layer, x = make(name, backend=backend), draw(4, 21, WIDTH)
    lengths, state = torch.tensor([21, 0, 1, 13]), start(layer, 4)
    y, last = layer(x, state, lengths=lengths)
    for row, length in enumerate(lengths.tolist()):
        alone, ended = layer(x[row : row + 1, :length], state[row : row + 1])
        assert distance(y[row : row + 1, :length], alone) < ROUNDING
        assert distance(last[row : row + 1], ended) < ROUNDING
    assert torch.equal(last[1], state[1])


@every_layer
def test_padding_and_resets_are_the_loop_s(name: str) -> None:
    scanned, looped = make(name), make(name, backend="reference")
    x, state = draw(4, 50, WIDTH), start(scanned, 4)
    resets = torch.rand(4, 50, generator=torch.Generator().manual_seed(2)) < 0.1
    call = {"lengths": torch.tensor([50, 0, 1, 33]), "resets": resets}
    assert_same(outcome(scanned, x, state, **call), outcome(looped, x, state, **call))


@every_layer
def test_a_reset_forgets(name: str) -> None:
    layer, x = make(name), draw(2, 20, WIDTH)
    resets = torch.zeros(2, 20, dtype=torch.bool)
    resets[:, 12] = True
    y, last = layer(x, start(layer, 2), resets=resets)
    fresh, ended = layer(x[:, 12:])
    assert distance(y[:, 12:], fresh) < ROUNDING
    assert distance(last, ended) < ROUNDING


@every_layer
def test_packed_sequences_do_not_meet(name: str) -> None:
    layer, x = make(name), draw(40, WIDTH)
    boundaries = torch.tensor([0, 11, 11, 12, 40])
    state = start(layer, 4)
    y, last = layer(x, state, cu_seqlens=boundaries)
    for row, (begin, end) in enumerate(zip(boundaries[:-1].tolist(), boundaries[1:].tolist(), strict=True)):
        alone, ended = layer(x[None, begin:end], state[row : row + 1])
        assert distance(y[begin:end], alone[0]) < ROUNDING
        assert distance(last[row : row + 1], ended) < ROUNDING


@every_layer
def test_distinct_rows_and_an_index(name: str) -> None:
    layer, rows = make(name, chunk=10), draw(5, WIDTH).requires_grad_()
    index = torch.randint(0, 5, (3, 25), generator=torch.Generator().manual_seed(0))
    spread = layer(rows[index])
    shared = layer((rows, index))
    inputs = [rows, *layer.parameters()]
    assert_same([*shared, *gradients(shared, inputs)], [*spread, *gradients(spread, inputs)])


@pytest.mark.parametrize("backend", ["tree", "reference"])
@pytest.mark.parametrize(("B", "L"), [(0, 5), (2, 0), (0, 0)])
@every_layer
def test_nothing_to_do(name: str, B: int, L: int, backend: str) -> None:
    layer = make(name, backend=backend)
    state = start(layer, B)
    y, last = layer(draw(B, L, WIDTH), state)
    assert y.shape == (B, L, WIDTH)
    assert torch.equal(last, state)
    packed, _ = layer(draw(0, WIDTH), cu_seqlens=torch.zeros(B + 1, dtype=torch.int64))
    assert packed.shape == (0, WIDTH)


@every_layer
def test_gradients_by_differences(name: str) -> None:
    """For the smooth layers; PD-SSM's tables jump, and its surrogate is held to autograd's instead."""
    layer, x = make(name), draw(1, 4, WIDTH).requires_grad_()
    state = start(layer, 1).requires_grad_()
    if name == "pdssm":
        x = x.detach()
    assert torch.autograd.gradcheck(lambda x, state: layer(x, state), (x, state))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@every_layer
def test_every_step_is_in_the_format_of_the_weights(name: str, dtype: torch.dtype) -> None:
    layer, x = make(name), draw(2, 60, WIDTH)
    wanted = layer(x)[0].detach()
    small = deepcopy(layer).to(dtype)
    y, state = small(x.to(dtype))
    assert (y.dtype, state.dtype) == (dtype, dtype)
    error = distance(y.double(), wanted)
    assert 0 < error < 200 * torch.finfo(dtype).eps
    stepped = small.step(x[:, 0].to(dtype))[0]
    assert distance(stepped.double(), wanted[:, 0]) < 200 * torch.finfo(dtype).eps
    y.float().square().sum().backward()
    assert all(bool(torch.isfinite(weight.grad).all()) for weight in small.parameters())


@every_layer
def test_autocast_leaves_the_recurrence_alone(name: str) -> None:
    layer, x = make(name).float(), draw(2, 10, WIDTH).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, state = layer(x)
    assert torch.equal(y, layer(x)[0])
    assert state.dtype == torch.float32
    assert layer(x.bfloat16())[0].dtype == torch.bfloat16


@every_layer
def test_there_and_back_through_a_folder(name: str, tmp_path: Path) -> None:
    layer, x = make(name, chunk=9), draw(2, 20, WIDTH)
    layer.save_pretrained(tmp_path)
    again = type(layer).from_pretrained(tmp_path)
    assert again.config == layer.config
    assert torch.equal(again(x)[0], layer(x)[0])
    other = type(make("pdssm" if name != "pdssm" else "mamba"))
    with pytest.raises(BrokenFile, match=f"this is not the configuration of a {other.__name__}"):
        other.from_pretrained(tmp_path)


@every_layer
def test_a_copy_is_a_layer_of_its_own(name: str) -> None:
    layer, x = make(name), draw(2, 20, WIDTH)
    copied = deepcopy(layer)
    wanted = layer(x)[0].detach()
    with torch.no_grad():
        for weight in layer.parameters():
            weight.add_(1)
    assert torch.equal(copied(x)[0], wanted)


@every_layer
def test_the_same_generator_gives_the_same_layer(name: str) -> None:
    first, second = make(name).state_dict(), make(name).state_dict()
    assert all(torch.equal(first[key], second[key]) for key in first)


@every_layer
def test_compiled_without_a_break(name: str) -> None:
    layer, x = make(name), draw(2, 20, WIDTH)
    y, last = torch.compile(layer, fullgraph=True, backend="aot_eager")(x)
    assert distance(y, layer(x)[0]) < ROUNDING
    (y.sum() + last.sum()).backward()


@every_layer
def test_refusals(name: str) -> None:
    layer, x = make(name), draw(2, 9, WIDTH)
    shape = tuple(layer.initial_state(2).shape)
    with pytest.raises(InvalidInput, match=r"has width 6 in its last dimension; got shape \(2, 9, 5\)"):
        layer(x[..., :5])
    with pytest.raises(InvalidInput, match=r"a state of this layer is torch.float64 of shape .*; got torch.float32"):
        layer(x, layer.initial_state(2).float())
    with pytest.raises(InvalidInput, match=rf"of shape \({shape[0]}, {shape[1]}"):
        layer(x, layer.initial_state(3))
    with pytest.raises(InvalidInput, match=r"lengths\[1\] is 10; every length must be between 0 and 9"):
        layer(x, lengths=torch.tensor([3, 10]))
    with pytest.raises(InvalidInput, match=r"index\[0, 1\] is 7, but there are 2 distinct rows \(0..1\)"):
        layer((x[0, :2], torch.tensor([[0, 7]])))
    with pytest.raises(InvalidInput, match=r"cu_seqlens must run from 0 to the number of rows, 9; got ends \(0, 8\)"):
        layer(x[0], cu_seqlens=torch.tensor([0, 8]))
    with pytest.raises(InvalidInput, match=r"a step takes one row per sequence.*\(B, 6\)"):
        layer.step(x)
    with pytest.raises(BackendUnavailable, match="backend 'cpu' composes tables, and this layer has none"):
        make(name, backend="cpu")
    with pytest.raises(UnknownName, match="unknown backend 'loop'"):
        make(name, backend="loop")
    with pytest.raises(InvalidConfig, match="chunk must be at least 0; got -1"):
        make(name, chunk=-1)
    with pytest.raises(InvalidConfig, match="width must be at least 1; got 0"):
        type(layer)(0, 4)


class Plain(Recurrent):
    """h <- tanh(W h + x), as small as a layer can be: no scan of its own."""

    def __init__(self, generator: torch.Generator | None = None, backend: str = "tree", chunk: int = 0) -> None:
        super().__init__()
        self.config, self.backend = SimpleNamespace(width=WIDTH, chunk=chunk), backend
        self.weight = torch.nn.Parameter(torch.randn(WIDTH, WIDTH, generator=generator))

    def initial_state(self, batch: int) -> Tensor:
        return self.weight.new_zeros(batch, WIDTH)

    def streams(self, rows: Tensor) -> tuple[Tensor, ...]:
        return (rows,)

    def advance(self, streams: tuple[Tensor, ...], h: Tensor) -> Tensor:
        return torch.tanh(h @ self.weight.T + streams[0])

    def read(self, streams: tuple[Tensor, ...], h: Tensor) -> Tensor:
        return h

    def finish(self, streams: tuple[Tensor, ...], read: Tensor) -> Tensor:
        return read


def test_recurrent_makes_a_layer_of_one_step() -> None:
    layer, x = Plain(torch.Generator().manual_seed(1), chunk=7).double(), draw(3, 20, WIDTH)
    h, path = np.zeros((3, WIDTH)), []
    for t in range(20):
        h = np.tanh(h @ layer.weight.detach().numpy().T + x[:, t].numpy())
        path.append(h)
    y, last = layer(x)
    assert np.allclose(y.detach().numpy(), np.stack(path, axis=1))
    padded, state = layer(x, lengths=torch.tensor([20, 5, 0]))
    assert torch.equal(state[1], y[1, 4])
    assert torch.equal(state[2], torch.zeros(WIDTH).double())
    assert torch.equal(padded[0], y[0])
    again, _ = layer(x, resets=torch.arange(20).eq(8).expand(3, -1))
    assert distance(again[:, 8:], layer(x[:, 8:])[0]) < ROUNDING
    streamed, _ = layer.step(x[:, -1], layer(x[:, :-1])[1])
    assert distance(streamed, y[:, -1]) < ROUNDING
    assert layer(x[:, :0], last)[0].shape == (3, 0, WIDTH)
