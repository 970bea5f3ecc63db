"""Length sweeps of predictors whose errors are known, against words drawn whole and scored length by length."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from exactstate.errors import InvalidConfig
from exactstate.evaluate import AccuracyThreshold, length_sweep, sweep_questions, sweep_words
from exactstate.evaluate.length_sweep import SweepCheckpoint
from exactstate.evaluate.predictors import PredictorState
from exactstate.tasks import Task
from exactstate.tasks import task as get_task

S3, FF, TSO = get_task("S3"), get_task("FF"), get_task("TSO3")


class FaultyMachine:
    """The task's own machine, which is wrong in word b at position errors[b], and only there."""

    def __init__(self, task: Task, errors: dict[int, int]) -> None:
        self.machine, self.errors, self.read = task.machine, errors, 0

    def __call__(self, inputs: NDArray[Any], state: PredictorState | None) -> tuple[NDArray[Any], PredictorState]:
        start, position = (np.full(len(inputs), self.machine.start), 0) if state is None else (state[0], int(state[1]))
        predictions = np.array(self.machine.trajectory(inputs, start), dtype=np.int64)
        ends = predictions[:, -1].copy()
        for word, at in self.errors.items():
            if position <= at < position + predictions.shape[1]:
                predictions[word, at - position] = -1
        self.read += inputs.shape[1]
        return predictions, [ends, np.array(position + inputs.shape[1])]


class ShortMemory:
    """Answers questions correctly in words of fewer than `fails` symbols; predicts -1 everywhere else."""

    def __init__(self, fails: int) -> None:
        self.fails = fails

    def __call__(self, inputs: NDArray[Any], state: PredictorState | None) -> tuple[NDArray[Any], PredictorState]:
        assert TSO.question is not None
        before, read = (np.full(len(inputs), TSO.machine.start), 0) if state is None else (state[0], int(state[1]))
        states = TSO.machine.trajectory(inputs, before)
        predictions = np.full(inputs.shape, -1)
        if read + inputs.shape[1] < self.fails:
            questions = TSO.question.query(inputs[:, -2:])
            predictions[:, -1] = TSO.question.answer(inputs[:, -2] * 0 + questions, states[:, -1])
        return predictions, [states[:, -1], np.array(read + inputs.shape[1])]


@pytest.mark.parametrize("chunk", [1, 7, 64, 4096])
@pytest.mark.parametrize("share", [1.0, 0.9, 0.75])
def test_sweep_words_finds_the_failing_length_of_every_length_scored_alone(share: float, chunk: int) -> None:
    errors = {3: 70, 5: 71, 0: 150, 7: 151, 2: 152, 9: 12}
    swept = sweep_words(
        FaultyMachine(S3, errors), S3, threshold=AccuracyThreshold(share), batch=10, max_length=200, seed=4, chunk=chunk
    )
    whole = S3.sample(10, 200, np.random.default_rng(4))
    predictions, _ = FaultyMachine(S3, errors)(whole.inputs, None)
    right = predictions == whole.states
    shares = {L: float(right[:, :L].all(1).mean()) for L in range(1, 201)}
    assert swept.failing_length == min(L for L, accuracy in shares.items() if accuracy < share)
    assert swept.accuracies
    assert all(accuracy == shares[length] for length, accuracy in swept.accuracies.items())


def test_sweep_words_stops_when_the_failing_length_is_known() -> None:
    predictor = FaultyMachine(S3, {1: 33})
    swept = sweep_words(predictor, S3, threshold=AccuracyThreshold(1.0), batch=4, max_length=1 << 20, chunk=32)
    assert (swept.failing_length, swept.holds, predictor.read) == (34, False, 64)
    late = FaultyMachine(S3, {1: 300})
    swept_late = sweep_words(late, S3, threshold=AccuracyThreshold(1.0), batch=4, max_length=1 << 20)
    assert swept_late.failing_length == 301
    assert late.read == 512, "within a chunk, too"
    assert max(swept.accuracies) == 64
    assert swept.sentence() == "S3: fails at length 34; not all of 4 words have all labels correct"


