"""Bounds of traced models against machines that compute, points of regions, and another implementation of CROWN."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import exactstate
from exactstate.extract.graph.arithmetic import ASSUMED, EXACT
from exactstate.extract.graph.functions import FUNCTIONS, lines
from exactstate.extract.graph.interval import Parameters
from exactstate.extract.graph.intervals import IntervalBounds
from exactstate.extract.graph.leads import Choices
from exactstate.extract.graph.linear import LinearBounds
from exactstate.extract.graph.network import TracedNetwork
from exactstate.extract.graph.steps import Region, Steps
from tests.extract.graph.architectures import FINITE, LowRank, Vectors, build
from tests.extract.graph.test_trace import read


def errors_found(model: nn.Module, network: TracedNetwork, dtype: torch.dtype, lengths: int = 4) -> tuple[float, float]:
    """(largest difference of a logit of the first layer, largest bound), over words of one symbol after another."""
    single = TracedNetwork(model, network.symbols, "float32", vectors=network.vectors)
    symbols = np.arange(network.symbols)[:, None].repeat(network.kernel_size, 1)
    steps = Steps(symbols, ())
    with torch.no_grad():
        exact = network.blocks[0].logits(network._evaluate(steps, 0))
        computed = single.blocks[0].logits(single._evaluate(steps, 0))
    found = max(float((one - other.double()).abs().max()) for one, other in zip(exact, computed, strict=True))
    arithmetic = ASSUMED["float32"].arithmetic("float32")
    parameters = Parameters(arithmetic)
    choices = Choices.of(network.graph, 0, parameters)
    bounds = IntervalBounds(network.graph, arithmetic, steps, parameters=parameters, region=network.region)
    x = bounds.at(choices.root)
    logits = bounds.affine(x, [(choices.weight, np.linalg.norm(choices.weight, axis=1), 1e9)], choices.bias, stores=0)
    return found, float(logits.rad.max())


@pytest.mark.parametrize("kind", [kind for kind in FINITE if kind is not LowRank], ids=lambda kind: kind.__name__)
def test_rounding_of_a_machine_stays_within_the_bound(kind: type[nn.Module]) -> None:
    model = build(kind)
    machine, _ = read(model)
    found, bound = errors_found(model, machine.source, torch.float32)
    assert found <= bound
    assert bound < 1e-3  # and the bound is of use


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_lines_lie_around_the_function(name: str) -> None:
    rng = np.random.default_rng(0)
    lower = rng.normal(size=400) * 3
    upper = lower + rng.exponential(size=400) ** 3
    around = lines(name, lower, upper)
    points = lower[:, None] + (upper - lower)[:, None] * np.linspace(0, 1, 1001)
    values = FUNCTIONS[name].value(points)
    assert (around.low_slope[:, None] * points + around.low[:, None] <= values).all()
    assert (around.high_slope[:, None] * points + around.high[:, None] >= values).all()


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "relu"])
def test_curvature_and_steepness_are_upper_bounds(name: str) -> None:
    x = np.linspace(-12, 12, 2_000_001)
    slope = FUNCTIONS[name].slope(x)
    assert np.abs(slope).max() <= FUNCTIONS[name].steepest
    assert np.abs(np.diff(slope) / np.diff(x)).max() <= FUNCTIONS[name].curvature * (1 + 1e-6)
    values = FUNCTIONS[name].value(x)
    assert np.allclose(np.diff(values) / np.diff(x), 0.5 * (slope[1:] + slope[:-1]), atol=1e-6)


@pytest.mark.parametrize("name", ["sigmoid", "silu"])
def test_a_curvature_that_is_too_small_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    monkeypatch.setitem(FUNCTIONS, name, replace(FUNCTIONS[name], curvature=FUNCTIONS[name].curvature * 0.9))
    with pytest.raises(AssertionError):
        test_curvature_and_steepness_are_upper_bounds(name)


class Deep(nn.Module):
    """An encoder with every nonlinearity in front of a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))
        self.norm, self.rms = nn.LayerNorm(6), nn.RMSNorm(6)
        self.memory, self.readout = exactstate.NFSM(6, (3, 2)), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(self.parts[0](x))
        h = h + torch.relu(self.parts[1](self.norm(h))) * torch.sigmoid(h)
        h = self.rms(h + nn.functional.gelu(self.parts[2](h)))
        h = h - nn.functional.silu(self.parts[3](h))
        return self.readout(torch.cat([h[..., :3], self.memory(h)[0][..., 3:]], dim=-1))


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("radius", [0.01, 0.2])
def test_points_of_a_region_stay_within_the_bounds(norm: str, radius: float) -> None:
    torch.manual_seed(0)
    model = Deep().eval()
    centers = torch.randn(2, 6)
    network = TracedNetwork(model, 2, "float64", vectors=centers)
    region = Region(centers.double().numpy(), np.full(2, radius), norm)
    parameters = Parameters(EXACT)
    root = network.graph.layers[0].argument
    bounds = IntervalBounds(
        network.graph, EXACT, Steps(np.arange(2)[:, None], ()), parameters=parameters, region=region
    )
    interval = bounds.at(root)
    fresh = IntervalBounds(network.graph, EXACT, Steps(np.arange(2)[:, None], ()), parameters=parameters, region=region)
    linear = LinearBounds(fresh)
    linear.refine(root)
    forms = np.concatenate([np.eye(6), -np.eye(6)])[None].repeat(2, 0)
    lower = linear.lower(root, forms)
    moves = torch.randn(5000, 6, dtype=torch.float64)
    moves = moves / moves.norm(dim=1, keepdim=True) if norm == "l2" else moves.sign()
    moves *= radius * torch.rand(5000, 1, dtype=torch.float64) ** 0.1
    for symbol in range(2):
        points = centers[symbol].double() + moves
        with torch.no_grad():
            values = network.traced.evaluate(points[:, None].repeat(1, 2, 1), {}, 0)[:, 0].numpy()
        assert (np.abs(values - interval.mid[symbol]) <= interval.rad[symbol]).all()
        assert (values >= lower[symbol, :6]).all()
        assert (-values >= lower[symbol, 6:]).all()
    if radius > 0.1:  # norms of vectors that may vanish: nothing to compare
        return
    width_linear = (-lower[:, 6:] - lower[:, :6]).mean()
    assert width_linear < 2.0 * interval.rad.mean()  # what linear relaxation is for


