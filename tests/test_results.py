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

RESULTS = Path(__file__).parents[1] / "results"
CERTIFICATES = sorted((RESULTS / "certificates").glob("*.json"))
TRIALS = (RESULTS.parent / "paper" / "trials.md").read_text(encoding="utf-8")
GRADIENT_CERTIFICATES = sorted((RESULTS / "certificates" / "gradient").glob("*.json"))
PAPER = ("Z2", "Z16", "S3", "S4", "A5", "M11", "DFF5", "FF")
LEARNED = ("Z2", "S3", "DFF5", "FF", "Z5", "S4", "A5", "Z16", "S5", "M11")
"""The tasks of the table of the recipe gradient, in its order."""


def span(values: Iterable[int]) -> str:
    """The smallest and the largest: `25`, `50 to 125`."""
    low, *_, high = sorted(values) * 2  # twice, so that one value is both
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def sizes(heads: list[int]) -> str:
    """`10 of 12, 4 of 24` of so many heads."""
    return ", ".join(f"{heads.count(d)} of {d}" for d in dict.fromkeys(heads))


def learning_line(name: str, rows: list[Row]) -> str:
    """The line of a task in the table of the recipe gradient in paper/trials.md."""
    right = [row for row in rows if row["certified"]]
    first = dict.fromkeys(sizes(row["learned_heads"]) for row in right)
    left = f"{span(len(row['heads']) for row in right)} of {span(d for row in right for d in row['heads'])}"
    compressed = dict.fromkeys(", ".join(map(str, row.get("compressed_heads", row["heads"]))) for row in right)
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
    rows, page = learning_rows(name), TRIALS
    line = learning_line(name, rows)
    assert line in page.splitlines()
    assert learning_line(name, [{**row, "steps": row["steps"] + 1} for row in rows if row["certified"]]) not in page
    cells = line.strip("| ").split(" | ")
    short = f"| {' | '.join(cells[i] for i in (0, 1, 2, 7, 8))} |"
    assert short in tables_of("docs/results.md")
    assert [row["seed"] for row in rows] == [42, 43, 44, 45, 46]
    assert all("float32" in row["proved"] for row in rows if row["certified"])
    assert all(row.get("compressed_certified", row.get("tables") == "every head alone") for row in rows)


def test_the_page_names_every_restart_of_the_recipe_gradient() -> None:
    page = " ".join(TRIALS.split())
    restarted = [(name, row["seed"]) for name in LEARNED for row in learning_rows(name) if row.get("restarts")]
    assert restarted
    for name, seed in restarted:
        assert f"{name} with seed {seed}" in page


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


@pytest.mark.parametrize("supervision", ["states", "answers"])
@pytest.mark.parametrize("name", ["TSO3", "TSO4", "TSO5"])
def test_stories_by_gradient_are_the_rows(name: str, supervision: str) -> None:
    """Those learned as a cascade, without a line for each run."""
    rows = [row for row in story_rows(name) if row["supervision"] == supervision]
    lines = [line for line in tables_of("docs/results.md") if line.startswith(f"| {name} | {supervision} |")]
    seconds = span(round(row["cpu_seconds"]) for row in rows) if rows else ""
    right = sum(row["certified"] for row in rows)
    assert lines == ([f"| {name} | {supervision} | {right} of {len(rows)} | {seconds} |"] if rows else [])


def story_rows(name: str) -> list[Row]:
    rows = records.read(RESULTS / "story_learning.jsonl")
    return [row for row in rows if row["task"] == name and row.get("form") == "cascade"]


def readme_line(name: str) -> str:
    """The line of a task in the table on the first screen: task, certified, CPU seconds (median)."""
    rows = learning_rows(name) or [row for row in story_rows(name) if row["supervision"] == "states"]
    seconds = statistics.median(row["cpu_seconds"] for row in rows if row["certified"])
    about = {"M11": ", 7,920 states"}.get(name, "")
    digits = 1 if seconds < 10 else 0
    return f"| {name}{about} | {sum(row['certified'] for row in rows)} of {len(rows)} | {seconds:.{digits}f} |"


def test_the_first_table_of_the_readme_is_the_rows() -> None:
    lines = [readme_line(name) for name in (*LEARNED, "TSO3", "TSO4", "TSO5")]
    readme = (RESULTS.parent / "README.md").read_text(encoding="utf-8")
    table = readme.split("| task | certified | CPU seconds |\n| --- | --- | ---: |\n")[1].split("\n\n")[0]
    assert table.splitlines() == lines


def tables_of(page: str) -> set[str]:
    return {line for line in (RESULTS.parent / page).read_text(encoding="utf-8").splitlines() if line.startswith("| ")}


def test_sentences_of_the_results_are_the_rows() -> None:
    page = " ".join((RESULTS.parent / "docs" / "results.md").read_text(encoding="utf-8").split())
    rows = list(records.read(RESULTS / "supervision.jsonl"))
    seconds = statistics.median(row["cpu_seconds"] for row in rows)
    assert f"{sum(row['certified'] for row in rows)} of {len(rows)} runs are certified, with {seconds:.0f} CPU" in page
    rows = list(records.read(RESULTS / "protocols.jsonl"))
    states, outputs = ([row["certified"] for row in rows if row["supervision"] == kind] for kind in KINDS)
    assert f"{sum(states)} of {len(states)} are certified from states" in page
    assert f"{sum(outputs)} of {len(outputs)} from outputs" in page
    full = [row for row in records.read(RESULTS / "paper_full.jsonl") if row["heads_given"] in NARROW]
    steps = {name: [row["steps"] for row in full if row["task"] == name] for name in PAPER}
    right = [row for row in full if row["certified"]]
    assert {row["task"] for row in right} == {"Z16", "S3", "FF", "DFF5"}
    assert f"after {span(row['steps'] for row in right)}." in page
    assert f"no longer improving after {max(steps['S4']):,} and {max(steps['A5']):,}." in page
    assert f"M11 came to {max(steps['M11']):,}." in page


KINDS = ("states", "outputs")
NARROW = ([16], [3, 2], [4, 3, 2], [5, 12], [11, 11, 11, 11], [3])
"""The paper's heads."""


def test_the_comparison_in_the_readme_is_the_rows() -> None:
    rows, lines = list(records.read(RESULTS / "comparison.jsonl")), tables_of("README.md")
    cells = list(dict.fromkeys(row["cell"] for row in rows))
    for task in dict.fromkeys(row["task"] for row in rows):
        shares = []
        for cell in cells:
            mine = [row["accuracy"]["32768"] for row in rows if (row["task"], row["cell"]) == (task, cell)]
            shares.append(f"{sum(mine) / len(mine):.2f}")
        assert f"| {task} | {' | '.join(shares)} |" in lines


def test_the_run_of_a_baseline_of_the_papers_size_is_in_the_rows() -> None:
    rows = [row for row in records.read(RESULTS / "baselines.jsonl") if row["recipe"] == "paper"]
    ends = sorted({step for row in rows for step in (row["resumed_at"], row["steps"])})
    text = " ".join(TRIALS.split())
    assert f"interrupted at steps {', '.join(map(str, ends[:-2]))} and {ends[-2]}" in text
    assert f"stopped at {ends[-1]}." in text
