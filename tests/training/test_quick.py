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

from detent.errors import InvalidConfig, UnknownName
from detent.layers import NFSM, MambaMinus
from detent.models import Backbone
from detent.tasks import task
from detent.training import Settings, Tracking, plain, quick
from detent.training.loss import FAINT, first_error, mask, reach
from detent.training.readout import All, Listed, Surprise, impossible, likeliest_of
from detent.training.screening import Screen
from tests.training.test_phases import anchored

CLOSE = {"rtol": 1e-9, "atol": 1e-12}
SMALL = Settings(batch=24, length=40, masks=3, exploration=0.3)
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
    """Dropout that keeps what it is told."""

    def __init__(self, kept) -> None:
        super().__init__()
        self.kept = kept

    def forward(self, x):
        return x * self.kept


def fresh(name, heads, *, sharp=1.0, seed=0, **options):
    speaker, generator = task(name), torch.Generator().manual_seed(seed)
    block = NFSM(32, heads, generator=generator, **options)
    model = Backbone(speaker.machine.n_symbols, speaker.machine.n_states, [block], width=32, generator=generator)
    with torch.no_grad():
        block.weight.mul_(sharp)  # else no column is spread wider than the noise, and nothing is penalised
    return speaker, model.double().train()


@cache
def learned(name, heads):
    torch.manual_seed(0)
    phase = anchored(name, heads)
    while not phase.done:
        phase.step()
        if phase.steps % phase.check_every == 0:
            phase.check()
    phase.anchor.release()
    return phase.task, phase.anchor.model


def trained(name, heads):
    speaker, model = learned(name, heads)
    return speaker, deepcopy(model).double().train()


def gradients(model):
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}


def both(speaker, model, settings, *, spoil=None, seed=5):
    """(loss, first errors, gradients) of the quick path, and of the plain path with the quick one's masks."""
    generator = np.random.default_rng(3)
    batch = speaker.sample(settings.batch, settings.length, generator)
    tokens, labels = torch.from_numpy(batch.inputs.astype(int)), torch.from_numpy(batch.states.astype(int))
    chosen = torch.from_numpy(generator.integers(settings.masks, size=tokens.shape))
    noted = {name: Noted(torch.Generator().manual_seed(i)) for i, name in enumerate(DROPOUTS)}
    for name, module in noted.items():
        model.set_submodule(name, module)
    model.zero_grad(set_to_none=True)
    step = quick.Step(model, tokens, labels, settings, chosen, settings.masks)
    walk = step.walk(seed if settings.noise else None, reach(settings.mask_rate))
    loss = step.backward(walk, settings.exploration if settings.noise else 0.0)
    quickly = loss, walk.first, gradients(model)

    rows = (tokens * settings.masks + chosen, walk.row.clamp(min=0), walk.row.clamp(min=0))
    for (name, module), row in zip(noted.items(), rows, strict=True):
        model.set_submodule(name, Given(torch.cat(module.kept)[row]))
    if spoil is not None:
        spoil(model)
    model.zero_grad(set_to_none=True)
    model.layers[0].block.train(settings.noise)
    loss, first = plain.gradient(model, tokens, labels, settings, seed=seed, exploration=settings.exploration)
    return quickly, (loss, first, gradients(model)), walk


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
def test_the_gradient_is_that_of_the_plain_path_at_the_start(name, heads, noise):

    quickly, plainly, walk = both(*fresh(name, heads, sharp=8.0), replace(SMALL, noise=noise))
    assert_same(quickly, plainly)
    assert int(walk.kept.sum()) < walk.row.numel(), "this was to show words that are not followed to their end"


@pytest.mark.parametrize("noise", [True, False], ids=["noise", "no noise"])
@pytest.mark.parametrize(("name", "heads"), [("S3", (3, 2)), ("DFF5", (3,)), ("S4", (4, 3, 2))])
def test_the_gradient_is_that_of_the_plain_path_on_a_trained_model(name, heads, noise):

    speaker, model = trained(name, heads)
    quickly, plainly, walk = both(speaker, model, replace(SMALL, noise=noise))
    assert_same(quickly, plainly)
    if not noise:
        assert (quickly[1] == SMALL.length).all()
        assert len(walk.row.unique()) < walk.row.numel() / 3, "few rows for many positions"