def test_linear_bounds_equal_those_of_bound_propagation() -> None:
    """ReLU networks: the same relaxation in another package, without rounding."""
    bound_propagation = pytest.importorskip("bound_propagation")
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 8)).double()

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.memory, self.readout = encoder, exactstate.NFSM(8, (2,)), nn.Linear(8, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.readout(self.memory(self.encoder(x))[0])

    center, radius = torch.randn(4, dtype=torch.float64), 0.1
    network = TracedNetwork(Model().eval(), 1, "float64", vectors=center[None])
    region = Region(center[None].numpy(), np.array([radius]))
    bounds = IntervalBounds(network.graph, EXACT, Steps(np.zeros((1, 1), int), ()), region=region)
    root = network.graph.layers[0].argument
    linear = LinearBounds(bounds)
    linear.refine(root)
    ours = linear.lower(root, np.eye(8)[None])[0]
    bounded = bound_propagation.BoundModelFactory().build(encoder)
    box = bound_propagation.HyperRectangle.from_eps(center[None], radius)
    theirs = bounded.crown(box).concretize().lower[0].detach().numpy()
    # the packages may choose other slopes for a ReLU whose sign is open; where none is, they agree to rounding
    assert np.allclose(ours, theirs, atol=1e-3)
    assert (np.abs(ours - theirs) < 1e-12).any()


def test_a_bound_made_too_small_by_hand_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks above fail when the bounds are halved."""
    whole = IntervalBounds.affine

    def halved(self: IntervalBounds, *args: object, **options: object) -> object:
        from dataclasses import replace

        value = whole(self, *args, **options)  # type: ignore[arg-type]
        return replace(value, rad=value.rad * 0.3, ball=value.ball * 0.3)

    monkeypatch.setattr(IntervalBounds, "affine", halved)
    with pytest.raises(AssertionError):
        test_points_of_a_region_stay_within_the_bounds("linf", 0.2)


def test_vectors_are_regions_of_radius_zero() -> None:
    machine, vectors = read(build(Vectors))
    assert vectors is not None
    assert np.array_equal(machine.source.region.radii, np.zeros(3))
