"""`extract`: random models are read out as what they compute, on random words and configuration by configuration."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import nn

from exactstate.automata import Moore
from exactstate.errors import BudgetExceeded, InvalidConfig, InvalidInput, InvalidMachine, UnknownName
from exactstate.extract import Budget, Extracted, extract
from exactstate.extract.extract import digest
from exactstate.nn import NFSM, Backbone
from exactstate.tasks.grammar import all_words

STACKS = [
    (1, [(3, 2)]),
    (1, [(1,)]),
    (2, [(4,)]),
    (3, [(2, 3)]),
    (1, [(3, 2), (2, 2)]),
    (2, [(3, 2), (2, 2)]),
    (3, [(2, 2), (2,)]),
    (2, [(2,), (1, 2), (3,)]),
]


def build(reach: int, layers: Sequence[tuple[int, ...]], *, symbols: int = 4, labels: int = 6, seed: int = 3, **more):
    seeded = torch.Generator().manual_seed(seed)
    blocks = [NFSM(16, heads, initial_state=[d - 1 for d in heads], remember=0.0, generator=seeded) for heads in layers]
    return Backbone(symbols, labels, blocks, width=16, kernel_size=reach, answers=3, generator=seeded, **more)


@torch.no_grad()
def run(model: Backbone, words: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """(labels, answers) that the network itself gives."""
    seen = model.decode(model.hidden(words)[0])
    return model.readout(seen).argmax(-1).numpy(), model.answer_head(seen).argmax(-1).numpy()


def followed(found: Extracted, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(labels, answers) that the extracted tables give."""
    at, finals = np.zeros(len(words), np.int64), []
    for column in words.T:
        finals.append(found.readout_ids[column, at])
        at = found.tables[column, at]
    return found.label_ids[np.stack(finals, 1)], found.answer_ids[np.stack(finals, 1)]


@pytest.mark.parametrize(("reach", "layers"), STACKS)
@pytest.mark.parametrize("format", ["float64", "float32"])
def test_extract_agrees_with_the_network_on_random_words(
    reach: int, layers: list[tuple[int, ...]], format: str, generator: torch.Generator
) -> None:
    model = build(reach, layers).to(getattr(torch, format)).train()
    found = extract(model, format=format)
    assert model.training
    assert found.weights == digest(model)
    model.eval()
    words = torch.randint(0, 4, (30, 77), generator=generator)
    labels, answers = run(model, words)
    assert np.array_equal(found.machine.output_ids(words.numpy()), labels)
    for got, wanted in zip(followed(found, words.numpy()), (labels, answers), strict=True):
        assert np.array_equal(got, wanted)


@torch.no_grad()
def configurations_by_hand(model: Backbone, symbols: int) -> dict[tuple, list[tuple[tuple, int]]]:
    """Every state of the running network, found by stepping it: indices and what its convolutions hold."""

    def key(state) -> tuple:
        held = [
            (tuple(indices[0].tolist()), None if last is None else last.numpy().round(6).tobytes())
            for last, indices in state
        ]
        return tuple(held)

    beginning = []
    for layer in model.layers:
        last = None if layer.conv is None else layer.conv.initial_state(1)
        beginning.append((last, torch.tensor([layer.block.config.initial_state])))
    states, found = {key(beginning): beginning}, {}
    for name in (queue := list(states)):
        found[name] = []
        for symbol in range(symbols):
            logits, after = model(torch.tensor([[symbol]]), states[name])
            if key(after) not in states:
                states[key(after)] = after
                queue.append(key(after))
            found[name].append((key(after), int(logits[0, 0].argmax())))
    return found


@pytest.mark.parametrize(("reach", "layers"), STACKS)
def test_extract_finds_exactly_the_configurations_of_the_network(reach: int, layers: list[tuple[int, ...]]) -> None:
    model = build(reach, layers, symbols=3).double().eval()
    found, wanted = extract(model), configurations_by_hand(model, 3)
    assert len(found.configurations) == len(wanted)
    number = dict(zip(wanted, range(len(wanted)), strict=True))  # both are breadth-first in the order of symbols
    assert found.tables.T.tolist() == [[number[to] for to, _ in steps] for steps in wanted.values()]
    assert found.readout.T.tolist() == [[label for _, label in steps] for steps in wanted.values()]


