"""Sweeps of questions: doubling, bisecting, and answers alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from detent.errors import InvalidConfig
from detent.evaluate import Bar, sweep_questions
from detent.evaluate.length_sweep import Scores
from detent.evaluate.predictors import Held
from detent.tasks import task

TSO = task("TSO3")


class Reader:
    """Answers rightly in words of less than `fails` symbols; says nonsense everywhere else."""

    def __init__(self, fails: int) -> None:
        self.fails, self.asked = fails, []  # type: ignore[var-annotated]

    def __call__(self, inputs: NDArray[Any], held: Held | None) -> tuple[NDArray[Any], Held]:
        assert TSO.question is not None
        before, read = (np.full(len(inputs), TSO.machine.start), 0) if held is None else (held[0], int(held[1]))
        states = TSO.machine.trajectory(inputs, before)
        said = np.full(inputs.shape, -1)
        if read + inputs.shape[1] < self.fails:
            said[:, -1] = TSO.question.answer(inputs[:, -2] * 0 + TSO.question.ask(inputs[:, -2:]), states[:, -1])
        return said, [states[:, -1], np.array(read + inputs.shape[1])]


def test_the_failing_length_is_found_between_powers_of_two() -> None:
    swept = sweep_questions(Reader(777), TSO, bar=Bar(0.9), batch=8, longest=4096, chunk=4096)
    assert swept.failing == 777
    assert {64, 128, 256, 512, 1024} <= set(swept.accuracies)
    assert 2048 not in swept.accuracies
    assert swept.accuracies[512] == 1.0
    assert swept.accuracies[1024] == 0.0
    assert swept.measure == "questions"


def test_no_failure_and_failure_at_once() -> None:
    assert sweep_questions(Reader(10**9), TSO, bar=Bar(1.0), batch=4, longest=300).failing is None
    assert sweep_questions(Reader(0), TSO, bar=Bar(1.0), batch=4, longest=300).failing == 64


def test_lengths_that_are_known_are_not_asked_again(tmp_path: Path) -> None:
    first = Scores(tmp_path / "known.json", ["TSO3", 8])
    wanted = sweep_questions(Reader(100), TSO, bar=Bar(1.0), batch=8, longest=256, known=first)
    again = Scores(tmp_path / "known.json", ["TSO3", 8])
    assert dict(again) == wanted.accuracies

    def nobody(inputs: NDArray[Any], held: Held | None) -> tuple[NDArray[Any], Held]:
        raise AssertionError("asked again")

    assert sweep_questions(nobody, TSO, bar=Bar(1.0), batch=8, longest=256, known=again).failing == wanted.failing
    assert not Scores(tmp_path / "known.json", ["TSO3", 9]), "of another sweep"
    again.over()
    assert not (tmp_path / "known.json").exists()


def test_half_a_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "known.json").write_text(json.dumps({"asked": [1]})[:-3])
    assert not Scores(tmp_path / "known.json", [1])


def test_a_task_without_questions_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="S3 asks no questions; sweep its words"):
        sweep_questions(Reader(1), task("S3"), bar=Bar(1.0))
    with pytest.raises(InvalidConfig, match="got 64 to 10"):
        sweep_questions(Reader(1), TSO, bar=Bar(1.0), longest=10)
