"""The layer of registers against a loop that copies lists, and its training pass against that."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from exactstate.errors import InvalidInput
from exactstate.nn import soften
from exactstate.ops.interface import available
from paper.experiments.registers import Registers, register_states, register_values

HEADS = (3, 3)
BACKENDS = [name for name in ("reference", "cpu") if name in available()]
LENGTHS = (1, 2, 7, 64, 65)


def build(**options: str) -> Registers:
    """A layer whose tables copy much and keep little."""
    torch.manual_seed(0)
    return Registers(5, 2, 3, value_width=2, inputs=6, remember=0.0, **options).eval()


def call(length: int) -> dict[str, object]:
    generator = torch.Generator().manual_seed(length)
    index = torch.randint(0, 4, (3, length), generator=generator)
    ids = torch.randint(0, 6, (3, length), generator=generator)
    return {"x": (torch.randn(4, 5, generator=generator), index), "ids": ids}


def random_tables(count: int) -> Tensor:
    return torch.randint(0, 3, (count, 6), generator=torch.Generator().manual_seed(2))


def by_lists(tables: Tensor, start: Tensor) -> Tensor:
    """B L S: registers as lists, copied one by one; tables B L S."""
    held = torch.empty_like(tables)
    for b in range(len(tables)):
        for at in (0, 3):
            registers = start[b, at : at + 3].tolist()
            for t in range(tables.shape[1]):
                registers = [registers[k] for k in tables[b, t, at : at + 3].tolist()]
                held[b, t, at : at + 3] = torch.tensor(registers)
    return held


@pytest.mark.parametrize("length", LENGTHS)
def test_register_states_are_lists_that_copy(length: int) -> None:
    tables, start = random_tables(6), random_tables(3)
    index = torch.randint(0, 6, (3, length), generator=torch.Generator().manual_seed(length))
    held = register_states(tables, index, start, HEADS)
    assert torch.equal(held, by_lists(tables[index], start))
    wrong = tables.clone()
    wrong[index[0, -1], 0] = (wrong[index[0, -1], 0] + 1) % 3
    start[0, :3] = torch.tensor([0, 1, 2])
    tables[:, :3] = torch.tensor([1, 2, 0])
    wrong[:, 1:3] = torch.tensor([2, 0])
    assert not torch.equal(*(register_states(one, index, start, HEADS) for one in (tables, wrong)))


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_registers_hold_what_a_loop_copies(length: int, backend: str) -> None:
    """From the logits: the arg max of every row, a loop over lists, a sum over registers; the same in training."""
    layer, given = build(backend=backend), call(length)
    (rows, index), ids = given["x"], given["ids"]
    logits = (layer.tables[ids] + layer.bias).unflatten(-1, (2, 3, 3))
    states = by_lists(logits.argmax(-1).flatten(2), layer.initial_state(3))
    assert torch.equal(layer.states(ids), states)
    vectors = layer.values[states + torch.tensor([0, 0, 0, 3, 3, 3])].unflatten(2, (2, 3))
    read = (layer.read_proj(rows)[index].unflatten(2, (2, 3))[..., None] * vectors).sum(-2)
    with torch.no_grad():
        y, state = layer(**given)
    assert torch.equal(state, states[:, -1])
    torch.testing.assert_close(y, layer.out_proj(read.flatten(2)), rtol=1e-5, atol=1e-5)  # sums in another order
    for mode in (True, False):
        trained, final = layer.train(mode)(**given)
        assert trained.requires_grad
        assert torch.equal(final, state)
        torch.testing.assert_close(trained, y, rtol=1e-6, atol=1e-6)  # soft + (exact - soft) is 1 to rounding


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("train", [False, True])
def test_registers_continue_as_one_call(backend: str, train: bool) -> None:
    layer, given = build(backend=backend), call(65)
    (rows, index), ids = given["x"], given["ids"]
    with torch.set_grad_enabled(train):
        whole, last = layer(**given)
        first, state = layer((rows, index[:, :37]), ids[:, :37])
        rest, state = layer((rows, index[:, 37:]), ids[:, 37:], state)
    assert torch.equal(state, last)
    torch.testing.assert_close(torch.cat([first, rest], 1), whole, rtol=1e-6, atol=1e-6)


def test_free_tables_are_those_of_the_ids() -> None:
    """Two registers exchange at input 1, and the third copies the first at input 2."""
    layer = Registers(4, 1, 3, value_width=1, inputs=3)
    with torch.no_grad():
        layer.tables.zero_()
        layer.tables[1].view(3, 3)[torch.tensor([0, 1]), torch.tensor([1, 0])] = 9.0
        layer.tables[2].view(3, 3)[2, 0] = 9.0
    states = layer.states(torch.tensor([[1, 0, 2, 1, 0]]))
    assert states[0].tolist() == [[1, 0, 2], [1, 0, 2], [1, 0, 1], [0, 1, 1], [0, 1, 1]]
    with pytest.raises(InvalidInput, match=r"ids\[0, 0\] is 3, but there are 3 inputs"):
        layer.states(torch.tensor([[3]]))


def gradient(layer: Registers, backend: str) -> list[Tensor]:
    layer.backend = backend
    torch.manual_seed(0)
    (rows, index), ids = call(20)["x"], call(20)["ids"]
    y, _ = layer((rows.double(), index), ids, random_tables(3))
    weights = torch.randn(y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(5))
    return list(torch.autograd.grad((y * weights).sum(), list(layer.parameters())))


@pytest.mark.parametrize("temperature", [None, 0.6, 1.0])
def test_compiled_registers_have_the_gradient_of_the_loop(temperature: float | None) -> None:
    if "cpu" not in available():
        pytest.skip("the kernels are not compiled")
    layer = build().double().train()
    soften(layer, temperature)
    for got, expected in zip(gradient(layer, "cpu"), gradient(layer, "reference"), strict=True):
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_register_values_copy_and_exchange(backend: str) -> None:
    """Register 0 and 1 exchange, then 2 copies 0: what they hold are the value vectors themselves."""
    values = torch.tensor([[[1.0], [2.0], [3.0]]])
    sources = torch.nn.functional.one_hot(torch.tensor([[[1, 0, 2]], [[0, 1, 0]]]), 3).float()
    held = register_values(sources, torch.tensor([[0, 1, 0]]), values, backend)
    assert held[0, :, 0, :, 0].tolist() == [[2, 1, 3], [2, 1, 2], [1, 2, 2]]


def test_rows_are_soft_with_the_probability_of_the_temperature() -> None:
    layer = Registers(5, 8, 4, value_width=1, inputs=500, remember=0.0).train()
    soften(layer, 0.3)
    logits, tables, _ = layer._tables(torch.arange(500)[None])
    sources = layer._sources(logits.view(-1, 8, 4, 4), tables.view(-1, 8, 4)).detach()
    assert 0.27 < float((sources.amax(-1) < 0.999).float().mean()) < 0.33
    torch.testing.assert_close(sources.sum(-1), torch.ones(500, 8, 4))
    exact = layer.eval()._sources(logits.view(-1, 8, 4, 4), tables.view(-1, 8, 4))
    torch.testing.assert_close(exact.amax(-1), torch.ones(500, 8, 4))
