"""The table of paper/trials.md on the paper's recipe against its rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from exactstate import records

ROOT = Path(__file__).parents[2]


def table(rows: Iterable[dict[str, Any]]) -> set[tuple[str, ...]]:
    """One line for each task, its heads, masks and budget, as in the page."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        heads = ", ".join(map(str, row["heads_given"]))
        groups.setdefault((row["task"], heads, f"{row['masks']:,}", f"{row['budget']:,}"), []).append(row)
    lines = set()
    for about, found in groups.items():
        steps = sorted(row["steps"] for row in found if row["certified"])
        ends = dict.fromkeys(f"{step:,}" for step in (steps[:1] + steps[-1:]))
        lines.add((*about, f"{len(steps)} of {len(found)}", " to ".join(ends)))
    return lines


def page_table() -> set[tuple[str, ...]]:
    """The lines of the table in the page."""
    page = (ROOT / "paper" / "trials.md").read_text(encoding="utf-8")
    part = page.split("## The paper's recipe, within a budget")[1].split("\n## ")[0]
    lines = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in part.splitlines() if "|" in line]
    return set(lines[2:])


def test_table_of_the_page_is_that_of_the_rows():
    rows = list(records.read(ROOT / "results" / "paper_recipe.jsonl"))
    assert page_table() == table(rows)
    assert {(row["attempts"], row["restarts"]) for row in rows} == {(1, 0)}
    late = {row["task"] for row in rows if row["horizon"] != 100_000}
    assert late == {"Z16", "S4", "A5"}


def test_table_with_another_row_differs():
    rows = list(records.read(ROOT / "results" / "paper_recipe.jsonl"))
    assert page_table() != table([*rows, {**rows[0], "certified": False}])
