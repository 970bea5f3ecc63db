"""The benchmark of wide layers: equal results first, then every layer in CPU and in wall time, on one thread."""

from __future__ import annotations

import pytest
import torch

from benchmarks import wide
from benchmarks.harness import Report, Unequal
from benchmarks.wide import Shape, agree, layers, measure, one_thread
from exactstate import native
from exactstate.nn import NFSM
from exactstate.ops import cpu


def test_layers_are_of_one_width_and_the_nfsm_has_default_heads():
    made = layers(20)
    assert list(made) == ["LSTM", "GRU", "NFSM", "NFSM, sampled", "NFSM, dictionary"]
    x = torch.randn(2, 5, 20)
    assert all(layer(x)[0].shape == x.shape for layer in made.values())
    assert [made[name].config.noise for name in ("NFSM", "NFSM, sampled")] == [False, True]
    assert made["NFSM"].heads == NFSM(20).heads
    assert [made[name].config.dictionary for name in ("NFSM", "NFSM, dictionary")] == [None, 24]


def test_agree_records_every_mode():
    report = Report(title="equal")
    agree(report, batch=2, length=9, width=20)
    assert [check for check in report.checks if "noise=False" in check]
    assert [check for check in report.checks if "noise=True: gradients in float64" in check]
    assert [check for check in report.checks if "dictionary=24: gradients in float64" in check]


@pytest.mark.skipif(not native.available(), reason="no compiled kernels here")
def test_agree_refuses_another_gradient(monkeypatch):
    honest = cpu.surrogate_backward_

    def dishonest(source, segments, starts, states, lam, *others):
        lam *= 1.001
        honest(source, segments, starts, states, lam, *others)

    monkeypatch.setattr(cpu, "surrogate_backward_", dishonest)
    with pytest.raises(Unequal, match=r"noise=False: the gradient of .* differs .* nothing was timed"):
        agree(Report(title="spoiled"), batch=2, length=9, width=20)


def test_measure_times_every_layer_by_both_clocks():
    report = Report(title="timed")
    measure(report, Shape(2, 6, 20, rounds=2, targets=(("LSTM", 1.0), ("GRU", 2.0))), rounds=2)
    assert {timing.case for timing in report.timings} == {f"B=2, L=6, width 20, {clock}" for clock in ("CPU", "wall")}
    assert len(report.timings) == 2 * len(layers(20))
    assert all(timing.calls == 2 and timing.items == 12 for timing in report.timings)
    assert [target.what for target in report.targets] == [
        "B=2, L=6, width 20, CPU, NFSM over LSTM", "B=2, L=6, width 20, CPU, NFSM over GRU",
    ]  # fmt: skip


def test_symbols_are_few_distinct_rows():
    shape = Shape(4, 40, 20, rounds=2, symbols=3)
    assert str(shape) == "B=4, L=40, width 20, symbols"
    x = wide.inputs(shape.batch, shape.length, shape.width, shape.symbols).detach()
    assert len(torch.unique(x.flatten(0, 1), dim=0)) == 3
    assert len(torch.unique(wide.inputs(4, 40, 20).detach().flatten(0, 1), dim=0)) == 160
    assert {shape.symbols for shape in wide.SHAPES if shape.targets} == {0, wide.SYMBOLS}


def test_one_thread_is_undone():
    before = torch.get_num_threads(), native.threads()
    with one_thread():
        assert (torch.get_num_threads(), native.threads()) == (1, 1)
    assert (torch.get_num_threads(), native.threads()) == before


def test_run_covers_the_shapes_that_have_targets(monkeypatch):
    small = tuple(Shape(2, 5, 20, rounds=4, targets=shape.targets) for shape in wide.SHAPES[:1])
    monkeypatch.setattr(wide, "SHAPES", small)
    report = wide.run(quick=True)
    assert report.checks
    assert report.targets
    assert {timing.calls for timing in report.timings} == {2}