def test_extract_tables_and_margins_are_those_of_the_layer() -> None:
    model = build(1, [(3, 4)]).double().eval()
    found, (layer,) = extract(model, symbols="wxyz"), model.layers
    with torch.no_grad():
        logits = layer.block.logits(layer.block_input(model.encode(torch.arange(4)))[0])
    for head, theta in enumerate(logits):
        assert np.array_equal(found.head_tables[head], theta.argmax(-2).numpy())
        top = theta.sort(dim=-2, descending=True).values
        used = np.isfinite(found.margins[0][head])
        assert np.allclose(found.margins[0][head][used], (top[:, 0] - top[:, 1]).numpy()[used], rtol=1e-12)
    weakest = found.weakest
    assert weakest.margin == min(margins.min() for margins in found.margins[0])
    symbol = "wxyz".index(weakest.symbol)
    column = logits[weakest.head][symbol, :, weakest.index]
    assert column.argsort(descending=True)[:2].tolist() == [weakest.successor, weakest.runner_up]
    assert f"layer 0, head {weakest.head}: '{weakest.symbol}' sends index {weakest.index}" in str(weakest)


def test_extract_gives_unused_columns_no_margin() -> None:
    found = extract(build(1, [(9, 9)], symbols=2))
    for head, margins in enumerate(found.margins[0]):
        met = np.unique(found.configurations[:, head])
        assert 1 < len(met) < 9
        assert np.isfinite(margins[:, met]).all()
        assert np.isinf(np.delete(margins, met, axis=1)).all()


def test_extract_label_margins_are_those_of_the_read_out(generator: torch.Generator) -> None:
    model = build(2, [(3, 2), (2,)]).double().eval()
    found = extract(model)
    words = torch.randint(0, 4, (1, 300), generator=generator)
    with torch.no_grad():
        top = model(words)[0][0].sort(dim=-1, descending=True).values
    at = 0
    for symbol, logits in zip(words[0].tolist(), top.numpy(), strict=True):
        final, at = found.readout_ids[symbol, at], found.tables[symbol, at]
        assert found.label_margins[final] == pytest.approx(logits[0] - logits[1], rel=1e-9)


def no_two_in_a_row(symbols: int) -> Moore:
    """Words in which no symbol follows itself, and which end after a 0."""
    tables = np.empty((symbols, symbols + 3), int)
    start, end, refused = symbols, symbols + 1, symbols + 2
    for symbol in range(symbols):
        tables[symbol, :] = symbol if symbol else end
        tables[symbol, [symbol, end, refused]] = refused
    return Moore(
        symbols=tuple(map(str, range(symbols))), tables=tables, start=start,
        outputs=("refused", "begun"), readout=[1] * (symbols + 2) + [0],
    )  # fmt: skip


@pytest.mark.parametrize("reach", [1, 2, 3])
def test_extract_follows_only_words_of_the_grammar(reach: int) -> None:
    model = build(reach, [(3, 2), (2,)]).eval()
    grammar = no_two_in_a_row(4)
    found = extract(model, grammar=grammar)
    rng = np.random.default_rng(5)
    for _ in range(50):
        word = [int(rng.integers(1, 4))]
        while len(word) < 40:
            word.append(int(rng.choice([a for a in (1, 2, 3) if a != word[-1]])))
        word.append(0)
        labels, answers = run(model, torch.tensor([word]))
        said = followed(found, np.array([word]))
        assert np.array_equal(said[0], labels)
        assert np.array_equal(said[1], answers)
    refused = len(found.configurations)
    assert found.machine.run([1, 2, 1, 1]) == refused
    assert found.machine.run([1, 2, 0, 1]) == refused
    assert found.machine.run([1, 2, 0]) != refused
    assert found.machine.outputs[found.machine.output_ids([1, 1])[1]] == "refused"
    permitted = extract(model).tables.shape[1]
    assert len(np.unique(found.configurations, axis=0)) <= permitted


def test_extract_drops_a_grammar_that_refuses_nothing() -> None:
    model = build(2, [(3,)])
    found = extract(model, grammar=all_words(tuple("0123")))
    assert found.grammar is None
    assert found.machine == extract(model).machine


def test_extract_with_fewer_symbols_than_tokens() -> None:
    model = build(1, [(3, 2)]).eval()
    found = extract(model, symbols=("a", "b"))
    assert found.symbols == ("a", "b")
    assert np.array_equal(found.head_tables[0], extract(model).head_tables[0][:2])


def test_extract_keeps_names() -> None:
    model = build(2, [(3,)])
    found = extract(model, symbols="wxyz", labels=[f"q{i}" for i in range(6)], answers=("yes", "no", "perhaps"))
    assert found.machine.symbols == ("w", "x", "y", "z")
    assert found.machine.outputs == tuple(f"q{i}" for i in range(6))
    assert found.answer_names == ("yes", "no", "perhaps")
    assert repr(found).startswith("Extracted(3; 4 symbols, ")
    assert found.heads == ((3,),)
    assert found.start == (2,)


