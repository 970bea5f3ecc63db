"""Prove that every input of a region gives the same tables and labels as its prototype.

    A  symbols     n  width of an input     R  rows: windows of a layer, or read-outs

The region of a symbol is a box (`linf`: each coordinate off by at most the radius) or a ball (`l2`) around a prototype.
If in every window and read-out of an extraction the chosen logit stays ahead for all inputs of the regions, then for
every sequence of any length whose inputs lie in their regions, the network is the machine: by induction on the steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from exactstate._types import Bools, Floats, Ints
from exactstate.errors import InvalidInput, unknown
from exactstate.extract.graph.arithmetic import ASSUMED, Assumptions
from exactstate.extract.graph.leads import METHODS, LeadBounds
from exactstate.extract.graph.network import TracedNetwork
from exactstate.extract.graph.steps import Region
from exactstate.extract.result import Extracted, InputRegions
from exactstate.number_formats import FORMATS

NORMS = ("linf", "l2")


@dataclass(frozen=True, eq=False)
class RegionProof:
    """Which symbols are proved over their regions."""

    regions: InputRegions
    leads: Floats
    """A: the smallest lead of any choice while that symbol is read; positive where it is proved."""
    method: str

    @property
    def proved(self) -> Bools:
        return self.leads > 0

    def __bool__(self) -> bool:
        return bool(self.proved.all())

    def explain(self) -> str:
        if self:
            return f"proved: {self.regions.sentence()}"
        left = [name for name, done in zip(self.regions.symbols, self.proved, strict=True) if not done]
        return (
            f"not proved for {', '.join(left)} by {self.method} bounds: smaller radii may be (`largest_radii`), "
            "and `attack` looks for a counterexample."
        )


def traced(machine: Extracted) -> TracedNetwork:
    """The network that a machine was read out of; raises where regions make no sense for it."""
    network = machine.source
    if not isinstance(network, TracedNetwork) or network.region is None:
        raise InvalidInput(
            "regions are for machines whose symbols are input vectors: extract the model with inputs={name: vector}."
        )
    return network


def regions_of(machine: Extracted, radius: float | Sequence[float] | Mapping[str, float], norm: str) -> Region:
    """Regions around the prototypes of a machine, checked: not empty, and not overlapping."""
    if norm not in NORMS:
        raise unknown("norm", norm, NORMS)
    region = traced(machine).region
    assert region is not None
    if isinstance(radius, Mapping):
        if set(radius) != set(machine.symbols):
            raise InvalidInput(f"radii are given for {list(radius)}; the symbols are {list(machine.symbols)}.")
        radius = [radius[symbol] for symbol in machine.symbols]
    try:
        radii = np.broadcast_to(np.asarray(radius, np.float64), (len(machine.symbols),)).copy()
    except (TypeError, ValueError):
        raise InvalidInput(
            f"a radius is one number, or a number for each of the {len(machine.symbols)} symbols; got {radius!r:.60}."
        ) from None
    for symbol, value in zip(machine.symbols, radii.tolist(), strict=True):
        if not 0 <= value < np.inf:
            raise InvalidInput(f"the region of symbol {symbol!r} is empty or unbounded: its radius is {value}.")
    checked = Region(region.centers, radii, norm)
    clash = overlap(checked)
    if clash is not None:
        one, other = (machine.symbols[symbol] for symbol in clash)
        raise InvalidInput(
            f"the regions of symbols {one!r} and {other!r} overlap: an input could be read as either. "
            "Make the radii smaller."
        )
    return checked


def overlap(region: Region) -> tuple[int, int] | None:
    """Two symbols whose regions have a point in common."""
    for one in range(len(region.radii)):
        apart = region.centers[one + 1 :] - region.centers[one]
        far = np.abs(apart).max(-1) if region.norm == "linf" else np.sqrt((apart**2).sum(-1))
        touching = np.flatnonzero(far * (1 - 2.0**-48) <= region.radii[one] + region.radii[one + 1 :])
        if len(touching):
            return one, one + 1 + int(touching[0])
    return None


def prove(
    machine: Extracted, radius: float | Sequence[float] | Mapping[str, float], *, norm: str = "linf",
    format: str = "float32", method: str = "linear", assumptions: Assumptions | None = None,
) -> tuple[Extracted, RegionProof]:  # fmt: skip
    """(the machine with these regions, the proof): every table in use and every label, over all inputs of the regions.

    `rounding_errors` and certificates of the returned machine are about all inputs of the regions.
    """
    region = regions_of(machine, radius, norm)
    leads = smallest_leads(machine, region, format, method, assumptions)
    regions = InputRegions(machine.symbols, region.centers, region.radii, norm, format)
    held = machine.source.with_region(region)
    return replace(machine, source=held, regions=regions), RegionProof(regions, leads, method)


def smallest_leads(
    machine: Extracted, region: Region, format: str, method: str, assumptions: Assumptions | None = None
) -> Floats:
    """A: the smallest lead in any window or read-out that ends with the symbol."""
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    network = traced(machine)
    arithmetic = (assumptions or ASSUMED[format]).arithmetic(format)
    bounds = LeadBounds(network, arithmetic, region, network.dropped)
    smallest = np.full(len(machine.symbols), np.inf)
    for number, layer in enumerate(machine.layers[: len(network.blocks)]):
        leads = bounds.layer(number, layer.windows, layer.tables, method)
        if method == "linear":
            leads = np.maximum(leads, bounds.layer(number, layer.windows, layer.tables, "interval"))
        np.minimum.at(smallest, layer.symbols, np.where(layer.used, leads, np.inf).min(1))
    np.minimum.at(smallest, readout_symbols(machine), bounds.labels(machine.readout_inputs, machine.label_ids, method))
    return smallest


def readout_symbols(machine: Extracted) -> Ints:
    """F: the symbol that is read when a read-out is made."""
    symbols = np.zeros(len(machine.readout_inputs), np.int64)
    which, _ = np.nonzero(machine.readout_ids >= 0)
    symbols[machine.readout_ids[machine.readout_ids >= 0]] = which
    return symbols


def largest_radii(
    machine: Extracted, *, norm: str = "linf", format: str = "float32", method: str = "linear",
    most: float | None = None, digits: int = 3,
) -> dict[str, float]:  # fmt: skip
    """The largest radius that is proved for every symbol, found by bisection; 0 where none is.

    Where a model reads several steps at once, all symbols share one radius. `most` is where the search begins: half the
    distance to the nearest other prototype by default.
    """
    network = traced(machine)
    region = network.region
    assert region is not None
    top = np.full(len(machine.symbols), most) if most is not None else _half_distances(region.centers, norm)
    joint = network.kernel_size > 1
    if joint:
        top = np.full_like(top, top.min())
    low, high = np.zeros_like(top), top
    trial = high.copy()
    for _ in range(1 + int(np.ceil(digits * np.log2(10.0)))):
        leads = smallest_leads(machine, Region(region.centers, trial, norm), format, method)
        done = np.full_like(leads, (leads > 0).all(), bool) if joint else leads > 0
        low, high = np.where(done, trial, low), np.where(done, high, trial)
        trial = 0.5 * (low + high)
    return dict(zip(machine.symbols, low.tolist(), strict=True))


def _half_distances(centers: Floats, norm: str) -> Floats:
    """A: just below half the distance to the nearest other prototype."""
    if len(centers) == 1:
        return np.array([max(1.0, float(np.abs(centers).max()))])
    apart = centers[:, None] - centers[None]
    far = np.abs(apart).max(-1) if norm == "linf" else np.sqrt((apart**2).sum(-1))
    np.fill_diagonal(far, np.inf)
    nearest = far.min(1)
    if not (nearest > 0).all():
        raise InvalidInput("two symbols have the same prototype.")
    return nearest * (0.5 - 2.0**-40)


def prototypes(x: Tensor, symbols: Sequence[str], *, kind: str = "mean") -> dict[str, Tensor]:
    """A prototype for every symbol, from examples (N n) and the symbol of each: their mean, or their medoid."""
    if kind not in ("mean", "medoid"):
        raise unknown("kind of prototype", kind, ("mean", "medoid"))
    if x.ndim != 2 or len(x) != len(symbols) or not len(x):
        raise InvalidInput(f"wanted examples of shape (N, n) and N symbols; got {tuple(x.shape)} and {len(symbols)}.")
    if not bool(torch.isfinite(x).all()):
        raise InvalidInput("the examples are not finite everywhere (NaN or infinity).")
    found = {}
    names = np.array(list(symbols))
    for symbol in dict.fromkeys(symbols):
        own = x[torch.from_numpy(names == symbol)]
        mean = own.mean(0)
        found[symbol] = mean if kind == "mean" else own[(own - mean).norm(dim=1).argmin()]
    return found
