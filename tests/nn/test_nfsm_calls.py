"""Calls that come from other libraries and habits: lists, packed sequences, wrapped projections, other heads."""

from __future__ import annotations

import copy
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.checkpoint import checkpoint

from exactstate.baselines import MambaMinus
from exactstate.errors import InvalidConfig, InvalidInput
from exactstate.extract import extract
from exactstate.nn import NFSM, Backbone, soften
from exactstate.ops import available
from exactstate.ops.tables import one_hot


def layer_of(heads: tuple[int, ...] = (4, 3), **more: Any) -> NFSM:
    return NFSM(8, heads, generator=torch.Generator().manual_seed(1), **more)


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(2))


def test_forward_takes_lengths_as_a_list(x: torch.Tensor) -> None:
    for layer in (layer_of().eval(), MambaMinus(8, 4, 2).eval()):
        want = layer(x, lengths=torch.tensor([6, 3]))
        for lengths in ([6, 3], (6, 3), np.array([6, 3])):
            got = layer(x, lengths=lengths)
            assert all(torch.equal(one, other) for one, other in zip(got, want, strict=True))
        rows = torch.cat([x[0], x[1, :3]])
        assert torch.equal(layer(rows, cu_seqlens=[0, 6, 9])[1], want[1])


@pytest.mark.parametrize("lengths", [[6, 3], [3, 6]])
def test_forward_of_a_packed_sequence_gives_one_back(lengths: list[int], x: torch.Tensor) -> None:
    layer = layer_of().eval()
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=lengths[0] > lengths[1])
    y, state = layer(packed)
    assert y._replace(data=packed.data).data is packed.data
    padded, found = pad_packed_sequence(y, batch_first=True)
    want, want_state = layer(x, lengths=lengths)
    assert found.tolist() == lengths
    assert torch.equal(state, want_state)
    assert all(torch.equal(padded[b, :n], want[b, :n]) for b, n in enumerate(lengths))
    with pytest.raises(InvalidInput, match="has its lengths inside"):
        layer(packed, lengths=lengths)
    with pytest.raises(InvalidInput, match="pad_packed_sequence"):
        MambaMinus(8, 4, 2)(packed)


LEFT, RIGHT, BOTH = (
    [[0, 0, 1, 1, 1, 1], [1] * 6],
    [[1, 1, 1, 1, 0, 0], [0] * 6],
    [[0, 1, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0]],
)


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("mask", [LEFT, RIGHT, BOTH])
@pytest.mark.parametrize("given", ["nothing", "state", "carry", "resets", "chunk", "noise"])
def test_forward_of_a_mask_is_that_of_every_sequence_alone(
    given: str, mask: list[list[int]], backend: str, x: torch.Tensor
) -> None:  # fmt: skip
    layer = layer_of(backend=backend, chunk=2 if given == "chunk" else 0, noise=given == "noise")
    layer.train(given in ("chunk", "carry", "noise"))
    own, resets = torch.tensor(mask).bool(), torch.tensor([[0, 0, 0, 1, 0, 0], [1, 0, 0, 0, 1, 0]]).bool()
    states = torch.tensor([[1, 2], [3, 0]])
    start = {"state": states, "carry": one_hot(states, (4, 3), torch.float32).requires_grad_()}.get(given)
    options: dict[str, Any] = {"seed": 5, "carry_gradient": given == "carry"}

    def call(rows: torch.Tensor, b: int | None, **more: Any) -> Any:
        at = start if start is None or b is None else start[b : b + 1]
        return layer(rows, at, **options, **more)

    rows = x.clone()
    rows[~own] = float("nan")  # nothing reads padding
    y, final = call(rows, None, lengths=own, resets=resets if given == "resets" else None)
    for b in range(2):
        alone = x[b : b + 1, own[b]]
        reset = resets[b : b + 1, own[b]] if given == "resets" else None
        want, want_final = call(alone, b, resets=reset)
        if given == "noise" and b:
            continue  # noise belongs to the number of a sequence
        assert torch.equal(y[b, own[b]], want[0])
        assert torch.equal(final[b], want_final[0])
    tables = layer.eval().tables(x, lengths=own)
    assert all(bool((table[~own] == torch.arange(d)).all()) for d, table in zip((4, 3), tables, strict=True))


