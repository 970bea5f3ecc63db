"""Extract the machine of a model: exhaustively, from the weights alone, without access to any target."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from exactstate._types import Bools, Ints
from exactstate.automata import Moore
from exactstate.errors import BudgetExceeded, InvalidInput, InvalidMachine
from exactstate.extract.explore import Budget, ExploredLayer, Progress, explore
from exactstate.extract.graph.trace import Traced, unwrapped
from exactstate.extract.network import EvaluatedNetwork, Network, as_built
from exactstate.extract.result import REFUSED, Extracted, InputRegions, LayerTables
from exactstate.nn import Backbone
from exactstate.nn.wrapped import refuse_gated, refuse_wrapped

if TYPE_CHECKING:
    from exactstate.extract.adapter import Adapter


def extract(
    model: nn.Module | Adapter, *, symbols: Sequence[str] | None = None,
    inputs: Mapping[str, Tensor] | None = None, labels: Sequence[str] | None = None,
    answers: Sequence[str] | None = None, grammar: Moore | None = None, format: str = "float64",
    prune: bool = True, verify: bool = True, budget: Budget = Budget(),  # noqa: B008
    progress: Progress | None = None,
) -> Extracted:  # fmt: skip
    """The machine that a model computes, over all words or over those of a grammar.

    - `model`: any module that contains NFSM layers and maps tokens (B L) or vectors (B L n) to logits (B L labels);
      what it does with them is found by tracing (see `exactstate.extract.graph`). Or an `Adapter`.
    - `symbols`, `labels`, `answers`: names, in the order of their numbers; '0', '1', ... by default. If there are fewer
      symbols than the model has tokens, the remaining tokens are never read.
    - `inputs`: where symbols are input vectors, the vector of each by its name.
    - `grammar`: a machine over the same symbols that outputs 'refused' once a word is not permitted.
    - `format`: the format in which logits and margins are computed, 'float64' or 'float32'. For other formats see
      `rounding_errors`.
    - `prune`: leave out heads that are proved to influence no output (see `exactstate.extract.graph.relevance` and
      `redundancy`); for traced models without a grammar.
    - `verify`: run the model itself on short and long words, and refuse if it answers otherwise than the machine. That
      is no proof; it finds what tracing cannot see, such as a state that the model keeps on itself.
    - `progress`: called with the number of configurations reached, and of those not yet expanded.
    """
    if isinstance(model, nn.Module):
        model = unwrapped(model)
        refuse_gated(model)
    names = symbols or (None if grammar is None else grammar.symbols)
    if isinstance(model, Backbone):
        refuse_wrapped(model)
        names = _names("symbols", names, model.vocabulary)
    if isinstance(model, Backbone) and names is not None and as_built(model):
        if inputs is not None:
            raise InvalidInput("a Backbone reads tokens; `inputs` is for models that read vectors.")
        if labels is not None and len(labels) != model.labels:
            raise InvalidInput(f"this model has {model.labels} labels; got names for {len(labels)}.")
        extracted = extract_network(
            EvaluatedNetwork(model, len(names), format), symbols=tuple(names),
            labels=_names("labels", labels, model.labels), answers=_names("answers", answers, model.answers),
            grammar=grammar, weights=digest(model), format=format, budget=budget, progress=progress,
        )  # fmt: skip
    else:
        extracted = _extract_foreign(model, names, inputs, labels, grammar, format, budget, progress, prune=prune)
    if verify:
        from exactstate.extract.verify import verify as run_and_compare

        vectors = None if inputs is None else input_vectors(inputs, extracted.symbols)
        run_and_compare(model, extracted, vectors)
    return extracted


def _extract_foreign(
    model: nn.Module | Adapter, symbols: Sequence[str] | None, inputs: Mapping[str, Tensor] | None,
    labels: Sequence[str] | None, grammar: Moore | None, format: str, budget: Budget, progress: Progress | None, *,
    prune: bool = True,
) -> Extracted:  # fmt: skip
    from exactstate.extract.adapter import Adapter, AdapterNetwork
    from exactstate.extract.graph.network import TracedNetwork
    from exactstate.extract.graph.redundancy import drop_redundant
    from exactstate.extract.graph.relevance import FEW, drop_irrelevant

    if isinstance(model, Backbone) and model.answer_head is not None:
        raise InvalidInput("answers are read out of a Backbone as it was built; parts of this one were replaced.")
    if symbols is None and inputs is not None:
        symbols = tuple(inputs)
    if symbols is None:
        raise InvalidInput(
            "which symbols does the model read? Pass symbols=[...], the names of its tokens in the order of their "
            "numbers, or inputs={name: vector}."
        )
    if len(set(symbols)) != len(symbols) or not symbols:
        raise InvalidInput(f"symbols are one or more different names; got {list(symbols)}.")
    vectors = None if inputs is None else input_vectors(inputs, symbols)
    if isinstance(model, Adapter):
        network: Network = AdapterNetwork(model, len(symbols), format, vectors)
        weights = model.digest()
    elif isinstance(model, nn.Module):
        network = traced = TracedNetwork(model, len(symbols), format, vectors=vectors)
        weights = digest_graph(unwrapped(model), traced.traced)
    else:
        raise InvalidInput(f"extract reads an nn.Module or an Adapter; got {type(model).__name__}.")
    count: int = network.labels  # type: ignore[attr-defined]
    if labels is not None and len(labels) != count:
        raise InvalidInput(f"this model has {count} labels; got names for {len(labels)}.")
    dropped: tuple[str, ...] = ()
    if isinstance(network, TracedNetwork) and prune and grammar is None:
        network, dropped = drop_redundant(network)
        if not dropped:
            network, dropped = drop_irrelevant(network)
    try:
        extracted = extract_network(
            network, symbols=tuple(symbols), labels=_names("labels", labels, count), grammar=grammar, weights=weights,
            format=format, budget=budget, progress=progress,
        )  # fmt: skip
    except BudgetExceeded as error:
        if dropped or sum(map(len, network.heads)) <= FEW:
            raise
        raise BudgetExceeded(
            f"{error} None of its {sum(map(len, network.heads))} heads could be proved redundant; remove those that "
            "your data does not need with exactstate.nn.prune, then extract."
        ) from None
    regions = None
    if vectors is not None:  # the prototypes themselves; `regions.prove` makes them wider
        regions = InputRegions(tuple(symbols), vectors.numpy(), np.zeros(len(symbols)), "linf", format)
    return replace(extracted, dropped=dropped, regions=regions)


def input_vectors(inputs: Mapping[str, Tensor], symbols: Sequence[str]) -> Tensor:
    """A n: the vectors of symbols, checked."""
    if set(inputs) != set(symbols):
        raise InvalidInput(f"inputs has vectors for {list(inputs)}; the symbols are {list(symbols)}.")
    rows = []
    for symbol in symbols:
        row = torch.as_tensor(inputs[symbol]).detach().cpu()
        if row.ndim != 1 or not row.is_floating_point():
            raise InvalidInput(
                f"the input of symbol {symbol!r} is a vector of floating-point numbers; got {row.dtype} of shape "
                f"{tuple(row.shape)}."
            )
        if not bool(torch.isfinite(row).all()):
            raise InvalidInput(f"the input of symbol {symbol!r} is not finite everywhere (NaN or infinity).")
        rows.append(row.to(torch.float64))
    widths = {len(row) for row in rows}
    if len(widths) != 1 or 0 in widths:
        raise InvalidInput(f"the inputs of all symbols have one width; got {sorted(widths)}.")
    seen: dict[bytes, str] = {}
    for symbol, row in zip(symbols, rows, strict=True):
        other = seen.setdefault((row + 0.0).numpy().tobytes(), symbol)  # -0.0 is 0.0
        if other != symbol:
            raise InvalidInput(f"symbols {other!r} and {symbol!r} have the same input: it could be read as either.")
    return torch.stack(rows)


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
        source=None if isinstance(network, EvaluatedNetwork) else network,
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
    return _digest(model.state_dict()).hexdigest()


def digest_graph(model: nn.Module, traced: Traced) -> str:
    """The SHA-256 of a traced model: its weights and buffers as in `digest`, then a line for every operation."""
    buffers = {name: tensor for name, tensor in model.named_buffers() if tensor is not None}
    held = _digest({**buffers, **model.state_dict()})
    traced.digest(held)
    return held.hexdigest()


def _digest(tensors: Mapping[str, Tensor]) -> hashlib._Hash:
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        array = tensor.detach().cpu().contiguous()
        shape = "x".join(map(str, array.shape))
        digest.update(f"{name} {str(array.dtype).removeprefix('torch.')} {shape}\n".encode())
        digest.update(array.reshape(-1).view(torch.uint8).numpy().tobytes())
        digest.update(b"\n")
    return digest