def test_sweep_words_without_a_failure() -> None:
    swept = sweep_words(
        FaultyMachine(S3, {}), S3, threshold=AccuracyThreshold(1.0), batch=4, max_length=1000, chunk=300
    )
    assert (swept.failing_length, swept.holds) == (None, True)
    assert set(swept.accuracies) == {1 << power for power in range(10)}
    assert swept.row()["max_length"] == 1000
    assert swept.sentence() == "S3: no failure up to length 1,000; all labels correct in all of 4 words"


def test_length_sweep_sentence_of_a_baseline_threshold() -> None:
    arguments: dict[str, Any] = {"threshold": AccuracyThreshold(0.9), "batch": 10, "max_length": 100}
    failed = sweep_words(FaultyMachine(S3, {0: 99, 1: 0}), S3, **arguments)
    assert failed.sentence() == "S3: fails at length 100; fewer than 90% of 10 words have all labels correct"
    held = sweep_questions(ShortMemory(10**9), TSO, **arguments)
    assert held.sentence() == "TSO3: no failure up to length 100; the answer correct in at least 90% of 10 words"


def test_sweep_words_counts_an_error_at_the_last_position_and_allows_errors_up_to_the_threshold() -> None:
    def failing_length(share: float, errors: dict[int, int]) -> int | None:
        predictor, threshold = FaultyMachine(S3, errors), AccuracyThreshold(share)
        return sweep_words(predictor, S3, threshold=threshold, batch=10, max_length=100).failing_length

    assert failing_length(1.0, {0: 99}) == 100
    assert failing_length(0.9, {0: 99}) is None
    assert failing_length(0.9, {0: 99, 1: 0}) == 100


def test_sweep_words_memory_does_not_grow_with_the_length() -> None:
    """Four times the length, the same peak: a sweep stores one chunk of every word, and its first error."""

    def peak(max_length: int) -> int:
        tracemalloc.start()
        threshold = AccuracyThreshold(1.0)
        sweep_words(FaultyMachine(S3, {}), S3, threshold=threshold, batch=20, max_length=max_length, chunk=1024)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(128)  # imports and caches of the first call
    assert peak(1 << 17) < 1.2 * peak(1 << 15)


def test_sweep_words_of_flip_flops_have_few_writes() -> None:
    seen: list[NDArray[Any]] = []

    def predictor(inputs: NDArray[Any], state: PredictorState | None) -> tuple[NDArray[Any], PredictorState]:
        seen.append(inputs)
        return np.zeros(inputs.shape, int) - 1, []

    sweep_words(predictor, FF, threshold=AccuracyThreshold(1.0), batch=200, max_length=512)
    assert (np.concatenate(seen, axis=1) != 0).mean() == pytest.approx(0.01, abs=0.003)


def test_sweep_words_resumes_after_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(length_sweep, "SAVE_EVERY", 0.0)
    file = tmp_path / "sweep.npz"
    arguments: dict[str, Any] = {
        "threshold": AccuracyThreshold(1.0), "batch": 5, "max_length": 500, "chunk": 20, "checkpoint": file,
    }  # fmt: skip
    errors = {2: 333}

    class Interrupted(FaultyMachine):
        def __call__(self, inputs: NDArray[Any], state: PredictorState | None) -> tuple[NDArray[Any], PredictorState]:
            if self.read >= 200:
                raise KeyboardInterrupt
            return super().__call__(inputs, state)

    with pytest.raises(KeyboardInterrupt):
        sweep_words(Interrupted(S3, errors), S3, **arguments)
    rest = FaultyMachine(S3, errors)
    swept = sweep_words(rest, S3, **arguments)
    assert (swept.failing_length, rest.read) == (334, 340 - 200)
    assert not file.exists()


def test_sweep_words_ignores_the_checkpoint_of_another_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(length_sweep, "SAVE_EVERY", 0.0)
    file = tmp_path / "sweep.npz"
    file.write_bytes(b"half a file")
    arguments: dict[str, Any] = {
        "threshold": AccuracyThreshold(1.0), "max_length": 500, "chunk": 20, "checkpoint": file,
    }  # fmt: skip

    def interrupt(read: int, max_length: int) -> None:
        if read >= 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep_words(FaultyMachine(S3, {}), S3, batch=5, progress=interrupt, **arguments)
    with np.load(file) as saved:
        assert saved["read"] >= 60
    assert sweep_words(FaultyMachine(S3, {0: 5}), S3, batch=6, **arguments).failing_length == 6


