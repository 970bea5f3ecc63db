"""Models written elsewhere: traced, extracted, compared with running them; and what is refused, with its sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import exactstate
from exactstate.certify import Certificate
from exactstate.certify.check import check
from exactstate.errors import ExactstateError, InvalidInput
from exactstate.extract import Adapter, Extracted, rounding_errors
from tests.extract.graph.architectures import (
    FINITE,
    LABELS,
    REFUSED,
    TOKENS,
    WIDTH,
    Around,
    CausalConv,
    LowRank,
    Parallel,
    Plain,
    Vectors,
    build,
)  # fmt: skip

SYMBOLS = ["a", "b", "c"]


def read(model: nn.Module, **options: Any) -> tuple[Extracted, torch.Tensor | None]:
    """The machine of one of the architectures, and the vectors of its symbols."""
    if isinstance(model, Vectors):
        vectors = torch.randn(TOKENS, 2, generator=torch.Generator().manual_seed(1))
        return exactstate.extract(model, inputs=dict(zip(SYMBOLS, vectors, strict=True)), **options), vectors
    return exactstate.extract(model, symbols=SYMBOLS, **options), None


def labels_of(model: nn.Module, words: np.ndarray, vectors: torch.Tensor | None) -> np.ndarray:
    """The labels of the model itself, in float64."""
    tokens = torch.from_numpy(words)
    with torch.no_grad():
        logits = model.double()(tokens if vectors is None else vectors.double()[tokens])
    return (logits[0] if isinstance(logits, tuple) else logits).argmax(-1).numpy()


@pytest.mark.parametrize("kind", FINITE, ids=lambda kind: kind.__name__)
def test_extract_finds_the_machine_of_a_foreign_model(kind: type[nn.Module]) -> None:
    model = build(kind)
    machine, vectors = read(model)
    words = np.random.default_rng(0).integers(0, TOKENS, (40, 25))
    state, found = np.zeros(len(words), int), []
    for symbols in words.T:
        found.append(machine.readout[symbols, state])
        state = machine.tables[symbols, state]
    assert np.array_equal(np.stack(found, 1), labels_of(model, words, vectors))

    standalone = machine.to_machine()
    word = [SYMBOLS[symbol] for symbol in words[0]]
    assert standalone.outputs(word) == [str(label) for label in np.stack(found, 1)[0]]
    if kind is LowRank:
        with pytest.raises(InvalidInput, match=r"the rounding of softmax in the model \(LowRank\) is not bounded"):
            rounding_errors(model.float(), machine, "float32")
        return
    errors = rounding_errors(model.float(), machine, "float64")
    target = machine.minimized
    verdict = exactstate.certify(machine, target, labels="outputs")
    certificate = Certificate.of(machine, verdict, rounding={"float64": errors})
    assert certificate.proved == ("float64",)


@pytest.mark.parametrize("wrong", list(REFUSED))
def test_extract_refuses_what_is_not_finite_state(wrong: str) -> None:
    sentences = {
        "attention": r"module 'inner' \(MultiheadAttention\) attends to other steps; attention over the past is not",
        "recurrence": r"module 'inner' \(GRU\) is another recurrence, whose state is a real vector",
        "batch statistics": r"module 'inner' \(BatchNorm1d\) uses the statistics of the batch",
        "mean over steps": r"the model \(Around\) sums over the steps or the batch, which no finite state can hold",
        "running sum": r"the model \(Around\) sums over all steps so far, which no finite state can hold",
        "positions": r"depends on the position of a step",
        "future": r"reads 1 steps ahead",
        "reversal": r"reverses the order of steps",
    }
    with pytest.raises(InvalidInput, match=sentences[wrong]) as caught:
        exactstate.extract(build(REFUSED[wrong]), symbols=SYMBOLS)
    assert "Adapter" in str(caught.value)


def test_extract_certificate_of_a_foreign_model_checks(tmp_path: Any) -> None:
    for kind in (Plain, CausalConv, Parallel):
        model = build(kind)
        machine, _ = read(model)
        verdict = exactstate.certify(machine, machine.minimized, labels="outputs")
        rounding = {format: rounding_errors(model, machine, format) for format in ("float64", "float32")}
        certificate = Certificate.of(machine, verdict, name=kind.__name__, rounding=rounding)
        certificate.write(tmp_path / "certificate.json")
        report = check(tmp_path / "certificate.json")
        assert report, report.findings
        assert "float32" in certificate.proved


def test_digest_covers_weights_buffers_and_operations() -> None:
    model = build(Plain)
    digest = read(model)[0].weights
    assert read(build(Plain))[0].weights == digest
    model.mlp[2] = nn.GELU().eval()  # no parameter changes
    assert read(model)[0].weights != digest
    other = build(Plain)
    with torch.no_grad():
        other.mlp[4].bias[0] += 1e-6
    assert read(other)[0].weights != digest


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_extract_unwraps_compiled_models() -> None:
    model = build(Plain)
    compiled = torch.compile(model)
    assert np.array_equal(read(compiled)[0].tables, read(model)[0].tables)


def test_adapter_equals_tracing() -> None:
    model = build(Plain).double()
    adapter = Adapter(
        encode=model.embedding,
        layers=[(model.memory, model.norm, torch.add)],
        read=lambda h: model.readout(h + model.mlp(h)),
        model=model,
    )
    machine, traced = exactstate.extract(adapter, symbols=SYMBOLS), read(model)[0]
    assert np.array_equal(machine.tables, traced.tables)
    assert np.array_equal(machine.readout, traced.readout)
    with pytest.raises(InvalidInput, match="comes from an adapter"):
        rounding_errors(model, machine, "float32")


def _quantized() -> nn.Module:
    model = build(Plain)
    model.mlp = torch.ao.quantization.quantize_dynamic(model.mlp, {nn.Linear}, dtype=torch.qint8)
    return model


def _not_finite() -> nn.Module:
    model = build(Plain)
    with torch.no_grad():
        model.readout.bias[1] = float("nan")
    return model


class Looping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.memory = nn.Embedding(TOKENS, WIDTH), exactstate.NFSM(WIDTH, (2,))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        h = self.embedding(tokens)
        return self.memory(h)[0] if bool(h.sum() > 0) else h


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:torch.quantize_per_tensor")
@pytest.mark.parametrize(("model", "options", "sentence"), [
    (lambda: build(Plain).train(), {}, r"Plain is in training mode.*call model.eval\(\) first"),
    (lambda: build(Plain), {"symbols": None}, r"which symbols does the model read\? Pass symbols"),
    (lambda: build(Plain), {"symbols": ["a", "a"]}, r"one or more different names; got \['a', 'a'\]"),
    (lambda: build(Plain), {"symbols": list("abcd")}, r"has 3 rows; got 4 symbols"),
    (lambda: build(Plain), {"labels": ["x"]}, r"this model has 4 labels; got names for 1"),
    (_quantized, {}, r"module 'mlp.1' \(Linear\) is quantized: its scale is chosen from the whole batch"),
    (_not_finite, {}, r"'readout.bias' is not finite everywhere"),
    (lambda: build(Plain).to("meta"), {}, r"is on the device 'meta' and has no numbers"),
    (lambda: nn.Linear(3, 3).eval(), {}, r"Linear contains no NFSM layer"),
    (lambda: build(Looping), {}, r"Looping could not be traced for every length"),
    (lambda: build(lambda: Around(None, lambda inner, h: h[:, -1:])), {}, r"picks single steps"),
])  # fmt: skip
def test_extract_bad_input_gets_a_sentence(model: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ExactstateError, match=sentence):
        exactstate.extract(model(), **{"symbols": SYMBOLS, **options})


@pytest.mark.parametrize(("vectors", "sentence"), [
    ({"a": torch.zeros(2), "b": torch.tensor([1.0, float("nan")])}, r"symbol 'b' is not finite everywhere"),
    ({"a": torch.zeros(2), "b": torch.zeros(3)}, r"one width; got \[2, 3\]"),
    ({"a": torch.zeros(2, dtype=torch.long)}, r"a vector of floating-point numbers; got torch.int64"),
    ({"a": torch.zeros(5)}, r"could not be traced"),
    ({"a": torch.zeros(2), "b": -torch.zeros(2)}, r"symbols 'a' and 'b' have the same input: it could be read as"),
])  # fmt: skip
def test_extract_bad_vectors_get_a_sentence(vectors: dict[str, torch.Tensor], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        exactstate.extract(build(Vectors), inputs=vectors)


def test_extract_reads_half_precision_models_as_they_are() -> None:
    model = build(Plain).to(torch.bfloat16)
    machine, _ = read(model)
    words = np.random.default_rng(0).integers(0, TOKENS, (4, 9))
    state, found = np.zeros(4, int), []
    for symbols in words.T:
        found.append(machine.readout[symbols, state])
        state = machine.tables[symbols, state]
    assert np.array_equal(np.stack(found, 1), labels_of(model, words, None))
    assert len(machine.label_names) == LABELS
