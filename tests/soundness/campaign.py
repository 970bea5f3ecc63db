"""Read random models, and compare every claim with runs of the model in its format and in those that are proved."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

import exactstate
from exactstate._types import Floats
from exactstate.errors import ExactstateError
from exactstate.extract import Budget, Extracted, RoundingErrors, rounding_errors
from exactstate.extract.graph.interval import Interval
from tests.soundness.models import TOKENS, Model

FORMATS = ("float32", "float16", "bfloat16")
SIZES = ((1, 1), (5, 3), (8, 12), (3, 65))
SYMBOLS = [f"s{symbol}" for symbol in range(TOKENS)]


@dataclass
class Found:
    """What a campaign has seen."""

    models: int = 0
    read: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    proved: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    false: list[str] = field(default_factory=list)
    ratios: dict[str, float] = field(default_factory=dict)
    """By format: the largest share of a bound on a label's margin that a run has used up."""
    by_block: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        ratios = ", ".join(f"{format} {ratio:.3f}" for format, ratio in sorted(self.ratios.items()))
        return (
            f"{self.models} models, {self.read} read, proved {dict(self.proved)}, {self.steps:,} steps run, "
            f"largest error over bound: {ratios}; {len(self.false)} false claims"
        )


def campaign(seeds: Iterator[int], found: Found | None = None, blocks: Collection[str] = ()) -> Found:
    """One random model for every seed; only those with one of these blocks, if any are given."""
    found = found or Found()
    for seed in seeds:
        _try(seed, found, blocks)
    return found


def _try(seed: int, found: Found, blocks: Collection[str]) -> None:
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    model = Model(rng).eval()
    if blocks and not set(blocks) & set(model.names):
        return
    found.models += 1
    try:
        machine = _read(model)
    except ExactstateError as error:
        found.refused[str(error)[:80]] += 1
        return
    found.read += 1
    double = copy.deepcopy(model).double()  # an RMS norm without an epsilon is another one there
    _compare(double, _read(double), None, f"seed {seed}", found)
    for format in FORMATS:
        try:
            errors = rounding_errors(model, machine, format, verify=False)
        except ExactstateError as error:
            found.refused[str(error)[:80]] += 1
            return
        _compare(model, machine, errors, f"seed {seed}", found)
        near = _near_tie(model, machine, errors, rng)
        if near is not None:
            closer = _read(near)
            _compare(
                near, closer, rounding_errors(near, closer, format, verify=False), f"seed {seed}, near a tie", found
            )


def _read(model: nn.Module) -> Extracted:
    return exactstate.extract(model, symbols=SYMBOLS, verify=False, budget=Budget(configurations=20_000))


def _near_tie(
    model: Model, machine: Extracted, errors: RoundingErrors, rng: np.random.Generator
) -> Model | None:  # fmt: skip
    """The model with the bias of one label changed, so that a label is only just proved."""
    row = int(rng.integers(len(machine.label_ids)))
    wanted = 2.0 * float(errors.labels[row]) * rng.uniform(1.001, 1.2)
    if not np.isfinite(wanted) or not errors.decide(machine):
        return None
    near = copy.deepcopy(model)
    with torch.no_grad():
        near.readout.bias[int(machine.label_ids[row])] -= float(machine.label_margins[row]) - wanted
    return near


