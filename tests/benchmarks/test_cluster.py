"""The text of the benchmark of clusters, and that unequal outputs are noticed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import cluster
from benchmarks.harness import Report, Unequal


def test_write_text_has_the_size_and_only_events(tmp_path: Path) -> None:
    files = cluster.write_text(tmp_path, 3_000_001)
    assert all(1_499_000 < path.stat().st_size <= 1_500_000 for path in files)
    assert {word for path in files for word in path.read_text().split()} == set(cluster.EVENTS)


def test_measure_notices_unequal_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = iter(range(3))
    monkeypatch.setattr(cluster, "hashed", lambda command: cluster.Run(1.0, f"{next(counted)}", 1, 1, 0, 1, 0))
    with pytest.raises(Unequal, match="cluster, 1 worker: the output differs"):
        cluster.measure(Report(title=""), tmp_path, [], 1)


def test_hashed_notices_a_command_that_fails() -> None:
    with pytest.raises(Unequal, match="ended with exit code 3"):
        cluster.hashed([sys.executable, "-c", "raise SystemExit(3)"])
