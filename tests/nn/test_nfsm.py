"""What the layer promises about states, exactly: continuing, streaming, chunks, padding, packing, resets, bad calls."""

from __future__ import annotations

import copy

import pytest
import torch

from exactstate import native
from exactstate.errors import BackendUnavailable, BrokenFile, InvalidConfig, InvalidInput
from exactstate.nn import NFSM
from exactstate.ops import interface as backends
from exactstate.ops.tables import one_hot
from tests.conftest import SAMPLED, backends_under_test

HEADS = (7, 3, 2)


def layer_of(backend, width=20, heads=HEADS, **more):
    options = {**SAMPLED, **more}
    return NFSM(width, heads, backend=backend, generator=torch.Generator().manual_seed(4), **options).eval()


def follow_tables(layer, x, start):
    """States by walking through `tables(x)` one step at a time, in Python."""
    tables = layer.tables(x)
    states = torch.empty(*x.shape[:2], len(layer.heads), dtype=torch.int64)
    for b in range(x.shape[0]):
        at = start[b].tolist()
        for t in range(x.shape[1]):
            at = [int(tables[h][b, t, k]) for h, k in enumerate(at)]
            states[b, t] = torch.tensor(at)
    return states


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("L", [0, 1, 2, 3, 63, 64, 65])
@pytest.mark.parametrize("backend", backends_under_test())
def test_a_run_is_its_tables_one_after_the_other(backend, L, generator):
    layer = layer_of(backend)
    x = torch.randn(5, L, 20, generator=generator)
    start = torch.stack([torch.randint(0, d, (5,), generator=generator) for d in HEADS], dim=1)
    with torch.no_grad():
        y, last = layer(x, start)
    states = follow_tables(layer, x, start)
    assert torch.equal(last, states[:, -1] if L else start)
    vectors = [layer.values[at : at + d] for at, d in ((0, 7), (7, 3), (10, 2))]
    wanted = torch.cat([part[states[..., h]] for h, part in enumerate(vectors)], dim=-1) @ layer.out_proj.weight.T
    torch.testing.assert_close(y, wanted + layer.out_proj.bias, atol=1e-5, rtol=1e-5)  # float32, 12 terms


@pytest.mark.parametrize("backend", backends_under_test())
def test_the_table_of_a_step_is_the_arg_max_of_its_logits(backend, generator):
    layer = layer_of(backend)
    x = torch.randn(2, 9, 20, generator=generator)
    for theta, table in zip(layer.logits(x), layer.tables(x), strict=True):
        assert torch.equal(theta.argmax(-2), table)


def test_logits_are_the_affine_map(generator):
    layer = layer_of("cpu").double()
    x = torch.randn(3, 20, dtype=torch.float64, generator=generator)
    flat = x @ layer.weight.T + layer.bias
    for theta, at, d in zip(layer.logits(x), (0, 49, 58), HEADS, strict=True):
        torch.testing.assert_close(theta.transpose(-1, -2).reshape(3, -1), flat[:, at : at + d * d])


def test_compiled_logits_have_the_bits_of_the_definition(generator):
    layer, slow = layer_of("cpu"), layer_of("reference")
    for rows in (1, 15, 16, 17, 100):
        x = torch.randn(rows, 20, generator=generator)
        for one, other in zip(layer.logits(x), slow.logits(x), strict=True):
            assert torch.equal(one, other)


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize(
    "more", [{}, {"dictionary": 6}, {"initial_state": (3, 2, 1)}], ids=("plain", "dictionary", "start")
)
@pytest.mark.parametrize("backend", backends_under_test())
def test_continuing_and_streaming_are_one_long_call(backend, more, generator):
    layer = layer_of(backend, **more)
    x = torch.randn(3, 131, 20, generator=generator)
    with torch.no_grad():
        whole, last = layer(x)
        state, parts = None, []
        for begin, end in ((0, 1), (1, 64), (64, 64), (64, 131)):
            y, state = layer(x[:, begin:end], state)
            parts.append(y)
        assert torch.equal(torch.cat(parts, dim=1), whole)
        assert torch.equal(state, last)
        state, steps = None, []
        for t in range(40):
            y, state = layer.step(x[:, t], state)
            steps.append(y)
        assert torch.equal(torch.stack(steps, dim=1), whole[:, :40])


