"""`detent table seeds`: the failing length of every seed, its median and its range."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from detent.evaluation.tables.gathering import Known, gather
from detent.evaluation.tables.grid import Grid
from detent.evaluation.tables.length import NOT_LEARNED, median, spread
from detent.evaluation.tables.order import CELLS, in_order
from detent.evaluation.tables.published import published
from detent.evaluation.tables.recipes import recipe_notes
from detent.evaluation.tables.results import NOT_RUN

SEEDS = (42, 43, 44, 45, 46)
NOTES = (
    "Failing length of every seed. ≥ L: no failure up to L. × the seed did not learn the task. - not run.",
    "† the extracted tables match the target exactly, which proves every length. k = 1024, M = 1024 k.",
)
PUBLISHED = "published"


def seeds(folder: Path) -> tuple[Grid, list[dict[str, Any]]]:
    """(the table, the same as objects), from the rows in a folder; a line is either ours or the paper's."""
    source, figures = published()
    rows, objects = [], []
    for task, cell, recipe, runs in in_order(gather(folder)):
        here = [_here(runs.seeds[seed]) if seed in runs.seeds else "-" for seed in SEEDS]
        middle = median(runs.lengths)
        summary = ("" if middle is None else str(middle), spread(runs.lengths))
        name = CELLS.get(cell, cell)
        whence = NOT_RUN if recipe is None else f"here, {recipe}"
        rows.append((task, name, whence, *here, *summary))
        entry: dict[str, Any] = {
            "task": task, "cell": cell, "recipe": recipe, "median": summary[0], "range": summary[1],
            "here": {str(seed): said for seed, said in zip(SEEDS, here, strict=True)},
        }  # fmt: skip
        theirs = figures.get((task, cell))
        if theirs is not None:
            there = [str(length or NOT_LEARNED) for length in theirs.seeds.values()]
            rows.append(("", "", PUBLISHED, *there, str(theirs.median or NOT_LEARNED), spread(theirs.range)))
            entry[PUBLISHED] = {str(seed): said for seed, said in zip(theirs.seeds, there, strict=True)}
        objects.append(entry)
    head = ("task", "cell", "whence", *map(str, SEEDS), "median", "range")
    return Grid(
        title="Failing length of every seed", head=head, rows=rows,
        notes=(*NOTES, *recipe_notes(folder), f"Published: {source}."),
    ), objects  # fmt: skip


def _here(known: Known) -> str:
    if not known.learned:
        return NOT_LEARNED
    dagger = "†" if known.certified else ""
    return f"not swept{dagger}" if known.failing is None else f"{known.failing}{dagger}"
