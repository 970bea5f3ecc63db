"""The paper's tables: failing lengths measured here beside the published ones, the census, the drift of a rotation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from exactstate import records
from exactstate.baselines.cells import CELLS
from exactstate.cli._output import show
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


def _groups(folder: Path) -> list[tuple[str, str, str | None, RunGroup]]:
    """(task, cell, recipe, seeds) of the rows, in order; recipe is None where the paper has a row and there is none.

    Beside the rows of `collect`, the NFSM by the recipe `gradient`, and by the paper's with the paper's heads.
    """
    groups = collect(folder)
    for row in _rows(folder, "learning"):
        if "budget" not in row and (row["task"], "nfsm") in published()[1]:
            trained = groups[row["task"], "nfsm"]["gradient"].seeds[row["seed"]]
            trained.learned = trained.certified = row["certified"]
    # of runs on several machines a certified one counts, else the longest
    for row in sorted(_rows(folder, "paper_full"), key=lambda row: (row["certified"], row["steps"])):
        if len(row["heads_given"]) <= FEW_HEADS:
            trained = groups[row["task"], "nfsm"]["paper"].seeds[row["seed"]]
            trained.learned = row["certified"] if row["finished"] else None
            trained.certified, trained.first_error = row["certified"], row["first_error"]
    for key in published()[1]:
        if not groups[key]:
            groups[key][""] = RunGroup()
    return [(task, cell, recipe or None, group) for task, cell, recipe, group in in_order(groups)]


FEW_HEADS = 4
"""Wide layers have more heads than any of the paper's."""


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
    "training words of 64 (16 with cpu-short). Recipe paper: where the same seed ran on several machines, a certified "
    "run counts; `python -m paper table paper_full` has all of them."
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
    rows, objects, previous = [], [], None
    for task, cell, recipe, group in _groups(folder):
        reported = numbers.get((task, cell))
        here = summary_cells(group) if recipe is not None else (NOT_RUN, NOTHING, NOTHING)
        middle, span, learned = reported.summary() if reported is not None else (NOTHING, NOTHING, NOTHING)
        there = (middle, span or NOTHING, learned)
        rows.append((task if task != previous else "", CELLS[cell].title, recipe or NOTHING, *here, *there))
        objects.append({
            "task": task, "cell": cell, "recipe": recipe, "here": dict(zip(FIELDS, here, strict=True)),
            "published": dict(zip(FIELDS, there, strict=True)) if reported else None,
        })  # fmt: skip
        previous = task
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
    for task, cell, recipe, group in _groups(folder):
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
            rows.append(
                ("", "", "published", *there, str(reported.median or NOT_LEARNED), min_max(reported.range) or NOTHING)
            )
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


CENSUS_TITLE = "Scan-compatible affine recurrences, by the branch they lie on"
CENSUS_NOTES = (
    "rho = 1: the largest spectral radius that the parameters permit is one or more. No bounded region is invariant "
    "under perturbations (R2), so no automaton is tracked at every length.",
    "rho < 1: every spectral radius is below one. Old inputs are forgotten (R3), so only definite automata, whose "
    "state is a function of the last k symbols, are tracked at every length.",
    "rho measured: minimum and maximum spectral radius of 40 random matrices, half with gates as open as permitted.",
)


def census_table(rows: Sequence[Row]) -> Table:
    """All columns."""
    header = ("architecture", "source", "recurrence", "transition", "spectrum", "branch", "rho measured", "note")
    return Table(title=CENSUS_TITLE, header=header, rows=[_cells(row) for row in rows], notes=CENSUS_NOTES)


def show_census(rows: Sequence[Row]) -> None:
    """Print it on the terminal, folded to its width, without the recurrences and notes that would not fit."""
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(box=None, pad_edge=False, header_style="bold", title=CENSUS_TITLE, title_justify="left")
    for name in ("architecture", "transition", "spectrum", "branch", "rho measured"):
        table.add_column(name, overflow="fold")
    for row in rows:
        name, _, _, transition, spectrum, branch, measured, _ = _cells(row)
        table.add_row(*map(Text, (name, transition, spectrum, branch, measured)))
    show(table, Text("\n" + "\n".join(CENSUS_NOTES), style="dim"))


