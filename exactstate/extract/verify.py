"""The model itself is run, untraced and in its own format, and compared with the machine that was read out of it.

    A  symbols     B  batch     L  length

This proves nothing: it is there to contradict. Every short word is read, and some longer ones; in batches of several
sizes; again with the rows shuffled and with other random numbers. A model that keeps something of an earlier call, that
draws random numbers, or in which a sequence sees its neighbors gives itself away.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor, nn

from exactstate._types import Ints
from exactstate.automata import format_word
from exactstate.errors import InvalidInput
from exactstate.extract.adapter import Adapter
from exactstate.extract.graph.trace import SHORT, find_logits, unwrapped
from exactstate.extract.result import Extracted
from exactstate.nn import Backbone

ALL_WORDS = 256
"""Words of a length, at most, for all of them to be read."""
LONGER = ((1, 7), (3, 7), (8, 7), (8, 64), (3, 64), (1, 64), (3, 1000), (1, 1000))
"""(B, L) of random words."""
MOST_LOGITS = 1 << 25
"""Logits of a batch; batches are shorter where there are very many labels."""

Run = Callable[[Tensor], tuple[Tensor, Tensor | None]]
"""B L tokens -> logits of the labels, and of the answers if there are any."""


def verify(model: nn.Module | Adapter, machine: Extracted, vectors: Tensor | None = None) -> None:
    """Raise InvalidInput, with the word, if the model answers otherwise than the machine."""
    if isinstance(model, Adapter):
        _compare(_parts(model, vectors), machine, f"in {machine.format}", "the adapter", model.modules[0].config.width)
        if isinstance(model.model, nn.Module):
            try:
                run = _whole(model.model, vectors)
                run(torch.zeros(1, 1, dtype=torch.int64))
            except Exception:  # the whole model may be called in another way
                return
            _compare(run, machine, f"in {machine.format}", type(model.model).__name__)
        return
    model = unwrapped(model)
    if isinstance(model, Backbone) and model.training:
        model = deepcopy(model).eval()
    kind = next((weight.dtype for weight in model.parameters() if weight.is_floating_point()), torch.float32)
    _compare(_whole(model, vectors), machine, f"in {str(kind).removeprefix('torch.')}", type(model).__name__)


def verify_format(model: nn.Module, machine: Extracted, format: str) -> None:
    """The same for the model in another format, where torch can run it."""
    vectors = getattr(machine.source, "vectors", None)
    try:
        with torch.no_grad():
            run = _whole(deepcopy(unwrapped(model)).to("cpu", getattr(torch, format)).eval(), vectors)
            run(torch.zeros(1, 1, dtype=torch.int64))
    except (RuntimeError, NotImplementedError):
        return
    _compare(run, machine, f"in {format}", type(model).__name__)


def _whole(model: nn.Module, vectors: Tensor | None) -> Run:
    weight = next((one for one in model.parameters() if one.is_floating_point()), torch.zeros(0))

    def run(words: Tensor) -> tuple[Tensor, Tensor | None]:
        inputs = (words if vectors is None else vectors[words].to(weight.dtype)).to(weight.device)
        logits = find_logits(model(inputs), type(model).__name__)
        if isinstance(model, Backbone) and model.answer_head is not None:
            return logits.cpu(), model.answer_logits(model.hidden(inputs)[0]).cpu()
        return logits.cpu(), None

    return run


def _parts(adapter: Adapter, vectors: Tensor | None) -> Run:
    """The parts of an adapter, on the rows of all steps in another order each time."""

    def run(words: Tensor) -> tuple[Tensor, Tensor | None]:
        rows = words.flatten()
        order = torch.randperm(len(rows))
        back = order.argsort()
        h = adapter.encode((rows if vectors is None else vectors[rows].to(adapter.modules[0].weight.dtype))[order])
        for layer, block in enumerate(adapter.modules):
            into, after = adapter.parts(layer)
            y = block(into(h)[back].unflatten(0, words.shape))[0]
            h = after(h, y.flatten(0, 1)[order])
        return adapter.read(h)[back].unflatten(0, words.shape), None

    return run


@torch.no_grad()
def _compare(run: Run, machine: Extracted, how: str, name: str, width: int = 0) -> None:
    generator = np.random.default_rng(0)
    with _randomness():
        for number, words in enumerate(_batches(machine, generator)):
            labels, answers = _expected(machine, words)
            for order in (np.arange(len(words)), generator.permutation(len(words))):
                torch.manual_seed(2 * number + int(order[0]))
                try:
                    given = run(torch.from_numpy(words[order]))
                except InvalidInput:
                    raise
                except Exception as error:
                    first = str(error).strip().splitlines()
                    raise InvalidInput(
                        f"{name} cannot read {len(words)} words of length {words.shape[1]}: "
                        f"{first[0] if first else type(error).__name__}"
                    ) from error
                for logits, wanted, names in zip(
                    given, (labels, answers), (machine.label_names, machine.answer_names), strict=True
                ):
                    if logits is not None and wanted is not None:
                        _agree(logits, wanted[order], names, words[order], machine, f"{name} {how}")


def _agree(logits: Tensor, wanted: Ints, names: tuple[str, ...], words: Ints, machine: Extracted, who: str) -> None:
    """Raise if another output than the wanted one (B L) is ahead."""
    if logits.shape != (*words.shape, len(names)):
        raise InvalidInput(
            f"{who} gives logits of shape {tuple(logits.shape)} for {words.shape[0]} words of length {words.shape[1]}; "
            f"wanted {(*words.shape, len(names))}."
        )
    chosen = logits.gather(-1, torch.from_numpy(np.ascontiguousarray(wanted, np.int64))[..., None])[..., 0]
    wrong = ~(chosen >= logits.amax(-1)).numpy()
    if not wrong.any():
        return
    row, step = (int(part[0]) for part in np.nonzero(wrong))
    word = tuple(machine.symbols[symbol] for symbol in words[row, : step + 1])
    raise InvalidInput(
        f"{who}, run on {len(words)} words of length {words.shape[1]}, answers "
        f"{names[int(logits[row, step].argmax())]!r} after {format_word(word)}, and the machine read out of it "
        f"{names[int(wanted[row, step])]!r}: something in it depends on more than the word (the length, other "
        "sequences, an earlier call, random numbers, the type of its numbers), or rounding decides. verify=False skips "
        "the run."
    )


def _expected(machine: Extracted, words: Ints) -> tuple[Ints, Ints | None]:
    """B L: the labels and answers of the machine."""
    state, read_outs = np.zeros(len(words), np.int64), []
    for symbols in words.T:
        read_outs.append(machine.readout_ids[symbols, state])
        state = machine.tables[symbols, state].astype(np.int64)
    made = np.stack(read_outs, 1)
    return machine.label_ids[made], None if machine.answer_ids is None else machine.answer_ids[made]


def _batches(machine: Extracted, generator: np.random.Generator) -> Iterator[Ints]:
    """Permitted words, B L."""
    labels = max(1, len(machine.label_names))
    for length in range(1, SHORT + 1):
        words = _short_words(machine, length, generator)
        words = words[: max(1, MOST_LOGITS // (labels * length))]
        if len(words):
            yield words
            yield words[:1]
            yield words[-3:]
    for batch, length in LONGER:
        fitting = min(length, max(1, MOST_LOGITS // (batch * labels)))
        words = _random_words(machine, batch, fitting, generator)
        if words.shape[1]:
            yield words


def _short_words(machine: Extracted, length: int, generator: np.random.Generator) -> Ints:
    """All permitted words of a length, or some where there are many."""
    symbols = len(machine.symbols)
    if symbols**length <= ALL_WORDS:
        words = np.stack(np.unravel_index(np.arange(symbols**length), (symbols,) * length), 1)
    else:
        words = generator.integers(0, symbols, (ALL_WORDS, length))
        if length == 1 and symbols <= 16 * ALL_WORDS:
            words = np.arange(symbols)[:, None]
    state, permitted = np.zeros(len(words), np.int64), np.ones(len(words), bool)
    for column in words.T:
        state = machine.tables[column, state].astype(np.int64)
        permitted &= state >= 0
        state = np.maximum(state, 0)
    found = words[permitted]
    return found if len(found) else _random_words(machine, 8, length, generator)


def _random_words(machine: Extracted, batch: int, length: int, generator: np.random.Generator) -> Ints:
    """Random words, cut where one of them can no longer be continued."""
    state, columns = np.zeros(batch, np.int64), []
    for _ in range(length):
        permitted = machine.tables[:, state] >= 0
        if not permitted.any(0).all():
            break
        columns.append((generator.random(permitted.shape) * permitted).argmax(0))
        state = machine.tables[columns[-1], state].astype(np.int64)
    return np.stack(columns, 1) if columns else np.zeros((batch, 0), np.int64)


@contextmanager
def _randomness() -> Iterator[None]:
    """Everybody's random numbers go on afterwards as if nothing had been drawn."""
    of_python, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)  # noqa: NPY002