def test_extracted_arrays_are_read_only() -> None:
    found = extract(build(2, [(3,)]))
    for array in (found.tables, found.label_ids, found.layers[0].tables, found.layers[0].margins):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_extract_does_not_change_the_model() -> None:
    model = build(2, [(3,), (2,)])
    before = digest(model)
    extract(model)
    assert digest(model) == before
    assert next(model.parameters()).dtype == torch.float32


def test_extract_reports_progress() -> None:
    heard: list[tuple[int, int]] = []
    found = extract(build(3, [(3, 2), (2,)]), progress=lambda reached, waiting: heard.append((reached, waiting)))
    assert heard[-1] == (len(found.configurations), 0)
    assert all(reached >= waiting for reached, waiting in heard)


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"configurations": 3}, r"the limit is 3 configurations. Pass a larger Budget\(configurations=...\)"),
        ({"seconds": 1e-9}, r"the limit is 1e-09 seconds. .* or a grammar, so that only its words are explored"),
        ({"memory": 1000}, r"this model reached .* configurations .* the limit is 1,000 bytes"),
    ],
)
def test_extract_keeps_its_budget(limits: dict[str, float], sentence: str) -> None:
    with pytest.raises(BudgetExceeded, match=sentence):
        extract(build(3, [(3, 2), (2,)]), budget=Budget(**limits))


def test_extract_refuses_what_it_cannot_read() -> None:
    model = build(1, [(3,)])
    with pytest.raises(UnknownName, match=r"unknown format 'float31'\. Did you mean"):
        extract(model, format="float31")
    with pytest.raises(InvalidInput, match="this model has 4 symbols; got names for 5"):
        extract(model, symbols="vwxyz")
    with pytest.raises(InvalidInput, match="this model has 6 labels; got names for 2"):
        extract(model, labels=("a", "b"))
    with pytest.raises(InvalidMachine, match=r"the grammar reads .*, the model .*; the order must be the same"):
        extract(model, symbols="wxyz", grammar=no_two_in_a_row(4))
    nothing = Moore(symbols=tuple("wxyz"), tables=[[0]] * 4, outputs=("refused",), readout=[0])
    with pytest.raises(InvalidMachine, match="this grammar refuses every word"):
        extract(model, symbols="wxyz", grammar=nothing)
    with pytest.raises(InvalidInput, match="tables can be extracted from NFSM blocks; layer 1 holds a GRU"):
        extract(Backbone(3, 3, [NFSM(8, (2,)), torch.nn.GRU(8, 8)], width=8))
    with pytest.raises(InvalidConfig, match="the limits of an exploration must be positive"):
        Budget(seconds=0)
    with pytest.raises(InvalidInput, match="the tables of 1 layers with a kernel size of 2 depend on more than"):
        extract(build(2, [(3,)])).head_tables  # noqa: B018
    with torch.no_grad():
        model.layers[0].block.weight[0, 0] = float("nan")
    with pytest.raises(InvalidInput, match="the logits of layer 0 are not all finite"):
        extract(model)


def model() -> nn.Module:
    linear = nn.Linear(2, 3)
    with torch.no_grad():
        linear.weight.copy_(torch.arange(6.0).view(3, 2))
        linear.bias.copy_(torch.tensor([0.5, -0.0, 2.0]))
    return nn.Sequential(linear)


def test_digest_is_the_one_of_the_docstring() -> None:
    text = b"0.bias float32 3\n" + struct.pack("<3f", 0.5, -0.0, 2.0) + b"\n"
    text += b"0.weight float32 3x2\n" + struct.pack("<6f", *range(6)) + b"\n"
    assert digest(model()) == hashlib.sha256(text).hexdigest()


def test_digest_does_not_depend_on_mode_or_layout() -> None:
    other = deepcopy(model()).eval()
    other[0].weight = nn.Parameter(other[0].weight.detach().T.contiguous().T)
    assert not other[0].weight.is_contiguous()
    assert digest(other) == digest(model())


@pytest.mark.parametrize("name", ["0.weight", "0.bias"])
@torch.no_grad()
def test_digest_notices_the_smallest_change(name: str) -> None:
    other = model()
    flat = dict(other.named_parameters())[name].view(-1)
    flat[1] = torch.nextafter(flat[1], torch.tensor(9.0))
    assert digest(other) != digest(model())


@torch.no_grad()
def test_digest_distinguishes_zeros_shapes_types_and_names() -> None:
    signed = model()
    signed[0].bias[1] = 0.0
    reshaped = model()
    reshaped[0].weight = nn.Parameter(reshaped[0].weight.view(2, 3))
    found = {digest(one) for one in (model(), signed, reshaped, model().double(), nn.ModuleDict({"a": model()}))}
    assert len(found) == 5