@torch.no_grad()
def _compare(model: nn.Module, machine: Extracted, errors: RoundingErrors | None, name: str, found: Found) -> None:
    """Run the model: in float64 it is the machine, and in a format it is where that is proved."""
    if errors is not None:
        if not all(bool((layer.margins[layer.used] > 2 * off[layer.used]).all())
                   for layer, off in zip(machine.layers, errors.columns, strict=True)):  # fmt: skip
            return
        model = copy.deepcopy(model).to(getattr(torch, errors.format))
    certain = errors is None or bool((machine.label_margins > 2 * errors.labels).all())
    format = "float64" if errors is None else errors.format
    found.proved[format] += certain
    rng = np.random.default_rng(7)
    for batch, length in SIZES:
        words = rng.integers(0, TOKENS, (batch, length))
        state, rows = np.zeros(batch, int), []
        for symbols in words.T:
            rows.append(machine.readout_ids[symbols, state])
            state = machine.tables[symbols, state]
        made = np.stack(rows, 1)
        logits = model(torch.from_numpy(words)).double().numpy()
        best = machine.label_ids[made]
        chosen = np.take_along_axis(logits, best[..., None].astype(int), -1)
        others = logits.copy()
        np.put_along_axis(others, best[..., None].astype(int), -np.inf, -1)
        lead = chosen[..., 0] - others.max(-1)
        found.steps += lead.size
        proved = machine.label_margins[made] > (0.0 if errors is None else 2 * errors.labels[made])
        if errors is None:
            proved = machine.label_margins[made] > 1e-9 * (1.0 + np.abs(logits).max(-1))
        if (proved & ~(lead >= 0)).any():
            found.false.append(f"{name}, {format}: {int((proved & ~(lead >= 0)).sum())} of {lead.size} steps")
        if errors is not None:
            with np.errstate(all="ignore"):
                used = (machine.label_margins[made] - lead) / (2 * errors.labels[made])
            most = float(np.nanmax(np.where(np.isfinite(errors.labels[made]), used, 0.0), initial=0.0))
            found.ratios[format] = max(found.ratios.get(format, 0.0), most)
            for block in getattr(model, "names", ()):
                found.by_block[block] = max(found.by_block.get(block, 0.0), most)
            if most > 1.0:
                found.false.append(f"{name}, {format}: an error is {most:.3f} times its bound")


# Mutants: mistakes in rules, for the campaign to find


NEEDED: dict[str, tuple[str, ...]] = {
    "bounds divided by 2": ("difference of parameters",),
    "computed parameters are exact": ("gate", "difference of parameters", "weight norm", "merged low rank"),
    "other arguments of opaque operations are ignored": ("clamped",),
    "batch norm rounds nothing": ("batch norm",),
    "a factor rounds nothing": ("cancellation",),
    "a sum moves with one argument": ("low rank",),
}
"""Blocks in which a mutant shows."""


@contextmanager
def mutated(name: str) -> Iterator[None]:
    """Inside, a rule has a mistake."""
    place, attribute, change = MUTANTS[name]
    owner = place()
    kept = owner.__dict__[attribute]
    setattr(owner, attribute, change(kept))
    try:
        yield
    finally:
        setattr(owner, attribute, kept)


def _module(path: str, attribute: str = "") -> Callable[[], object]:
    from importlib import import_module

    return lambda: getattr(import_module(path), attribute) if attribute else import_module(path)


GRAPH = "exactstate.extract.graph"


def _changed_rule(
    name: str, change: Callable[[Interval, tuple[Interval, ...]], Interval]
) -> tuple[Callable[[], object], str, Callable[..., object]]:  # fmt: skip
    """A mistake in the rule of one kind of node: a change of the interval it gives."""

    def changed(kept: dict[type, Callable[..., Interval]]) -> dict[type, Callable[..., Interval]]:
        (kind,) = [kind for kind, rule in kept.items() if rule.__name__ == name]
        return {**kept, kind: lambda self, node, *args: change(kept[kind](self, node, *args), args)}

    return _module(f"{GRAPH}.intervals"), "RULES", changed


def _narrower(y: Interval, lost: Floats) -> Interval:
    """The interval without so much of its radius."""
    rad = np.maximum(y.rad - lost, 0.0)
    return Interval(y.mid, rad, np.linalg.norm(rad, axis=1), np.maximum(y.error - lost, 0.0))


MUTANTS: dict[str, tuple[Callable[[], object], str, Callable[..., object]]] = {
    "bounds divided by 2": (
        _module("exactstate.extract.rounding"), "_errors",
        lambda kept: lambda margins, leads, unit: 0.5 * kept(margins, leads, unit),
    ),
    "computed parameters are exact": (
        _module(f"{GRAPH}.interval", "Parameters"), "radius", lambda kept: lambda self, constant: None
    ),
    "other arguments of opaque operations are ignored": (
        _module(f"{GRAPH}.lower", "Lowering"), "opaque",
        lambda kept: lambda self, recorded, given: kept(self, recorded, given[0] if isinstance(given, list) else given),
    ),
    "batch norm rounds nothing": _changed_rule("batch_norm", lambda y, args: _narrower(y, y.error)),
    "a factor rounds nothing": _changed_rule("scale", lambda y, args: _narrower(y, y.error)),
    "a sum moves with one argument": _changed_rule("add", lambda y, args: _narrower(y, args[1].rad)),
}  # fmt: skip
