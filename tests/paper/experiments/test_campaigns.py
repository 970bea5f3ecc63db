"""The campaigns: their jobs, the keys of the stored rows, and a small run of each kind of job."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from exactstate import records
from exactstate.certify.check import check
from exactstate.train import Run, configure
from exactstate.train.recipes import RECIPES
from paper.cli import run as command
from paper.experiments.campaigns import CAMPAIGNS, free_story_row, stack_row

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", ["training", "stories", "story_stream", "geometry"])
def test_jobs_are_done_by_the_stored_rows(name: str) -> None:
    """Every job of these campaigns has its row, so that repeating the command computes nothing."""
    campaign = CAMPAIGNS[name]
    rows = list(records.read(ROOT / "results" / campaign.file))
    jobs = list(campaign.jobs(campaign.options()))
    assert jobs
    assert [job.key for job in jobs if not job.is_done(rows)] == []


def test_jobs_have_different_keys(tmp_path: Path) -> None:
    (tmp_path / "somebody+machines").mkdir()
    for name in ("one", "two"):
        (tmp_path / "somebody+machines" / f"{name}.dot").write_text('digraph { a -> a [label="x / y"] }')
    for name, campaign in CAMPAIGNS.items():
        settings = [f"folder={tmp_path}"] if "folder" in campaign.settings else []
        options = campaign.options(runs=Path("nowhere"), settings=settings)
        keys = [json.dumps(job.key) for job in campaign.jobs(options)]
        assert len(keys) == len(set(keys)), name


def test_run_training_writes_a_row_and_a_certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tmp_path / "rows.jsonl"
    arguments = ["run", "training", "--tasks", "Z2", "--seeds", "42", "--rows", str(rows)]
    assert command(arguments) == 0
    assert f"training: 2 new rows in {rows}, 0 jobs skipped" in capsys.readouterr().out
    chosen, given = records.read(rows)
    assert (chosen["heads_given"], given["heads_given"]) == (None, [2])
    assert chosen["certified"]
    assert given["certified"]
    certificate = tmp_path / "certificates" / "Z2-42.json"
    assert check(certificate)
    assert json.loads(certificate.read_text(encoding="utf-8"))["sha256"] == chosen["certificate"]
    assert command(arguments) == 0
    assert f"training: 0 new rows in {rows}, 2 jobs skipped" in capsys.readouterr().out


def test_run_baselines_resumes_paused_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = configure("Z2", cell="mamba", seed=7, layers=2, width=8, channels=4, states=2, dropout=0.1)
    phase = replace(config.end_to_end, batch=4, length=8, steps=6, check_every=2, check_words=8, grow_length=False)
    config = replace(config, end_to_end=phase)
    monkeypatch.setitem(RECIPES, "cpu", replace(RECIPES["cpu"], make=lambda *_: config))
    rows = tmp_path / "rows.jsonl"
    arguments = ["run", "baselines", "--rows", str(rows), "--runs", str(tmp_path), "--tasks", "Z2", "--cells", "mamba"]
    for until in (["--set", "until=3"], ["--set", "until=4"], [], []):
        assert command([*arguments, "--seeds", "7", *until]) == 0
    found = [(row["steps"], row["resumed_at"], row["finished"]) for row in records.read(rows)]
    assert found == [(3, 0, False), (4, 3, False), (6, 4, True)]


def test_run_sweeps_every_finished_run(stack: Run, stack_folder: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    arguments = ["run", "sweeps", "--runs", str(stack_folder.parent), "--rows", str(rows), "--set", "max_length=64"]
    assert command([*arguments, "--set", "batch=4"]) == 0
    (row,) = records.read(rows)
    assert (row["folder"], row["max_length"], row["batch"], row["failing_length"]) == (stack_folder.name, 64, 4, None)


def test_stack_row_of_a_certified_stack(stack: Run) -> None:
    row = stack_row(stack)
    assert (row["task"], row["recipe"], row["seed"], row["certified"]) == ("TSO2", "distill", 42, True)
    assert row["right_in_any_order"] is True
    assert row["states"] == 12
    assert row["certificate"] == stack.certificate().sha256


def test_free_story_row_reports_how_far_it_got() -> None:
    row = free_story_row("TSO2", 0, seconds=0.0, length=16)
    assert (row["recipe"], row["certified"], row["steps"]) == ("paper", False, 1)
    assert row["loss"] > 0
    assert 0 <= row["first_error"] <= 16
