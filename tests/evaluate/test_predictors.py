"""Predictors: tables and network predict the same, in one pass or chunk by chunk."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from exactstate.errors import InvalidConfig, UnknownName
from exactstate.evaluate import NetworkPredictor, SequencePredictor, TablePredictor
from exactstate.extract import extract
from exactstate.nn import NFSM, Backbone
from exactstate.tasks import task
from exactstate.train import TrainConfig
from exactstate.train.build import build_model

S3, TSO = task("S3"), task("TSO3")


def untrained(heads: tuple[int, ...], seed: int = 0) -> Backbone:
    weights = torch.Generator().manual_seed(seed)
    return Backbone(2, 6, [NFSM(16, heads, remember=0.0, generator=weights)], width=16, generator=weights).eval()


def predict(predictor: SequencePredictor, inputs: np.ndarray, *cuts: int) -> np.ndarray:
    parts, state = [], None
    for piece in np.split(inputs, cuts, axis=1):
        predictions, state = predictor(piece, state)
        parts.append(predictions)
    return np.concatenate(parts, axis=1)


@pytest.mark.parametrize("heads", [(5,), (3, 2), (4, 3, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_table_predictor_and_network_predictor_agree(heads: tuple[int, ...], seed: int) -> None:
    model = untrained(heads, seed)
    inputs = S3.sample(5, 300, np.random.default_rng(seed)).inputs
    tables = TablePredictor(extract(model, format="float32"))
    whole = predict(NetworkPredictor(model), inputs)
    assert len(np.unique(whole)) > 1, "a network with one output would show nothing"
    assert np.array_equal(predict(tables, inputs), whole)
    assert np.array_equal(predict(tables, inputs, 1, 7, 128), whole)
    assert np.array_equal(predict(NetworkPredictor(model), inputs, 1, 7, 128), whole)


def test_table_predictor_of_another_machine_differs() -> None:
    inputs = S3.sample(5, 300, np.random.default_rng(0)).inputs
    one, other = (
        predict(TablePredictor(extract(untrained((3, 2), seed), format="float32")), inputs) for seed in (0, 1)
    )
    assert not np.array_equal(one, other)


def test_table_predictor_and_network_predictor_agree_on_answers() -> None:
    """A stack with a convolution, on words of the grammar; answers are those at the last symbol."""
    weights = torch.Generator().manual_seed(1)
    model = build_model(TrainConfig(task="TSO3", width=16), TSO, heads=((2, 2), (2,)), generator=weights).eval()
    inputs = TSO.sample(6, 40, np.random.default_rng(0)).inputs
    extracted = extract(model, grammar=TSO.grammar, format="float32")
    for answers in (False, True):
        expected = predict(NetworkPredictor(model, answers=answers), inputs, 3, 20)
        assert np.array_equal(predict(TablePredictor(extracted, answers=answers), inputs, 11), expected)


@pytest.mark.parametrize("format", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("cell", ["mamba", "aussm", "pdssm", "bmru"])
def test_network_predictor_of_a_baseline_continues_from_its_state(cell: str, format: str) -> None:
    """The state keeps its format, and in float32 it is that of one long pass, to a few roundings of 1e-7 a step."""
    config = TrainConfig(task="S3", cell=cell, layers=2, width=8, channels=4, states=2)
    model = build_model(config, S3, generator=torch.Generator().manual_seed(0))
    inputs = S3.sample(3, 96, np.random.default_rng(0)).inputs
    predictor = NetworkPredictor(model, format)
    _, once = predictor(inputs, None)
    _, first = predictor(inputs[:, :48], None)
    _, twice = predictor(inputs[:, 48:], first)
    for one, other in zip(once, twice, strict=True):
        assert one.dtype == other.dtype
        if format == "float32":
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_predictors_reject_unknown_formats_and_missing_answers() -> None:
    model = untrained((3,))
    with pytest.raises(UnknownName, match="unknown format 'float8'"):
        NetworkPredictor(model, "float8")
    with pytest.raises(InvalidConfig, match="this network gives no answers"):
        NetworkPredictor(model, answers=True)
    with pytest.raises(InvalidConfig, match="this machine gives no answers"):
        TablePredictor(extract(model, format="float32"), answers=True)
