"""Counterexamples: inputs in a region with another table or label, found by gradient (projected gradient descent).

    R  rows: windows of a layer, or read-outs     K  reach     n  width of an input

What is not certified is not yet broken. The smallest radius at which a counterexample is found and the largest one that
is certified enclose the true radius.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from exactstate._types import Bools, Floats, Ints
from exactstate.extract.graph.network import TracedNetwork, layer_output
from exactstate.extract.graph.steps import Region, Steps
from exactstate.extract.regions.prove import _half_distances, readout_symbols, regions_of, traced
from exactstate.extract.result import Extracted, head_offsets

RANDOM_AT_ONCE = 16_384


@dataclass(frozen=True, eq=False)
class Counterexample:
    """An input of a symbol's region for which the network is not the machine."""

    symbol: str
    input: Tensor
    """n: the input at the step itself."""
    distance: float
    """From the prototype; with a reach above one, the largest of all steps."""
    what: str
    """The table entry or label that changes."""

    def explain(self) -> str:
        return f"an input {self.distance:.4g} from the prototype of {self.symbol!r} changes {self.what}"


@dataclass(frozen=True, eq=False)
class _Choices:
    """Rows of one layer, or of the read-out, with their choices."""

    layer: int
    steps: Steps
    symbols: Ints
    best: Ints
    used: Bools

    def rows(self, which: Ints) -> _Choices:
        steps = self.steps.rows(which)
        return _Choices(self.layer, steps, self.symbols[which], self.best[which], self.used[which])


def _all_choices(machine: Extracted, network: TracedNetwork) -> list[_Choices]:
    choices = [
        _Choices(number, network.book.window(number, layer.windows), layer.symbols, layer.tables, layer.used)
        for number, layer in enumerate(machine.layers[: len(network.blocks)])
    ]
    labels = machine.label_ids[:, None]
    steps = network.read_steps(machine.readout_inputs)
    choices.append(_Choices(len(network.blocks), steps, readout_symbols(machine), labels, np.ones_like(labels, bool)))
    return choices


def attack(
    machine: Extracted, radius: float | dict[str, float], *, norm: str = "linf", steps: int = 30, restarts: int = 8,
    seed: int = 0,
) -> dict[str, Counterexample]:  # fmt: skip
    """A counterexample for every symbol for which one is found; checked by running the network."""
    region = regions_of(machine, radius, norm)
    return _attack(machine, region, steps, restarts, seed)


def _attack(machine: Extracted, region: Region, steps: int, restarts: int, seed: int) -> dict[str, Counterexample]:
    network = traced(machine)
    found: dict[str, Counterexample] = {}
    generator = torch.Generator().manual_seed(seed)
    for choices in _all_choices(machine, network):
        for restart in range(restarts):
            inputs, leads = _descend(network, choices, region, steps, generator, restart)
            for row in np.flatnonzero((leads < 0).any(1)).tolist():
                symbol = machine.symbols[choices.symbols[row]]
                column = int(leads[row].argmin())
                example = _described(network, machine, choices, region, row, column, inputs[row])
                if symbol not in found or example.distance < found[symbol].distance:
                    found[symbol] = example
    return found


def broken_radii(
    machine: Extracted, *, norm: str = "linf", steps: int = 20, restarts: int = 6, rounds: int = 4, seed: int = 0,
    most: float | None = None,
) -> dict[str, float]:  # fmt: skip
    """For every symbol the smallest distance at which a counterexample was found; infinite where none was."""
    region = traced(machine).region
    assert region is not None
    radii = np.full(len(machine.symbols), most) if most is not None else 2.0 * _half_distances(region.centers, norm)
    broken = dict.fromkeys(machine.symbols, float("inf"))
    for number in range(rounds):
        found = _attack(machine, Region(region.centers, radii, norm), steps, restarts, seed + number)
        for at, symbol in enumerate(machine.symbols):
            if symbol in found:
                broken[symbol] = min(broken[symbol], found[symbol].distance)
                radii[at] = 0.97 * broken[symbol]
            elif np.isfinite(broken[symbol]):
                radii[at] = 0.5 * (radii[at] + broken[symbol])
    return broken