def _cells(row: Row) -> tuple[str, ...]:
    low, high = (format_radius(radius) for radius in row["rho"])
    measured = low if low == high else f"{low} .. {high}"
    named = ("name", "source", "recurrence", "transition", "spectrum", "branch")
    return (*(row[key] for key in named), measured, row["note"])


def format_radius(radius: float) -> str:
    """Six digits; a radius below one is never printed as one."""
    return f"{radius:.6f}" if not 0.9999995 <= radius < 1 - 1e-9 else f"1 - {1 - radius:.1e}"


def drift_table(rows: Sequence[Row]) -> Table:
    """A line for every summary among the rows of the figure `drift`."""
    summaries = [row for row in rows if row.get("kind") == "summary"]
    lines = [
        (
            row["format"], f"{row['cosine']!r}", f"{row['sine']!r}", f"{row['angle_error']:+.3e}",
            f"{row['log_radius']:+.3e}", f"{row['first_wrong_step']:,}", row["by"],
        )
        for row in summaries
    ]  # fmt: skip
    order = summaries[0]["order"] if summaries else "n"
    return Table(
        title=f"The rotation by 2 pi / {order}, rounded once to each format and then iterated in fp64",
        header=("format", "cosine", "sine", "angle error per step", "log radius per step", "first wrong step", "by"),
        rows=lines,
        notes=(
            "iteration: found by iterating the rotation step by step.",
            "closed form: computed from the angle of the rounded weights, because iterating would take too long.",
        ),
    )


def comparison_table(rows: Sequence[Row]) -> Table:
    """The comparison of cells in the same plain model: mean share of right labels over seeds, at every length."""
    lengths = sorted({int(length) for row in rows for length in row["accuracy"]})
    lines = []
    for task in dict.fromkeys(row["task"] for row in rows):
        for cell in dict.fromkeys(row["cell"] for row in rows):
            mine = [row for row in rows if (row["task"], row["cell"]) == (task, cell)]
            if not mine:
                continue
            means = [sum(row["accuracy"][str(length)] for row in mine) / len(mine) for length in lengths]
            exact = sum(all(share == 1.0 for share in row["accuracy"].values()) for row in mine)
            seconds = [row["cpu_seconds"] for row in mine]
            lines.append(
                (task, cell, *(f"{mean:.3f}" for mean in means), f"{exact} of {len(mine)}",
                 f"{sorted(seconds)[len(seconds) // 2]:.0f}")
            )  # fmt: skip
    header = ("task", "cell", *(f"{length:,}" for length in lengths), "exact at all", "CPU seconds")
    return Table(title="Share of right labels among the last 64 of a word", header=header, rows=lines)


def supervision_table(rows: Sequence[Row]) -> Table:
    """Machines learned from weaker supervision: how many runs are certified, and the median of their steps."""
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    lines = []
    for task in dict.fromkeys(row["task"] for row in rows):
        cells = []
        for kind in kinds:
            mine = [row for row in rows if (row["task"], row["kind"]) == (task, kind)]
            steps = sorted(row["steps"] for row in mine if row["certified"])
            middle = f", {steps[len(steps) // 2]:,} steps" if steps else ""
            cells.append(f"{len(steps)} of {len(mine)}{middle}")
        lines.append((task, *cells))
    return Table(title="Certified runs by supervision", header=("machine", *kinds), rows=lines)


def protocols_table(rows: Sequence[Row]) -> Table:
    """Public protocol machines: whether a run from states and one from outputs is certified, and its CPU seconds."""
    lines = []
    for machine in sorted(dict.fromkeys(row["name"] for row in rows), key=str.lower):
        mine = [row for row in rows if row["name"] == machine]
        cells = []
        for kind in ("states", "outputs"):
            right = [row for row in mine if row["supervision"] == kind and row["certified"]]
            runs = [row for row in mine if row["supervision"] == kind]
            spent = ", ".join(f"{row['cpu_seconds']:.0f} s" for row in runs)
            cells.append(f"{'yes' if right else 'no'}, {spent}" if runs else "not run")
        sizes = (str(mine[0][name]) for name in ("states", "inputs", "outputs"))
        lines.append((machine, mine[0]["source"], *sizes, *cells))
    header = ("machine", "repository", "states", "inputs", "outputs", "from states", "from outputs")
    return Table(title="Public protocol machines, certified", header=header, rows=lines)


