"""`detent sweep`: sentence, row, exit code."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from detent import records
from detent.cli._app import run
from detent.train.baselines import BaselinePlan, train
from detent.train.build import Size


@pytest.fixture
def untrained(tmp_path: Path) -> Path:
    plan = BaselinePlan.named("S3", "mamba")
    settings = replace(plan.settings, batch=2, length=4, steps=1, check_every=1, check_words=4)
    plan = replace(plan, size=Size(layers=1, width=8, channels=4, states=2), settings=settings)
    train(plan, tmp_path / "run")
    return tmp_path / "run"


def test_a_failure_is_a_sentence_a_row_and_exit_code_1(untrained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", str(untrained), "--batch", "8", "--max-length", "1024"]) == 1
    out = capsys.readouterr().out
    assert "S3: fails at length" in out
    assert out.endswith(f"now in {untrained / 'report.html'}\n")
    assert "mamba: fails at length" in (untrained / "report.html").read_text()
    (row,) = records.read(untrained / "sweeps.jsonl")
    assert (row["batch"], row["threshold"], row["format"], row["max_length"]) == (8, 0.9, "float32", 1024)
    assert {"machine", "date", "command", "words_seed", "seed"} <= set(row)


def test_json_and_a_file_of_ones_own(untrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tmp_path / "rows.jsonl"
    assert run(["sweep", str(untrained), "--json", "--format", "float16", "--rows", str(rows)]) == 1
    assert json.loads(capsys.readouterr().out) == next(records.read(rows))
    assert next(records.read(rows))["format"] == "float16"
    assert not (untrained / "report.html").exists()


def test_wrong_calls(untrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", str(tmp_path / "nowhere")]) == 2
    assert "this is not the folder of a run" in capsys.readouterr().err
    assert run(["sweep", str(untrained), "--format", "float8"]) == 2
    assert "unknown format 'float8'" in capsys.readouterr().err


def test_a_baseline_is_trained_with_one_word_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "S3", "--cell", "mambo"]) == 2
    assert "unknown cell 'mambo'. Did you mean 'mamba'? Known: nfsm, mamba, aussm" in capsys.readouterr().err
    assert run(["train", "S3", "--cell", "mamba", "--supervise", "outputs"]) == 2
    assert "a baseline is told the states; leave --supervise outputs out" in capsys.readouterr().err
    assert run(["train", "S3", "--cell", "mamba", "--heads", "3"]) == 2
    assert "heads belong to the NFSM" in capsys.readouterr().err
    assert run(["extract", str(tmp_path)]) == 2


def test_a_baseline_has_no_machine(untrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["extract", str(untrained), "-o", str(tmp_path / "machine.json")]) == 2
    assert "this is a run of 'mamba', which has no tables to read out; sweep it." in capsys.readouterr().err
