"""`detent table results`: the median failing length of every task and cell, and how many seeds learned it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from detent.evaluation.tables.gathering import Runs, gather
from detent.evaluation.tables.grid import Grid
from detent.evaluation.tables.length import NOT_LEARNED, median, spread
from detent.evaluation.tables.order import CELLS, in_order
from detent.evaluation.tables.published import Published, published
from detent.evaluation.tables.recipes import recipe_notes

HEAD = ("task", "cell", "recipe here", "failing length here", "range", "learned", "published", "range", "learned")
FIGURES = ("median", "range", "learned")
NOT_RUN = "not run"
NOTES = (
    "Median failing length over the seeds that learned the task. ≥ L: no failure up to L. × no seed learned it.",
    "† the extracted tables match the target exactly, which proves every length. k = 1024, M = 1024 k.",
)


def results(folder: Path) -> tuple[Grid, list[dict[str, Any]]]:
    """(the table, the same as objects), from the rows in a folder."""
    source, figures = published()
    rows, objects, seen = [], [], None
    for task, cell, recipe, runs in in_order(gather(folder)):
        theirs = figures.get((task, cell))
        here, there = _here(recipe, runs), _there(theirs)
        rows.append((task if task != seen else "", CELLS.get(cell, cell), recipe or "", *here, *there))
        objects.append({
            "task": task, "cell": cell, "recipe": recipe, "here": dict(zip(FIGURES, here, strict=True)),
            "published": dict(zip(FIGURES, there, strict=True)) if theirs else None,
        })  # fmt: skip
        seen = task
    return Grid(
        title="Failing length, here and as published", head=HEAD, rows=rows,
        notes=(*NOTES, *recipe_notes(folder), f"Published: {source}."),
    ), objects  # fmt: skip


def _here(recipe: str | None, runs: Runs) -> tuple[str, str, str]:
    """(median, range, learned) of what was run here."""
    if recipe is None:
        return NOT_RUN, "", ""
    count = f"{runs.learned}/{len(runs.seeds)}"
    if not runs.learned:
        return NOT_LEARNED, "", count
    dagger = "†" if runs.certified else ""
    middle = median(runs.lengths)
    if middle is None:
        return f"{'certified' if dagger else 'learned'}, not swept{dagger}", "", count
    swept = "" if len(runs.lengths) == runs.learned else f", {len(runs.lengths)} swept"
    return f"{middle}{dagger}", spread(runs.lengths), count + swept


def _there(theirs: Published | None) -> tuple[str, str, str]:
    if theirs is None:
        return "", "", ""
    dagger = "†" if theirs.certified else ""
    middle = NOT_LEARNED if theirs.median is None else f"{theirs.median}{dagger}"
    return middle, spread(theirs.range), f"{len(theirs.learned)}/{len(theirs.seeds)}"
