"""The benchmark of single steps: steps that differ from one call are not timed."""

from __future__ import annotations

import pytest
import torch

from benchmarks import step
from benchmarks.harness import Report, Unequal
from exactstate.nn import NFSM


def test_methods_are_measured_in_turn_after_they_agree():
    report, layer, rows = Report(title="steps"), NFSM(20).eval(), torch.randn(3, 2, 20)
    with torch.inference_mode():
        step.agree(report, "small", layer, rows)
        step.measure(report, "small", layer, rows, rounds=2)
    assert report.checks == ["small: 3 steps and one call, outputs and last states to the bit"]
    assert [timing.method for timing in report.timings] == [
        "GRUCell",
        "LSTMCell",
        "NFSM.step",
        "NFSM, call of length 1",
    ]
    assert {timing.calls for timing in report.timings} == {2}
    assert [target.what for target in report.targets] == ["small, CPU, NFSM.step over GRUCell"]


def test_steps_that_differ_are_refused(monkeypatch):
    layer, rows = NFSM(20).eval(), torch.randn(3, 2, 20)
    honest = layer.step
    monkeypatch.setattr(layer, "step", lambda x, state: (honest(x, state)[0] + 1e-6, honest(x, state)[1]))
    with torch.inference_mode(), pytest.raises(Unequal, match="steps differ from one call"):
        step.agree(Report(title="steps"), "small", layer, rows)
