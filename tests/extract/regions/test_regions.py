"""Regions of inputs: what is proved, what is broken, what lies between; cells; watching."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import exactstate
from exactstate.certify import Certificate
from exactstate.certify.check import check
from exactstate.cli._app import run
from exactstate.errors import InvalidInput, UnknownName
from exactstate.extract import Adapter, Extracted, rounding_errors
from exactstate.extract.graph.intervals import IntervalBounds
from exactstate.extract.regions import Cells, attack, broken_radii, largest_radii, prototypes, prove, random_changes
from exactstate.extract.result import InputRegions
from exactstate.report.sentences import sentences
from tests.extract.graph.architectures import CausalConv, Vectors, build

CENTERS = torch.tensor([[1.0, 0.0], [-1.0, 0.5], [0.0, -1.0]])
SYMBOLS = ("a", "b", "c")


class Direct(nn.Module):
    """A layer on the input itself: logits are affine."""

    def __init__(self) -> None:
        super().__init__()
        self.memory, self.readout = exactstate.NFSM(2, (3, 2), remember=0.0), nn.Linear(2, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.readout(self.memory(x)[0])


class Residual(nn.Module):
    """The read-out sees the input, too, and the one before."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.into = CausalConv(), nn.Linear(2, 8)
        self.inner.embedding = self.into  # type: ignore[assignment]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.into(x)
        mixed = self.inner.conv(h.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2)
        h = torch.relu(h + mixed)
        return self.inner.readout(h + self.inner.memory(h)[0])


def read(kind: Any, seed: int = 0) -> tuple[nn.Module, Extracted]:
    model = build(kind, seed)
    return model, exactstate.extract(model, inputs=dict(zip(SYMBOLS, CENTERS, strict=True)))


@pytest.fixture(scope="module")
def encoded() -> tuple[nn.Module, Extracted]:
    return read(Vectors)


@pytest.fixture(scope="module")
def direct() -> tuple[nn.Module, Extracted]:
    return read(Direct)


def points(symbol: int, radius: float, norm: str, count: int, seed: int = 0) -> torch.Tensor:
    moves = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    moves = moves / moves.norm(dim=1, keepdim=True) if norm == "l2" else moves.sign()
    shrink = torch.rand(count, 1, generator=torch.Generator().manual_seed(seed + 1)) ** 0.2
    return CENTERS[symbol] + moves * radius * shrink


def tables_at(model: nn.Module, x: torch.Tensor) -> np.ndarray:
    """N S: the tables of the first layer, in the format of the model."""
    with torch.no_grad():
        h = model.encoder(x) if isinstance(model, Vectors) else x
        return torch.cat([table[0] for table in model.memory.tables(h[None])], -1).numpy()


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_certified_radius_lies_below_the_broken_one(encoded: tuple[nn.Module, Extracted], norm: str) -> None:
    model, machine = encoded
    interval = largest_radii(machine, norm=norm, method="interval")
    linear = largest_radii(machine, norm=norm)
    broken = broken_radii(machine, norm=norm)
    layer = machine.layers[0]
    for number, symbol in enumerate(SYMBOLS):
        assert 0 < interval[symbol] < linear[symbol] < broken[symbol] < 4 * linear[symbol]
        own = tables_at(model, points(number, linear[symbol], norm, 20_000))
        row = int(np.flatnonzero(layer.symbols == number)[0])
        assert (own == layer.tables[row])[:, layer.used[row]].all()


def test_counterexamples_are_real(encoded: tuple[nn.Module, Extracted]) -> None:
    model, machine = encoded
    broken = broken_radii(machine)
    # regions may not overlap, so each symbol by itself
    layer = machine.layers[0]
    for number, symbol in enumerate(SYMBOLS):
        radius = broken[symbol] * 1.1
        found = attack(machine, {name: radius if name == symbol else 0.0 for name in SYMBOLS})
        example = found[symbol]
        assert example.distance <= radius * (1 + 1e-6)
        row = int(np.flatnonzero(layer.symbols == number)[0])
        table = tables_at(model, example.input.float()[None])[0]
        assert (table != layer.tables[row])[layer.used[row]].any(), example.explain()


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_random_inputs_of_certified_regions_change_nothing(encoded: tuple[nn.Module, Extracted], norm: str) -> None:
    _, machine = encoded
    certified, broken = largest_radii(machine, norm=norm), broken_radii(machine, norm=norm, rounds=1)
    assert random_changes(machine, certified, tries=20_001, norm=norm) == 0
    alone = {"a": 1.5 * broken["a"], "b": 0.0, "c": 0.0}  # regions may not overlap
    assert random_changes(machine, alone, tries=20_001, norm=norm) > 0