@pytest.mark.parametrize("backend", backends_under_test())
def test_a_step_with_gradient_is_a_call_of_one_step(backend, generator):
    layer = layer_of(backend)
    x = torch.randn(3, 20, generator=generator, requires_grad=True)
    y, state = layer.step(x)
    with torch.no_grad():
        quiet, quiet_state = layer.step(x)
    torch.testing.assert_close(y, quiet)
    assert torch.equal(state, quiet_state)
    assert torch.autograd.grad(y.sum(), layer.values)[0].abs().sum() > 0


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("backend", ["tree", "cpu"])
def test_chunks_and_threads_give_the_same_bits(backend, mode, generator):
    x = torch.randn(3, 100, 20, generator=generator)
    found = []
    before = native.threads()
    try:
        for chunk, threads in ((0, 1), (0, 2), (1, 2), (7, 1), (33, 5), (100, 2), (1000, 1)):
            native.set_threads(threads)
            layer = layer_of(backend, chunk=chunk)
            layer.train(mode == "train")
            with torch.no_grad():
                y, last = layer(x, seed=9)
            found.append((y, last))
    finally:
        native.set_threads(before)
    for y, last in found[1:]:
        assert torch.equal(y, found[0][0])
        assert torch.equal(last, found[0][1])


def test_gradients_do_not_depend_on_threads(generator):
    x = torch.randn(4, 50, 20, generator=generator)
    found, before = [], native.threads()
    try:
        for threads in (1, 3):
            native.set_threads(threads)
            layer = layer_of("cpu").train()
            layer(x, seed=1)[0].square().sum().backward()
            found.append((layer.weight.grad, layer.values.grad))
    finally:
        native.set_threads(before)
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


@pytest.mark.parametrize("backend", backends_under_test())
def test_the_same_seed_is_the_same_noise_for_every_batch(backend, generator):
    """Sequence b, step t: its noise does not know how many others there are."""
    layer = layer_of(backend).train()
    x = torch.randn(4, 30, 20, generator=generator)
    with torch.no_grad():
        together, _ = layer(x, seed=2)
        alone, _ = layer(x[:1, :17], seed=2)
        other, _ = layer(x, seed=3)
    assert torch.equal(alone, together[:1, :17])
    assert not torch.equal(other, together)


@pytest.mark.parametrize("backend", backends_under_test())
def test_sampled_tables_follow_the_softmax(backend):
    """With d = 3 and the same input everywhere, the first move is distributed as the softmax of its column."""
    layer = NFSM(4, (3,), backend=backend, temperature=0.7, noise=True, generator=torch.Generator().manual_seed(0))
    x = torch.ones(4000, 1, 4)
    with torch.no_grad():
        _, state = layer(x, seed=1)
        p = (layer.logits(x[0, 0])[0][:, 0] / 0.7).softmax(0)
    share = torch.bincount(state[:, 0], minlength=3) / 4000
    assert float((share - p).abs().max()) < 4.5 * 0.5 / 4000**0.5


@pytest.mark.parametrize("backend", backends_under_test())
def test_padding_holds_the_state(backend, generator):
    layer = layer_of(backend)
    x = torch.randn(4, 12, 20, generator=generator)
    lengths = torch.tensor([12, 0, 5, 1])
    with torch.no_grad():
        y, last = layer(x, lengths=lengths)
        for b, length in enumerate(lengths.tolist()):
            alone, state = layer(x[b : b + 1, :length])
            assert torch.equal(alone[0], y[b, :length])
            assert torch.equal(state[0], last[b])
            if 0 < length < 12:
                assert torch.equal(y[b, length:], y[b, length - 1].expand(12 - length, -1))
    for table in layer.tables(x, lengths=lengths):
        assert torch.equal(table[2, 5], torch.arange(table.shape[-1]))


