"""The harness compares before it times, tells ratios, and names the target that was missed."""

from __future__ import annotations

import json
import types
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as program
from benchmarks import harness
from benchmarks.harness import Method, Report, Target, Unequal
from benchmarks.printing import as_text


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only moves when a method says so."""
    now = [0.0]
    monkeypatch.setattr(harness.time, "perf_counter", lambda: now[0])
    return now


def taking(clock: list[float], seconds: float, answer: object = 7):
    def call() -> object:
        clock[0] += seconds
        return answer

    return call


def measured(clock: list[float]) -> Report:
    report = Report(title="Slow and fast")
    slow, fast = taking(clock, 0.5), taking(clock, 0.125)
    report.measure("words", [Method("slow", slow, 1000), Method("fast", fast, 1000)], unit="symbols", rounds=3)
    return report


def test_measure_records_medians_rates_and_ratios(clock: list[float]) -> None:
    slow, fast = measured(clock).timings
    assert (slow.seconds, slow.rate, slow.ratio, slow.calls) == (0.5, 2000.0, 1.0, 3)
    assert (fast.seconds, fast.rate, fast.ratio) == (0.125, 8000.0, 4.0)


def test_measure_ratio_is_of_rates(clock: list[float]) -> None:
    report = Report(title="")
    methods = [Method("all", taking(clock, 1.0), 100), Method("a tenth", taking(clock, 0.25), 10, expected=lambda: 7)]
    assert report.measure("case", methods, unit="symbols", rounds=1)[1].ratio == 0.4


def test_measure_median_ignores_one_bad_round(clock: list[float]) -> None:
    spent = iter([0.0, 1.0, 9.0, 1.0])

    def uneven() -> int:
        clock[0] += next(spent)
        return 7

    report = Report(title="")
    (timing,) = report.measure("case", [Method("uneven", uneven, 1)], unit="calls", rounds=3)
    assert timing.seconds == 1.0


def test_record_ratio_is_over_common_rounds() -> None:
    report = Report(title="")
    timings = report.record("case", {"often": [1.0, 2.0, 4.0], "once": [2.0]}, {"often": 9, "once": 9}, unit="steps")
    assert [(timing.seconds, timing.calls, timing.ratio) for timing in timings] == [(2.0, 3, 1.0), (2.0, 1, 0.5)]


def test_agree_does_not_record_none(clock: list[float]) -> None:
    report = measured(clock)
    assert report.checks == ["words: slow, fast"]
    silent = [Method(name, taking(clock, 0.5, None), 1000) for name in ("slow", "fast")]
    report.measure("nothing said", silent, unit="symbols", rounds=1)
    assert report.checks == ["words: slow, fast"]


def test_measure_does_not_time_unequal_methods(clock: list[float]) -> None:
    report = Report(title="")
    right, wrong = (lambda: np.array([1, 2])), (lambda: np.array([1, 3]))
    with pytest.raises(Unequal, match="words: wrong has a different result; nothing was timed"):
        report.measure("words", [Method("right", right, 1), Method("wrong", wrong, 1)], unit="x", rounds=1)
    assert report.timings == []


@pytest.mark.parametrize(
    ("target", "met"),
    [
        (Target(what="t", wanted=3, measured=3.0), True),
        (Target(what="t", wanted=3, measured=2.9), False),
        (Target(what="t", wanted=3, measured=2.9, at_most=True), True),
        (Target(what="t", wanted=3, measured=3.1, at_most=True), False),
    ],
)
def test_target_met_and_sentence(target: Target, met: bool) -> None:
    assert target.met is met


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    """A benchmark called `sloth` that promises 5x when it is not quick."""

    def run(quick: bool) -> Report:
        report = measured(clock)
        report.target("words", "fast", at_least=4 if quick else 5)
        return report

    monkeypatch.setattr(program, "names", lambda: ["sloth"])
    monkeypatch.setattr(program, "import_module", lambda name: types.SimpleNamespace(run=run))


@pytest.mark.usefixtures("bench")
def test_main_check_names_the_missed_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["sloth", "--check", "--quick", "--reports", str(tmp_path)]) == 0
    assert program.main(["sloth", "--reports", str(tmp_path)]) == 0
    capsys.readouterr()
    assert program.main(["sloth", "--check", "--reports", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert err == "benchmarks: missed: words, fast over slow: at least 5 wanted, 4 measured\n"
    assert "MISSED: words, fast over slow" in out


@pytest.mark.usefixtures("bench")
def test_main_json_and_the_dated_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["sloth", "--json", "--reports", str(tmp_path)]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [row["ratio"] for row in data["rows"]] == [1.0, 4.0]
    assert data["targets"][0]["met"] is False
    assert {"date", "command", "machine", "versions"} <= set(data)
    (path,) = tmp_path.glob(f"sloth_*_{data['date'][:10]}.md")
    kept = path.read_text()
    assert kept.count("| words | fast |") == 1
    assert program.main(["sloth", "--reports", str(tmp_path)]) == 0
    assert path.read_text().startswith(kept)
    assert path.read_text().count("| words | fast |") == 2


@pytest.mark.usefixtures("bench")
def test_main_refuses_an_unknown_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["slth"]) == 2
    assert capsys.readouterr().err == "benchmarks: unknown benchmark 'slth'. Did you mean 'sloth'? Known: sloth.\n"


def test_as_text_aligns_columns(clock: list[float]) -> None:
    lines = as_text(measured(clock)).splitlines()
    assert lines[0] == "Slow and fast"
    assert lines[2].split() == ["case", "method", "calls", "median", "rate", "ratio"]
    assert lines[4].split() == ["words", "fast", "3", "125", "ms", "8", "k", "symbols/s", "4x"]
    assert len({line.rindex("x") for line in lines[3:5]}) == 1


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.00769, "0.00769"), (1.0, "1"), (9.996, "10"), (99.96, "100"), (999.7, "1000"), (1213.4, "1213")],
)
def test_three_digits(number: float, text: str) -> None:
    assert harness.three_digits(number) == text