@torch.no_grad()
def random_changes(
    machine: Extracted, radius: float | Mapping[str, float], *, tries: int = 1_000_000, norm: str = "linf",
    seed: int = 0,
) -> int:  # fmt: skip
    """How many of so many random inputs of the regions change a table in use, or a label, in float32.

    Every layer and the labels are tried that often; every second input is a corner of its box or lies on its sphere.
    Over certified regions the answer is 0.
    """
    region = regions_of(machine, radius, norm)
    exact = traced(machine)
    network = TracedNetwork(exact.model, exact.symbols, "float32", vectors=exact.vectors)
    network.dropped = exact.dropped
    generator, changed = torch.Generator().manual_seed(seed), 0
    for choices in _all_choices(machine, exact):
        order = np.arange(tries) % len(choices.best)
        for begin in range(0, tries, RANDOM_AT_ONCE):
            some = choices.rows(order[begin : begin + RANDOM_AT_ONCE])
            changed += int(_changed(network, some, _random_inputs(region, some.steps.symbols, generator)).sum())
    return changed


def _random_inputs(region: Region, symbols: Ints, generator: torch.Generator) -> Tensor:
    """R K n in float32: inputs of these symbols' regions."""
    centers = torch.from_numpy(region.centers)[np.maximum(symbols, 0)]
    # float32 may round an input out of the region by an ulp of its largest coordinate
    radii = torch.from_numpy(region.radii)[np.maximum(symbols, 0)] - 2.0**-23 * (1.0 + centers.abs().amax(-1))
    moves = 2.0 * torch.rand(centers.shape, generator=generator, dtype=torch.float64) - 1.0
    if region.norm == "linf":
        moves[::2] = moves[::2].sign()
    else:
        moves = torch.randn(centers.shape, generator=generator, dtype=torch.float64)
        moves = moves / moves.norm(dim=-1, keepdim=True)
        moves[1::2] *= torch.rand(moves[1::2, :, :1].shape, generator=generator, dtype=torch.float64)
        radii = radii - 2.0**-23 * centers.shape[-1] ** 0.5 * centers.abs().amax(-1)
    return (centers + radii.clamp(min=0.0)[..., None] * moves).float()


def _changed(network: TracedNetwork, choices: _Choices, inputs: Tensor) -> Bools:
    """R: whether a choice in use is another than the best, as the layer itself makes it."""
    value = _values(network, choices, inputs)
    if choices.layer == len(network.blocks):
        return value.argmax(-1).numpy() != choices.best[:, 0]
    tables = network.blocks[choices.layer].tables(value[None])
    made = torch.cat([tables[head][0] for head in _kept(network, choices.layer)], -1).numpy()
    return ((made != choices.best) & choices.used).any(1)


