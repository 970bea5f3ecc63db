"""Every backend is the reference, bit for bit, on every awkward length."""

from __future__ import annotations

import pytest
import torch

from exactstate import ops as scan
from exactstate.errors import InvalidInput, UnknownName
from exactstate.ops import cpu, reference, tree
from tests.conftest import backends_under_test

LENGTHS = (0, 1, 2, 3, 63, 64, 65, 1000)
HEADS = ((5,), (2, 3), (4, 3, 2), (11, 11, 11, 11), (300, 2), (1,))
BACKENDS = [name for name in backends_under_test() if name != "reference"]


def random_tables(B, L, heads, generator, dtype=torch.int64):
    parts = [torch.randint(0, d, (B, L, d), generator=generator) for d in heads]
    return torch.cat(parts, dim=-1).to(dtype)


def random_states(B, heads, generator):
    return torch.stack([torch.randint(0, d, (B,), generator=generator) for d in heads], dim=1)


def slow_states(tables, start, heads):
    """The definition once more, in Python integers: an oracle that shares no code with any backend."""
    paths = []
    for b in range(tables.shape[0]):
        state, path = start[b].tolist(), []
        for row in tables[b].tolist():
            at = 0
            for h, d in enumerate(heads):
                state[h] = row[at : at + d][state[h]]
                at += d
            path.append(list(state))
        paths.append(path)
    return torch.tensor(paths).view(tables.shape[0], tables.shape[1], len(heads))


@pytest.mark.parametrize("heads", HEADS, ids=str)
@pytest.mark.parametrize("L", LENGTHS, ids="L{}".format)
def test_the_reference_is_the_definition(L, heads, generator):
    tables, start = random_tables(2, L, heads, generator), random_states(2, heads, generator)
    assert torch.equal(scan.run(tables, start, heads, backend="reference"), slow_states(tables, start, heads))


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("heads", HEADS, ids=str)
@pytest.mark.parametrize("L", LENGTHS, ids="L{}".format)
@pytest.mark.parametrize("backend", BACKENDS)
def test_prefix_and_run_are_the_reference(backend, L, heads, generator):
    tables, start = random_tables(3, L, heads, generator), random_states(3, heads, generator)
    assert torch.equal(scan.prefix(tables, heads, backend=backend), reference.prefix(tables, heads))
    assert torch.equal(scan.run(tables, start, heads, backend=backend), reference.run(tables, start, heads))


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("batch", [1, 2])
def test_a_very_long_sequence(backend, batch, generator):
    heads, L = (3, 2), 100_003
    tables, start = random_tables(batch, L, heads, generator, torch.uint8), random_states(batch, heads, generator)
    composites = scan.prefix(tables, heads, backend=backend)
    states = scan.run(tables, start, heads, backend=backend)
    assert torch.equal(states, slow_states(tables, start, heads).to(torch.uint8))
    through = composites.long().gather(-1, (start + torch.tensor([0, 3]))[:, None].expand(batch, L, 2))
    assert torch.equal(through, states.long())


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_integer_type(backend, dtype, generator):
    heads = (7, 2)
    tables, start = random_tables(2, 65, heads, generator, dtype), random_states(2, heads, generator)
    states = scan.run(tables, start, heads, backend=backend)
    assert states.dtype == dtype
    assert torch.equal(states.long(), slow_states(tables, start, heads))


# float64 sums of at most 1000 terms of order one, taken in another order
ADJOINT_TOLERANCE = 1e-11


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("heads", HEADS, ids=str)
@pytest.mark.parametrize("L", LENGTHS, ids="L{}".format)
@pytest.mark.parametrize("backend", BACKENDS)
def test_adjoint_is_the_reference(backend, L, heads, generator):
    tables = random_tables(2, L, heads, generator)
    gains = torch.randn(2, L, sum(heads), dtype=torch.float64, generator=generator)
    last = torch.randn(2, sum(heads), dtype=torch.float64, generator=generator)
    worth, first = scan.adjoint(tables, gains, last, heads, backend=backend)
    wanted, wanted_first = reference.adjoint(tables, gains, last, heads)
    torch.testing.assert_close(worth, wanted, atol=ADJOINT_TOLERANCE, rtol=0)
    torch.testing.assert_close(first, wanted_first, atol=ADJOINT_TOLERANCE, rtol=0)