def test_a_dictionary_of_logits_has_the_same_gradient():
    assert_same(*both(*fresh("S3", (3, 2), dictionary=4, sharp=4.0), SMALL)[:2])


def test_another_backend_has_the_same_gradient():
    assert_same(*both(*fresh("S3", (3, 2), backend="tree"), SMALL)[:2])


@pytest.mark.parametrize("rate", [0.0, 0.5, 20.0])
def test_other_rates_of_the_mask_have_the_same_gradient(rate):

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
def test_the_comparison_barks_when_one_number_is_another(spoil):
    quickly, plainly, _ = both(*fresh("S3", (3, 2)), SMALL, spoil=spoil)
    with pytest.raises(AssertionError):
        assert_same(quickly, plainly)


def test_the_mask_ends_where_its_weight_is_lost_in_float32():
    assert reach(3.0) == 6
    assert np.exp(-3.0 * 5) >= FAINT > np.exp(-3.0 * 6)
    weights = mask(torch.tensor([2]), 12, 3.0)[0]
    assert weights[7] > 0
    assert weights[8:].tolist() == [0.0] * 4
    assert np.float32(1) + np.float32(np.exp(-18)) == np.float32(1)
    assert np.float32(1) + np.float32(np.exp(-15)) > np.float32(1)
    assert mask(torch.tensor([2]), 12, 0.0).tolist() == [[1.0] * 12]


def test_a_check_on_shared_rows_is_a_check_of_every_position():
    speaker, model = trained("S4", (4, 3, 2))
    model.eval().readout.bias.data[17] -= 100.0
    batch = speaker.sample(100, 70, np.random.default_rng(1))
    tokens, labels = torch.from_numpy(batch.inputs.astype(int)), torch.from_numpy(batch.states.astype(int))
    with torch.no_grad():
        wanted = first_error(model(tokens)[0], labels)
    assert torch.equal(quick.first_errors(model, tokens, labels, SMALL), wanted)
    assert len(wanted.unique()) > 3


@pytest.mark.parametrize(("sharpness", "kind"), [(1.0, All), (500.0, Listed)], ids=["all", "listed"])
def test_the_surprise_of_many_labels_is_the_cross_entropy(monkeypatch, sharpness, kind):
    """In strips, some of them computed again; wanted: PyTorch's own function and its gradient."""
    monkeypatch.setattr("detent.training.readout.STRIP", 700)
    monkeypatch.setattr("detent.training.readout.ROOM", 1500)
    generator = torch.Generator().manual_seed(0)
    readout = nn.Linear(16, 100).double()
    with torch.no_grad():
        readout.weight.copy_(sharpness * torch.randn(100, 16, generator=generator) / 4)
        readout.bias.zero_()
    compare_with_cross_entropy(readout, kind, generator)


def test_the_surprise_behind_a_screen_is_the_cross_entropy(monkeypatch):
    monkeypatch.setattr("detent.training.readout.STRIP", 9_000)
    monkeypatch.setattr("detent.training.screening.Screen.of", screens := Counted(Screen.of))
    generator = torch.Generator().manual_seed(1)
    readout = low_rank(generator)
    readout.weight.mul_(100.0)
    compare_with_cross_entropy(readout.requires_grad_(), Listed, generator)
    assert len(screens.gave) == 1 and screens.gave[0] is not None


class Counted:
    """A function, and what it gave."""

    def __init__(self, function):
        self.function, self.gave = function, []

    def __call__(self, *given):
        self.gave.append(self.function(*given))
        return self.gave[-1]