def _descend(
    network: TracedNetwork, choices: _Choices, region: Region, steps: int, generator: torch.Generator, restart: int
) -> tuple[Tensor, Floats]:
    """(inputs: R K n, smallest leads found: R C), each row attacked by itself."""
    centers = torch.from_numpy(region.centers)[np.maximum(choices.steps.symbols, 0)].to(network.vectors.dtype)  # type: ignore[union-attr]
    radii = torch.from_numpy(region.radii)[np.maximum(choices.steps.symbols, 0)][..., None].to(centers.dtype)
    move = torch.zeros_like(centers)
    if restart % 2:
        move = _projected(torch.randn(centers.shape, generator=generator).to(centers.dtype) * radii, radii, region.norm)
    best_move, best_leads = move.clone(), torch.full(choices.best.shape, float("inf"), dtype=centers.dtype)
    used = torch.tensor(choices.used)
    target: Tensor | None = None
    for step in range(steps + 1):
        move.requires_grad_(True)
        leads = torch.where(used, _leads(network, choices, centers + move), float("inf"))
        if target is None:  # the choice that is closest to change, and in later attempts the next ones
            place = min(restart // 2, leads.shape[1] - 1)
            target = leads.detach().argsort(1)[:, place : place + 1]
        aimed, smallest = leads.gather(1, target)[:, 0], leads.min(1).values
        improved = smallest.detach() < best_leads.min(1).values
        best_move[improved], best_leads[improved] = move.detach()[improved], leads.detach()[improved]
        if step == steps or not aimed.requires_grad:  # what does not depend on the input cannot be attacked
            break
        (gradient,) = torch.autograd.grad(aimed[torch.isfinite(aimed)].sum(), move)
        with torch.no_grad():
            size = radii * max(0.6 * 0.88**step, 0.02)
            if region.norm == "linf":
                move = move - size * gradient.sign()
            else:
                move = move - size * gradient / gradient.norm(dim=-1, keepdim=True).clamp(min=1e-30)
            move = _projected(move, radii, region.norm)
    return _nearest(network, choices, centers, best_move.detach(), used)


@torch.no_grad()
def _nearest(
    network: TracedNetwork, choices: _Choices, centers: Tensor, move: Tensor, used: Tensor
) -> tuple[Tensor, Floats]:
    """Counterexamples pulled towards their prototypes, by bisection; the others as they are."""

    def leads(share: Tensor) -> Tensor:
        inputs = centers + share[:, None, None] * move
        return torch.where(used, _leads(network, choices, inputs), float("inf"))

    low, high = torch.zeros(len(move), dtype=move.dtype), torch.ones(len(move), dtype=move.dtype)
    broken = (leads(high) < 0).any(1)
    for _ in range(20 if bool(broken.any()) else 0):
        middle = 0.5 * (low + high)
        wrong = (leads(middle) < 0).any(1)
        low, high = torch.where(broken & ~wrong, middle, low), torch.where(broken & wrong, middle, high)
    return centers + high[:, None, None] * move, leads(high).numpy().astype(np.float64)


def _projected(move: Tensor, radii: Tensor, norm: str) -> Tensor:
    if norm == "linf":
        return torch.maximum(torch.minimum(move, radii), -radii)
    return move * (radii / move.norm(dim=-1, keepdim=True).clamp(min=1e-30)).clamp(max=1.0)


def _leads(network: TracedNetwork, choices: _Choices, inputs: Tensor) -> Tensor:
    """R C: the lead of the best over every rival, differentiable."""
    best = torch.from_numpy(choices.best.astype(np.int64))
    return torch.cat([_lead(scores, best[:, columns]) for scores, columns in _scores(network, choices, inputs)], 1)


def _scores(network: TracedNetwork, choices: _Choices, inputs: Tensor) -> Iterator[tuple[Tensor, slice]]:
    """(R C d: the numbers among which the best is chosen, their columns) of every head, or of the label."""
    value = _values(network, choices, inputs)
    if choices.layer == len(network.blocks):
        yield value[:, None, :], slice(0, 1)
        return
    block, begin = network.blocks[choices.layer], 0
    rows = value if block.mix_proj is None else block.mix_proj(value)
    flat = rows @ block.weight.T + block.bias
    offsets = np.cumsum([0, *(d * d for d in block.heads)])
    for head in _kept(network, choices.layer):
        d = block.heads[head]
        yield flat[:, offsets[head] : offsets[head + 1]].view(-1, d, d), slice(begin, begin + d)
        begin += d


def _kept(network: TracedNetwork, layer: int) -> list[int]:
    """The heads that were not left out: those that the tables of the machine are about."""
    return [head for head in range(len(network.blocks[layer].heads)) if head not in network.dropped[layer]]


def _values(network: TracedNetwork, choices: _Choices, inputs: Tensor) -> Tensor:
    """R m: what the layer reads, or the logits of the labels (R labels)."""
    K = inputs.shape[1]
    begun = (choices.steps.symbols >= 0).sum(1)
    parts, order = [], []
    for length in np.unique(begun):
        which = np.flatnonzero(begun == length)
        x = inputs[which, K - length :]
        outputs = {}
        for layer in range(choices.layer):
            indices = torch.from_numpy(
                np.ascontiguousarray(choices.steps.indices[layer][which][:, K - length :], np.int64)
            )
            outputs[layer] = layer_output(network.blocks[layer], torch.cat([indices, indices[:, -1:]], 1)).detach()
        parts.append(network.traced.evaluate(torch.cat([x, x[:, -1:]], 1), outputs, choices.layer)[:, length - 1])
        order.append(which)
    return torch.cat(parts)[np.argsort(np.concatenate(order))]


def _lead(logits: Tensor, best: Tensor) -> Tensor:
    """R C d, R C -> R C."""
    chosen = logits.gather(-1, best[..., None])
    rivals = logits.scatter(-1, best[..., None], float("-inf"))
    return (chosen - rivals.max(-1, keepdim=True).values)[..., 0]


def _described(
    network: TracedNetwork, machine: Extracted, choices: _Choices, region: Region, row: int, column: int, inputs: Tensor
) -> Counterexample:
    centers = torch.from_numpy(region.centers)[np.maximum(choices.steps.symbols[row], 0)]
    apart = inputs.double() - centers
    far = apart.abs().amax(-1) if region.norm == "linf" else apart.norm(dim=-1)
    symbol = machine.symbols[choices.symbols[row]]
    if choices.layer == len(network.blocks):
        what = f"the label {machine.label_names[choices.best[row, 0]]!r}"
    else:
        kept = _kept(network, choices.layer)
        offsets = head_offsets([network.blocks[choices.layer].heads[head] for head in kept])
        place = int(np.searchsorted(offsets, column, side="right")) - 1
        what = f"where head {kept[place]} of layer {choices.layer} sends index {column - offsets[place]}"
    return Counterexample(symbol, inputs[-1], float(far.max()), what)
