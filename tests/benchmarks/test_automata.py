"""The machines' benchmark: others' answers are compared with ours first, and whoever is slower is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as program
from benchmarks import automata
from benchmarks.harness import Report, Unequal
from exactstate.automata import minimize, symmetric


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def test_copied_states_have_the_same_outputs(rng: np.random.Generator) -> None:
    small = automata.machine(rng, 12)
    large = automata.copy_states(small, 3, rng)
    words = rng.integers(0, small.n_symbols, (20, 30))
    assert large.n_states == 3 * small.n_states
    assert np.array_equal(large.output_ids(words), small.output_ids(words))
    assert minimize(large) == small


def test_run_measures_all_cases(rng: np.random.Generator) -> None:
    report = Report(title="")
    small = automata.machine(rng, 9)
    large = automata.copy_states(small, 2, rng)
    automata.minimizing(report, large, rounds=1)
    automata.comparing(report, small, large, rounds=1)
    automata.running(report, small, rng.integers(0, 4, 50), rounds=1)
    automata.reading(report, large, rounds=1)
    automata.factoring(report, 1, {"S4": symmetric(4)})
    everybody = ["automata-lib", "AALpy", "exactstate"]
    assert [timing.method for timing in report.timings] == [*everybody * 3, "AALpy", "exactstate", "exactstate"]
    assert len(report.checks) == 5
    assert len(report.targets) == 6


def test_run_does_not_time_a_wrong_result(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    small = automata.machine(rng, 9)
    monkeypatch.setattr(automata, "minimize", lambda given: given)
    large = automata.copy_states(small, 2, rng)
    with pytest.raises(Unequal, match=f"minimize {large.n_states} states: exactstate has a different result"):
        automata.minimizing(Report(title=""), large, rounds=1)
    monkeypatch.setattr(automata, "distinguishing_word", lambda first, second: ("a",))
    with pytest.raises(Unequal, match="exactstate has a different result"):
        automata.comparing(Report(title=""), small, large, rounds=1)
    monkeypatch.setattr(automata, "HEADS", {"S4": (24,)})
    with pytest.raises(Unequal, match="factor S4: exactstate has a different result"):
        automata.factoring(Report(title=""), 1, {"S4": symmetric(4)})


def test_check_names_the_faster_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for case in ("minimizing", "comparing", "running", "factoring"):
        monkeypatch.setattr(automata, case, lambda *_: None)

    def slow(report: Report, *_: object) -> None:
        report.record("read", {"AALpy": [1.0], "exactstate": [4.0]}, {"AALpy": 8, "exactstate": 8}, unit="bytes")
        report.target("read", "exactstate", at_least=1, over="AALpy")

    monkeypatch.setattr(automata, "reading", slow)
    assert program.main(["automata", "--quick", "--check", "--reports", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said == "benchmarks: missed: read, exactstate over AALpy: at least 1 wanted, 0.25 measured\n"