def test_forward_of_a_mask_carries_gradients(x: torch.Tensor) -> None:
    """Those of every sequence alone; and padding before the first step passes its own to the start."""
    layer, own = layer_of(), torch.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]]).bool()

    def gradients(loss: Any) -> list[torch.Tensor]:
        start = one_hot(torch.tensor([[1, 2], [3, 0]]), (4, 3), torch.float32).requires_grad_()
        return list(torch.autograd.grad(loss(start), [start, *layer.parameters()]))

    def alone(start: torch.Tensor) -> torch.Tensor:
        ys = [layer(x[b : b + 1, own[b]], start[b : b + 1], carry_gradient=True) for b in range(2)]
        return torch.stack([y.square().sum() + final.square().sum() for y, final in ys]).sum()

    def together(start: torch.Tensor) -> torch.Tensor:
        y, final = layer(x, start, lengths=own, carry_gradient=True)
        return y[own].square().sum() + final.square().sum()

    for got, want in zip(gradients(together), gradients(alone), strict=True):
        torch.testing.assert_close(got, want)
    # the leading rows of sequence 0 read out its start: the vectors of the indices are their derivative
    found = gradients(lambda start: layer(x, start, lengths=own, carry_gradient=True)[0][0, :2].sum())[0]
    shares = layer.out_proj.weight.view(8, 2, -1)
    want = torch.cat([part @ shares[:, h].T for h, part in enumerate(layer.values.split([4, 3]))]).sum(1) * 2
    torch.testing.assert_close(found[0], want)
    assert not found[1].any()


def test_forward_of_a_wrong_mask(x: torch.Tensor) -> None:
    layer = layer_of()
    with pytest.raises(InvalidInput, match="in row 1 there is padding between steps"):
        layer(x, lengths=torch.tensor([[1] * 6, [1, 0, 1, 1, 1, 1]]).bool())
    with pytest.raises(InvalidInput, match=r"booleans of shape \(2, 6\), one for each step; got \(2, 5\)"):
        layer(x, lengths=torch.ones(2, 5).bool())
    with pytest.raises(InvalidInput, match="one sequence is"):
        layer(x[0])
    with pytest.raises(InvalidConfig, match="the batch comes first"):
        NFSM(8, (4, 3), batch_first=False)
    soften(layer, 1.0)
    right, left = torch.tensor(RIGHT).bool(), torch.tensor(LEFT).bool()
    assert torch.equal(layer.train()(x, lengths=right)[0], layer(x, lengths=[4, 0])[0])
    with pytest.raises(InvalidInput, match="pad on the right in training"):
        layer(x, lengths=left)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ({"lengths": [6, 2.5]}, "lengths are whole numbers; got"),
        ({"lengths": 5}, "lengths are whole numbers in a list or a tensor; got 5"),
        ({"resets": [[True]]}, "resets is a torch tensor; got list"),
        ({"state": [[0, 0], [0, 0]]}, "a state is a tensor of integers"),
        ({"state": 1.5}, "a state is a tensor of integers, as an earlier call gave it; got 1.5"),
        ({"state": torch.full((2, 7), float("nan"))}, "one-hot rows: for every head a single 1"),
        ({"state": torch.zeros(2, 7)}, "one-hot rows"),
        ({"state": torch.ones(2, 7)}, "one-hot rows"),
        ({"seed": 1.5}, "a seed is a whole number; got 1.5"),
        ({"seed": "a"}, "a seed is a whole number; got 'a'"),
        ({"x": np.zeros((2, 6, 8), np.float32)}, "the input is a torch tensor; got ndarray"),
    ],
)  # fmt: skip
def test_forward_of_wrong_arguments(call: dict[str, Any], sentence: str, x: torch.Tensor) -> None:
    arguments = {"x": x, **call}
    with pytest.raises((InvalidInput, InvalidConfig), match=sentence):
        layer_of(noise=True).train()(arguments.pop("x"), **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"width": 8.5}, {"width": "8"}, {"width": True}, {"heads": (4.5, 3)}, {"heads": "43"}, {"heads": (4, -3)},
        {"heads": ()}, {"heads": 4}, {"chunk": 1.5}, {"chunk": -1}, {"dictionary": 2.5}, {"initial_state": (0.5, 0)},
        {"initial_state": (0, 3)},
    ],
)  # fmt: skip
def test_constructor_of_wrong_arguments(arguments: dict[str, Any]) -> None:
    with pytest.raises((InvalidConfig, InvalidInput)):
        NFSM(**{"width": 8, "heads": (4, 3), **arguments})