@pytest.mark.parametrize("backend", backends_under_test())
def test_resets_begin_a_new_episode(backend, generator):
    layer = layer_of(backend, initial_state=(1, 2, 0))
    x = torch.randn(2, 10, 20, generator=generator)
    resets = torch.zeros(2, 10, dtype=torch.bool)
    resets[0, 4] = resets[1, 0] = resets[1, 7] = resets[1, 8] = True
    with torch.no_grad():
        y, last = layer(x, torch.tensor([[3, 0, 1], [3, 0, 1]]), resets=resets)
        first, _ = layer(x[:1, :4], torch.tensor([[3, 0, 1]]))
        second, end = layer(x[:1, 4:])
        assert torch.equal(torch.cat([first, second], dim=1)[0], y[0])
        assert torch.equal(end[0], last[0])
        assert torch.equal(layer(x[1:, :7])[0][0], y[1, :7])
        assert torch.equal(layer(x[1:, 8:])[0][0], y[1, 8:])
    for table in layer.tables(x, resets=resets):
        assert len(table[1, 7].unique()) == 1


@pytest.mark.parametrize("backend", backends_under_test())
def test_nothing_at_all_is_answered(backend):
    layer = layer_of(backend)
    for training in (True, False):
        layer.train(training)
        y, state = layer(torch.empty(0, 5, 20))
        assert y.shape == (0, 5, 20)
        assert state.shape == (0, 3)
        y, state = layer(torch.empty(2, 0, 20), torch.tensor([[1, 2, 0], [6, 0, 1]]))
        assert y.shape == (2, 0, 20)
        assert state.tolist() == [[1, 2, 0], [6, 0, 1]]
        y, state = layer(torch.empty(0, 20), cu_seqlens=torch.tensor([0, 0]))
        assert y.shape == (0, 20)
        assert state.tolist() == [[0, 0, 0]]
    x = torch.empty(2, 0, 20, requires_grad=True)
    layer.train()(x)[0].sum().backward()
    assert x.grad.shape == x.shape
    assert float(layer.weight.grad.abs().sum()) == 0


@pytest.mark.parametrize("backend", backends_under_test())
def test_a_tie_goes_to_the_lowest_index(backend):
    layer = layer_of(backend)
    torch.nn.init.zeros_(layer.weight)
    with torch.no_grad():
        layer.bias.zero_()
        layer.bias[49 + 3 + 1 : 49 + 3 + 3] = 1.0  # head 1, column 1: indices 1 and 2 tie
    tables = layer.tables(torch.zeros(1, 1, 20))
    assert tables[0].tolist() == [[[0] * 7]]
    assert tables[1].tolist() == [[[0, 1, 0]]]
    with torch.no_grad():
        _, state = layer(torch.zeros(1, 1, 20), torch.tensor([[6, 1, 1]]))
    assert state.tolist() == [[0, 1, 0]]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("backend", backends_under_test())
def test_logits_that_are_no_numbers_are_refused(backend, training, value, generator):
    layer = layer_of(backend).train(training)
    x = torch.randn(2, 40, 20, generator=generator)
    x[1, 17, 3] = value
    with (
        pytest.raises(InvalidInput, match="row 57 of the input gives NaN or infinite logits"),
        torch.no_grad(),
    ):
        layer(x)
    if not training:
        with pytest.raises(InvalidInput, match="NaN or infinite"), torch.no_grad():
            layer.step(x[:, 17])


def test_several_thousand_indices(generator):
    layer = NFSM(3, (300,), backend="cpu", generator=generator)
    slow = NFSM(3, (300,), backend="tree", generator=generator)
    slow.load_state_dict(layer.state_dict())
    x = torch.randn(2, 20, 3, generator=generator)
    (y, state), (wanted, wanted_state) = layer(x, seed=1), slow(x, seed=1)
    torch.testing.assert_close(y, wanted)
    assert torch.equal(state, wanted_state)
    assert int(state.max()) > 255 or int(layer.tables(x)[0].max()) > 255


