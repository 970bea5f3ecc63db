"""Pruning: fewer heads and fewer indices, with the same behavior on the data that is given.

    m  width     r  heads     d  indices of a head     S  the sum of the ds

A wide layer learns where a minimal one gets stuck, and most of its heads turn out to be redundant. `prune` removes
heads while a test of yours still passes: it ranks them by the loss without each, replaces a removed head by its mean
contribution (a constant in the bias of `out_proj`), and fine-tunes where that is not enough. `prune_indices` removes
indices that no input leads to. Both return a smaller copy and leave the model as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from exactstate.errors import InvalidConfig, InvalidInput
from exactstate.nn.nfsm import NFSM
from exactstate.ops.tables import entry_offsets, offsets

Module = TypeVar("Module", bound=nn.Module)


@dataclass(frozen=True, kw_only=True, slots=True)
class PruneStep:
    """One attempt to remove heads."""

    removed: tuple[tuple[str, int], ...]
    """(name of the layer, head), in the numbering before the removal."""
    heads: int
    """Heads that are left in all layers if the attempt is kept."""
    accepted: bool
    """Whether the test passed, after fine-tuning if there was any."""
    fine_tuned: bool


def prune(
    model: Module, *inputs: Any, loss: Callable[[Module], float], accept: Callable[[Module], bool],
    fine_tune: Callable[[Module], object] | None = None, share: float = 0.5, max_failures: int = 3,
    watch: Callable[[PruneStep], None] | None = None,
) -> Module:  # fmt: skip
    """A copy of the model with as few heads as `accept` lets pass.

    - `model`: an NFSM layer, or any module that contains some.
    - `inputs`: arguments for one call of the model on typical data; head contributions are averaged over it.
    - `loss(model)`: a number that ranks heads; the head whose removal costs least goes first.
    - `accept(model)`: whether a smaller model is still good, for example whether fresh words are all right.
    - `fine_tune(model)`: trains a smaller model in place when `accept` refuses it; then `accept` is asked again.
    - `share`: the share of heads that is removed at once; it is halved when that fails, down to single heads.
    - `max_failures`: single heads that are tried in vain before pruning ends.
    """
    if not 0 <= share < 1 or max_failures < 1:
        raise InvalidConfig(f"share lies in [0, 1) and max_failures is at least 1; got {share} and {max_failures}.")
    if not _layers(model):
        raise InvalidInput(f"there is no NFSM layer in this {type(model).__name__}, so there are no heads to prune.")
    model, failures = deepcopy(model), 0
    while failures < max_failures:
        removable = [(name, h) for name, layer in _layers(model).items() for h in range(len(layer.heads))]
        if len(removable) <= len(_layers(model)):
            break
        means = head_means(model, *inputs)
        ranked = _ranked(model, removable, means, loss)
        count = max(1, int(share * len(ranked)))
        chosen = _spare_last(model, ranked[:count] if count > 1 else ranked[failures : failures + 1])
        if not chosen:
            break
        smaller, accepted, tuned = remove_heads(model, chosen, means), False, False
        accepted = accept(smaller)
        if not accepted and fine_tune is not None:
            fine_tune(smaller)
            accepted, tuned = accept(smaller), True
        if watch is not None:
            left = len(removable) - len(chosen)
            watch(PruneStep(removed=tuple(chosen), heads=left, accepted=accepted, fine_tuned=tuned))
        if accepted:
            model, failures = smaller, 0
        elif count > 1:
            share /= 2
        else:
            failures += 1
    return model


def remove_heads(model: Module, heads: Sequence[tuple[str, int]], means: dict[str, Tensor] | None = None) -> Module:
    """A copy without these heads (name of the layer, head); `means` (see `head_means`) replace their contribution."""
    smaller = deepcopy(model)
    for name, layer in _layers(smaller).items():
        gone = {head for owner, head in heads if owner == name}
        if not gone:
            continue
        if len(gone) == len(layer.heads):
            raise InvalidInput(f"layer {name!r} would be left without heads; keep one of its {len(gone)}.")
        kept = [() if h in gone else range(d) for h, d in enumerate(layer.heads)]
        offset = None if means is None else means[name][sorted(gone)].sum(0)
        smaller = _replace(smaller, name, select_indices(layer, kept, offset))
    return smaller


@torch.no_grad()
def select_indices(layer: NFSM, kept: Sequence[Sequence[int]], offset: Tensor | None = None) -> NFSM:
    """The layer with only these indices of every head; a head without any is removed.

    `offset` (m) is added to the output. Behavior is the same on inputs whose tables lead from kept indices to kept
    indices.
    """
    if len(kept) != len(layer.heads):
        raise InvalidInput(f"kept has one list of indices per head; got {len(kept)} for {len(layer.heads)} heads.")
    heads = [h for h, indices in enumerate(kept) if len(indices)]
    start = layer.config.initial_state
    for h in heads:
        if start[h] not in kept[h] or not all(0 <= k < layer.heads[h] for k in kept[h]):
            raise InvalidInput(
                f"kept[{h}] holds indices below {layer.heads[h]}, the initial one ({start[h]}) among them; "
                f"got {list(kept[h])}."
            )
    entries, places, width = entry_offsets(layer.heads), offsets(layer.heads), layer.value_width
    rows = [entries[h] + k * layer.heads[h] + j for h in heads for k in kept[h] for j in kept[h]]
    values = [places[h] + k for h in heads for k in kept[h]]
    columns = [h * width + c for h in heads for c in range(width)]
    config = replace(
        layer.config, heads=tuple(len(kept[h]) for h in heads), value_width=width,
        initial_state=tuple(list(kept[h]).index(start[h]) for h in heads),
    )  # fmt: skip
    smaller = _like(layer, config)
    smaller.weight.copy_(layer.weight[rows])
    smaller.bias.copy_(layer.bias[rows])
    smaller.values.copy_(layer.values[values])
    smaller.out_proj.weight.copy_(layer.out_proj.weight[:, columns])
    smaller.out_proj.bias.copy_(layer.out_proj.bias if offset is None else layer.out_proj.bias + offset)
    if layer.gate_proj is not None and smaller.gate_proj is not None:
        smaller.gate_proj.weight.copy_(layer.gate_proj.weight[columns])
        smaller.gate_proj.bias.copy_(layer.gate_proj.bias[columns])
    if layer.mix_proj is not None and smaller.mix_proj is not None:
        smaller.mix_proj.load_state_dict(layer.mix_proj.state_dict())
    return smaller.train(layer.training)


@torch.no_grad()
def head_means(model: nn.Module, *inputs: Any) -> dict[str, Tensor]:
    """For every NFSM layer by name, r m: what each head adds to the output, averaged over all steps of one call."""
    means: dict[str, Tensor] = {}
    for name, (layer, states) in _states(model, *inputs).items():
        contributions = head_contributions(layer)
        parts = []
        for h, part in enumerate(contributions):
            counts = torch.bincount(states[:, h], minlength=layer.heads[h]).to(part.dtype)
            parts.append(counts @ part / max(len(states), 1))
        means[name] = torch.stack(parts)
    return means


@torch.no_grad()
def head_contributions(layer: NFSM) -> tuple[Tensor, ...]:
    """For every head, d m: what each of its indices adds to the output."""
    shares = layer.out_proj.weight.split(layer.value_width, dim=1)
    return tuple(values @ share.T for values, share in zip(layer.values.split(list(layer.heads)), shares, strict=True))


@torch.no_grad()
def reachable_indices(layer: NFSM, rows: Tensor) -> list[list[int]]:
    """Of every head, the indices that sequences of these inputs (R m) can lead to, the initial one included."""
    kept = []
    for table, start in zip(layer.tables(rows[None]), layer.config.initial_state, strict=True):
        reached, new = {start}, {start}
        while new:
            new = {int(k) for k in table[0][:, sorted(new)].flatten()} - reached
            reached |= new
        kept.append(sorted(reached))
    return kept


@torch.no_grad()
def prune_indices(layer: NFSM, rows: Tensor) -> NFSM:
    """The same function of sequences of these inputs (R m), with only the indices they lead to.

    Exact where `rows` are all inputs that occur, for example those of all symbols. A head that never moves becomes a
    constant in the bias.
    """
    kept = reachable_indices(layer, rows)
    fixed = [h for h, indices in enumerate(kept) if len(indices) == 1]
    if len(fixed) == len(kept):
        fixed = fixed[1:]  # a layer has a head
    contributions = head_contributions(layer)
    offset = torch.zeros_like(layer.out_proj.bias)
    for h in fixed:
        offset += contributions[h][kept[h][0]]
    return select_indices(layer, [[] if h in fixed else indices for h, indices in enumerate(kept)], offset)


def _layers(model: nn.Module) -> dict[str, NFSM]:
    return {name: module for name, module in model.named_modules() if isinstance(module, NFSM)}


def _replace(model: Module, name: str, layer: NFSM) -> Module:
    if not name:
        assert isinstance(model, NFSM)
        return layer  # type: ignore[return-value]
    model.set_submodule(name, layer)
    return model


def _like(layer: NFSM, config: NFSM.Config) -> NFSM:
    """An uninitialized layer of this configuration, on the same device and in the same format."""
    settings = {name: getattr(config, name) for name in config.__dataclass_fields__}
    return NFSM(**settings, backend=layer.backend).to(layer.weight)


def _ranked(
    model: Module, removable: list[tuple[str, int]], means: dict[str, Tensor], loss: Callable[[Module], float]
) -> list[tuple[str, int]]:
    """The heads, those whose removal costs least first."""
    counts = {name: len(layer.heads) for name, layer in _layers(model).items()}
    single = [head for head in removable if counts[head[0]] > 1]
    costs = {head: loss(remove_heads(model, [head], means)) for head in single}
    return sorted(single, key=costs.__getitem__)


def _spare_last(model: nn.Module, chosen: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Leave every layer at least one head: of a layer that would lose all, the costliest stays."""
    spared = list(chosen)
    for name, layer in _layers(model).items():
        own = [head for head in spared if head[0] == name]
        if len(own) == len(layer.heads):
            spared.remove(own[-1])
    return spared


def _states(model: nn.Module, *inputs: Any) -> dict[str, tuple[NFSM, Tensor]]:
    """For every NFSM layer, the index of every head after every step of one call in evaluation mode: N r."""
    found: dict[str, tuple[NFSM, Tensor]] = {}

    def watch(name: str) -> Callable[..., None]:
        def hook(layer: NFSM, args: tuple[Any, ...], kwargs: dict[str, Any], _: object) -> None:
            options = {key: value for key, value in kwargs.items() if key in ("lengths", "resets", "cu_seqlens")}
            state = args[1] if len(args) > 1 else kwargs.get("state")
            found[name] = layer, layer.states(args[0], state, **options).flatten(0, -2)

        return hook

    mode, hooks = model.training, []
    for name, layer in _layers(model).items():
        hooks.append(layer.register_forward_hook(watch(name), with_kwargs=True))
    try:
        model.eval()(*inputs)
    finally:
        model.train(mode)
        for hook in hooks:
            hook.remove()
    return found
