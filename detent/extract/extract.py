"""Read the machine out of a model: exhaustively, from the weights alone, without a look at any target."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from detent._types import Bools, Ints
from detent.automata import Moore
from detent.errors import InvalidInput, InvalidMachine
from detent.extract.explore import Budget, Level, Progress, explore
from detent.extract.network import Evaluated, Network
from detent.extract.result import REFUSED, Extracted, LayerRead
from detent.nn import Backbone
from detent.runtime import Heads, Machine

if TYPE_CHECKING:
    from detent.extract.result import Extracted

# -- One number for all weights of a model: SHA-256 over names, types, shapes and bytes, in the order of the names.


def digest(model: nn.Module) -> str:
    """The SHA-256 of a model's weights, in hexadecimal; the same on every device and for every way of building it.

    For every entry of the state dict, sorted by name: the line "name dtype shape", the bytes in row-major order and in
    little-endian, and a line end.
    """
    found = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        held = tensor.detach().cpu().contiguous()
        shape = "x".join(map(str, held.shape))
        found.update(f"{name} {str(held.dtype).removeprefix('torch.')} {shape}\n".encode())
        found.update(held.reshape(-1).view(torch.uint8).numpy().tobytes())
        found.update(b"\n")
    return found.hexdigest()


# -- What was read out of a model as a machine that runs without it: saved, streamed, exported, at memory speed.


def standalone(found: Extracted, about: dict[str, Any] | None = None) -> Machine:
    """The smallest machine that says the same, its states named by the labels where these tell what follows.

    One layer without a convolution brings its heads along, to be run instead where that is cheaper.
    """
    automaton = found.minimised if found.grammar is not None or found.named is None else found.named
    heads = None
    if len(found.layers) == 1 and found.reach == 1 and found.grammar is None:
        heads = Heads(found.head_tables, found.start)
    return Machine.of(automaton, heads=heads, about={"weights": found.weights, **(about or {})})


def extract(
    model: Backbone, *, symbols: Sequence[str] | None = None, labels: Sequence[str] | None = None,
    answers: Sequence[str] | None = None, grammar: Moore | None = None, format: str = "float64",
    budget: Budget = Budget(), progress: Progress | None = None,  # noqa: B008
) -> Extracted:  # fmt: skip
    """The machine that a model is, over all words or over those of a grammar.

    - `symbols`, `labels`, `answers`: names, in the order of their numbers; '0', '1', ... when not given. With fewer
      symbols than the model has tokens, the others are never read.
    - `grammar`: a machine over the same symbols that says 'refused' once a word may not be said.
    - `format`: the arithmetic for logits and margins, 'float64' or 'float32'. What holds in another one is a matter of
      margins and rounding errors.
    - `progress`: called with the configurations reached and those still waiting.
    """
    names = _names("symbols", symbols or (grammar.symbols if grammar is not None else None), model.vocabulary)
    if labels is not None and len(labels) != model.labels:
        raise InvalidInput(f"this model has {model.labels} labels; got names for {len(labels)}.")
    network = Evaluated(model, len(names), format)
    return read_network(
        network, symbols=names, labels=_names("labels", labels, model.labels),
        answers=_names("answers", answers, model.answers), grammar=grammar, weights=digest(model), format=format,
        budget=budget, progress=progress,
    )  # fmt: skip


def read_network(
    network: Network, *, symbols: tuple[str, ...], labels: tuple[str, ...], answers: tuple[str, ...] = (),
    grammar: Moore | None = None, weights: str, format: str, budget: Budget, progress: Progress | None = None,
) -> Extracted:  # fmt: skip
    """The same for anything that answers as a network does."""
    grammar = _restricting(symbols, grammar)
    found = explore(network, *_rules(symbols, grammar), budget, progress)
    tops = np.arange(network.symbols)
    layers = []
    for level in found.levels:
        tops = tops if not level.layer else tops[level.inputs.rows[:, 0]]
        layers.append(_layer(level, tops, network))
    answered = found.answers
    return Extracted(
        symbols=symbols, outputs=labels, replies=answers, reach=network.reach, layers=tuple(layers),
        configurations=_kept(found.configurations), places=_kept(found.places), tables=_kept(found.tables),
        finals=_kept(found.finals), read_outs=_kept(found.read_outs), labels=_kept(found.labels.best),
        label_margins=_kept(found.labels.margins),
        answers=None if answered is None else _kept(answered.best),
        answer_margins=None if answered is None else _kept(answered.margins),
        grammar=grammar, weights=weights, format=format,
    )  # fmt: skip


def _layer(level: Level, symbol_of_input: Ints, network: Network) -> LayerRead:
    windows = level.windows.rows
    return LayerRead(
        heads=network.heads[level.layer], start=network.home[level.layer], inputs=_kept(level.inputs.rows),
        windows=_kept(windows), symbols=_kept(symbol_of_input[windows[:, -1]]), tables=_kept(level.best.rows),
        margins=_kept(level.margins.rows), seconds=_kept(level.seconds.rows), used=_kept(level.used.rows),
    )  # fmt: skip


def _rules(symbols: tuple[str, ...], grammar: Moore | None) -> tuple[Ints, Bools, int]:
    """(tables of the grammar, which of its moves are permitted, where it begins)."""
    if grammar is None:
        everything = np.zeros((len(symbols), 1), np.int64)
        return everything, everything == 0, 0
    return grammar.tables.astype(np.int64), ~_refused(grammar)[grammar.tables], grammar.start


def _restricting(symbols: tuple[str, ...], grammar: Moore | None) -> Moore | None:
    """The grammar, if it refuses anything at all."""
    if grammar is None:
        return None
    if grammar.symbols != symbols:
        raise InvalidMachine(f"the grammar reads {grammar.symbols}, the model {symbols}; the order counts.")
    if _refused(grammar)[grammar.tables[:, grammar.start]].all():
        raise InvalidMachine("this grammar refuses every word, so there is nothing to explore.")
    return grammar if _refused(grammar).any() else None


def _refused(grammar: Moore) -> Bools:
    """Which states of the grammar a word may not lead to."""
    return np.array([name == REFUSED for name in grammar.outputs])[grammar.readout]


def _names(kind: str, names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    if names is None:
        return tuple(map(str, range(count)))
    if len(names) > count:
        raise InvalidInput(f"this model has {count} {kind}; got names for {len(names)}.")
    return tuple(names)


def _kept(array: NDArray) -> NDArray:
    """A copy without the room to grow, read-only."""
    kept = np.ascontiguousarray(array).copy()
    kept.setflags(write=False)
    return kept