def paper_full_table(rows: Sequence[Row]) -> Table:
    """The paper's recipe without a limit of steps, run by run: certified at which step, or where it stands.

    Of runs that were paused, the row with the most steps counts. Another processor or newer kernels round otherwise,
    and a run of the same seed is then another one: a certified run does not hide one that was paused.
    """
    furthest: dict[tuple[str, int, int, str, bool], Row] = {}
    for row in sorted(rows, key=lambda row: row["steps"]):
        furthest[row["task"], row["seed"], -len(row["heads_given"]), _maker(row), row["certified"]] = row
    lines = []
    for _, row in sorted(furthest.items()):
        sizes = row["heads_given"]
        heads = f"{len(sizes)} of {sizes[0]}" if len(sizes) > 4 else ", ".join(map(str, sizes))
        stands = "certified" if row["certified"] else "stopped" if row["finished"] else "paused"
        lines.append(
            (row["task"], str(row["seed"]), heads, stands, f"{row['steps']:,}", f"{100 * row['best_accuracy']:.0f}%",
             f"{row['first_error']:.1f}", _maker(row))
        )  # fmt: skip
    header = ("task", "seed", "heads", "run", "steps", "words right at best", "first error", "processor")
    return Table(title="The paper's recipe, as far as it got", header=header, rows=lines)


def _maker(row: Row) -> str:
    """Who made the processor of a row."""
    return str(row["machine"]["cpu"]).replace("(R)", "").split()[0]


def story_learning_table(rows: Sequence[Row]) -> Table:
    """Tracking Shuffled Objects by gradient, run by run: what was learned, and the heads of the network; the form
    `cascade` first."""
    lines = []
    for row in sorted(rows, key=lambda row: row.get("form") != "cascade"):
        heads = " + ".join(str(len(layer)) for layer in row["heads"]) if row.get("heads") else "–"
        before = "–" if row.get("first_error") is None else f"{row['first_error']:,.0f}"
        right = f"{100 * row['stories_right']:.0f}%" if "stories_right" in row else "–"
        verdict = "certified" if row["certified"] else "learned" if row["learned"] else "not learned"
        lines.append(
            (row["task"], row.get("form", "wide"), row["supervision"], str(row["seed"]), verdict,
             f"{row.get('steps', 0):,}", right, before, heads, ", ".join(row.get("proved", ())) or "–",
             f"{row['cpu_seconds']:.0f}")
        )  # fmt: skip
    header = (
        "task", "form", "labels", "seed", "verdict", "steps", "stories right", "first error", "heads", "rounding",
        "CPU seconds",
    )  # fmt: skip
    return Table(title="Stories learned by gradient", header=header, rows=lines)


def text_table(rows: Sequence[Row]) -> Table:
    """Text by cell and budget: right answers, or nats above the entropy, on short and long texts; means over seeds."""
    lengths = ("64", "16384")
    lines = []
    for language in dict.fromkeys(row["language"] for row in rows):
        for budget, cell in dict.fromkeys((row["budget_seconds"], row["cell"]) for row in rows):
            key = (language, budget, cell)
            mine = [row for row in rows if (row["language"], row["budget_seconds"], row["cell"]) == key]
            if not mine:
                continue
            known = mine[0]["64"]["entropy"] is not None
            measures = [
                [row[length]["nats"] - row[length]["entropy"] if known else row[length]["answers"] for row in mine]
                for length in lengths
            ]
            steps = sorted(row["steps"] for row in mine)
            lines.append(
                (language, cell, f"{budget:g}", "nats above entropy" if known else "answers right",
                 *(f"{sum(measure) / len(measure):.3f}" for measure in measures),
                 str(len({row["seed"] for row in mine})), f"{steps[len(steps) // 2]:,}")
            )  # fmt: skip
    header = ("text", "cell", "CPU seconds", "measure", "64", "16,384", "seeds", "steps")
    return Table(title="Next-token prediction at equal CPU time", header=header, rows=lines)
