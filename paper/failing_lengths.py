"""The paper's tables of failing lengths: what was measured here beside the published numbers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from exactstate import records
from exactstate.baselines.cells import CELLS
from exactstate.errors import InvalidInput
from exactstate.records import Row
from exactstate.train.config import EndToEndConfig
from exactstate.train.recipes import PAPER_HEADS
from paper.lengths import (
    DAGGER,
    NOT_LEARNED,
    NOT_RUN,
    NOTHING,
    UNITS,
    FailingLength,
    RunGroup,
    Table,
    collect,
    in_order,
    min_max,
)

SEEDS = (42, 43, 44, 45, 46)
FIELDS = (*map(str, SEEDS), "median", "range", "learned")


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


MODELS = (
    ("nfsm", "gradient"),
    *((cell, "cpu") for cell in ("mamba", "aussm", "pdssm", "gru", "lstm", "deltaproduct", "m2rnn")),
)
"""The columns of the paper's first table here: a cell, and the one recipe that all its runs have."""


def groups_of(folder: Path) -> list[tuple[str, str, str | None, RunGroup]]:
    """(task, cell, recipe, seeds) of the rows, in order; recipe is None where no run of a model is there.

    Beside the rows of `collect`, the NFSM by the recipe `gradient` (stories from states and answers), and by the
    paper's with the paper's heads.
    """
    groups, numbers = collect(folder), published()[1]
    for row in _rows(folder, "learning"):
        if "budget" not in row and (row["task"], "nfsm") in numbers:
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
    for task, _ in numbers:
        for cell, _ in MODELS:
            if not groups[task, cell]:
                groups[task, cell][""] = RunGroup()
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


MARKS = (
    "≥ L: no failure up to L, the end of the sweep. ∞†: certified, right at every length. learned: not swept. ×: not "
    "learned, …: training is not finished; the number is the mean position of the first wrong label in its last "
    "training words, of 64 symbols (16 with cpu-short, 256 of stories by the recipe paper). k = 1024, M = 1024 k."
)


def seed_cells(group: RunGroup) -> list[str]:
    """The cells of all seeds."""
    return [str(group.seeds[seed]) if seed in group.seeds else NOTHING for seed in SEEDS]


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
    """(the table, the same as JSON objects): the failing length of every seed by every recipe, and the published."""
    source, numbers = published()
    rows: list[tuple[str, ...]] = []
    objects: list[Row] = []
    groups = groups_of(folder)
    for place, (task, cell, recipe, group) in enumerate(groups):
        here = (*seed_cells(group), *group.summary())
        rows.append((task, CELLS[cell].title, recipe or NOTHING, *here))
        entry: Row = {"task": task, "cell": cell, "recipe": recipe, "here": dict(zip(FIELDS, here, strict=True))}
        objects.append(entry)
        if (reported := numbers.get((task, cell))) is not None:
            there = (*(str(length or NOT_LEARNED) for length in reported.seeds.values()), *reported.summary())
            entry["published"] = dict(zip(FIELDS, there, strict=True))
            if place + 1 == len(groups) or groups[place + 1][:2] != (task, cell):
                rows.append((task, CELLS[cell].title, "published", *there))
    return Table(
        title="Failing length of every seed, here and as published", rows=rows,
        header=("task", "cell", "recipe", *FIELDS),
        notes=(
            "Medians are over the seeds that learned the task. –: not run. Of two runs of a seed the newer counts.",
            MARKS,
            "† the extracted tables match the target exactly, which proves every length. Recipe paper: where the "
            "same seed ran on several machines, a certified run counts; all are in `python -m paper table paper_full`.",
            *recipe_notes(folder), f"Published: {source}.",
        ),
    ), objects  # fmt: skip


def seeds(folder: Path) -> tuple[Table, list[Row]]:
    """(the table, the same as JSON objects): a line for every task, and all seeds of a model in a cell."""
    groups = {(task, cell, recipe): seed_cells(group) for task, cell, recipe, group in groups_of(folder)}
    objects: list[Row] = [
        {"task": task, **{cell: groups.get((task, cell, recipe), [NOT_RUN]) for cell, recipe in MODELS}}
        for task in dict.fromkeys(task for task, _ in published()[1])
    ]
    return Table(
        title=f"Failing length of the seeds {', '.join(map(str, SEEDS))}",
        header=("task", *(CELLS[cell].title for cell, _ in MODELS)),
        rows=[(str(row["task"]), *(", ".join(row[cell]) for cell, _ in MODELS)) for row in objects],
        notes=(MARKS, "–: not run. NFSM by the recipe gradient, the others by the recipe cpu."),
    ), objects  # fmt: skip