@pytest.mark.parametrize(("batch", "max_length"), [(0, 5), (5, 0)])
def test_sweep_words_rejects_an_empty_sweep(batch: int, max_length: int) -> None:
    with pytest.raises(InvalidConfig, match=f"got {batch} words of length {max_length}"):
        sweep_words(FaultyMachine(S3, {}), S3, threshold=AccuracyThreshold(1.0), batch=batch, max_length=max_length)


def test_sweep_questions_finds_the_failing_length_between_powers_of_two() -> None:
    swept = sweep_questions(
        ShortMemory(777), TSO, threshold=AccuracyThreshold(0.9), batch=8, max_length=4096, chunk=4096
    )
    assert swept.failing_length == 777
    assert {64, 128, 256, 512, 1024} <= set(swept.accuracies)
    assert 2048 not in swept.accuracies
    assert swept.accuracies[512] == 1.0
    assert swept.accuracies[1024] == 0.0
    assert swept.measure == "questions"


def test_sweep_questions_without_a_failure_and_with_one_at_the_shortest_length() -> None:
    arguments: dict[str, Any] = {"threshold": AccuracyThreshold(1.0), "batch": 4, "max_length": 300}
    assert sweep_questions(ShortMemory(10**9), TSO, **arguments).failing_length is None
    assert sweep_questions(ShortMemory(0), TSO, **arguments).failing_length == 64


def test_sweep_questions_resumes_without_a_second_look_at_lengths_it_knows(tmp_path: Path) -> None:
    file = tmp_path / "sweep.npz"
    arguments: dict[str, Any] = {"threshold": AccuracyThreshold(1.0), "batch": 8, "max_length": 256}
    expected = sweep_questions(ShortMemory(100), TSO, **arguments)
    scored: list[int] = []

    class Counted(ShortMemory):
        def __init__(self, fails: int, most: int) -> None:
            super().__init__(fails)
            self.most = most

        def __call__(self, inputs: NDArray[Any], state: PredictorState | None) -> tuple[NDArray[Any], PredictorState]:
            if len(scored) == self.most:
                raise KeyboardInterrupt
            scored.append(inputs.shape[1])
            return super().__call__(inputs, state)

    with pytest.raises(KeyboardInterrupt):
        sweep_questions(Counted(100, most=3), TSO, checkpoint=file, **arguments)
    assert SweepCheckpoint(file, ["questions", "TSO3", 9, 0]).load() is None, "of another sweep"
    resumed = sweep_questions(Counted(100, most=-1), TSO, checkpoint=file, **arguments)
    assert (resumed.failing_length, resumed.accuracies) == (expected.failing_length, expected.accuracies)
    assert sorted(scored) == sorted(expected.accuracies), "every length once"
    assert not file.exists()


def test_sweep_questions_rejects_a_task_without_questions_and_lengths_out_of_order() -> None:
    with pytest.raises(InvalidConfig, match="S3 asks no questions; sweep its words"):
        sweep_questions(ShortMemory(1), S3, threshold=AccuracyThreshold(1.0))
    with pytest.raises(InvalidConfig, match="got 64 to 10"):
        sweep_questions(ShortMemory(1), TSO, threshold=AccuracyThreshold(1.0), max_length=10)


def test_sweep_checkpoint_load_ignores_a_damaged_file_and_maybe_save_waits(tmp_path: Path) -> None:
    checkpoint = SweepCheckpoint(tmp_path / "sweep.npz", [1])
    checkpoint.maybe_save(read=3)
    assert not (tmp_path / "sweep.npz").exists(), "not yet"
    checkpoint.save(read=3)
    loaded = SweepCheckpoint(tmp_path / "sweep.npz", [1]).load()
    assert loaded is not None
    assert int(loaded["read"]) == 3
    assert SweepCheckpoint(tmp_path / "sweep.npz", [2]).load() is None
    (tmp_path / "sweep.npz").write_bytes((tmp_path / "sweep.npz").read_bytes()[:-30])
    assert checkpoint.load() is None
    checkpoint.delete()
    assert not (tmp_path / "sweep.npz").exists()
