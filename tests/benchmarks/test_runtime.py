"""The runtime benchmark compares with a loop that is right, and its stream reads what it says."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from benchmarks import _machines, _plain_loop, runtime
from benchmarks.harness import Report, Unequal
from tests.runtime.examples import one_by_one

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@needs_compiler
@pytest.mark.parametrize("make", [_machines.sixteen, _machines.protocol, _machines.mathieu])
def test_plain_loop_is_the_machine(make) -> None:
    rng = np.random.default_rng(0)
    machine = make(rng)
    word = rng.integers(0, machine.n_symbols, 3000, dtype=np.uint8)
    said, states = one_by_one(machine, word)
    assert _plain_loop.run(machine.automaton.tables, word, machine.start) == states[-1]
    assert np.array_equal(_plain_loop.output_ids(machine.automaton.tables, machine.readout, word, machine.start), said)


@needs_compiler
def test_run_measures_the_cases() -> None:
    rng = np.random.default_rng(1)
    machine = _machines.sixteen(rng)
    word = rng.integers(0, 16, 20_000, dtype=np.uint8)
    report = Report(title="")
    runtime._states(report, "16 states", machine, word, rounds=1, at_least=0.0)
    runtime._outputs(report, "16 states", machine, word, rounds=1)
    ours = f"interpreter ({machine.strategy})"
    assert [timing.method for timing in report.timings] == [
        *("plain C loop", ours, "automata-lib", "Python loop"),
        *("plain C loop", ours),
    ]
    assert [target.wanted for target in report.targets] == [0.0, 200.0, 1.0]


@needs_compiler
def test_run_does_not_time_a_wrong_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = _machines.protocol(np.random.default_rng(2))
    honest = _plain_loop.run
    monkeypatch.setattr(_plain_loop, "run", lambda *arguments: (honest(*arguments) + 1) % 57)
    with pytest.raises(Unequal, match=r"57: state: interpreter .* has a different result"):
        runtime._states(Report(title=""), "57", machine, np.zeros(1000, np.uint8), rounds=1, at_least=1.0)


def test_stream_reads_every_symbol() -> None:
    row = runtime.stream(123_457)
    assert row["seconds"] > 0
    assert row["peak"] > 1 << 20


def test_linear_time_is_a_target(monkeypatch: pytest.MonkeyPatch) -> None:
    def pretended(length: int) -> dict[str, object]:
        return {"seconds": length * 1e-9 * (3 if length == 1000 else 1), "peak": length << 20, "strategy": "plain"}

    monkeypatch.setattr(runtime, "_in_a_process", pretended)
    report = Report(title="")
    runtime._linear(report, (10, 100, 1000))
    assert [target.met for target in report.targets] == [False, False]
    assert "time per symbol at 1e+03 over that at 1e+02: at most 1.5 wanted, 3 measured" in report.missed()
