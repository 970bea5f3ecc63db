"""The paper's tables of failing lengths: what was measured here beside the published numbers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from exactstate import records
from exactstate.baselines.cells import CELLS
from exactstate.errors import InvalidInput
from exactstate.records import Row
from exactstate.report.failing_lengths import (
    DAGGER,
    LEGEND,
    NOT_LEARNED,
    UNITS,
    FailingLength,
    RunGroup,
    SeedResult,
    Table,
    collect,
    in_order,
    median,
    min_max,
)
from exactstate.train.config import EndToEndConfig
from exactstate.train.recipes import PAPER_HEADS

SEEDS = (42, 43, 44, 45, 46)
FIELDS = ("median", "range", "learned")
NOT_RUN = "not run"
OPEN = "…"
NOTHING = "–"


def parse_length(text: str) -> FailingLength | None:
    """A failing length such as `186` or `>=512k`; None for `x`, not learned."""
    if text in ("x", NOT_LEARNED):
        return None
    digits = text.removeprefix(">=").removeprefix("≥")
    unit = UNITS.get(digits[-1:], 1)
    number = digits[:-1] if unit > 1 else digits
    if not number.isdecimal():
        raise InvalidInput(f"a failing length is 186, >=512k or x; got {text!r}.")
    return FailingLength(int(number) * unit, text != digits)


@dataclass(frozen=True, kw_only=True)
class Published:
    """What the paper reports for one task and cell."""

    seeds: dict[int, FailingLength | None]
    """By seed; None where the seed did not learn the task."""
    median: FailingLength | None
    range: tuple[FailingLength, ...]
    """Minimum and maximum."""
    certified: bool

    @property
    def learned(self) -> list[FailingLength]:
        return [length for length in self.seeds.values() if length is not None]

    def summary(self) -> tuple[str, str, str]:
        """(median failing length, range, seeds that learned)."""
        dagger = DAGGER if self.certified else ""
        middle = NOT_LEARNED if self.median is None else f"{self.median}{dagger}"
        return middle, min_max(self.range), f"{len(self.learned)}/{len(self.seeds)}"


@lru_cache(maxsize=1)
def published() -> tuple[str, dict[tuple[str, str], Published]]:
    """(source, numbers by task and cell), from published.json."""
    content = json.loads((Path(__file__).parent / "published.json").read_text(encoding="utf-8"))
    numbers = {
        (row["task"], row["cell"]): Published(
            seeds=dict(zip(content["seeds"], map(parse_length, row["seeds"]), strict=True)),
            median=parse_length(row["median"]),
            range=tuple(length for length in map(parse_length, row["range"]) if length is not None),
            certified=row.get("certified", False),
        )
        for row in content["rows"]
    }
    return content["source"], numbers


def groups_of(folder: Path) -> list[tuple[str, str, str | None, RunGroup]]:
    """(task, cell, recipe, seeds) of the rows, in order; recipe is None where the paper has a row and there is none.

    Beside the rows of `collect`, the NFSM by the recipe `gradient` (stories from states and answers), and by the
    paper's with the paper's heads.
    """
    groups = collect(folder)
    for row in _rows(folder, "learning"):
        if "budget" not in row and (row["task"], "nfsm") in published()[1]:
            trained = groups[row["task"], "nfsm"]["gradient"].seeds[row["seed"]]
            trained.learned = trained.certified = row["certified"]
    for row in _rows(folder, "story_learning"):
        if row.get("form") == "cascade" and row["supervision"] == "states":
            trained = groups[row["task"], "nfsm"]["gradient"].seeds[row["seed"]]
            trained.learned = trained.certified = row["certified"]
    # of runs on several machines a certified one counts, else the longest
    for row in sorted(_paper_recipe(folder), key=lambda row: (row["certified"], row["steps"])):
        trained = groups[row["task"], "nfsm"]["paper"].seeds[row["seed"]]
        trained.learned = row["certified"] if row["finished"] else None
        trained.certified, trained.first_error = row["certified"], row["first_error"]
    for key in published()[1]:
        if not groups[key]:
            groups[key][""] = RunGroup()
    return [(task, cell, recipe or None, group) for task, cell, recipe, group in in_order(groups)]


def _paper_recipe(folder: Path) -> Iterator[Row]:
    """Runs by the paper's recipe with the paper's heads; those that stopped at a budget of steps are not finished."""
    for row in _rows(folder, "paper_full"):
        if tuple(row["heads_given"]) == PAPER_HEADS[row["task"]]:
            yield row
    for row in _rows(folder, "paper_recipe"):
        first_steps = row["horizon"] == PAPER_STEPS and row["masks"] == EndToEndConfig().masks
        if first_steps and tuple(row["heads_given"]) == PAPER_HEADS[row["task"]]:
            yield {**row, "finished": row["certified"], "first_error": row["last_check"]["first_error"]}
    for row in _rows(folder, "tso"):
        if row["recipe"] == "paper" and row["length"] == PAPER_STORY:
            yield {**row, "finished": row["certified"]}


PAPER_STEPS, PAPER_STORY = 100_000, 256


def _rows(folder: Path, name: str) -> Iterable[Row]:
    path = folder / f"{name}.jsonl"
    return records.read(path) if path.exists() else ()


def seed_cell(result: SeedResult) -> str:
    """The cell of a seed: a failing length, or how far it came."""
    if result.learned:
        return str(result)
    mark = OPEN if result.learned is None else NOT_LEARNED
    return mark if result.first_error is None else f"{mark} {result.first_error:.1f}"


def summary_cells(group: RunGroup) -> tuple[str, str, str]:
    """(median failing length, range, seeds that learned); where none did, how far the best one came."""
    middle, span, learned = group.summary()
    if not group.learned:
        best = max(group.seeds.values(), key=lambda result: result.first_error or 0.0)
        middle = seed_cell(best)
    running = sum(result.learned is None for result in group.seeds.values())
    return middle, span or NOTHING, learned + (f", {running} open" if running else "")


FAR = (
    "×: not learned, …: training is not finished; the number is the mean position of the first wrong label in its last "
    "training words of 64 (16 with cpu-short, 256 of TSO). Recipe paper: where the same seed ran on "
    "several machines, a certified run counts; `python -m paper table paper_full` has all of them."
)


def recipe_notes(folder: Path) -> tuple[str, ...]:
    """One sentence with the size and the budget of every baseline recipe in the rows; none without such rows."""
    recipes = {
        row["recipe"]: f"{row['recipe']}, {row['size']['layers']} layers of width {row['size']['width']}, "
        f"words of {row['settings']['length']}, at most {row['settings']['steps']} steps of "
        f"{row['settings']['batch']} words"
        for row in _rows(folder, "baselines")
        if row.get("finished", True) and {"size", "settings"} <= set(row)
    }
    return (f"Baselines: {'; '.join(recipes.values())}.",) if recipes else ()


def results(folder: Path) -> tuple[Table, list[Row]]:
    """(the table, the same as JSON objects): median failing lengths from the rows in a folder, beside the published."""
    source, numbers = published()
    rows, objects = [], []
    for task, cell, recipe, group in groups_of(folder):
        reported = numbers.get((task, cell))
        here = summary_cells(group) if recipe is not None else (NOT_RUN, NOTHING, NOTHING)
        middle, span, learned = reported.summary() if reported is not None else (NOTHING, NOTHING, NOTHING)
        there = (middle, span or NOTHING, learned)
        rows.append((task, CELLS[cell].title, recipe or NOTHING, *here, *there))
        objects.append({
            "task": task, "cell": cell, "recipe": recipe, "here": dict(zip(FIELDS, here, strict=True)),
            "published": dict(zip(FIELDS, there, strict=True)) if reported else None,
        })  # fmt: skip
    return Table(
        title="Failing length, here and as published", rows=rows,
        header=("task", "cell", "recipe here", "failing length here", "range", "learned", "published", "range",
                "learned"),
        notes=(
            "Median failing length over the seeds that learned the task. ≥ L: no failure up to L.", FAR, LEGEND,
            *recipe_notes(folder), f"Published: {source}.",
        ),
    ), objects  # fmt: skip


def seeds(folder: Path) -> tuple[Table, list[Row]]:
    """(the table, the same as JSON objects): failing length of every seed; a line is either ours or the paper's."""
    source, numbers = published()
    rows, objects = [], []
    for task, cell, recipe, group in groups_of(folder):
        here = [seed_cell(group.seeds[seed]) if seed in group.seeds else NOT_RUN for seed in SEEDS]
        middle, span = str(median(group.lengths) or NOTHING), min_max(group.lengths) or NOTHING
        origin = NOT_RUN if recipe is None else f"here, {recipe}"
        rows.append((task, CELLS[cell].title, origin, *here, middle, span))
        entry: dict[str, Any] = {
            "task": task, "cell": cell, "recipe": recipe, "median": middle, "range": span,
            "here": {str(seed): length for seed, length in zip(SEEDS, here, strict=True)},
        }  # fmt: skip
        reported = numbers.get((task, cell))
        if reported is not None:
            there = [str(length or NOT_LEARNED) for length in reported.seeds.values()]
            span = min_max(reported.range) or NOTHING
            rows.append((task, CELLS[cell].title, "published", *there, str(reported.median or NOT_LEARNED), span))
            entry["published"] = {str(seed): length for seed, length in zip(reported.seeds, there, strict=True)}
        objects.append(entry)
    return Table(
        title="Failing length of every seed", rows=rows,
        header=("task", "cell", "source", *map(str, SEEDS), "median", "range"),
        notes=(
            "Failing length of every seed. ≥ L: no failure up to L.", FAR, LEGEND, *recipe_notes(folder),
            f"Published: {source}.",
        ),
    ), objects  # fmt: skip