GOOD = torch.zeros(2, 5, 20)


@pytest.mark.parametrize(
    ("x", "more", "sentence"),
    [
        (torch.zeros(2, 5, 19), {}, r"width 20 in its last dimension; got shape \(2, 5, 19\)"),
        (torch.zeros(5, 20), {}, r"has shape \(B, L, 20\); got \(5, 20\)"),
        (torch.zeros(2, 5, 20, dtype=torch.int64), {}, "embed tokens first"),
        (GOOD, {"state": torch.zeros(2, 2, dtype=torch.int64)}, r"expected shape \(2, 3\)"),
        (GOOD, {"state": torch.full((2, 3), 2)}, "head 2 is 2, but that head has 2 indices"),
        (GOOD, {"state": torch.full((2, 3), -1)}, "head 0 is -1"),
        (GOOD, {"state": torch.zeros(2, 3)}, r"or one-hot rows of shape \(2, 12\)"),
        (GOOD, {"lengths": torch.tensor([1, 6])}, r"lengths\[1\] is 6; every length must be between 0 and 5"),
        (GOOD, {"lengths": torch.tensor([1])}, r"lengths are integers of shape \(2,\)"),
        (GOOD, {"lengths": torch.tensor([1.0, 2.0])}, "lengths are integers"),
        (GOOD, {"resets": torch.zeros(2, 5)}, r"resets are booleans of shape \(2, 5\)"),
        (GOOD, {"cu_seqlens": torch.tensor([0, 5])}, r"has shape \(N, 20\) with cu_seqlens"),
        (torch.zeros(5, 20), {"cu_seqlens": torch.tensor([0, 4])}, "must run from 0 to the number of rows, 5"),
        (torch.zeros(5, 20), {"cu_seqlens": torch.tensor([0, 4, 3, 5])}, "must not decrease; it does at position 2"),
        (torch.zeros(5, 20), {"cu_seqlens": torch.tensor([0, 5]), "lengths": torch.tensor([5])}, "give one of the two"),
        ((torch.zeros(4, 20), torch.zeros(2, 5)), {}, "the index holds integers"),
        ((torch.zeros(4, 20), torch.full((2, 5), 4)), {}, r"index\[0, 0\] is 4, but there are 4 distinct rows"),
        ((torch.zeros(4, 20), torch.full((2, 5), -1)), {}, r"is -1, but there are 4 distinct rows"),
    ],
)
@pytest.mark.parametrize("training", [True, False])
def test_wrong_calls_are_named(x, more, sentence, training):
    with pytest.raises(InvalidInput, match=sentence), torch.no_grad():
        layer_of("cpu").train(training)(x, **more)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"heads": ()}, "heads must be one or more sizes"),
        ({"heads": (3, 0)}, r"got \(3, 0\)"),
        ({"heads": (40000,)}, "from 1 to 32768"),
        ({"width": 0}, "width must be at least 1; got 0"),
        ({"temperature": 0.0}, "temperature must be positive and finite; got 0.0"),
        ({"temperature": -1.0}, "temperature must be positive"),
        ({"temperature": float("nan")}, "temperature must be positive"),
        ({"dictionary": 0}, "dictionary must be at least 1"),
        ({"initial_state": (0,)}, "initial_state has one index per head"),
        ({"initial_state": (0, 5)}, "initial_state has one index per head"),
        ({"chunk": -1}, "chunk must be 0"),
        ({"heads": 4}, r"pass heads=\(4,\) for one head of 4 indices, or heads=\(12,\) \* 4 for 4 heads"),
        ({"remember": float("inf")}, "remember must be finite; got inf"),
    ],
)
def test_wrong_settings_are_named(settings, sentence):
    with pytest.raises(InvalidConfig, match=sentence):
        NFSM(**{"width": 8, "heads": (3, 2), **settings})


