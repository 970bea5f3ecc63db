"""The quick path gives the gradient of the plain path, given the same dropout masks and the same noise.

Both are asked in float64, where sums in another order differ by about 1e-16 of their terms; the tolerance leaves room
for some thousand terms and a chain of a few dozen operations.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from exactstate.baselines import MambaMinus
from exactstate.errors import InvalidConfig, UnknownName
from exactstate.nn import NFSM, Backbone
from exactstate.nn.losses import MASK_CUTOFF, first_error, mask, mask_length
from exactstate.tasks import task as get_task
from exactstate.train import EndToEndConfig, EndToEndPhase, fast_gradient
from tests.conftest import SAMPLED
from tests.train.test_realize import counted_phase
from tests.train.test_realize import learned as realized

CLOSE = {"rtol": 1e-9, "atol": 1e-12}
SMALL = EndToEndConfig(batch=24, length=40, masks=3, exploration=0.3)
DROPOUTS = ("encoder.dropout", "layers.0.mlp.dropout", "decoder.dropout")


class Noted(nn.Module):
    """Dropout that remembers what it kept."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.generator, self.kept = generator, []

    def forward(self, x):
        self.kept.append((torch.rand(x.shape, generator=self.generator) > 0.1).to(x.dtype) / 0.9)
        return x * self.kept[-1]


class Given(nn.Module):
    """Dropout with given masks."""

    def __init__(self, kept) -> None:
        super().__init__()
        self.kept = kept

    def forward(self, x):
        return x * self.kept


def fresh(name, heads, *, sharp=1.0, seed=0, **options):
    task, generator = get_task(name), torch.Generator().manual_seed(seed)
    block = NFSM(32, heads, generator=generator, **{**SAMPLED, **options})
    model = Backbone(task.machine.n_symbols, task.machine.n_states, [block], width=32, generator=generator)
    with torch.no_grad():
        block.weight.mul_(sharp)  # else no column is spread wider than the noise, and nothing is penalised
    return task, model.double().train()


@cache
def learned(name, heads):
    torch.manual_seed(0)
    return get_task(name), realized(counted_phase(name, heads)).network()


def trained(name, heads):
    task, model = learned(name, heads)
    return task, deepcopy(model).double().train()


def gradients(model):
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}


def both(task, model, settings, *, spoil=None, noise=True):
    """(loss, first errors, gradients) of the quick path, and of the plain path with the quick one's masks."""
    generator, seed = np.random.default_rng(3), 5
    exploration = settings.exploration if noise else 0.0
    batch = task.sample(settings.batch, settings.length, generator)
    tokens, labels = torch.from_numpy(batch.inputs.astype(int)), torch.from_numpy(batch.states.astype(int))
    chosen = torch.from_numpy(generator.integers(settings.masks, size=tokens.shape))
    noted = {name: Noted(torch.Generator().manual_seed(i)) for i, name in enumerate(DROPOUTS)}
    for name, module in noted.items():
        model.set_submodule(name, module)
    model.zero_grad(set_to_none=True)
    step = fast_gradient.FastStep(model, tokens, labels, settings, chosen, settings.masks)
    rollout = step.rollout(seed if noise else None, mask_length(settings.mask_rate))
    loss = step.backward(rollout, exploration)
    quickly = loss, rollout.first, gradients(model)

    rows = (tokens * settings.masks + chosen, rollout.row.clamp(min=0), rollout.row.clamp(min=0))
    for (name, module), row in zip(noted.items(), rows, strict=True):
        model.set_submodule(name, Given(torch.cat(module.kept)[row]))
    if spoil is not None:
        spoil(model)
    model.zero_grad(set_to_none=True)
    model.layers[0].block.train(noise)
    loss, first = fast_gradient.autograd_gradient(model, tokens, labels, settings, seed=seed, exploration=exploration)
    return quickly, (loss, first, gradients(model)), rollout


def assert_same(quickly, plainly):
    assert quickly[0] == pytest.approx(plainly[0], rel=1e-10)
    assert torch.equal(quickly[1], plainly[1])
    assert set(quickly[2]) == set(plainly[2])
    for name, gradient in plainly[2].items():
        torch.testing.assert_close(quickly[2][name], gradient, msg=lambda text, name=name: f"{name}: {text}", **CLOSE)
        assert gradient.abs().sum() > 0, name


@pytest.mark.parametrize("noise", [True, False], ids=["noise", "no noise"])
@pytest.mark.parametrize(
    ("name", "heads"), [("S3", (3, 2)), ("Z16", (16,)), ("A5", (5, 12)), ("FF", (3,)), ("M11", (11, 11, 11, 11))]
)
def test_fast_gradient_is_autograd_gradient_at_the_start(name, heads, noise):

    quickly, plainly, rollout = both(*fresh(name, heads, sharp=8.0), SMALL, noise=noise)
    assert_same(quickly, plainly)
    assert int(rollout.kept.sum()) < rollout.row.numel(), "this was to show words that are not followed to their end"


