"""Length sweeps of runs, from their folders."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from detent.errors import BrokenFile
from detent.evaluate import sweep_run
from detent.tasks import task
from detent.train.build import judged
from detent.train.build import network as machine_network
from detent.train.config import Plan
from detent.train.induce import Run
from detent.train.run import finish
from detent.train.run_dir import RunDir

S3 = task("S3")


def test_sweep_run_fails_at_the_same_length_by_tables_and_by_network(tmp_path: Path) -> None:
    plan = Plan(task="S3", width=16, heads=(3, 2))
    model = machine_network(S3, ((3, 2),), width=16, generator=torch.Generator().manual_seed(0)).eval()
    RunDir(tmp_path / "run").claim(asdict(plan), S3)
    finish(tmp_path / "run", Run(plan, S3, model, *judged(model, S3), 0, 0, 0.0, []))
    swept, row = sweep_run(tmp_path / "run", max_length=1 << 20, batch=8)
    exact, other = sweep_run(tmp_path / "run", max_length=1 << 20, batch=8, exact_forward=True)
    assert swept.failing_length == exact.failing_length
    assert swept.failing_length is not None
    assert swept.accuracies == exact.accuracies
    assert (row["path"], other["path"], row["threshold"], row["certified"]) == ("tables", "network", 1.0, False)
    assert [path.name for path in (tmp_path / "run").glob(".sweep*")] == []


def test_sweep_run_rejects_a_folder_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match=r"this is not the folder of a run: there is no config\.json in it"):
        sweep_run(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(BrokenFile, match="this is not the configuration of a run"):
        sweep_run(tmp_path)
