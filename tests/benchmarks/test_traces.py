"""The benchmark of logs: everybody gets the same traces, a wrong answer counts, and Abbadingo's rule is kept."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

from benchmarks import traces
from benchmarks.harness import Report
from exactstate.automata import minimize


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def test_machines_of_the_benchmark_are_minimal() -> None:
    for machine in (traces.handshake(7), traces.connection(), traces.clients(), traces.pairing()):
        small = minimize(machine)
        assert small.n_states >= machine.n_states - 2


def test_exact_compares_all_learners(rng: np.random.Generator) -> None:
    report = Report(title="")
    traces.exact(report, "clients", traces.clients(), 200, rng)
    assert [timing.method for timing in report.timings] == ["AALpy GSM", "AALpy RPNI", "exactstate"]
    assert "of words right" in report.notes[0]
    assert report.targets[0].met


def test_compare_counts_wrong_words(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "SHORT", float("inf"))
    report = Report(title="")
    log = traces.log_of(traces.clients(), 20, 5, rng)
    runs = traces._compare(report, "case", {"silent": lambda given: (0, lambda word: [None])}, log, log)
    assert (runs["silent"].right, len(runs["silent"].seconds)) == (0.0, traces.ROUNDS)


def test_compare_stops_a_learner_that_takes_too_long(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(given: traces.Log) -> tuple[int, traces.Answers]:
        while True:
            pass

    def stopped(given: traces.Log) -> tuple[int, traces.Answers]:
        with traces.limited(0.01):
            return endless(given)

    clock = count(0, 30)
    monkeypatch.setattr(traces.time, "process_time", lambda: float(next(clock)))  # every run takes half a minute
    report = Report(title="")
    log = traces.log_of(traces.clients(), 20, 5, rng)
    runs = traces._compare(report, "case", {"endless": stopped, "exactstate": traces.by_exactstate}, log, log)
    assert runs["endless"].is_stopped
    assert not runs["exactstate"].is_stopped
    assert "endless stopped after 30 s; exactstate" in report.notes[0]
    assert (runs["endless"].seconds, runs["exactstate"].seconds) == ([30.0], [30.0])


def test_noisy_log_has_wrong_outputs(rng: np.random.Generator) -> None:
    clean = traces.log_of(traces.clients(), 400, 20, np.random.default_rng(1))
    noisy = traces.log_of(traces.clients(), 400, 20, np.random.default_rng(1), 0.05)
    differing = sum(
        a != b for (_, one), (_, other) in zip(clean, noisy, strict=True) for a, b in zip(one, other, strict=True)
    )
    assert 300 < differing < 500


def test_abbadingo_makes_problems_by_the_published_rule(rng: np.random.Generator) -> None:
    machine = traces.random_dfa(32, rng)
    assert traces._depth(machine) == 8
    strings = traces.distinct_strings(500, 9, rng)
    assert len({tuple(word) for word in strings}) == 500
    assert max(map(len, strings)) == 9
    report = Report(title="")
    traces.abbadingo(report, 32, 1100, rng)
    assert report.targets[0].met
