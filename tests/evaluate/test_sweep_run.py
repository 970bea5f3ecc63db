"""Length sweeps of runs, from their folders."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from exactstate.errors import BrokenFile
from exactstate.evaluate import sweep_run
from exactstate.tasks import task
from exactstate.train import Run, RunDir, TrainConfig
from exactstate.train.build import build_model
from exactstate.train.verify import extract_and_certify

S3 = task("S3")


def test_sweep_run_fails_at_the_same_length_by_tables_and_by_network(tmp_path: Path) -> None:
    config, run_dir = TrainConfig(task="S3", width=16, heads=(3, 2)), RunDir(tmp_path / "run")
    model = build_model(config, S3, generator=torch.Generator().manual_seed(0)).eval()
    run_dir.claim(config, S3)
    Run(config=config, task=S3, model=model, result=extract_and_certify(model, S3)).save(run_dir)
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
