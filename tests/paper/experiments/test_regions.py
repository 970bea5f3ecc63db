"""The campaign regions, small: a distilled network, its radii, and a count that finds changed tables."""

from __future__ import annotations

import json

import pytest

import detent
from detent.extract.regions import broken_radii, largest_radii
from paper.experiments.regions import REGIONS, centers, changed_tables, cloud_row, distill
from tests.docs.conftest import ROOT


@pytest.mark.slow
def test_cloud_row_has_radii_in_order_and_no_changes() -> None:
    row = cloud_row("S3", "distilled", 42, steps=200, tries=2000)
    assert row["certified"]
    assert 0 < row["interval_median"] <= row["linear_median"] < row["broken_median"]
    assert row["certified_below_broken"]
    assert (row["random_changes"], row["adversarial_changes"]) == (0, 0)


def test_changed_tables_finds_changes_outside_the_certified_regions() -> None:
    model, points, _ = distill("S3", 200, 42)
    target = detent.task("S3").machine
    machine = detent.extract(model, inputs=dict(zip(target.symbols, points, strict=True)), labels=target.states)
    assert changed_tables(machine, model, largest_radii(machine), 2000) == 0
    far = {symbol: 2.0 * radius for symbol, radius in broken_radii(machine).items()}
    assert changed_tables(machine, model, far, 2000) > 0


def test_centers_lie_apart() -> None:
    points = centers(5)
    assert float((points[:, None] - points).norm(dim=-1).fill_diagonal_(9.0).min()) > 1.0


def test_jobs_are_listed() -> None:
    keys = [job.key for job in REGIONS.jobs(REGIONS.options())]
    assert len(keys) == 11
    assert {"task": "digits"} in keys


def test_the_table_of_the_docs_is_made_from_the_rows() -> None:
    page = (ROOT / "docs" / "regions.md").read_text(encoding="utf-8")
    lines = (ROOT / "results" / "regions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["task"].endswith(", clouds")]
    assert len(rows) >= 6
    for row in rows:
        cells = [row["task"], f"{row['recipe']}, {row['seed']}"]
        for name, seconds in (("interval", "interval"), ("linear", "linear"), ("broken", "attack")):
            cells.append(f"{row[name + '_least']:.3f}, {row[name + '_median']:.3f} ({row[seconds + '_seconds']})")
        cells.append(f"{row['random_changes']} and {row['adversarial_changes']}")
        assert f"| {' | '.join(cells)} |" in page
    assert sum(line.startswith(("| S3, clouds", "| A5, clouds")) for line in page.splitlines()) == len(rows)
