"""The cost benchmark: scans that are not their loops are refused, rows hold what a figure needs, targets have names."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from benchmarks import __main__ as program
from benchmarks import _layers, walltime
from benchmarks.harness import Report, Unequal
from exactstate.nn import NFSM
from exactstate.records import Row, read


@pytest.mark.parametrize("model", _layers.MODELS)
def test_agree_on_scan_and_loop(model: str) -> None:
    report = Report(title="")
    _layers.agree(report, model, d=3, length=40)
    assert report.checks[0] == f"{model}: scan, scan in chunks and loop, in outputs, last states and gradients"


@pytest.mark.parametrize("model", _layers.MODELS)
def test_agree_detects_a_wrong_loop(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = _layers.layer_of

    def wrong(model: str, d: int, *, form: str = "scan", chunk: int = 0) -> nn.Module:
        layer = honest(model, d, form=form, chunk=chunk)
        if form == "loop":
            with torch.no_grad():
                [*layer.parameters()][-1].view(-1)[0] += 1e-3
        return layer

    monkeypatch.setattr(_layers, "layer_of", wrong)
    with pytest.raises(Unequal, match=f"{model}: the scan and the loop differ in the output; nothing was timed."):
        _layers.agree(Report(title=""), model, d=3, length=20)


def test_agree_detects_a_layer_that_is_not_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    if _layers.layer_of("NFSM", 3).backend != "cpu":
        pytest.skip("there are no compiled kernels here")
    monkeypatch.setattr(NFSM, "load_state_dict", lambda self, state: None)
    with pytest.raises(Unequal, match="the compiled backend is not the reference to the bit"):
        _layers.agree(Report(title=""), "NFSM", d=3, length=20)


def test_training_step_is_the_gradient_of_the_mean_squared_output() -> None:
    layer, x = _layers.layer_of("Mamba-", 2), _layers.inputs(7, batch=2)
    _layers.training_step(layer, x)
    found = [part.grad for part in layer.parameters()]
    wanted = torch.autograd.grad(layer(x)[0].square().mean(), [*layer.parameters()])
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours is not None
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("form", ["scan", "loop"])
def test_measure_a_case(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walltime, "CALLS", 2)
    report = Report(title="")
    rows = walltime.measure(report, 8, 2, form=form, chunked={"AUSSM"})
    assert [row["model"] for row in rows] == ["NFSM", "Mamba-", "AUSSM", "PD-SSM"]
    assert [row["chunked"] for row in rows] == [False, False, True, False]
    assert all((row["form"], row["L"], row["d"], row["calls"]) == (form, 8, 2, 2) for row in rows)
    assert all(row["seconds"] > 0 and row["peak_bytes"] >= 0 for row in rows)
    assert rows[0]["ratio"] == 1
    assert report.timings[2].method == "AUSSM, in chunks"


def pretended(seconds: dict[str, float], bytes_per_step: int = 1) -> Any:
    """A measurement that only says so: seconds per step of every model, ten times that as a loop."""

    def measure(
        _: Report, length: int, d: int, *, form: str = "scan", chunked: Collection[str] = (), spend: float = 0
    ) -> list[Row]:
        slower = 10 if form == "loop" else 1
        return [
            {
                "model": model, "form": form, "L": length, "d": d, "seconds": slower * each * length, "calls": 1,
                "ratio": seconds["NFSM"] / each, "chunked": model in chunked,
                "peak_bytes": 1 if model in chunked else bytes_per_step * length,
            }
            for model, each in seconds.items()
        ]  # fmt: skip

    return measure


GOOD = {"NFSM": 1.0, "Mamba-": 1.25, "AUSSM": 3.0, "PD-SSM": 2.5}


@pytest.fixture
def unequal_times(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, float]:
    """No layer runs; their times are in this dictionary."""
    seconds = dict(GOOD)
    monkeypatch.setattr(walltime, "agree", lambda report, model: None)
    monkeypatch.setattr(walltime, "measure", pretended(seconds))
    monkeypatch.setattr(walltime, "ROWS", tmp_path / "walltime.jsonl")
    monkeypatch.setattr(walltime, "MINUTES", 1e9)
    return seconds


def test_targets_name_what_was_missed(
    unequal_times: dict[str, float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["walltime", "--check", "--quick", "--reports", str(tmp_path)]
    assert program.main(call) == 0
    unequal_times["Mamba-"] = 0.5
    unequal_times["PD-SSM"] = 1.5
    capsys.readouterr()
    assert program.main(call) == 1
    said = capsys.readouterr().err
    assert "missed: L=64, d=16, NFSM over Mamba-, the next best: at least 1 wanted, 0.5 measured" in said
    assert "L=1024, d=64, NFSM over PD-SSM: at least 2 wanted, 1.5 measured" in said
    assert "loop" not in said


def test_notes_give_the_cost_of_logits_where_another_is_faster(
    unequal_times: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walltime, "training_step", lambda layer, x: None)
    monkeypatch.setattr(walltime, "product_of_logits", lambda length, d: length * d)
    monkeypatch.setattr(walltime, "call_alone", lambda model, d: {"NFSM": 0.009, "Mamba-": 0.007}[model])
    unequal_times["Mamba-"] = 0.5
    report = walltime.run(quick=True)
    slow = "L=1024, d={d}: Mamba- takes 512 s, the NFSM 1.02e+03 s; "
    bare = "torch's bare matrix product of 256 inputs with d x d logits takes {seconds} s"
    costs = {4: "4.1e+03", 16: "1.64e+04", 64: "6.55e+04"}
    short = "L={L}, d=16: Mamba- takes {half} ms, the NFSM {whole} ms; "
    alone = "calls for a single step, 16 rows in all, take 7 and 9 ms"
    times = ((64, "3.2e+04", "6.4e+04"), (256, "1.28e+05", "2.56e+05"))
    wanted = [(slow + bare).format(d=d, seconds=costs[d]) for d in costs]
    wanted += [short.format(L=L, half=half, whole=whole) + alone for L, half, whole in times]
    assert sorted(report.notes) == sorted(wanted)
    unequal_times.update({"Mamba-": 1.25, "PD-SSM": 1.5})
    notes = walltime.run(quick=True).notes
    assert [note for note in notes if "d=64: the NFSM with logits mixed from 16 matrices, as PD-SSM mixes" in note]


def test_logit_product_and_empty_call_are_timed() -> None:
    assert walltime.product_of_logits(64, 2, sample=512) > 0
    assert walltime.call_alone("Mamba-", 2) > 0


@pytest.mark.usefixtures("unequal_times")
def test_run_writes_rows_for_the_figure() -> None:
    report = walltime.run(quick=False)
    assert report.missed() == []
    rows = [*read(walltime.ROWS)]
    scans = {(row["model"], row["L"], row["d"]) for row in rows if row["form"] == "scan"}
    loops = {(row["model"], row["L"], row["d"]) for row in rows if row["form"] == "loop"}
    sizes = {(1 << power, 16) for power in range(6, 18)} | {(1 << 12, 1 << power) for power in range(1, 9)}
    assert scans == {(model, *size) for model in GOOD for size in sizes}
    assert loops == {(model, 1 << power, 16) for model in GOOD for power in range(6, 13)}
    assert all({"seconds", "peak_bytes", "chunked", "date", "machine", "command"} <= set(row) for row in rows)
    assert len({row["date"] for row in rows}) == 1


def test_chunks_where_memory_requires_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walltime, "measure", pretended(GOOD, bytes_per_step=1 << 20))
    monkeypatch.setattr(walltime, "ROOM", 200 << 20)
    monkeypatch.setattr(walltime, "available_bytes", lambda: 17 << 20)
    report = Report(title="")
    assert [row["L"] for row in walltime.sweep_lengths(report, [64, 128], 0)] == [64] * 4
    assert report.notes == ["L=128 was not measured: 0.1 GiB are not free on this machine."]
    monkeypatch.setattr(walltime, "available_bytes", lambda: 1 << 40)
    rows = walltime.sweep_lengths(report, [64, 128, 256, 512], 0)
    assert {row["L"]: row["chunked"] for row in rows} == {64: False, 128: False, 256: True, 512: True}


def test_case_that_would_exceed_the_deadline_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walltime, "measure", pretended(GOOD))
    monkeypatch.setattr(walltime.time, "perf_counter", lambda: 0.0)
    report = Report(title="")
    step = sum(GOOD.values())
    rows = walltime.sweep_lengths(report, [64, 128, 256], 0, deadline=200 * step)
    rows += walltime.sweep_sizes(report, [2, 4, 16], 10, deadline=50 * step)
    assert {(row["L"], row["d"]) for row in rows} == {(64, 16), (128, 16), (10, 2), (10, 4)}
    assert report.notes == [
        "L=256 was not measured: it takes about 1984 s, and 1550 s were left.",
        "d=16 was not measured: it takes about 1240 s, and 388 s were left.",
    ]
