"""The campaign regions, small: a distilled network, its radii, and a count that finds changed tables."""

from __future__ import annotations

import pytest

import detent
from detent.extract.regions import broken_radii, largest_radii
from paper.experiments.regions import REGIONS, centers, changed_tables, cloud_row, distill


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
    assert len(keys) == 8
    assert {"task": "digits"} in keys
