"""Extract the machine of a model: exhaustively, from the weights alone, without access to any target."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from detent._types import Bools, Ints
from detent.automata import Moore
from detent.errors import InvalidInput, InvalidMachine
from detent.extract.explore import Budget, ExploredLayer, Progress, explore
from detent.extract.network import EvaluatedNetwork, Network
from detent.extract.result import REFUSED, Extracted, LayerTables
from detent.nn import Backbone


def extract(
    model: Backbone, *, symbols: Sequence[str] | None = None, labels: Sequence[str] | None = None,
    answers: Sequence[str] | None = None, grammar: Moore | None = None, format: str = "float64",
    budget: Budget = Budget(), progress: Progress | None = None,  # noqa: B008
) -> Extracted:  # fmt: skip
    """The machine that a model computes, over all words or over those of a grammar.

    - `symbols`, `labels`, `answers`: names, in the order of their numbers; '0', '1', ... by default. If there are fewer
      symbols than the model has tokens, the remaining tokens are never read.
    - `grammar`: a machine over the same symbols that outputs 'refused' once a word is not permitted.
    - `format`: the format in which logits and margins are computed, 'float64' or 'float32'. For other formats see
      `rounding_errors`.
    - `progress`: called with the number of configurations reached, and of those not yet expanded.
    """
    names = _names("symbols", symbols or (grammar.symbols if grammar is not None else None), model.vocabulary)
    if labels is not None and len(labels) != model.labels:
        raise InvalidInput(f"this model has {model.labels} labels; got names for {len(labels)}.")
    network = EvaluatedNetwork(model, len(names), format)
    return extract_network(
        network, symbols=names, labels=_names("labels", labels, model.labels),
        answers=_names("answers", answers, model.answers), grammar=grammar, weights=digest(model), format=format,
        budget=budget, progress=progress,
    )  # fmt: skip


def extract_network(
    network: Network, *, symbols: tuple[str, ...], labels: tuple[str, ...], answers: tuple[str, ...] = (),
    grammar: Moore | None = None, weights: str, format: str, budget: Budget, progress: Progress | None = None,
) -> Extracted:  # fmt: skip
    """The same for anything with the methods of a `Network`."""
    grammar = _restricting(symbols, grammar)
    explored = explore(network, *_transitions(symbols, grammar), budget, progress)
    symbol_of_input: Ints = np.arange(network.symbols)
    layers = []
    for layer in explored.layers:
        symbol_of_input = symbol_of_input if not layer.layer else symbol_of_input[layer.inputs.rows[:, 0]]
        layers.append(_layer_tables(layer, symbol_of_input, network))
    answered = explored.answers
    return Extracted(
        symbols=symbols, label_names=labels, answer_names=answers, kernel_size=network.kernel_size,
        layers=tuple(layers), configurations=_frozen(explored.configurations),
        grammar_states=_frozen(explored.grammar_states), tables=_frozen(explored.tables),
        readout_ids=_frozen(explored.readout_ids), readout_inputs=_frozen(explored.readout_inputs),
        label_ids=_frozen(explored.labels.best), label_margins=_frozen(explored.labels.margins),
        answer_ids=None if answered is None else _frozen(answered.best),
        answer_margins=None if answered is None else _frozen(answered.margins),
        grammar=grammar, weights=weights, format=format,
    )  # fmt: skip


def _layer_tables(layer: ExploredLayer, symbol_of_input: Ints, network: Network) -> LayerTables:
    windows = layer.windows.rows
    return LayerTables(
        heads=network.heads[layer.layer], start=network.start[layer.layer], inputs=_frozen(layer.inputs.rows),
        windows=_frozen(windows), symbols=_frozen(symbol_of_input[windows[:, -1]]), tables=_frozen(layer.best.rows),
        margins=_frozen(layer.margins.rows), runner_up=_frozen(layer.runner_up.rows), used=_frozen(layer.used.rows),
    )  # fmt: skip


def _transitions(symbols: tuple[str, ...], grammar: Moore | None) -> tuple[Ints, Bools, int]:
    """(tables of the grammar, which transitions are permitted, initial state)."""
    if grammar is None:
        loop = np.zeros((len(symbols), 1), np.int64)
        return loop, loop == 0, 0
    return grammar.tables.astype(np.int64), ~_refused(grammar)[grammar.tables], grammar.start


def _restricting(symbols: tuple[str, ...], grammar: Moore | None) -> Moore | None:
    """The grammar if it refuses any word, else None."""
    if grammar is None:
        return None
    if grammar.symbols != symbols:
        raise InvalidMachine(f"the grammar reads {grammar.symbols}, the model {symbols}; the order must be the same.")
    if _refused(grammar)[grammar.tables[:, grammar.start]].all():
        raise InvalidMachine("this grammar refuses every word, so there is nothing to explore.")
    return grammar if _refused(grammar).any() else None


def _refused(grammar: Moore) -> Bools:
    """The states of the grammar that no permitted word reaches."""
    return np.array([name == REFUSED for name in grammar.outputs])[grammar.readout]


def _names(kind: str, names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    if names is None:
        return tuple(map(str, range(count)))
    if len(names) > count:
        raise InvalidInput(f"this model has {count} {kind}; got names for {len(names)}.")
    return tuple(names)


def _frozen(array: NDArray) -> NDArray:
    """A read-only copy without spare capacity."""
    copy = np.ascontiguousarray(array).copy()
    copy.setflags(write=False)
    return copy


def digest(model: nn.Module) -> str:
    """The SHA-256 of a model's weights, in hexadecimal; the same on every device.

    For every entry of the state dict, sorted by name: the line "name dtype shape", the bytes in row-major order and in
    little-endian, and a line end.
    """
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        array = tensor.detach().cpu().contiguous()
        shape = "x".join(map(str, array.shape))
        digest.update(f"{name} {str(array.dtype).removeprefix('torch.')} {shape}\n".encode())
        digest.update(array.reshape(-1).view(torch.uint8).numpy().tobytes())
        digest.update(b"\n")
    return digest.hexdigest()