def test_the_adjoint_is_backpropagation_through_one_hot_matrices(generator):
    heads, L = (4,), 20
    tables = random_tables(1, L, heads, generator)
    gains = torch.randn(1, L, 4, dtype=torch.float64, generator=generator)
    matrices = torch.nn.functional.one_hot(tables[0], 4).double().transpose(-1, -2)
    h = torch.eye(4, dtype=torch.float64)[0].requires_grad_()
    state, value = h, torch.zeros((), dtype=torch.float64)
    for t in range(L):
        state = matrices[t] @ state
        value = value + gains[0, t] @ state
    value.backward()
    _, first = reference.adjoint(tables, gains, torch.zeros(1, 4, dtype=torch.float64), heads)
    torch.testing.assert_close(h.grad, first[0], atol=ADJOINT_TOLERANCE, rtol=0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_wrong_entry_is_noticed(backend, generator):
    """The comparison barks: a single corrupted table changes what it must change."""
    heads, L = (5,), 64
    tables, start = random_tables(1, L, heads, generator), torch.zeros(1, 1, dtype=torch.int64)
    states = reference.run(tables, start, heads)
    corrupted = tables.clone()
    used = int(states[0, 29, 0])
    corrupted[0, 30, used] = (corrupted[0, 30, used] + 1) % 5
    found = scan.run(corrupted, start, heads, backend=backend)
    assert torch.equal(found[:, :30], states[:, :30])
    assert not torch.equal(found, states)


def test_compose_does_the_first_and_then_the_second():
    first, then = torch.tensor([1, 2, 0]), torch.tensor([0, 0, 2])
    assert scan.compose(first, then).tolist() == [0, 2, 0]


def test_identity_composes_to_nothing(generator):
    heads = (4, 3)
    tables = random_tables(1, 1, heads, generator)[0]
    same = scan.identity(heads)[None]
    assert torch.equal(scan.compose(same, tables, heads), tables)
    assert torch.equal(scan.compose(tables, same, heads), tables)


def test_threads_do_not_change_anything(generator):
    from exactstate import native

    heads = (5, 4)
    tables, start = random_tables(1, 20_000, heads, generator), random_states(1, heads, generator)
    before = native.set_threads(1)
    try:
        alone = cpu.prefix(tables, heads), cpu.run(tables, start, heads)
        native.set_threads(7)
        together = cpu.prefix(tables, heads), cpu.run(tables, start, heads)
    finally:
        native.set_threads(before)
    assert torch.equal(alone[0], together[0])
    assert torch.equal(alone[1], together[1])
    assert torch.equal(alone[0], tree.prefix(tables, heads))


@pytest.mark.parametrize(
    ("tables", "start", "sentence"),
    [
        (torch.zeros(2, 3, 4), torch.zeros(2, 1, dtype=torch.int64), "tables hold integers"),
        (torch.zeros(2, 4, dtype=torch.int64), torch.zeros(2, 1, dtype=torch.int64), r"have shape \(B, L, 4\)"),
        (torch.full((1, 2, 4), 4), torch.zeros(1, 1, dtype=torch.int64), r"is 4, but that head has 4 indices"),
        (torch.full((1, 2, 4), -1), torch.zeros(1, 1, dtype=torch.int64), r"is -1, but that head"),
        (torch.zeros(1, 2, 4, dtype=torch.int64), torch.zeros(2, 1, dtype=torch.int64), r"wanted shape \(1, 1\)"),
        (torch.zeros(1, 2, 4, dtype=torch.int64), torch.full((1, 1), 4), "the state of sequence 0, head 0 is 4"),
        (torch.zeros(1, 2, 4, dtype=torch.int64), torch.zeros(1, 1), "states are integers"),
    ],
)
def test_wrong_arguments_are_named(tables, start, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        scan.run(tables, start)


def test_an_unknown_backend_is_named(generator):
    with pytest.raises(UnknownName, match="Did you mean 'tree'"):
        scan.prefix(random_tables(1, 1, (2,), generator), backend="tre")
