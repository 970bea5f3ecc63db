"""What is kept in `results/` holds: certificates are valid and named in rows, and tables of the pages are the rows'."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from pathlib import Path

import pytest

from exactstate import records
from exactstate.certify.check import check
from exactstate.records import Row
from paper.tables import (
    comparison_table,
    paper_full_table,
    protocols_table,
    story_learning_table,
    supervision_table,
    text_table,
)

RESULTS = Path(__file__).parents[1] / "results"
CERTIFICATES = sorted((RESULTS / "certificates").glob("*.json"))
GRADIENT_CERTIFICATES = sorted((RESULTS / "certificates" / "gradient").glob("*.json"))
PAPER = ("Z2", "Z16", "S3", "S4", "A5", "M11", "DFF5", "FF")
LEARNED = ("Z2", "S3", "DFF5", "FF", "Z5", "S4", "A5", "Z16", "S5", "M11")
"""The tasks of the table of the recipe gradient, in its order."""


def span(values: Iterable[int]) -> str:
    """The smallest and the largest: `25`, `50 to 125`."""
    low, *_, high = sorted(values) * 2  # twice, so that one value is both
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def learning_line(name: str, rows: list[Row]) -> str:
    """The line of a task in the table of the recipe gradient in docs/training.md."""
    right = [row for row in rows if row["certified"]]
    first = dict.fromkeys(f"{len(row['learned_heads'])} of {row['learned_heads'][0]}" for row in right)
    left = f"{span(len(row['heads']) for row in right)} of {span(d for row in right for d in row['heads'])}"
    compressed = dict.fromkeys(", ".join(map(str, row["compressed_heads"])) for row in right)
    cells = (
        name, f"{len(right)} of {len(rows)}", f"{statistics.median(row['cpu_seconds'] for row in right):.1f}",
        span(row["steps"] for row in right), "; ".join(first), left, span(row["reached"] for row in right),
        "; ".join(compressed), f"{sum('float16' in row['proved'] for row in right)} of {len(right)}",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def learning_rows(name: str) -> list[Row]:
    return [row for row in records.read(RESULTS / "learning.jsonl") if row["task"] == name]


@pytest.mark.parametrize("path", CERTIFICATES, ids=lambda path: path.stem)
def test_a_kept_certificate_is_valid_and_in_the_rows(path: Path) -> None:
    assert check(path)
    name, seed = path.stem.split("-")
    rows = records.read(RESULTS / ("tso.jsonl" if name.startswith("TSO") else "training.jsonl"))
    hashes = {row.get("certificate") for row in rows if row["task"] == name and row["seed"] == int(seed)}
    assert json.loads(path.read_text(encoding="utf-8"))["sha256"] in hashes


@pytest.mark.parametrize("path", GRADIENT_CERTIFICATES, ids=lambda path: path.stem)
def test_a_certificate_of_the_recipe_gradient_is_valid_and_in_the_rows(path: Path) -> None:
    assert check(path)
    name, seed = path.stem.split("-")
    hashes = {row.get("certificate") for row in learning_rows(name) if row["seed"] == int(seed)}
    assert json.loads(path.read_text(encoding="utf-8"))["sha256"] in hashes


def test_every_task_of_the_paper_has_one() -> None:
    names = {path.stem.split("-")[0] for path in CERTIFICATES}
    assert names == {*PAPER, "TSO3", "TSO4", "TSO5"}


def test_five_seeds_of_every_algebraic_task() -> None:
    rows = [row for row in records.read(RESULTS / "training.jsonl") if row["certified"]]
    for name in PAPER:
        assert {row["seed"] for row in rows if row["task"] == name and row["heads_given"] is None} == {*range(42, 47)}


@pytest.mark.parametrize("name", [name for name in LEARNED if learning_rows(name)])
def test_the_table_of_the_recipe_gradient_is_the_rows(name: str) -> None:
    rows, page = learning_rows(name), (RESULTS.parent / "docs" / "training.md").read_text(encoding="utf-8")
    line = learning_line(name, rows)
    assert line in page.splitlines()
    assert learning_line(name, [{**row, "steps": row["steps"] + 1} for row in rows if row["certified"]]) not in page
    cells = line.strip("| ").split(" | ")
    short = f"| {' | '.join(cells[i] for i in (0, 1, 2, 7, 8))} |"
    assert short in (RESULTS.parent / "docs" / "results.md").read_text(encoding="utf-8").splitlines()
    assert [row["seed"] for row in rows] == [42, 43, 44, 45, 46]
    assert all("float32" in row["proved"] and row["compressed_certified"] for row in rows if row["certified"])


def test_the_page_names_every_restart_of_the_recipe_gradient() -> None:
    page = " ".join((RESULTS.parent / "docs" / "training.md").read_text(encoding="utf-8").split())
    restarted = [(name, row["seed"]) for name in LEARNED for row in learning_rows(name) if row.get("restarts")]
    assert restarted
    for name, seed in restarted:
        assert f"{name} with seed {seed}" in page


def test_what_the_readme_says_of_m11_is_the_rows() -> None:
    text = " ".join((RESULTS.parent / "README.md").read_text(encoding="utf-8").split())
    minutes = statistics.median(row["cpu_seconds"] for row in learning_rows("M11") if row["certified"]) / 60
    assert 6.5 <= minutes < 7.5
    assert "M11 with its 7,920 states takes about seven minutes" in text


def test_the_table_of_the_recipe_induce_is_the_rows() -> None:
    rows = [row for row in records.read(RESULTS / "training.jsonl") if row["heads_given"] is None]
    page = (RESULTS.parent / "docs" / "results.md").read_text(encoding="utf-8")
    for name in PAPER:
        mine = [row for row in rows if row["task"] == name]
        heads, right = ", ".join(map(str, mine[0]["heads"])), sum(row["certified"] for row in mine)
        seconds = statistics.median(row["cpu_seconds"] for row in mine)
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
    learned = list(records.read(RESULTS / "learning.jsonl"))
    recipes = {
        "`gradient` (default)": learned, "`induce`": induced, "`paper`": exact, "`paper`, extra heads": extra,
    }  # fmt: skip
    for recipe, rows in recipes.items():
        line = next(line for line in readme.splitlines() if line.startswith(f"| {recipe} |"))
        cells = [cell.strip() for cell in line.strip("|").split("|")][2:]
        for name, cell in zip(PAPER, cells, strict=True):
            mine = [row["certified"] for row in rows if row["task"] == name]
            assert cell == (str(sum(mine)) if mine else "–"), (recipe, name)
            assert len(mine) in (0, 5)
    text = " ".join(readme.split())
    seconds = [
        statistics.median(row["cpu_seconds"] for row in learned if row["task"] == name)
        for name in PAPER if name != "M11"
    ]  # fmt: skip
    assert f"takes {min(seconds):.0f} to {max(seconds):.0f} CPU seconds" in text
    for name in ("Z5", "S5"):
        mine = learning_rows(name)
        assert not mine or f"{name} ({sum(row['certified'] for row in mine)} of {len(mine)})" in text


def tables_of(page: str) -> set[str]:
    return {line for line in (RESULTS.parent / page).read_text(encoding="utf-8").splitlines() if line.startswith("| ")}


TABLES = {
    "comparison": comparison_table, "supervision": supervision_table, "protocols": protocols_table,
    "story_learning": story_learning_table, "text": text_table, "paper_full": paper_full_table,
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_the_table_of_a_campaign_in_docs_is_the_rows(name: str) -> None:
    rows, make = list(records.read(RESULTS / f"{name}.jsonl")), TABLES[name]
    lines = {line for line in make(rows).markdown().splitlines() if line.startswith("| ")}
    assert len(lines) > 3
    assert lines <= tables_of("docs/results.md")
    wrong = {
        **rows[0], "certified": not rows[0].get("certified"), "steps": 1,
        "accuracy": dict.fromkeys(("64", "512", "4096", "32768"), 0.5),
        "64": {"answers": 0.5, "nats": 2.0, "entropy": None},
    }  # fmt: skip
    others = {line for line in make([wrong, *rows[1:]]).markdown().splitlines() if line.startswith("| ")}
    assert not others <= tables_of("docs/results.md")


def test_the_comparison_in_the_readme_is_the_rows() -> None:
    rows, lines = list(records.read(RESULTS / "comparison.jsonl")), tables_of("README.md")
    cells = list(dict.fromkeys(row["cell"] for row in rows))
    for task in dict.fromkeys(row["task"] for row in rows):
        shares = []
        for cell in cells:
            mine = [row["accuracy"]["32768"] for row in rows if (row["task"], row["cell"]) == (task, cell)]
            shares.append(f"{sum(mine) / len(mine):.2f}")
        assert f"| {task} | {' | '.join(shares)} |" in lines
