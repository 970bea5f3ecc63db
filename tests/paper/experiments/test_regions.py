"""The campaign regions, small: a distilled network, its radii, and a count that finds changed tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

import exactstate
from exactstate.certify.check import rounded_down
from exactstate.extract.regions import largest_radii, random_changes
from paper.experiments.regions import REGIONS, centers, cloud_row, distill
from tests.docs.conftest import ROOT


@pytest.mark.slow
def test_cloud_row_has_radii_in_order_and_no_changes() -> None:
    row = cloud_row("S3", "distilled", 42, steps=200, tries=2000)
    assert row["certified"]
    assert 0 < row["interval_median"] <= row["linear_median"] < row["broken_median"]
    assert row["certified_below_broken"]
    assert (row["random_changes"], row["adversarial_changes"]) == (0, 0)


def test_random_changes_of_a_distilled_network() -> None:
    model, points, _ = distill("S3", 200, 42)
    target = exactstate.task("S3").machine
    machine = exactstate.extract(model, inputs=dict(zip(target.symbols, points, strict=True)), labels=target.states)
    assert random_changes(machine, largest_radii(machine), tries=2000) == 0


def test_centers_lie_apart() -> None:
    points = centers(5)
    assert float((points[:, None] - points).norm(dim=-1).fill_diagonal_(9.0).min()) > 1.0


def test_jobs_are_listed() -> None:
    keys = [job.key for job in REGIONS.jobs(REGIONS.options())]
    assert len(keys) == 11
    assert {"task": "digits"} in keys


def rows_and_page(name: str) -> tuple[list[dict[str, Any]], str]:
    lines = (ROOT / "results" / "regions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines], (ROOT / name).read_text(encoding="utf-8")


def test_the_table_of_the_docs_is_made_from_the_rows() -> None:
    """From the worst network to the best one, by the least radius over the symbols."""
    rows, page = rows_and_page("docs/regions.md")
    rows = [row for row in rows if row["task"].endswith(", clouds")]
    for task, recipe in {(row["task"], row["recipe"]) for row in rows}:
        mine = [row for row in rows if (row["task"], row["recipe"]) == (task, recipe)]
        spans = (sorted(row[f"{name}_least"] for row in mine) for name in ("interval", "linear", "broken"))
        cells = [task, recipe, *(f"{span[0]:.3f} to {span[-1]:.3f}" for span in spans)]
        changes = (sum(row[f"{kind}_changes"] for row in mine) for kind in ("random", "adversarial"))
        assert f"| {' | '.join(cells)} | {' and '.join(map(str, changes))} |" in page
    assert sum(line.startswith(("| S3, clouds", "| A5, clouds")) for line in page.splitlines()) == 3


def test_the_table_of_the_runs_is_made_from_the_rows() -> None:
    rows, page = rows_and_page("paper/trials.md")
    digits = next(row for row in rows if row["task"] == "digits")
    rows = [row for row in rows if row["task"].endswith(", clouds")]
    assert len(rows) >= 6
    for row in rows:
        cells = [row["task"], f"{row['recipe']}, {row['seed']}"]
        for name, seconds in (("interval", "interval"), ("linear", "linear"), ("broken", "attack")):
            cells.append(f"{row[name + '_least']:.3f}, {row[name + '_median']:.3f} ({row[seconds + '_seconds']})")
        cells.append(f"{row['random_changes']} and {row['adversarial_changes']}")
        assert f"| {' | '.join(cells)} |" in page
    assert sum(line.startswith(("| S3, clouds", "| A5, clouds")) for line in page.splitlines()) == len(rows)
    cells = [
        f"{digits[f'{name}_least']:.3f}, {digits[f'{name}_median']:.3f}" for name in ("interval", "linear", "broken")
    ]
    cells[:2] = [
        f"{cell} ({digits[f'{name}_seconds']})" for cell, name in zip(cells, ("interval", "linear"), strict=False)
    ]
    changes = f"{digits['random_changes']} and {digits['adversarial_changes']}"
    assert digits["random_tries"] == 1_000_000
    assert f"| [digits](../docs/digits.md) | gradient, compressed | {' | '.join(cells)} | {changes} |" in page


def test_the_figures_of_the_page_on_digits_are_those_of_the_row() -> None:
    rows, page = rows_and_page("docs/digits.md")
    row = next(row for row in rows if row["task"] == "digits")
    percent = {name: f"{row[name]:.1%}" for name in row if name.startswith(("accuracy", "image"))}
    for text in (
        f"hold the sum in {row['configurations_learned']} configurations",
        f"| test images read right | {percent['image_accuracy']} of 597 |",
        f"exactly the table of their digit | {percent['images_with_the_table_of_their_digit']} |",
        f"intervals | {row['interval_least']:.3f}, {row['interval_median']:.3f} |",
        f"by linear relaxation | {row['linear_least']:.3f}, {row['linear_median']:.3f} |",
        f"broken by an attack | {row['broken_least']:.3f}, {row['broken_median']:.3f} |",
        f"{row['random_changes']} in {row['random_tries']:,} random images, {row['adversarial_changes']} in 8 rounds",
        f"{row['images_certified_interval']:.0%} by intervals, {row['images_certified_linear']:.0%} by linear",
        f"{row['image_radius_median_interval']:.3f} by intervals, {row['image_radius_median_linear']:.3f} by linear",
        f"| 10 test images | {percent['accuracy_nfsm_10']} | {percent['accuracy_gru_10']} | |",
        f"| {row['length']:,} test images | {percent['accuracy_nfsm']} | {percent['accuracy_gru']} | "
        f"{percent['accuracy_possible']} |",
        f"table of their digit | {percent['accuracy_nfsm_clean']} | {percent['accuracy_gru_clean']} | |",
    ):
        assert text in page
    assert row["images_in_regions_of_mean_images"] == 0.0


def test_the_figures_of_the_page_on_the_sensor_are_those_of_the_row() -> None:
    rows, page = rows_and_page("docs/sensor.md")
    row = next(row for row in rows if row["task"] == "sensor")
    page = page.replace("\n", " ")
    for text in (
        f"by at most {rounded_down(0.999 * row['radius'])} to ",
        f"{row['outside']} inputs lay outside", f"reaches {row['radius']:.3f} in every",
        f"is broken at {row['broken']:.3f}", f"{row['covered']:,} steps were covered",
        f"wrong at {row['wrong']:,} steps", f"{row['microseconds_per_step']:.1f} microseconds per step",
    ):  # fmt: skip
        assert text in page
    assert row["covered_steps_that_follow_the_machine"] == 1.0