def test_heads_are_sixteen_of_twelve_by_default():
    layer = NFSM(width=128)
    assert layer.heads == (12,) * 16
    assert layer.value_width == 8
    assert not layer.config.noise
    assert layer.config.temperature == layer.config.remember == 1.0
    assert layer(torch.zeros(1, 3, 128))[0].shape == (1, 3, 128)


def test_remember_is_the_initial_bias_of_staying(generator):
    plain, remembering = (
        NFSM(8, (4, 1, 3), remember=value, generator=torch.Generator().manual_seed(1)) for value in (0.0, 2.5)
    )
    assert not plain.bias.any()
    for d, bias in zip((4, 1, 3), remembering.bias.split([16, 1, 9]), strict=True):
        assert torch.equal(bias.view(d, d), 2.5 * torch.eye(d))
    for name, parameter in plain.named_parameters():
        assert name == "bias" or torch.equal(parameter, remembering.get_parameter(name))
    x = torch.randn(2, 50, 8, generator=generator)
    holding = NFSM(8, (4, 1, 3), remember=1e3, initial_state=(3, 0, 2)).eval()
    assert torch.equal(holding(x)[1], torch.tensor([[3, 0, 2]] * 2))


@pytest.mark.parametrize("more", [{}, {"chunk": 7}, {"dictionary": 3}], ids=str)
@pytest.mark.parametrize("backend", backends_under_test())
def test_without_noise_training_is_evaluation_bit_for_bit(backend, more, generator):
    layer = layer_of(backend, noise=False, **more)
    other = layer_of(backend, **more).eval()
    other.load_state_dict(layer.state_dict())
    x = torch.randn(3, 40, 20, generator=generator)
    lengths, resets = torch.tensor([40, 7, 0]), torch.rand(3, 40, generator=generator) < 0.1
    with torch.no_grad():
        wanted = other(x, lengths=lengths, resets=resets)
        for one, two in zip(layer(x, lengths=lengths, resets=resets), wanted, strict=True):
            assert torch.equal(one, two)
    grads = []
    for each in (layer.train(), other):
        before = torch.get_rng_state()
        y, state = each(x, lengths=lengths, resets=resets)
        assert torch.equal(torch.get_rng_state(), before), "a pass without noise draws no seed"
        assert torch.equal(y, wanted[0])
        assert torch.equal(state, wanted[1])
        grads.append(torch.autograd.grad(y.square().sum(), list(each.parameters())))
    for one, two in zip(*grads, strict=True):
        assert torch.equal(one, two)
    noisy = layer_of(backend, **more)
    assert not torch.equal(noisy(x, seed=1)[0], wanted[0])


def test_a_missing_backend_says_why_and_what_to_do(monkeypatch):
    monkeypatch.setattr(native, "_load", lambda: "the compiled kernels were not built; get a compiler")
    assert backends.resolve("auto") == "tree"
    assert NFSM(8, (2,)).backend == "tree"
    with pytest.raises(BackendUnavailable, match="were not built; get a compiler; or pass backend='tree'"):
        NFSM(8, (2,), backend="cpu")


def test_a_folder_holds_the_layer(tmp_path, generator):
    layer = layer_of("cpu", dictionary=4, initial_state=(1, 1, 1)).double()
    layer.save_pretrained(tmp_path / "layer")
    assert sorted(path.name for path in (tmp_path / "layer").iterdir()) == ["config.json", "model.safetensors"]
    again = NFSM.from_pretrained(tmp_path / "layer").eval()
    assert again.config == layer.config
    x = torch.randn(2, 9, 20, dtype=torch.float64, generator=generator)
    assert torch.equal(again(x)[0], layer(x)[0])


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("config.json", b"{", "not JSON"),
        ("config.json", b'{"layer": "Mamba"}', "not the configuration of a NFSM"),
        ("config.json", b'{"layer": "NFSM", "width": 20, "heads": [7, 3, 2], "depth": 3}', "a setting does not fit"),
        ("model.safetensors", b"", "model.safetensors"),
        ("model.safetensors", b"\xff" * 100, "model.safetensors"),
    ],
)
def test_a_broken_folder_is_refused(name, content, sentence, tmp_path):
    layer_of("cpu").save_pretrained(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BrokenFile, match=sentence):
        NFSM.from_pretrained(tmp_path)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(BrokenFile, match="cannot be read"):
        NFSM.from_pretrained(tmp_path / "nowhere")


