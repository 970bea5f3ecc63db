"""The layer lives in PyTorch: operators, compile, export, autocast, half precision, functional transforms."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

from exactstate.nn import NFSM
from exactstate.ops import nfsm_op
from exactstate.ops.nfsm_op import NfsmCall

HEADS = [4, 3]


def layer_of(**more):
    return NFSM(16, HEADS, generator=torch.Generator().manual_seed(4), **more)


def call_of(generator, *, index=False, learned=True, **more):
    shapes = ((5, 16) if index else (2, 9, 16), (25, 16), (25,), (7, 5), (16, 10), (16,), (2, 7))
    tensors = [torch.randn(*shape, generator=generator).requires_grad_(learned) for shape in shapes]
    call = NfsmCall(
        *tensors, row_index=torch.randint(0, 5, (2, 9), generator=generator) if index else None,
        start=torch.zeros(2, 2, dtype=torch.int64), lengths=None, cu_seqlens=None, resets=None, seed=torch.tensor(3),
        heads=HEADS, initial_state=[0, 0], temperature=0.5, chunk=0, backend="cpu",
    )  # fmt: skip
    return call._replace(**more)


CASES = {
    "plain": {},
    "index": {"index": True},
    "lengths": {"lengths": torch.tensor([9, 4])},
    "resets": {"resets": torch.rand(2, 9, generator=torch.Generator().manual_seed(0)) < 0.3},
    "chunk": {"chunk": 4},
    "without noise": {"seed": None},
    "without carry": {"carry": None},
}


@pytest.mark.parametrize("case", CASES)
def test_forward_op_passes_opcheck(case, generator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.library.opcheck(nfsm_op._forward_op, tuple(call_of(generator, **CASES[case])))


@pytest.mark.parametrize("case", CASES)
def test_eval_op_passes_opcheck(case, generator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.library.opcheck(nfsm_op._eval_op, tuple(call_of(generator, learned=False, **CASES[case])))


@pytest.mark.parametrize("case", CASES)
def test_forward_op_and_eager_function_agree(case, generator):
    call = call_of(generator, **CASES[case])
    learned = [part for part in call[:7] if part is not None]
    results = []
    for function in (nfsm_op._forward_op, nfsm_op._forward_eager):
        output, finals, *_ = function(*call)
        grads = torch.autograd.grad(output.square().sum() + finals.square().sum(), learned)
        results.append([output, finals, *grads])
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("training", [True, False])
def test_compile_has_no_graph_break(training, generator):
    layer = layer_of().train(training)
    model = nn.Sequential(nn.Linear(16, 16))
    x = torch.randn(2, 9, 16, generator=generator)

    def run(x, seed, lengths, resets):
        return layer(model(x), seed=seed, lengths=lengths, resets=resets)

    where = torch.tensor(5), torch.tensor([9, 3]), torch.rand(2, 9, generator=generator) < 0.2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
        y, state = compiled(x, *where)
        y.square().sum().backward()
    found = layer.weight.grad.clone()
    layer.zero_grad()
    wanted, wanted_state = run(x, *where)
    wanted.square().sum().backward()
    torch.testing.assert_close(y, wanted)
    assert torch.equal(state, wanted_state)
    torch.testing.assert_close(found, layer.weight.grad)


@pytest.mark.slow
def test_the_default_compiler_backend_too(generator):
    layer = layer_of()
    x = torch.randn(2, 9, 16, generator=generator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y, _ = torch.compile(layer, fullgraph=True)(x, seed=torch.tensor(1))
    torch.testing.assert_close(y, layer(x, seed=1)[0])


def test_evaluation_can_be_exported(generator):
    layer = layer_of().eval()
    x = torch.randn(2, 9, 16, generator=generator)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        length = torch.export.Dim("length", min=2, max=4096)
        program = torch.export.export(layer, (x,), dynamic_shapes={"x": {1: length}})
        longer = torch.randn(2, 77, 16, generator=generator)
        for given in (x, longer):
            for one, other in zip(program.module()(given), layer(given), strict=True):
                assert torch.equal(one, other)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_keeps_the_logits_in_single_precision(dtype, generator):
    layer = layer_of()
    x = torch.randn(2, 9, 16, generator=generator)
    wanted, wanted_state = layer(x, seed=1)
    with torch.autocast("cpu", dtype=dtype):
        y, state = layer(x, seed=1)
        y.sum().backward()  # inside, where a careless matrix product would come out in half precision
    assert torch.equal(y, wanted)
    assert torch.equal(state, wanted_state)
    assert layer.weight.grad.dtype == torch.float32
    half, half_state = layer(x.to(dtype), seed=1)
    assert half.dtype == dtype
    assert half_state.dtype == torch.int64


def test_half_precision_weights_are_computed_in_single(generator):
    layer = layer_of().to(torch.bfloat16)
    x = torch.randn(2, 9, 16, generator=generator).to(torch.bfloat16)
    y, state = layer(x, seed=1)
    single = layer_of()
    single.load_state_dict({name: value.float() for name, value in layer.state_dict().items()})
    wanted, wanted_state = single(x.float(), seed=1)
    assert torch.equal(y, wanted.to(torch.bfloat16))
    assert torch.equal(state, wanted_state)


def test_functional_gradients(generator):
    layer = layer_of()
    x = torch.randn(2, 9, 16, generator=generator)

    def loss(parameters):
        return torch.func.functional_call(layer, parameters, (x,), {"seed": 3})[0].square().sum()

    found = torch.func.grad(loss)(dict(layer.named_parameters()))
    loss(dict(layer.named_parameters())).backward()
    for name, parameter in layer.named_parameters():
        assert torch.equal(found[name], parameter.grad), name


def test_checkpointing_sees_the_same_noise(generator):
    from torch.utils.checkpoint import checkpoint

    layer = layer_of()
    x = torch.randn(2, 9, 16, generator=generator, requires_grad=True)
    torch.manual_seed(1)
    wanted = torch.autograd.grad(layer(x)[0].square().sum(), x)[0]
    torch.manual_seed(1)
    found = torch.autograd.grad(checkpoint(lambda x: layer(x)[0], x, use_reentrant=False).square().sum(), x)[0]
    assert torch.equal(found, wanted)


def test_it_learns_parity():
    """A minute's worth of sense: the smallest machine that no contracting recurrence holds, learned end to end."""
    seeded = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    embed, layer, read = nn.Embedding(2, 16), NFSM(16, (2,), generator=seeded), nn.Linear(16, 2)
    optimizer = torch.optim.Adam([*embed.parameters(), *layer.parameters(), *read.parameters()], 0.01)
    for step in range(300):
        word = torch.randint(0, 2, (64, 12), generator=seeded)
        y, _ = layer(embed(word), seed=step)
        loss = nn.functional.cross_entropy(read(y).flatten(0, 1), (word.cumsum(1) % 2).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    layer.eval()
    word = torch.randint(0, 2, (4, 100_000), generator=seeded)
    with torch.no_grad():
        said = read(layer((embed.weight, word))[0]).argmax(-1)
    assert torch.equal(said, word.cumsum(1) % 2)
