"""BMRU and CMRU: exact states, the transition monoid, and straight-through gradients."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from exactstate.baselines import BMRU, CMRU
from exactstate.baselines.memory_units import MemoryUnits
from exactstate.errors import InvalidConfig, InvalidInput
from tests.baselines.close import ROUNDING, distance, gradients
from tests.conftest import backends_under_test

WIDTH, UNITS = 6, 5
UNITS_OF: dict[str, Callable[..., MemoryUnits]] = {
    "bmru": lambda **settings: BMRU(WIDTH, UNITS, **settings),
    "cmru": lambda **settings: CMRU(WIDTH, UNITS, 2, **settings),
}
EXACT = "cpu" if "cpu" in backends_under_test() else "reference"
"""A backend on which a row's bits do not depend on the rows beside it."""
every_unit = pytest.mark.parametrize("name", UNITS_OF)


def make(name: str, backend: str = EXACT, **settings: Any) -> MemoryUnits:
    return UNITS_OF[name](generator=torch.Generator().manual_seed(1), backend=backend, **settings).double()


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def levels(layer: MemoryUnits, batch: int) -> Tensor:
    return torch.randint(0, layer.levels, (batch, UNITS), generator=torch.Generator().manual_seed(3))


def by_hand(layer: MemoryUnits, x: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The paper's equations on attractor values, one sequence, in NumPy. h: units."""
    w = {name: tensor.detach().numpy() for name, tensor in layer.state_dict().items()}
    alpha, outputs = np.exp(w["log_alpha"]), []
    for row in x:
        push = w["push_proj.weight"] @ row + w["push_proj.bias"]
        threshold = np.abs(w["threshold_proj.weight"] @ row + w["threshold_proj.bias"])
        z = np.heaviside(np.abs(push) - threshold, 0)
        if isinstance(layer, BMRU):
            h = z * np.sign(push) * alpha + (1 - z) * h
        else:
            h = z * (np.sign(push) * alpha + h) + (1 - z) * h
            h = np.clip(h, -2 * alpha, 2 * alpha)
        outputs.append(w["out_proj.weight"] @ h + w["out_proj.bias"])
    return np.array(outputs), h


@every_unit
def test_the_paper_s_equations(name: str) -> None:
    layer, x, state = make(name), draw(2, 60, WIDTH), levels(make(name), 2)
    with torch.no_grad():
        layer.log_alpha.copy_(draw(UNITS))
    alpha = layer.log_alpha.exp().detach().numpy()
    y, last = layer(x, state)
    level_values = 2 * state - 1 if name == "bmru" else state - 2
    for row in range(2):
        outputs, h = by_hand(layer, x[row].numpy(), level_values[row].numpy() * alpha)
        assert np.allclose(y[row].detach().numpy(), outputs)
        assert np.allclose((2 * last[row] - 1 if name == "bmru" else last[row] - 2).numpy() * alpha, h)


@every_unit
def test_the_tables_are_what_happens(name: str) -> None:
    layer, x, state = make(name), draw(3, 40, WIDTH), levels(make(name), 3)
    lengths, resets = torch.tensor([40, 7, 0]), torch.rand(3, 40, generator=torch.Generator()) < 0.1
    _, last = layer(x, state, lengths=lengths, resets=resets)
    tables = layer.tables(x, lengths=lengths, resets=resets)
    assert len(tables) == UNITS
    for unit, table in enumerate(tables):
        assert table.shape == (3, 40, layer.levels)
        for row in range(3):
            at = int(state[row, unit])
            for t in range(40):
                at = int(table[row, t, at])
            assert at == int(last[row, unit])


def test_no_step_of_a_bmru_swaps_its_levels() -> None:
    """The tables that occur are the three of the flip-flop, and they are closed under composition."""
    layer = BMRU(WIDTH, UNITS, generator=torch.Generator().manual_seed(0))
    tables = torch.stack(layer.tables(3 * torch.randn(50, 40, WIDTH, generator=torch.Generator().manual_seed(0))))
    found = {tuple(table) for table in tables.view(-1, 2).tolist()}
    assert found == {(0, 0), (0, 1), (1, 1)}
    assert {tuple(then[k] for k in first) for first, then in product(found, repeat=2)} == found
    assert (1, 0) not in found


@pytest.mark.parametrize("max_count", [1, 2, 5])
def test_steps_of_a_cmru_are_shifts_that_stop(max_count: int) -> None:
    layer = CMRU(WIDTH, UNITS, max_count, generator=torch.Generator().manual_seed(0))
    n = 2 * max_count + 1
    tables = torch.stack(layer.tables(3 * torch.randn(50, 40, WIDTH, generator=torch.Generator().manual_seed(0))))
    found = {tuple(table) for table in tables.view(-1, n).tolist()}
    assert found == {tuple(min(max(k + by, 0), n - 1) for k in range(n)) for by in (-1, 0, 1)}


def closed(tables: set[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """All that the tables compose to."""
    reached = set(tables)
    while True:
        more = {tuple(then[k] for k in first) for first, then in product(reached, tables)} - reached
        if not more:
            return reached
        reached |= more


@pytest.mark.parametrize("n", [2, 3, 5, 7])
def test_no_word_permutes_levels(n: int) -> None:
    """The only permutation that shifts with barriers compose to is the identity, so there is no group in them."""
    steps = {tuple(min(max(k + by, 0), n - 1) for k in range(n)) for by in (-1, 0, 1)}
    assert {word for word in closed(steps) if len(set(word)) == n} == {tuple(range(n))}
    swap = (1, 0, *range(2, n))
    assert {word for word in closed(steps | {swap}) if len(set(word)) == n} != {tuple(range(n))}


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("backend", backends_under_test())
@every_unit
def test_steps_are_the_scan_to_the_bit(name: str, backend: str, dtype: torch.dtype) -> None:
    layer, x = make(name, backend=backend).to(dtype), draw(3, 37, WIDTH).to(dtype)
    y, last = layer(x, levels(layer, 3))
    state, outputs = levels(layer, 3), []
    for t in range(37):
        output, state = layer.step(x[:, t], state)
        outputs.append(output)
    assert torch.equal(state, last)
    if backend == "tree" or dtype == torch.float16:  # matrix products, whose last bit is the library's business
        assert torch.allclose(torch.stack(outputs, dim=1), y, rtol=0, atol=8 * torch.finfo(dtype).eps)
    else:
        assert torch.equal(torch.stack(outputs, dim=1), y)


@pytest.mark.parametrize("cut", [0, 1, 16, 60])
@pytest.mark.parametrize("chunk", [0, 7])
@every_unit
def test_continuing_is_one_long_call_to_the_bit(name: str, chunk: int, cut: int) -> None:
    layer, x = make(name, chunk=chunk), draw(2, 60, WIDTH)
    y, last = layer(x)
    first, between = layer(x[:, :cut])
    then, ended = layer(x[:, cut:], between)
    assert between.dtype == torch.int64
    assert torch.equal(torch.cat([first, then], dim=1), y)
    assert torch.equal(ended, last)


@pytest.mark.parametrize("L", [1, 17, 80])
@pytest.mark.parametrize("backend", [name for name in backends_under_test() if name != "reference"])
@every_unit
def test_gradients_are_those_of_the_equations(name: str, backend: str, L: int) -> None:
    """The scan's surrogate is what autograd makes of the equations, z and s differentiated as their arguments."""
    call = {"lengths": torch.tensor([L, 0, L // 2]), "resets": torch.rand(3, L, generator=torch.Generator()) < 0.1}
    results = []
    for layer in (make(name, backend=backend), make(name, backend=backend, chunk=5), make(name, backend="reference")):
        x = draw(3, L, WIDTH).requires_grad_()
        state = (levels(layer, 3) * 2 - 1 if name == "bmru" else levels(layer, 3) - 2).double().requires_grad_()
        y, last = layer(x, state, carry_gradient=True, **call)
        inputs = [x, state, *layer.parameters()]
        results.append([y.detach(), last.detach(), *gradients([y, last], inputs)])
    *found, wanted = results
    for result in found:
        assert torch.equal(result[0], wanted[0])
        assert torch.equal(result[1], wanted[1])
        for ours, theirs in zip(result[2:], wanted[2:], strict=True):
            assert distance(ours, theirs) < ROUNDING


def test_a_bmru_learns_to_hold_a_bit() -> None:
    """Set on one symbol, clear on another, hold on the third: the surrogate finds it, and it then holds for ever."""
    generator = torch.Generator().manual_seed(0)
    layer = BMRU(3, 8, generator=generator)
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.02)
    for _ in range(150):
        symbols = torch.randint(0, 3, (64, 20), generator=generator)
        loss = (layer(torch.eye(3)[symbols])[0][..., 0] - bit(symbols)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    symbols = torch.full((1, 20_000), 2)
    symbols[0, 0] = 1
    y, _ = layer(torch.eye(3)[symbols])
    assert bool((y[..., 0] > 0).all())
    assert torch.equal(y[0, 1], y[0, -1])


def bit(symbols: Tensor) -> Tensor:
    """-1 after symbol 0, 1 after symbol 1, as before after symbol 2, and -1 to begin with."""
    value, values = -torch.ones(len(symbols)), []
    for column in symbols.T:
        value = torch.where(column == 0, -1.0, torch.where(column == 1, 1.0, value))
        values.append(value)
    return torch.stack(values, dim=1)


@every_unit
def test_packed_indexed_and_empty(name: str) -> None:
    layer, x = make(name), draw(40, WIDTH)
    boundaries, state = torch.tensor([0, 11, 11, 40]), levels(make(name), 3)
    y, last = layer(x, state, cu_seqlens=boundaries)
    alone, ended = layer(x[None, 11:], state[2:])
    assert torch.equal(y[11:], alone[0])
    assert torch.equal(last[1:], torch.cat([state[1:2], ended]))
    index = torch.randint(0, 40, (2, 30), generator=torch.Generator().manual_seed(0))
    assert torch.equal(layer((x, index))[0], layer(x[index])[0])
    assert layer(draw(0, 4, WIDTH))[1].shape == (0, UNITS)
    assert torch.equal(layer(draw(3, 0, WIDTH), state)[1], state)


@every_unit
def test_there_and_back_through_a_folder(name: str, tmp_path: Path) -> None:
    layer, x = make(name), draw(2, 20, WIDTH)
    layer.save_pretrained(tmp_path)
    again = type(layer).from_pretrained(tmp_path, backend=EXACT)
    assert again.config == layer.config
    assert torch.equal(again(x)[0], layer(x)[0])
    assert torch.equal(deepcopy(layer)(x)[0], layer(x)[0])


@every_unit
def test_compiled_without_a_break(name: str) -> None:
    layer, x = make(name), draw(2, 20, WIDTH)
    y, last = torch.compile(layer, fullgraph=True, backend="aot_eager")(x)
    assert torch.equal(y, layer(x)[0])
    assert torch.equal(last, layer(x)[1])
    y.sum().backward()


def test_refusals() -> None:
    layer, x = make("cmru"), draw(2, 9, WIDTH)
    with pytest.raises(InvalidInput, match="the state of sequence 0, head 0 is 5, but that head has 5 indices"):
        layer(x, torch.full((2, UNITS), 5))
    with pytest.raises(InvalidInput, match="some entry lies between two"):
        layer(x, torch.full((2, UNITS), 0.5))
    with pytest.raises(InvalidInput, match="a push or a threshold is NaN or infinite"):
        layer(torch.where(x > 2, torch.nan, x))
    with pytest.raises(InvalidConfig, match="initial_level is a level between 0 and 1; got 2"):
        BMRU(4, 4, initial_level=2)
    with pytest.raises(InvalidConfig, match="initial_level is a level between 0 and 6; got -1"):
        CMRU(4, 4, 3, initial_level=-1)
    with pytest.raises(InvalidConfig, match="max_count must be at least 1; got 0"):
        CMRU(4, 4, 0)
    with pytest.raises(InvalidConfig, match="max_count must be at most 1023"):
        CMRU(4, 4, 5000)
    with pytest.raises(InvalidConfig, match="units must be at least 1; got 0"):
        BMRU(4, 0)
