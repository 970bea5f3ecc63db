"""Length sweeps of readers whose errors are known, against words drawn whole and scored length by length."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from detent.errors import InvalidConfig
from detent.evaluate import Bar, sequence_accuracy, sweep_words
from detent.evaluate import length_sweep as putting_down
from detent.evaluate.predictors import Held
from detent.tasks import Task
from detent.tasks import task as get_task

S3, FF = get_task("S3"), get_task("FF")


class Machine:
    """The task's own machine, which goes wrong in word b at position breaks[b], and there only."""

    def __init__(self, task: Task, breaks: dict[int, int]) -> None:
        self.machine, self.breaks, self.read = task.machine, breaks, 0

    def __call__(self, inputs: NDArray[Any], held: Held | None) -> tuple[NDArray[Any], Held]:
        state, position = (np.full(len(inputs), self.machine.start), 0) if held is None else (held[0], int(held[1]))
        said = np.array(self.machine.trajectory(inputs, state), dtype=np.int64)
        ends = said[:, -1].copy()
        for word, at in self.breaks.items():
            if position <= at < position + said.shape[1]:
                said[word, at - position] = -1
        self.read += inputs.shape[1]
        return said, [ends, np.array(position + inputs.shape[1])]


@pytest.mark.parametrize("chunk", [1, 7, 64, 4096])
@pytest.mark.parametrize("share", [1.0, 0.9, 0.75])
def test_the_failing_length_is_that_of_every_length_scored_alone(share: float, chunk: int) -> None:
    breaks = {3: 70, 5: 71, 0: 150, 7: 151, 2: 152, 9: 12}
    swept = sweep_words(Machine(S3, breaks), S3, bar=Bar(share), batch=10, longest=200, seed=4, chunk=chunk)
    whole = S3.sample(10, 200, np.random.default_rng(4))
    said, _ = Machine(S3, breaks)(whole.inputs, None)
    shares = {L: sequence_accuracy(said[:, :L], whole.states[:, :L]) for L in range(1, 201)}
    assert swept.failing == min(L for L, accuracy in shares.items() if accuracy < share)
    assert swept.accuracies
    assert all(accuracy == shares[length] for length, accuracy in swept.accuracies.items())


def test_it_stops_when_it_has_its_answer() -> None:
    reader = Machine(S3, {1: 33})
    swept = sweep_words(reader, S3, bar=Bar(1.0), batch=4, longest=1 << 20, chunk=32)
    assert (swept.failing, swept.holds, reader.read) == (34, False, 64)
    late = Machine(S3, {1: 300})
    assert sweep_words(late, S3, bar=Bar(1.0), batch=4, longest=1 << 20).failing == 301
    assert late.read == 512, "within a stretch, too"
    assert max(swept.accuracies) == 64
    assert swept.sentence() == "S3: fails at length 34, every state right in less than all of 4 words"


def test_at_least_when_there_is_no_failure() -> None:
    swept = sweep_words(Machine(S3, {}), S3, bar=Bar(1.0), batch=4, longest=1000, chunk=300)
    assert (swept.failing, swept.holds) == (None, True)
    assert set(swept.accuracies) == {1 << power for power in range(10)}
    assert swept.row()["longest"] == 1000
    assert swept.sentence() == "S3: no failure up to length 1,000, every state right in all of 4 words"


def test_an_error_at_the_last_position_counts_and_one_word_may_be_spared() -> None:
    assert sweep_words(Machine(S3, {0: 99}), S3, bar=Bar(1.0), batch=10, longest=100).failing == 100
    assert sweep_words(Machine(S3, {0: 99}), S3, bar=Bar(0.9), batch=10, longest=100).failing is None
    assert sweep_words(Machine(S3, {0: 99, 1: 0}), S3, bar=Bar(0.9), batch=10, longest=100).failing == 100


def test_memory_does_not_grow_with_the_length() -> None:
    """Four times the length, the same peak: a sweep has one stretch of every word, and its first error."""

    def peak(longest: int) -> int:
        tracemalloc.start()
        sweep_words(Machine(S3, {}), S3, bar=Bar(1.0), batch=20, longest=longest, chunk=1024)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(128)  # what the first call imports and keeps
    assert peak(1 << 17) < 1.2 * peak(1 << 15)


def test_flip_flops_are_swept_with_few_writes() -> None:
    seen: list[NDArray[Any]] = []

    def reader(inputs: NDArray[Any], held: Held | None) -> tuple[NDArray[Any], Held]:
        seen.append(inputs)
        return np.zeros(inputs.shape, int) - 1, []

    sweep_words(reader, FF, bar=Bar(1.0), batch=200, longest=512)
    assert (np.concatenate(seen, axis=1) != 0).mean() == pytest.approx(0.01, abs=0.003)


def test_a_sweep_that_was_cut_off_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(putting_down, "EVERY", 0.0)
    asked: dict[str, Any] = {"bar": Bar(1.0), "batch": 5, "longest": 500, "chunk": 20, "keep": tmp_path / "sweep.npz"}
    breaks = {2: 333}

    class CutOff(Machine):
        def __call__(self, inputs: NDArray[Any], held: Held | None) -> tuple[NDArray[Any], Held]:
            if self.read >= 200:
                raise KeyboardInterrupt
            return super().__call__(inputs, held)

    with pytest.raises(KeyboardInterrupt):
        sweep_words(CutOff(S3, breaks), S3, **asked)
    rest = Machine(S3, breaks)
    swept = sweep_words(rest, S3, **asked)
    assert (swept.failing, rest.read) == (334, 340 - 200)
    assert not asked["keep"].exists()


def test_what_another_sweep_put_down_is_not_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(putting_down, "EVERY", 0.0)
    kept = tmp_path / "sweep.npz"
    kept.write_bytes(b"half a file")
    stop = [False]

    def until(read: int, longest: int) -> None:
        if read >= 100 and not stop:
            raise KeyboardInterrupt

    stop.clear()
    with pytest.raises(KeyboardInterrupt):
        sweep_words(Machine(S3, {}), S3, bar=Bar(1.0), batch=5, longest=500, chunk=20, keep=kept, progress=until)
    assert kept.exists()
    reader = Machine(S3, {0: 5})
    assert sweep_words(reader, S3, bar=Bar(1.0), batch=6, longest=500, chunk=20, keep=kept).failing == 6


@pytest.mark.parametrize(("batch", "longest"), [(0, 5), (5, 0)])
def test_nothing_to_sweep_is_refused(batch: int, longest: int) -> None:
    with pytest.raises(InvalidConfig, match=f"got {batch} words of length {longest}"):
        sweep_words(Machine(S3, {}), S3, bar=Bar(1.0), batch=batch, longest=longest)