@pytest.mark.parametrize("noise", [True, False], ids=["noise", "no noise"])
@pytest.mark.parametrize(("name", "heads"), [("S3", (3, 2)), ("DFF5", (3,)), ("S4", (4, 3, 2))])
def test_fast_gradient_is_autograd_gradient_on_a_trained_model(name, heads, noise):

    task, model = trained(name, heads)
    quickly, plainly, rollout = both(task, model, SMALL, noise=noise)
    assert_same(quickly, plainly)
    if not noise:
        assert (quickly[1] == SMALL.length).all()
        assert len(rollout.row.unique()) < rollout.row.numel() / 3, "few rows for many positions"


def test_fast_gradient_with_a_dictionary_of_logits():
    assert_same(*both(*fresh("S3", (3, 2), dictionary=4, sharp=4.0), SMALL)[:2])


def test_fast_gradient_with_another_backend():
    assert_same(*both(*fresh("S3", (3, 2), backend="tree"), SMALL)[:2])


@pytest.mark.parametrize("rate", [0.0, 0.5, 20.0])
def test_fast_gradient_with_other_mask_rates(rate):

    assert_same(*both(*fresh("S4", (4, 3, 2)), replace(SMALL, mask_rate=rate))[:2])


def bent(part):
    def spoil(model):
        with torch.no_grad():
            model.get_parameter(part).view(-1)[0].add_(1e-4)

    return spoil


def other_mask(model):
    kept = model.decoder.dropout.kept
    kept[0, 0, 0] = 1 / 0.9 - kept[0, 0, 0]


@pytest.mark.parametrize(
    "spoil", [bent("layers.0.block.weight"), bent("readout.bias"), other_mask], ids=["weight", "bias", "mask"]
)
def test_the_comparison_of_gradients_fails_when_one_number_differs(spoil):
    quickly, plainly, _ = both(*fresh("S3", (3, 2)), SMALL, spoil=spoil)
    with pytest.raises(AssertionError):
        assert_same(quickly, plainly)


def test_mask_length_ends_where_a_weight_is_lost_in_float32():
    assert mask_length(3.0) == 6
    assert np.exp(-3.0 * 5) >= MASK_CUTOFF > np.exp(-3.0 * 6)
    weights = mask(torch.tensor([2]), 12, 3.0)[0]
    assert weights[7] > 0
    assert weights[8:].tolist() == [0.0] * 4
    assert np.float32(1) + np.float32(np.exp(-18)) == np.float32(1)
    assert np.float32(1) + np.float32(np.exp(-15)) > np.float32(1)
    assert mask(torch.tensor([2]), 12, 0.0).tolist() == [[1.0] * 12]


def test_first_errors_on_shared_rows_are_those_of_every_position():
    task, model = trained("S4", (4, 3, 2))
    model.eval().readout.bias.data[17] -= 100.0
    batch = task.sample(100, 70, np.random.default_rng(1))
    tokens, labels = torch.from_numpy(batch.inputs.astype(int)), torch.from_numpy(batch.states.astype(int))
    with torch.no_grad():
        wanted = first_error(model(tokens)[0], labels)
    assert torch.equal(fast_gradient.first_errors(model, tokens, labels, SMALL), wanted)
    assert len(wanted.unique()) > 3


def test_choose_gradient():
    task, model = fresh("S3", (3, 2))
    generator = np.random.default_rng(0)
    assert EndToEndPhase(model, task, EndToEndConfig(), generator).gradient == "fast"
    assert EndToEndPhase(model, task, EndToEndConfig(gradient="autograd"), generator).gradient == "autograd"
    two = Backbone(2, 6, [NFSM(32, (3,)), NFSM(32, (3,))], width=32)
    other = Backbone(2, 6, [MambaMinus(32, 32)], width=32)
    wide = Backbone(2, 6, [NFSM(32, (3, 2))], width=32, kernel_size=2)
    for model in (two, other, wide):
        assert EndToEndPhase(model, task, EndToEndConfig(), generator).gradient == "autograd"
        with pytest.raises(
            InvalidConfig, match="gradient 'fast' trains one NFSM layer without a convolution on the CPU"
        ):
            EndToEndPhase(model, task, EndToEndConfig(gradient="fast"), generator)
    with pytest.raises(UnknownName, match="unknown gradient 'fasst'"):
        EndToEndConfig(gradient="fasst")
    with pytest.raises(InvalidConfig, match="masks must be at least 1; got 0"):
        EndToEndConfig(masks=0)
