"""The paper's first table in a line for every task, and how what was measured here differs from the paper."""

from __future__ import annotations

from pathlib import Path

from exactstate.baselines.cells import CELLS
from exactstate.records import Row
from exactstate.train.recipes import configure
from paper.failing_lengths import MARKS, MODELS, SEEDS, groups_of, published
from paper.lengths import ALWAYS, NOTHING, RunGroup, Table

COMPARED = (("nfsm", "paper"), *MODELS)


def summary(folder: Path) -> tuple[Table, list[Row]]:
    """(the table, the same as JSON objects): a line for every task of the paper, a column for every cell."""
    source, numbers = published()
    groups = {(task, cell, recipe): group for task, cell, recipe, group in groups_of(folder)}
    rows, objects = [], []
    for task in dict.fromkeys(task for task, _ in numbers):
        line: dict[str, dict[str, str | None]] = {}
        for cell, recipe in MODELS:
            group, reported = groups.get((task, cell, recipe), RunGroup()), numbers.get((task, cell))
            there = None if reported is None else _with_count(*reported.summary()[::2])
            line[cell] = {"here": _here(group), "published": there}
        rows.append((task, *(" · ".join(filter(None, one.values())) for one in line.values())))
        objects.append({"task": task, **line})
    return Table(
        title="Median failing length: here · in the paper",
        header=("task", *(CELLS[cell].title for cell, _ in MODELS)), rows=rows,
        notes=(
            MARKS, "Where no seed learned it, the number of the one that came furthest. (2/3): two of three seeds "
            "learned it; without brackets five of five. Here: NFSM by the recipe gradient, the others by the recipe "
            "cpu.", f"In the paper: {source}.",
        ),
    ), objects  # fmt: skip


def _here(group: RunGroup) -> str:
    middle, _, learned = group.summary()
    return _with_count(ALWAYS if group.certified else middle, learned)


def _with_count(length: str, learned: str) -> str:
    return length if learned in (f"{len(SEEDS)}/{len(SEEDS)}", NOTHING) else f"{length} ({learned})"


def behind(folder: Path) -> tuple[Table, list[Row]]:
    """(the table, the same as JSON objects): where fewer seeds are run or learned here than in the paper, by model."""
    _, numbers = published()
    groups = {(task, cell, recipe): group for task, cell, recipe, group in groups_of(folder)}
    tasks = list(dict.fromkeys(task for task, _ in numbers))
    objects: list[Row] = []
    for cell, recipe in COMPARED:
        missing, few, less = [], [], []
        for task in tasks:
            group, reported = groups.get((task, cell, recipe)), numbers.get((task, cell))
            if group is None:
                missing.append(task)
                continue
            seeds = len(group.seeds)
            if seeds < len(SEEDS):
                few.append(f"{task} {seeds}")
            if reported is not None and group.learned * len(reported.seeds) < len(reported.learned) * seeds:
                less.append(f"{task} {group.learned}/{seeds} ({len(reported.learned)}/{len(reported.seeds)})")
        objects.append({"cell": cell, "recipe": recipe, "not_run": missing, "few_seeds": few, "learned_less": less})
    return Table(
        title="What is missing here of what the paper has",
        header=("model", "recipe here", "not run", "fewer than five seeds", "learned by a smaller share (paper)"),
        rows=[
            (CELLS[row["cell"]].title, row["recipe"],
             *(", ".join(row[name]) or NOTHING for name in ("not_run", "few_seeds", "learned_less")))
            for row in objects
        ],
    ), objects  # fmt: skip


PROFILED = {
    "layers": "layers", "width": "width", "channels": "channels", "states": "states of a channel", "dropout": "dropout",
}  # fmt: skip
TRAINED = {
    "batch": "words of a step", "length": "length of words", "grow_length": "words begin short",
    "steps": "steps at most", "lr": "learning rate", "final_lr": "at the end", "check_words": "words of a check",
    "stop_accuracy": "right in a check", "stop_checks": "checks in a row that end it",
}  # fmt: skip


def profile(folder: Path) -> tuple[Table, list[Row]]:
    """(the table, the same as JSON objects): settings of a baseline by the recipes `cpu` and `paper`, without rows."""
    found = {recipe: configure("S3", cell="mamba", recipe=recipe) for recipe in ("cpu", "paper")}
    lines = [
        *((title, *(str(getattr(config, name)) for config in found.values())) for name, title in PROFILED.items()),
        *((title, *(_said(getattr(config.end_to_end, name)) for config in found.values()))
          for name, title in TRAINED.items()),
    ]  # fmt: skip
    return Table(
        title="A baseline here and in the paper", header=("setting", "recipe cpu", "in the paper"), rows=lines
    ), [dict(zip(("setting", "cpu", "paper"), line, strict=True)) for line in lines]


def _said(value: float | bool) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else f"{value:,}"
