"""`detent table seeds`: the failing length of every seed, its median and its range."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, total_ordering
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from detent import records
from detent.errors import InvalidInput
from detent.records import Row

# -- A table of words: for a terminal, for Markdown, for a browser.


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A title, a head, rows, and notes below."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """Columns with two blanks between them."""
        lines = [self.head, *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.head))]
        rule = tuple("-" * width for width in widths)
        laid = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in (self.head, rule, *self.rows)]
        return "\n".join([self.title, "", *laid, "", *self.notes])

    def markdown(self) -> str:
        def line(cells: tuple[str, ...]) -> str:
            return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

        rule = "|".join([" --- "] * len(self.head))
        body = [line(self.head), f"|{rule}|", *map(line, self.rows)]
        return "\n".join([f"**{self.title}**", "", *body, "", *(f"{note}  " for note in self.notes)])

    def html(self) -> str:
        """A table element with its caption, and the notes as a paragraph."""

        def line(cells: tuple[str, ...], kind: str) -> str:
            return f"<tr>{''.join(f'<{kind}>{escape(cell)}</{kind}>' for cell in cells)}</tr>"

        return "\n".join(
            [
                "<table>",
                f"<caption>{escape(self.title)}</caption>",
                f"<thead>{line(self.head, 'th')}</thead>",
                "<tbody>",
                *(line(row, "td") for row in self.rows),
                "</tbody>",
                "</table>",
                f"<p>{'<br>'.join(map(escape, self.notes))}</p>",
            ]
        )


# -- A failing length as tables write it: a number, `>=` a number when no failure was found; a cross: not learned.

NOT_LEARNED = "×"
UNITS = {"k": 1 << 10, "M": 1 << 20}


@total_ordering
@dataclass(frozen=True)
class Length:
    """The length of the first failure, or one up to which there is none."""

    value: int
    at_least: bool = False

    def __lt__(self, other: Length) -> bool:
        """One without a failure comes after all that fail, however short its sweep was."""
        return (self.at_least, self.value) < (other.at_least, other.value)

    def __str__(self) -> str:
        if not self.at_least:
            return str(self.value)
        for unit in ("M", "k"):
            if self.value and self.value % UNITS[unit] == 0:
                return f"≥{self.value // UNITS[unit]}{unit}"
        return f"≥{self.value}"

    @classmethod
    def read(cls, text: str) -> Length | None:
        """What is written in a table; None for a cross."""
        if text in ("x", NOT_LEARNED):
            return None
        digits = text.removeprefix(">=").removeprefix("≥")
        unit = UNITS.get(digits[-1:], 1)
        number = digits[:-1] if unit > 1 else digits
        if not number.isdecimal():
            raise InvalidInput(f"a failing length is 186, >=512k or x; got {text!r}.")
        return cls(int(number) * unit, text != digits)


def median(lengths: Sequence[Length]) -> Length | None:
    """The middle one, or the mean of the middle two rounded down; of a pair with one open end, the lower."""
    if not lengths:
        return None
    ordered = sorted(lengths)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return low if high.at_least else Length((low.value + high.value) // 2)


def spread(lengths: Sequence[Length]) -> str:
    """[least; greatest], empty for no lengths."""
    return f"[{min(lengths)}; {max(lengths)}]" if lengths else ""


# -- Rows into runs: what training and sweeps say of every task, cell, recipe and seed.


@dataclass
class Known:
    """What is known of the run of one seed."""

    learned: bool | None = None
    certified: bool = False
    failing: Length | None = None
    """None when it was not swept."""
    batch: int = 0
    """Words per length of that sweep."""


@dataclass
class Runs:
    """All seeds of one task, cell and recipe."""

    seeds: dict[int, Known] = field(default_factory=lambda: defaultdict(Known))

    @property
    def learned(self) -> int:
        return sum(known.learned is True for known in self.seeds.values())

    @property
    def certified(self) -> bool:
        """Whether every seed that learned has a certificate."""
        return self.learned > 0 and all(known.certified for known in self.seeds.values() if known.learned)

    @property
    def lengths(self) -> list[Length]:
        """Of the seeds that learned and were swept."""
        return [known.failing for known in self.seeds.values() if known.learned and known.failing is not None]


Gathered = dict[tuple[str, str], dict[str, Runs]]
"""By task and cell, then by recipe."""


def gather(results: Path) -> Gathered:
    """Everything that the rows in this folder say."""
    found: Gathered = defaultdict(lambda: defaultdict(Runs))

    def of(row: Row, cell: str) -> Known:
        return found[row["task"], cell][row["recipe"]].seeds[row["seed"]]

    for row in _rows(results / "training.jsonl"):
        if row.get("heads_given") is None:  # with heads given it is another experiment
            known = of(row, "nfsm")
            known.learned = known.certified = row["certified"]
    for row in _rows(results / "baselines.jsonl"):
        if row.get("over", True):  # one that was put down may learn yet
            of(row, row["cell"]).learned = row["learned"]
    for row in _rows(results / "sweeps.jsonl"):
        if row["format"] == "float32":
            _note(of(row, row["cell"]), row)
    return found


def _note(known: Known, row: Row) -> None:
    """Take a sweep over, unless one that says more is known: a failure says more than none, and a longer one more."""
    failing = row["failing_length"]
    length = Length(row["max_length"], at_least=True) if failing is None else Length(failing)
    if known.learned is None:
        known.learned = row["learned"]
    known.certified = known.certified or row["certified"]
    if known.failing is None or _says_more(length, row["batch"], known):
        known.failing, known.batch = length, row["batch"]


def _says_more(length: Length, batch: int, known: Known) -> bool:
    assert known.failing is not None
    if length.at_least and known.failing.at_least:
        return length.value > known.failing.value
    return (not length.at_least, batch) > (not known.failing.at_least, known.batch)


def _rows(path: Path) -> Iterator[Row]:
    return records.read(path) if path.exists() else iter(())


# -- In which order tables name tasks and cells, and what they call them.

TASKS = ("Z2", "Z16", "S3", "S4", "A5", "M11", "DFF5", "FF", "TSO3", "TSO4", "TSO5")
CELLS = {"nfsm": "NFSM", "mamba": "Mamba-", "aussm": "AUSSM", "pdssm": "PD-SSM", "bmru": "BMRU"}
PAPER = ("nfsm", "mamba", "aussm", "pdssm")
"""Cells that the paper has figures for."""


def in_order(found: Gathered) -> Iterator[tuple[str, str, str | None, Runs]]:
    """(task, cell, recipe, runs): the paper's tasks and cells, run here or not, then whatever else was run."""
    asked = [(task, cell) for task in TASKS for cell in CELLS if cell in PAPER or (task, cell) in found]
    for task, cell in [*asked, *sorted(key for key in found if key not in set(asked))]:
        recipes = found.get((task, cell), {})
        for recipe in sorted(recipes):
            yield task, cell, recipe, recipes[recipe]
        if not recipes:
            yield task, cell, None, Runs()


