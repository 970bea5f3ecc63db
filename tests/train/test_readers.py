"""The tables and the network say the same, at once or in pieces; and a run is swept from its folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from detent.errors import BrokenFile, InvalidConfig, UnknownName
from detent.evaluate.predictors import NetworkReader, Reader, TableReader
from detent.evaluate.sweep_run import sweep_run
from detent.extract import extract
from detent.nn import NFSM, Backbone
from detent.tasks import task
from detent.train.build import Size, judged
from detent.train.build import cell_network as network
from detent.train.build import network as machine_network
from detent.train.config import Plan
from detent.train.induce import Run
from detent.train.run_dir import finish, prepare

S3, TSO = task("S3"), task("TSO3")


def untrained(heads: tuple[int, ...], seed: int = 0) -> Backbone:
    weights = torch.Generator().manual_seed(seed)
    return Backbone(2, 6, [NFSM(16, heads, generator=weights)], width=16, generator=weights).eval()


def said(reader: Reader, inputs: np.ndarray, *cuts: int) -> np.ndarray:
    parts, held = [], None
    for piece in np.split(inputs, cuts, axis=1):
        spoken, held = reader(piece, held)
        parts.append(spoken)
    return np.concatenate(parts, axis=1)


@pytest.mark.parametrize("heads", [(5,), (3, 2), (4, 3, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_tables_and_network_say_the_same(heads: tuple[int, ...], seed: int) -> None:
    model = untrained(heads, seed)
    inputs = S3.sample(5, 300, np.random.default_rng(seed)).inputs
    tables = TableReader(extract(model, format="float32"))
    whole = said(NetworkReader(model), inputs)
    assert len(np.unique(whole)) > 1, "a network that says one thing would show nothing"
    assert np.array_equal(said(tables, inputs), whole)
    assert np.array_equal(said(tables, inputs, 1, 7, 128), whole)
    assert np.array_equal(said(NetworkReader(model), inputs, 1, 7, 128), whole)


def test_another_machine_says_something_else() -> None:
    inputs = S3.sample(5, 300, np.random.default_rng(0)).inputs
    one, other = (said(TableReader(extract(untrained((3, 2), seed), format="float32")), inputs) for seed in (0, 1))
    assert not np.array_equal(one, other)


def test_answers_of_stories() -> None:
    """A stack with a convolution, on permitted words; answers are those at the last symbol."""
    weights = torch.Generator().manual_seed(1)
    model = machine_network(TSO, ((2, 2), (2,)), width=16, generator=weights).eval()
    inputs = TSO.sample(6, 40, np.random.default_rng(0)).inputs
    found = extract(model, grammar=TSO.grammar, format="float32")
    for answers in (False, True):
        network_says = said(NetworkReader(model, answers=answers), inputs, 3, 20)
        assert np.array_equal(said(TableReader(found, answers=answers), inputs, 11), network_says)


@pytest.mark.parametrize("format", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("cell", ["mamba", "aussm", "pdssm", "bmru"])
def test_a_baseline_goes_on_where_it_stopped(cell: str, format: str) -> None:
    """What is held keeps its format, and in float32 it is that of one long pass, to a few roundings of 1e-7 a step."""
    size = Size(layers=2, width=8, channels=4, states=2)
    model = network(cell, size, S3, torch.Generator().manual_seed(0))
    inputs = S3.sample(3, 96, np.random.default_rng(0)).inputs
    reader = NetworkReader(model, format)
    _, once = reader(inputs, None)
    _, first = reader(inputs[:, :48], None)
    _, twice = reader(inputs[:, 48:], first)
    for one, other in zip(once, twice, strict=True):
        assert one.dtype == other.dtype
        if format == "float32":
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_what_there_is_not_is_refused() -> None:
    model = untrained((3,))
    with pytest.raises(UnknownName, match="unknown format 'float8'"):
        NetworkReader(model, "float8")
    with pytest.raises(InvalidConfig, match="this network gives no answers"):
        NetworkReader(model, answers=True)
    with pytest.raises(InvalidConfig, match="this machine gives no answers"):
        TableReader(extract(model, format="float32"), answers=True)


def test_an_untrained_machine_fails_by_tables_and_by_network_alike(tmp_path: Path) -> None:
    plan = Plan(task="S3", width=16, heads=(3, 2))
    model = machine_network(S3, ((3, 2),), width=16, generator=torch.Generator().manual_seed(0)).eval()
    prepare(tmp_path / "run", plan, S3)
    finish(tmp_path / "run", Run(plan, S3, model, *judged(model, S3), 0, 0, 0.0, []))
    swept, row = sweep_run(tmp_path / "run", longest=1 << 20, batch=8)
    exact, other = sweep_run(tmp_path / "run", longest=1 << 20, batch=8, exact_forward=True)
    assert swept.failing == exact.failing
    assert swept.failing is not None
    assert swept.accuracies == exact.accuracies
    assert (row["path"], other["path"], row["bar"], row["certified"]) == ("tables", "network", 1.0, False)
    assert [path.name for path in (tmp_path / "run").glob(".sweep*")] == []


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match=r"this is not the folder of a run: it has no config\.json"):
        sweep_run(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(BrokenFile, match="this is not the plan of a run"):
        sweep_run(tmp_path)
