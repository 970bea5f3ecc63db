"""The benchmark of proofs: it times what was proved, and refuses what was not."""

from __future__ import annotations

import pytest

from benchmarks import proof
from benchmarks.harness import Unequal


def test_proof_is_timed_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "TASKS", {"Z2": (1e-9, 1e3)})
    monkeypatch.setattr(proof, "QUICK", ("Z2",))
    report = proof.run(quick=True)
    assert [timing.method for timing in report.timings] == ["extract and compare", "bound rounding", "check the file"]
    assert report.checks[0].startswith("Z2: the checked certificate proves float32")
    assert [target.met for target in report.targets] == [False, True]


def test_proof_that_does_not_hold_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "TASKS", {"Z2": None})
    monkeypatch.setattr(proof, "QUICK", ("Z2",))
    monkeypatch.setattr(proof, "check", lambda path: False)
    with pytest.raises(Unequal, match="Z2: the proof does not hold"):
        proof.run(quick=True)