def test_load_state_dict_says_which_dictionary_the_weights_have() -> None:
    full, mixed = (NFSM(8, (3, 2), dictionary=count) for count in (None, 4))
    with pytest.raises(RuntimeError, match=r"with dictionary=None, and this one has dictionary=4; build it with dict"):
        mixed.load_state_dict(full.state_dict())
    with pytest.raises(RuntimeError, match=r"0\.mix_proj: .* dictionary=4, and this one has dictionary=None; build"):
        nn.Sequential(full).load_state_dict(nn.Sequential(mixed).state_dict())
    mixed.load_state_dict(NFSM(8, (3, 2), dictionary=4).state_dict())


def test_load_state_dict_refuses_other_heads(tmp_path: Path) -> None:
    """Weights of heads (4, 3) fit (3, 4) in every shape, and mean another machine."""
    one, other = layer_of((4, 3)), layer_of((3, 4))
    with pytest.raises(RuntimeError, match=r"the state dict is of heads \(4, 3\), and this layer has \(3, 4\)"):
        other.load_state_dict(one.state_dict())
    torch.save(nn.Sequential(one).state_dict(), tmp_path / "w.pt")
    with pytest.raises(RuntimeError, match=r"0\.heads: the state dict is of heads \(4, 3\)"):
        nn.Sequential(other).load_state_dict(torch.load(tmp_path / "w.pt", weights_only=True))
    layer_of((4, 3)).load_state_dict(one.state_dict())
    layer_of((4, 3)).load_state_dict({name: tensor.clone() for name, tensor in one.state_dict().items()})
    assert list(one.state_dict()) == ["weight", "bias", "values", "out_proj.weight", "out_proj.bias"]