# -- The figures of the paper, from a data file: they stand beside ours and never among them.


@dataclass(frozen=True, kw_only=True)
class Published:
    """What the paper's tables say of one task and cell."""

    seeds: dict[int, Length | None]
    """By seed; None where the seed did not learn the task."""
    median: Length | None
    range: tuple[Length, ...]
    """Least and greatest."""
    certified: bool

    @property
    def learned(self) -> list[Length]:
        return [length for length in self.seeds.values() if length is not None]


@lru_cache(maxsize=1)
def published() -> tuple[str, dict[tuple[str, str], Published]]:
    """(where the figures are from, the figures by task and cell)."""
    read = json.loads((files(__package__) / "published.json").read_text(encoding="utf-8"))
    found = {
        (row["task"], row["cell"]): Published(
            seeds=dict(zip(read["seeds"], map(Length.read, row["seeds"]), strict=True)),
            median=Length.read(row["median"]),
            range=tuple(length for length in map(Length.read, row["range"]) if length is not None),
            certified=row.get("certified", False),
        )
        for row in read["rows"]
    }
    return read["source"], found


# -- What the names of the baselines' recipes stand for, from the rows of their runs: a note below a table.


def recipe_notes(results: Path) -> tuple[str, ...]:
    """One sentence for all recipes that baselines were trained by; none where no row tells."""
    path = results / "baselines.jsonl"
    rows = list(records.read(path)) if path.exists() else []
    told = {row["recipe"]: _told(row) for row in rows if row.get("over", True) and {"size", "settings"} <= set(row)}
    return (f"Baselines here: {'; '.join(f'{name}, {what}' for name, what in told.items())}.",) if told else ()


def _told(row: dict[str, Any]) -> str:
    size, settings = row["size"], row["settings"]
    return (
        f"{size['layers']} layers of width {size['width']}, words of {settings['length']}, "
        f"at most {settings['steps']} steps of {settings['batch']} words"
    )


# -- `detent table results`: the median failing length of every task and cell, and how many seeds learned it.

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


SEEDS = (42, 43, 44, 45, 46)
SEEDS_NOTES = (
    "Failing length of every seed. ≥ L: no failure up to L. × the seed did not learn the task. - not run.",
    "† the extracted tables match the target exactly, which proves every length. k = 1024, M = 1024 k.",
)
PUBLISHED = "published"


def seeds(folder: Path) -> tuple[Grid, list[dict[str, Any]]]:
    """(the table, the same as objects), from the rows in a folder; a line is either ours or the paper's."""
    source, figures = published()
    rows, objects = [], []
    for task, cell, recipe, runs in in_order(gather(folder)):
        here = [_seed_here(runs.seeds[seed]) if seed in runs.seeds else "-" for seed in SEEDS]
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
        notes=(*SEEDS_NOTES, *recipe_notes(folder), f"Published: {source}."),
    ), objects  # fmt: skip


def _seed_here(known: Known) -> str:
    if not known.learned:
        return NOT_LEARNED
    dagger = "†" if known.certified else ""
    return f"not swept{dagger}" if known.failing is None else f"{known.failing}{dagger}"
