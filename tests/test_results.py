"""What is kept in `results/` holds: every certificate is valid, and stands in a row under its own hash."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest

from detent import records
from detent.certify.check import check

RESULTS = Path(__file__).parents[1] / "results"
CERTIFICATES = sorted((RESULTS / "certificates").glob("*.json"))
PAPER = ("Z2", "Z16", "S3", "S4", "A5", "M11", "DFF5", "FF")


@pytest.mark.parametrize("path", CERTIFICATES, ids=lambda path: path.stem)
def test_a_kept_certificate_is_valid_and_in_the_rows(path: Path) -> None:
    assert check(path)
    name, seed = path.stem.split("-")
    rows = records.read(RESULTS / ("tso.jsonl" if name.startswith("TSO") else "training.jsonl"))
    hashes = {row.get("certificate") for row in rows if row["task"] == name and row["seed"] == int(seed)}
    assert json.loads(path.read_text(encoding="utf-8"))["sha256"] in hashes


def test_every_task_of_the_paper_has_one() -> None:
    names = {path.stem.split("-")[0] for path in CERTIFICATES}
    assert names == {*PAPER, "TSO3", "TSO4", "TSO5"}


def test_five_seeds_of_every_algebraic_task() -> None:
    rows = [row for row in records.read(RESULTS / "training.jsonl") if row["certified"]]
    for name in PAPER:
        assert {row["seed"] for row in rows if row["task"] == name and row["heads_given"] is None} == {*range(42, 47)}


def test_the_table_of_the_default_recipe_is_the_rows() -> None:
    rows = [row for row in records.read(RESULTS / "training.jsonl") if row["heads_given"] is None]
    page = (RESULTS.parent / "docs" / "results.md").read_text(encoding="utf-8")
    for name in PAPER:
        mine = [row for row in rows if row["task"] == name]
        heads, right = ", ".join(map(str, mine[0]["heads"])), sum(row["certified"] for row in mine)
        seconds = statistics.median(row["seconds"] for row in mine)
        halves = sum("float16" in row["proved"] for row in mine)
        assert all("float32" in row["proved"] for row in mine)
        line = f"| {name} | {heads} | {right} of {len(mine)} | {seconds:.1f} | {halves} of {len(mine)} |"
        assert line in page


def test_the_table_by_recipe_in_the_readme_is_the_rows() -> None:
    readme = (RESULTS.parent / "README.md").read_text(encoding="utf-8")
    induced = [row for row in records.read(RESULTS / "training.jsonl") if row["heads_given"] is None]
    free = [row for row in records.read(RESULTS / "paper_recipe.jsonl") if row["masks"] == 4]
    fewest = {name: min(len(row["heads"]) for row in free if row["task"] == name) for name in PAPER}
    exact = [row for row in free if len(row["heads"]) == fewest[row["task"]]]
    extra = [row for row in free if len(row["heads"]) > fewest[row["task"]] or row["heads"] == [24, 24, 24]]
    exact = [row for row in exact if row not in extra]
    for recipe, rows in (("`induce` (default)", induced), ("`paper`", exact), ("`paper`, extra heads", extra)):
        line = next(line for line in readme.splitlines() if line.startswith(f"| {recipe} |"))
        cells = [cell.strip() for cell in line.strip("|").split("|")][2:]
        for name, cell in zip(PAPER, cells, strict=True):
            mine = [row["certified"] for row in rows if row["task"] == name]
            assert cell == (str(sum(mine)) if mine else "–"), (recipe, name)
            assert len(mine) in (0, 5)