class LowRank(nn.Module):
    """What peft puts in place of a linear map."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base_layer = base
        self.a, self.b = nn.Linear(base.in_features, 2, bias=False), nn.Linear(2, base.out_features, bias=False)

    @property
    def weight(self) -> torch.Tensor:
        return self.base_layer.weight

    @property
    def bias(self) -> torch.Tensor:
        return self.base_layer.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base_layer(x) + self.b(self.a(x))


@pytest.mark.parametrize("name", ["out_proj", "mix_proj"])
def test_forward_calls_a_wrapped_projection(name: str, x: torch.Tensor) -> None:
    layer = layer_of(dictionary=3).train()
    wrapped = copy.deepcopy(layer)
    setattr(wrapped, name, LowRank(getattr(wrapped, name)))
    merged = copy.deepcopy(layer)
    low = getattr(wrapped, name)
    with torch.no_grad():
        getattr(merged, name).weight += low.b.weight @ low.a.weight
    want, state = merged(x, seed=5)
    got, got_state = wrapped(x, seed=5)
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
    assert torch.equal(got_state, state)
    got.square().sum().backward()
    assert all(float(part.weight.grad.abs().sum()) > 0 for part in (low.a, low.b))
    with torch.no_grad():
        for one in (wrapped, merged):
            one.eval()
        stepped, stepped_state = wrapped.step(x[:, 0])
        whole, whole_state = merged(x[:, :1])
        torch.testing.assert_close(stepped, whole[:, 0], rtol=1e-5, atol=1e-5)
        assert torch.equal(stepped_state, whole_state)


def test_forward_calls_hooks_of_the_projection(x: torch.Tensor) -> None:
    layer = layer_of().eval()
    want, seen = layer(x)[0], []
    handle = layer.out_proj.register_forward_hook(lambda *call: seen.append(call[2]))
    got = layer(x)[0]
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)
    assert torch.equal(seen[0], got)
    handle.remove()
    layer(x)
    assert len(seen) == 1
    layer.out_proj.register_forward_hook(lambda module, inputs, output: 2 * output)
    torch.testing.assert_close(layer(x)[0], 2 * want, rtol=1e-5, atol=1e-6)


def test_forward_of_a_quantized_projection(x: torch.Tensor) -> None:
    layer = layer_of().eval()
    want, state = layer(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantized = torch.ao.quantization.quantize_dynamic(layer, {nn.Linear}, dtype=torch.qint8)
        assert type(quantized.out_proj) is not nn.Linear
        got, got_state = quantized(x)
    assert torch.equal(got_state, state)
    torch.testing.assert_close(got, want, rtol=0.1, atol=0.1)


def test_extract_refuses_what_weights_do_not_tell() -> None:
    model = Backbone(2, 3, [layer_of()], width=8)
    handle = model.layers[0].mlp.register_forward_hook(lambda *_: None)
    with pytest.raises(InvalidInput, match=r"layers\.0\.mlp has hooks, so what it computes is not in them"):
        extract(model)
    handle.remove()
    model.layers[0].block.out_proj = LowRank(model.layers[0].block.out_proj)
    with pytest.raises(InvalidInput, match=r"layers\.0\.block\.out_proj is a LowRank instead of a plain nn\.Linear"):
        extract(model)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_keeps_the_noise(reentrant: bool, x: torch.Tensor) -> None:
    """With the state of the generator (the default), or with a seed, the recomputed pass has the same tables."""
    layer = layer_of(noise=True).train()

    def gradient(**options: Any) -> torch.Tensor:
        layer.zero_grad()
        torch.manual_seed(3)
        seed = options.pop("seed", None)
        run = (lambda rows: layer(rows, seed=seed)[0]) if options else None
        rows = x.clone().requires_grad_()
        y = layer(rows, seed=seed)[0] if run is None else checkpoint(run, rows, use_reentrant=reentrant, **options)
        y.square().sum().backward()
        return layer.weight.grad.clone()

    want = gradient()
    assert torch.equal(gradient(preserve_rng_state=True), want)
    assert torch.equal(gradient(preserve_rng_state=False, seed=7), gradient(seed=7))


def test_seed_is_repeated_by_every_call_that_is_given_it(x: torch.Tensor) -> None:
    """The noise of a step belongs to (seed, sequence, step of the call): calls and layers need seeds of their own."""
    layer = layer_of(noise=True, temperature=10.0).train()
    still = torch.zeros(1, 64, 8)
    with torch.no_grad():
        assert torch.equal(layer.one_hot_states(still, seed=1), layer.one_hot_states(still, seed=1))
        assert not torch.equal(layer.one_hot_states(still, seed=1), layer.one_hot_states(still, seed=2))
    two = Backbone(2, 3, [layer, copy.deepcopy(layer)], width=8)
    seeds = []
    for one in two.layers:
        one.block.register_forward_pre_hook(lambda *call: seeds.append(call[2]["seed"]), with_kwargs=True)
    two.train()(torch.zeros(1, 4, dtype=torch.long), seed=5)
    assert seeds == [5, 6]


def test_saved_export_loads_after_import_exactstate_ops(tmp_path: Path, x: torch.Tensor) -> None:
    """Importing `exactstate.ops` registers the operators; `import exactstate` alone imports no torch."""
    layer = layer_of().eval()
    with torch.no_grad():
        torch.export.save(torch.export.export(layer, (x,)), tmp_path / "layer.pt2")
        want = layer(x)[1]
    torch.save({"x": x, "want": want}, tmp_path / "x.pt")
    for imports in ("import exactstate.ops, torch", "import torch, exactstate.ops"):
        program = f"""
import sys
{imports}
saved = torch.load({str(tmp_path / "x.pt")!r})
layer = torch.export.load({str(tmp_path / "layer.pt2")!r}).module()
assert torch.equal(layer(saved["x"])[1], saved["want"])
"""
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    program = "import sys, exactstate; assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