def test_random_inputs_of_models_that_read_several_steps() -> None:
    _, machine = read(Residual, seed=1)
    (radius,) = set(largest_radii(machine).values())
    assert random_changes(machine, radius, tries=5000) == 0
    assert random_changes(machine, 0.49, tries=5000) > 0


def test_a_bound_made_too_small_by_hand_is_caught(
    encoded: tuple[nn.Module, Extracted], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Radii that are certified with it are refuted by random inputs, and by an attack."""
    whole = IntervalBounds.affine

    def smaller(self: IntervalBounds, *args: Any, **options: Any) -> Any:
        value = whole(self, *args, **options)
        return replace(value, rad=value.rad * 0.2, ball=value.ball * 0.2)

    _, machine = encoded
    monkeypatch.setattr(IntervalBounds, "affine", smaller)
    wrong = largest_radii(machine, method="interval")
    monkeypatch.undo()
    assert random_changes(machine, wrong, tries=20_001) > 0
    assert attack(machine, wrong)


class Wide(nn.Module):
    """Ten heads, of which two matter."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 12))
        self.memory, self.readout = exactstate.NFSM(12, (4, 4, 4, 3, 2, 4, 4, 4, 4, 4), remember=0.0), nn.Linear(12, 4)
        with torch.no_grad():
            width = self.memory.value_width
            faint = torch.full((10 * width,), 1e-4)
            faint[3 * width : 5 * width] = 5.0
            self.memory.out_proj.weight *= faint

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.readout(self.memory(self.encoder(x))[0])


def test_regions_of_a_machine_without_some_heads() -> None:
    """Counterexamples and random inputs are about the heads that are kept, by their own numbers."""
    model, machine = read(Wide, seed=2)
    assert machine.heads == ((3, 2),)
    assert "(0, 1, 2, 5, 6, 7, 8, 9)" in machine.dropped[0]
    certified, broken = largest_radii(machine), broken_radii(machine)
    assert all(0 < certified[symbol] < broken[symbol] < np.inf for symbol in SYMBOLS)
    assert random_changes(machine, certified, tries=5000) == 0
    found = attack(machine, {"a": 1.1 * broken["a"], "b": 0.0, "c": 0.0})["a"]
    head, index = (int(number) for number in re.findall(r"head (\d+) of layer 0 sends index (\d+)", found.what)[0])
    assert head in (3, 4)
    with torch.no_grad():
        moved, before = (model.memory.tables(model.encoder(x)[None, None])[head][0, 0, index]
                         for x in (found.input.float(), CENTERS[0]))  # fmt: skip
    assert moved != before


def test_cells_are_exact(direct: tuple[nn.Module, Extracted]) -> None:
    model, machine = direct
    cells = Cells.of(machine)
    for norm in ("linf", "l2"):
        linear, broken = largest_radii(machine, norm=norm, digits=5), broken_radii(machine, norm=norm)
        for number, symbol in enumerate(SYMBOLS):
            exact = cells.distance(CENTERS[number].numpy(), norm=norm)
            if machine.layers[0].used.all():
                assert linear[symbol] <= exact <= broken[symbol] * (1 + 1e-9)
                assert linear[symbol] > 0.999 * exact
                assert broken[symbol] < 1.001 * exact
    grid = np.stack(np.meshgrid(np.linspace(-2, 2, 41), np.linspace(-2, 2, 41)), -1).reshape(-1, 2) + 1e-3
    for head in range(2):
        occurring = cells.tables(head, (-2, -2), (2.1, 2.1))
        met = {tuple(cells.table(head, x).tolist()) for x in grid}
        assert met <= set(occurring)
        columns = machine.layers[0].columns(head)
        assert np.array_equal(
            tables_at(model.double(), torch.from_numpy(grid))[:, columns], [cells.table(head, x) for x in grid]
        )
    model.float()
    figure = cells.draw(0, (-2, -2), (2, 2), CENTERS.numpy())
    assert len(figure.axes[0].patches) == len(cells.tables(0, (-2, -2), (2, 2)))


def test_cells_refuse_an_encoder(encoded: tuple[nn.Module, Extracted]) -> None:
    with pytest.raises(InvalidInput, match=r"not affine in the input: tanh in module 'encoder.1'"):
        Cells.of(encoded[1])


def test_prove_and_certificate(
    encoded: tuple[nn.Module, Extracted], tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    model, machine = encoded
    radii = {symbol: 0.9 * radius for symbol, radius in largest_radii(machine).items()}
    proved, proof = prove(machine, radii)
    assert proof, proof.explain()
    assert "whose inputs differ from the prototypes by at most" in proof.explain()
    verdict = exactstate.certify(proved, proved.minimized, labels="outputs")
    errors = rounding_errors(model, proved, "float32")
    certificate = Certificate.of(proved, verdict, rounding={"float32": errors})
    assert certificate.proved == ("float32",)
    certificate.write(tmp_path / "c.json")
    assert check(tmp_path / "c.json")
    regions = certificate.content["regions"]
    assert regions == {"norm": "linf", "centers": CENTERS.double().tolist(), "radii": list(radii.values())}
    sentence = "orrect on every sequence of any length whose inputs differ from the prototypes by at most 0."
    assert f"c{sentence}" in certificate.summary()
    assert any(line.startswith(f"C{sentence}") for line in sentences(certificate.content))
    assert run(["check", str(tmp_path / "c.json")]) == 0
    printed = capsys.readouterr().out
    assert f"c{sentence}" in printed
    assert "in every coordinate; proved in float32\n" in printed
    assert proof.explain().partition("whose")[2] in printed
    wider, broken = prove(machine, {symbol: 1.2 * radius for symbol, radius in broken_radii(machine).items()})
    assert not broken
    assert "not proved for" in broken.explain()
    errors = rounding_errors(model, wider, "float32")
    assert Certificate.of(wider, verdict, rounding={"float32": errors}).proved == ()


def test_certificate_of_prototypes_alone(encoded: tuple[nn.Module, Extracted]) -> None:
    model, machine = encoded
    verdict = exactstate.certify(machine, machine.minimized, labels="outputs")
    errors = rounding_errors(model, machine, "float32")
    certificate = Certificate.of(machine, verdict, rounding={"float32": errors})
    assert check(certificate.content)
    assert certificate.content["regions"]["radii"] == [0.0, 0.0, 0.0]
    assert "whose inputs are the prototypes; proved in float32" in certificate.summary()


def test_certificate_refuses_bounds_of_smaller_regions(encoded: tuple[nn.Module, Extracted]) -> None:
    model, machine = encoded
    verdict = exactstate.certify(machine, machine.minimized, labels="outputs")
    proved, _ = prove(machine, 1e-3)
    at_prototypes = rounding_errors(model, machine, "float32")
    with pytest.raises(
        InvalidInput, match=r"errors in float32 are about other inputs than the regions.*proved, format"
    ):
        Certificate.of(proved, verdict, rounding={"float32": at_prototypes})
    larger = rounding_errors(model, proved, "float32")
    assert check(Certificate.of(machine, verdict, rounding={"float32": larger}).content)
    many = InputRegions(("a", "b", "c"), np.zeros((3, 1 << 20)), np.zeros(3), "linf", "float32")
    with pytest.raises(InvalidInput, match=r"at most 1,024 prototypes and 1,048,576 coordinates.* 3 of 1,048,576"):
        Certificate.of(replace(machine, regions=many), verdict)


def test_regions_of_models_that_read_several_steps() -> None:
    model, machine = read(Residual, seed=1)
    radius = largest_radii(machine, digits=5)
    assert len(set(radius.values())) == 1
    (common,) = set(radius.values())
    assert common > 0
    rng = torch.Generator().manual_seed(0)
    words = torch.randint(0, 3, (200, 12), generator=rng)
    moved = CENTERS[words] + (2 * torch.rand(200, 12, 2, generator=rng) - 1).sign() * common
    with torch.no_grad():
        assert torch.equal(model(moved).argmax(-1), model(CENTERS[words]).argmax(-1))


def test_watch_warns_outside_the_regions(encoded: tuple[nn.Module, Extracted]) -> None:
    model, machine = encoded
    radii = {symbol: 0.9 * radius for symbol, radius in largest_radii(machine).items()}
    proved, _ = prove(machine, radii)
    words = torch.randint(0, 3, (300,), generator=torch.Generator().manual_seed(0))
    x = CENTERS[words].clone()
    x[17] = torch.tensor([5.0, 5.0])
    watched = proved.watch(x)
    assert np.array_equal(np.flatnonzero(watched.symbols < 0), [17])
    assert watched.certified[:17].all()
    reached = {tuple(row) for row in proved.reached.tolist()}
    before = [tuple(proved.start), *map(tuple, watched.indices[:-1].tolist())]
    assert np.array_equal(watched.known, [row in reached for row in before])
    assert np.array_equal(watched.certified, watched.known & (np.arange(300) != 17))
    assert np.array_equal(np.delete(watched.symbols, 17), np.delete(words.numpy(), 17))
    assert watched.warnings[0].startswith(
        "step 17: the input lies in no certified region; the nearest prototype is 'a'"
    )
    with torch.no_grad():
        assert np.array_equal(watched.labels, model.double()(x.double()[None])[0].argmax(-1).numpy())
    model.float()
    first = proved.watch(x[:100])
    rest = proved.watch(x[100:], state=first.state)
    assert np.array_equal(np.concatenate([first.labels, rest.labels]), watched.labels)
    assert np.array_equal(np.concatenate([first.indices, rest.indices]), watched.indices)
    assert (watched.margins > 0).all()


@pytest.mark.parametrize(("x", "sentence"), [
    (torch.zeros(3, 5), r"of shape \(L, 2\); got torch.float32 of shape \(3, 5\)"),
    (torch.zeros(3, 2, dtype=torch.long), r"floating-point inputs of shape \(L, 2\); got torch.int64"),
    (torch.tensor([[0.0, 0.0], [float("nan"), 0.0]]), r"the input of step 1 is not finite"),
    ("x", r"got str"),
    (torch.zeros(3, 2, device="meta"), r"runs on the CPU; the inputs are on meta"),
])  # fmt: skip
def test_watch_bad_input(encoded: tuple[nn.Module, Extracted], x: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        encoded[1].watch(x)


def test_watch_and_regions_are_not_for_adapters() -> None:
    model = build(Vectors).double()
    adapter = Adapter(
        encode=model.encoder, layers=[(model.memory, nn.Identity(), lambda _, y: y)], read=model.readout, model=model
    )
    machine = exactstate.extract(adapter, inputs=dict(zip(SYMBOLS, CENTERS, strict=True)))
    with pytest.raises(InvalidInput, match=r"watch is for machines of traced models"):
        machine.watch(CENTERS)
    with pytest.raises(InvalidInput, match=r"regions are for machines whose symbols are input vectors"):
        largest_radii(machine)
    certificate = Certificate.of(machine, exactstate.certify(machine, machine.minimized, labels="outputs"))
    assert check(certificate.content)
    assert "inputs that are the prototypes: proved in no format" in certificate.summary()


@pytest.mark.parametrize(("radius", "options", "sentence"), [
    (5.0, {}, r"the regions of symbols 'a' and 'b' overlap"),
    (-1.0, {}, r"the region of symbol 'a' is empty or unbounded: its radius is -1.0"),
    (float("nan"), {}, r"empty or unbounded"),
    ({"a": 0.1}, {}, r"radii are given for \['a'\]"),
    ("wide", {}, r"a radius is one number, or a number for each of the 3 symbols; got 'wide'"),
    ([0.1, 0.1], {}, r"a number for each of the 3 symbols; got \[0.1, 0.1\]"),
    ({"a": 0.1, "b": None, "c": "x"}, {}, r"a number for each of the 3 symbols"),
    (0.1, {"norm": "l1"}, r"unknown norm 'l1'"),
    (0.1, {"format": "float8"}, r"unknown format 'float8'"),
    (0.1, {"method": "magic"}, r"unknown method 'magic'"),
])  # fmt: skip
def test_prove_bad_regions(encoded: tuple[nn.Module, Extracted], radius: Any, options: Any, sentence: str) -> None:
    with pytest.raises((InvalidInput, UnknownName), match=sentence):
        prove(encoded[1], radius, **options)


def test_prototypes() -> None:
    x = torch.tensor([[0.0, 0.0], [0.0, 2.0], [5.0, 5.0], [0.0, 0.9]])
    names = ["a", "a", "b", "a"]
    assert torch.allclose(prototypes(x, names)["a"], torch.tensor([0.0, 2.9 / 3]))
    assert torch.equal(prototypes(x, names, kind="medoid")["a"], x[3])
    with pytest.raises(InvalidInput, match="not finite"):
        prototypes(x / 0, names)
    with pytest.raises(InvalidInput, match="N symbols"):
        prototypes(x, names[:2])


def test_a_region_made_too_large_by_hand_is_caught(encoded: tuple[nn.Module, Extracted]) -> None:
    """The comparison of points with tables fails beyond the broken radius."""
    model, machine = encoded
    broken = broken_radii(machine)
    layer = machine.layers[0]
    changed = False
    for number, symbol in enumerate(SYMBOLS):
        own = tables_at(model, points(number, 1.3 * broken[symbol], "linf", 20_000))
        row = int(np.flatnonzero(layer.symbols == number)[0])
        changed |= not (own == layer.tables[row])[:, layer.used[row]].all()
    assert changed