def test_copies_are_independent(generator):
    layer = layer_of("cpu")
    twin = copy.deepcopy(layer)
    x = torch.randn(2, 9, 20, generator=generator)
    assert torch.equal(layer(x)[0], twin(x)[0])
    with torch.no_grad():
        twin.bias.add_(torch.randn(twin.bias.shape, generator=generator))
    assert not torch.equal(layer(x)[0], twin(x)[0])
    assert "heads=(7, 3, 2)" in repr(layer)


def test_one_hot_states_are_the_states_and_carry_the_gradient_of_the_pass() -> None:
    layer = NFSM(6, (4, 3), generator=torch.Generator().manual_seed(0), noise=False).double()
    x = torch.randn(2, 20, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    states = layer.one_hot_states(x)
    assert torch.equal(states.detach(), one_hot(layer.states(x).flatten(0, 1), layer.heads, x.dtype).view(2, 20, 7))
    assert torch.equal(layer.states(x)[:, -1], layer(x)[1])
    parts = zip(layer.values.split([4, 3]), layer.out_proj.weight.split(layer.value_width, dim=1), strict=True)
    y = states @ torch.cat([values @ weight.T for values, weight in parts]) + layer.out_proj.bias
    torch.testing.assert_close(y, layer(x)[0], rtol=0, atol=1e-12)  # sums over heads in another order
    gradients = torch.autograd.grad(y.square().sum(), list(layer.parameters()))
    expected = torch.autograd.grad(layer(x)[0].square().sum(), list(layer.parameters()))
    for ours, theirs in zip(gradients, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9)  # sums of 40 rows of size up to 10


def test_states_leave_the_layer_in_its_mode() -> None:
    layer = NFSM(6, (4, 3)).train()
    layer.states(torch.randn(1, 3, 6))
    assert layer.training


@pytest.mark.parametrize("backend", backends_under_test())
def test_logits_have_a_gradient(backend: str) -> None:
    layer = NFSM(5, (3, 2), backend=backend, generator=torch.Generator().manual_seed(0)).double()
    x = torch.randn(2, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    parameters = [x, layer.weight, layer.bias]
    found = torch.autograd.grad(sum(part.square().sum() for part in layer.logits(x)), parameters)
    flat = torch.nn.functional.linear(x, layer.weight, layer.bias)
    expected = torch.autograd.grad(flat.square().sum(), parameters)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)  # float64, sums of at most 13 terms


@pytest.mark.parametrize("dictionary", [None, 16, 48, 96], ids=str)
def test_initial_logits_have_the_variance_of_the_input(dictionary, generator):
    layer = NFSM(64, remember=0.0, dictionary=dictionary, generator=generator)
    logits = torch.cat([part.flatten() for part in layer.logits(torch.randn(200, 64, generator=generator))])
    assert 0.5 < float(logits.detach().var()) < 1.1  # a normal cut at two deviations has 0.77 of its variance


@pytest.mark.skipif(not native.available(), reason="no compiled kernels here")
@pytest.mark.parametrize("length", [1, 15, 16, 17, 300])
@pytest.mark.parametrize("dictionary", [None, 16], ids=str)
def test_a_wide_layer_is_the_reference_to_the_bit(dictionary, length, generator):
    fast = NFSM(64, dictionary=dictionary, backend="cpu", generator=generator)
    slow = NFSM(64, dictionary=dictionary, backend="reference")
    slow.load_state_dict(fast.state_dict())
    x = torch.randn(3, length, 64, generator=generator)
    for one, other in zip(fast(x), slow(x), strict=True):
        assert torch.equal(one, other)
    assert all(map(torch.equal, fast.tables(x), slow.tables(x)))