def compare_with_cross_entropy(readout, kind, generator):
    labels, width = readout.weight.shape
    features = [
        torch.randn(rows, width, generator=generator, dtype=torch.float64, requires_grad=True) for rows in (30, 1)
    ]
    labels = [torch.randint(0, labels, (len(part),), generator=generator) for part in features]
    with torch.no_grad():
        labels[0][:10] = readout(features[0][:10]).argmax(-1)
    weights = torch.rand(31, generator=generator, dtype=torch.float64)
    weights[3:9] = 0
    entropy = Surprise(readout)
    found = [entropy.add(part.detach(), label) for part, label in zip(features, labels, strict=True)]
    right, surprise = (torch.cat(part) for part in zip(*found, strict=True))
    of_features, quickly = entropy.backward(weights), gradients(readout)
    assert {type(strip[2]) for strip in entropy.strips} == {kind}

    readout.zero_grad(set_to_none=True)
    logits = readout(torch.cat(features))
    terms = nn.functional.cross_entropy(logits, torch.cat(labels), reduction="none")
    (terms * weights).sum().backward()
    torch.testing.assert_close(surprise, terms.detach(), **CLOSE)
    assert torch.equal(right, logits.argmax(-1) == torch.cat(labels))
    assert torch.equal(likeliest_of(torch.cat(features).detach(), readout.requires_grad_(False)), logits.argmax(-1))
    torch.testing.assert_close(of_features, torch.cat([part.grad for part in features]), **CLOSE)
    for name, gradient in gradients(readout).items():
        torch.testing.assert_close(quickly[name], gradient, **CLOSE)


def low_rank(generator, *, wide=1.0):
    """A read-out of 1,300 labels in 5 directions of 32, and a little in all others."""
    readout = nn.Linear(32, 1300).double().requires_grad_(False)
    main, across = (torch.randn(1300, 5, generator=generator), torch.randn(5, 32, generator=generator))
    readout.weight.copy_(main @ across + wide * 1e-3 * torch.randn(1300, 32, generator=generator))
    readout.bias.copy_(torch.randn(1300, generator=generator))
    return readout


def test_a_screen_lets_every_possible_label_pass_and_few_others():
    """Wanted: all logits, in full."""
    generator = torch.Generator().manual_seed(1)
    readout, features = low_rank(generator), torch.randn(200, 32, generator=generator, dtype=torch.float64)
    screen = Screen.of(readout, 7.0)
    assert screen is not None and screen.directions.shape == (32, 5)
    row, column = screen.possible(features, 2.0)
    assert torch.equal(row, row.sort().values) and int(column.max()) < 1300
    passed = torch.zeros(200, 1300, dtype=torch.bool)
    passed[row, column] = True
    logits = readout(features)
    wanted = logits > logits.max(1, keepdim=True).values - 2.0
    assert bool(passed[wanted].all()) and int(passed.sum()) < 2 * int(wanted.sum())
    few = Screen(screen.directions[:, 1:], screen.weight[:, 1:], screen.bias, screen.lacking)
    row, column = few.possible(features, 2.0)
    passed[:] = False
    passed[row, column] = True
    assert not bool(passed[wanted].all()), "a direction less, and nothing noticed"


def test_there_is_no_screen_where_labels_differ_in_every_direction():
    assert Screen.of(low_rank(torch.Generator().manual_seed(1), wide=1000.0), 7.0) is None


def test_labels_count_as_impossible_where_the_type_cannot_tell():
    """Float32, 7920 labels: as many as there are, just below the bound, do not move a probability of 1."""
    below = np.float32(np.exp(-impossible(7920, torch.float32)))
    assert np.float32(1) + np.float32(7919 * below) == np.float32(1)
    assert np.float32(1) + np.float32(7919 * below * np.exp(1.0)) > np.float32(1)


def test_the_path_is_chosen_in_sight():
    speaker, model = fresh("S3", (3, 2))
    generator = np.random.default_rng(0)
    assert Tracking(model, speaker, Settings(), generator).path == "quick"
    assert Tracking(model, speaker, Settings(path="plain"), generator).path == "plain"
    two = Backbone(2, 6, [NFSM(32, (3,)), NFSM(32, (3,))], width=32)
    other = Backbone(2, 6, [MambaMinus(32, 32)], width=32)
    wide = Backbone(2, 6, [NFSM(32, (3, 2))], width=32, reach=2)
    for model in (two, other, wide):
        assert Tracking(model, speaker, Settings(), generator).path == "plain"
        with pytest.raises(InvalidConfig, match="path 'quick' trains one NFSM layer without a convolution on the CPU"):
            Tracking(model, speaker, Settings(path="quick"), generator)
    with pytest.raises(UnknownName, match="unknown path 'quik'"):
        Settings(path="quik")
    with pytest.raises(InvalidConfig, match="masks must be at least 1; got 0"):
        Settings(masks=0)
