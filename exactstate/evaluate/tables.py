"""Tables of failing lengths from result rows: `exactstate table results` and `exactstate table seeds`.

A folder of rows holds `training.jsonl` (NFSM runs), `baselines.jsonl` (runs of other cells) and `sweeps.jsonl` (length
sweeps of both). `collect` joins them by task, cell, recipe and seed; `results_table` and `seeds_table` lay them out.
No torch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import total_ordering
from html import escape
from pathlib import Path

from exactstate import records
from exactstate.baselines.cells import CELLS
from exactstate.errors import InvalidInput
from exactstate.records import Row

TASKS = ("Z2", "Z16", "S3", "S4", "A5", "M11", "DFF5", "FF", "TSO3", "TSO4", "TSO5")
"""Tables list tasks in this order and cells in that of `exactstate.baselines.CELLS`, others after them."""
NOT_LEARNED = "×"
NOT_RUN = "-"
DAGGER = "†"
"""Marks a certified run."""
LEGEND = "† the extracted tables match the target exactly, which proves every length. k = 1024, M = 1024 k."
UNITS = {"k": 1 << 10, "M": 1 << 20}


@dataclass(frozen=True, kw_only=True)
class Table:
    """A title, a header, rows of strings, and notes below."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: tuple[str, ...] = ()

    def render(self, form: str) -> str:
        """As "text", "markdown" or "html"."""
        return {"text": self.text, "markdown": self.markdown, "html": self.html}[form]()

    def text(self) -> str:
        """Columns separated by two spaces."""
        lines = [self.header, *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.header))]
        rule = tuple("-" * width for width in widths)
        body = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in (self.header, rule, *self.rows)]
        return "\n".join([self.title, "", *body, "", *self.notes])

    def markdown(self) -> str:
        def line(cells: tuple[str, ...]) -> str:
            return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

        rule = "|".join([" --- "] * len(self.header))
        body = [line(self.header), f"|{rule}|", *map(line, self.rows)]
        return "\n".join([f"**{self.title}**", "", *body, "", *(f"{note}  " for note in self.notes)])

    def html(self) -> str:
        """A table element with a caption, then the notes as a paragraph."""

        def line(cells: tuple[str, ...], tag: str) -> str:
            return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"

        return "\n".join(
            [
                "<table>",
                f"<caption>{escape(self.title)}</caption>",
                f"<thead>{line(self.header, 'th')}</thead>",
                "<tbody>",
                *(line(row, "td") for row in self.rows),
                "</tbody>",
                "</table>",
                f"<p>{'<br>'.join(map(escape, self.notes))}</p>",
            ]
        )


@total_ordering
@dataclass(frozen=True)
class FailingLength:
    """The shortest length that fails, or the longest length tested when none fails (`at_least`)."""

    value: int
    at_least: bool = False

    def __lt__(self, other: FailingLength) -> bool:
        """A sweep without a failure sorts after every sweep with one, however short it was."""
        return (self.at_least, self.value) < (other.at_least, other.value)

    def __str__(self) -> str:
        if not self.at_least:
            return str(self.value)
        for unit in ("M", "k"):
            if self.value and self.value % UNITS[unit] == 0:
                return f"≥{self.value // UNITS[unit]}{unit}"
        return f"≥{self.value}"

    @classmethod
    def parse(cls, text: str) -> FailingLength | None:
        """Parse a table cell such as `186` or `>=512k`; None for `x`, not learned."""
        if text in ("x", NOT_LEARNED):
            return None
        digits = text.removeprefix(">=").removeprefix("≥")
        unit = UNITS.get(digits[-1:], 1)
        number = digits[:-1] if unit > 1 else digits
        if not number.isdecimal():
            raise InvalidInput(f"a failing length is 186, >=512k or x; got {text!r}.")
        return cls(int(number) * unit, text != digits)


def median(lengths: Sequence[FailingLength]) -> FailingLength | None:
    """The middle length; of an even number the mean of the middle two, or the lower one if the upper is open."""
    if not lengths:
        return None
    ordered = sorted(lengths)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return low if high.at_least else FailingLength((low.value + high.value) // 2)


def min_max(lengths: Sequence[FailingLength]) -> str:
    """`[minimum; maximum]`, empty for no lengths."""
    return f"[{min(lengths)}; {max(lengths)}]" if lengths else ""


@dataclass
class SeedResult:
    """The result of one seed."""

    learned: bool | None = None
    certified: bool = False
    failing: FailingLength | None = None
    """None when it was not swept."""
    batch: int = 0
    """Words per length of that sweep."""

    def add_sweep(self, row: Row) -> None:
        """Add a sweep. Of several, a failure outranks no failure, then the larger batch or the longer sweep counts."""
        failing = row["failing_length"]
        length = FailingLength(row["max_length"], at_least=True) if failing is None else FailingLength(failing)
        if self.learned is None:
            self.learned = row["learned"]
        self.certified = self.certified or row["certified"]
        if self.failing is None or self._outranks(length, row["batch"], self.failing):
            self.failing, self.batch = length, row["batch"]

    def _outranks(self, length: FailingLength, batch: int, current: FailingLength) -> bool:
        if length.at_least and current.at_least:
            return length.value > current.value
        return (not length.at_least, batch) > (not current.at_least, self.batch)

    def __str__(self) -> str:
        if not self.learned:
            return NOT_LEARNED
        return f"{'not swept' if self.failing is None else self.failing}{DAGGER if self.certified else ''}"


@dataclass
class RunGroup:
    """All seeds of one task, cell and recipe."""

    seeds: dict[int, SeedResult] = field(default_factory=lambda: defaultdict(SeedResult))

    @property
    def learned(self) -> int:
        return sum(result.learned is True for result in self.seeds.values())

    @property
    def certified(self) -> bool:
        """Whether every seed that learned is certified."""
        return self.learned > 0 and all(result.certified for result in self.seeds.values() if result.learned)

    @property
    def lengths(self) -> list[FailingLength]:
        """Failing lengths of the seeds that learned and were swept."""
        return [result.failing for result in self.seeds.values() if result.learned and result.failing is not None]

    def summary(self) -> tuple[str, str, str]:
        """(median failing length, range, seeds that learned)."""
        count = f"{self.learned}/{len(self.seeds)}"
        if not self.learned:
            return NOT_LEARNED, "", count
        dagger = DAGGER if self.certified else ""
        middle = median(self.lengths)
        if middle is None:
            return f"{'certified' if dagger else 'learned'}, not swept{dagger}", "", count
        swept = "" if len(self.lengths) == self.learned else f", {len(self.lengths)} swept"
        return f"{middle}{dagger}", min_max(self.lengths), count + swept


Collected = dict[tuple[str, str], dict[str, RunGroup]]
"""By (task, cell), then by recipe."""


def collect(folder: Path) -> Collected:
    """Join the rows of training, baselines and sweeps in a folder."""
    groups: Collected = defaultdict(lambda: defaultdict(RunGroup))

    def result(row: Row, cell: str) -> SeedResult:
        return groups[row["task"], cell][row["recipe"]].seeds[row["seed"]]

    for row in _rows(folder / "training.jsonl"):
        if row.get("heads_given") is None:  # runs with given heads are a different experiment
            trained = result(row, "nfsm")
            trained.learned = trained.certified = row["certified"]
    for row in _rows(folder / "baselines.jsonl"):
        if row.get("finished", True):  # an unfinished run may still learn
            result(row, row["cell"]).learned = row["learned"]
    for row in _rows(folder / "sweeps.jsonl"):
        if row["format"] == "float32":
            result(row, row["cell"]).add_sweep(row)
    return groups


def _rows(path: Path) -> Iterator[Row]:
    return records.read(path) if path.exists() else iter(())


def in_order(groups: Collected, always: Sequence[str] = ()) -> Iterator[tuple[str, str, str | None, RunGroup]]:
    """(task, cell, recipe, group) in table order.

    Cells in `always` are listed for every task of `TASKS`; where there is no run, recipe is None and the group empty.
    """
    known = [(task, cell) for task in TASKS for cell in CELLS if cell in always or (task, cell) in groups]
    for task, cell in [*known, *sorted(key for key in groups if key not in set(known))]:
        recipes = groups.get((task, cell), {})
        for recipe in sorted(recipes):
            yield task, cell, recipe, recipes[recipe]
        if not recipes:
            yield task, cell, None, RunGroup()


def _title(cell: str) -> str:
    return CELLS[cell].title if cell in CELLS else cell


def recipe_notes(folder: Path) -> tuple[str, ...]:
    """One sentence with the size and the budget of every baseline recipe in the rows; none without such rows."""
    recipes = {
        row["recipe"]: f"{row['recipe']}, {row['size']['layers']} layers of width {row['size']['width']}, "
        f"words of {row['settings']['length']}, at most {row['settings']['steps']} steps of "
        f"{row['settings']['batch']} words"
        for row in _rows(folder / "baselines.jsonl")
        if row.get("finished", True) and {"size", "settings"} <= set(row)
    }
    return (f"Baselines: {'; '.join(recipes.values())}.",) if recipes else ()


def results_table(folder: Path) -> tuple[Table, list[Row]]:
    """(the table, the same as JSON objects): median failing length of every task, cell and recipe in the rows."""
    rows, objects, previous = [], [], None
    for task, cell, recipe, group in in_order(collect(folder)):
        length, span, learned = group.summary()
        rows.append((task if task != previous else "", _title(cell), str(recipe), length, span, learned))
        objects.append({
            "task": task, "cell": cell, "recipe": recipe, "failing_length": length, "range": span, "learned": learned,
        })  # fmt: skip
        previous = task
    return Table(
        title="Failing length", header=("task", "cell", "recipe", "failing length", "range", "learned"), rows=rows,
        notes=(
            "Median over the seeds that learned the task. ≥ L: no failure up to L. × no seed learned it.", LEGEND,
            *recipe_notes(folder),
        ),
    ), objects  # fmt: skip


def seeds_table(folder: Path) -> tuple[Table, list[Row]]:
    """(the table, the same as JSON objects): failing length of every seed in the rows."""
    groups = list(in_order(collect(folder)))
    seeds = sorted({seed for *_, group in groups for seed in group.seeds})
    rows, objects = [], []
    for task, cell, recipe, group in groups:
        lengths = [str(group.seeds[seed]) if seed in group.seeds else NOT_RUN for seed in seeds]
        middle, span = str(median(group.lengths) or ""), min_max(group.lengths)
        rows.append((task, _title(cell), str(recipe), *lengths, middle, span))
        objects.append({
            "task": task, "cell": cell, "recipe": recipe, "median": middle, "range": span,
            "seeds": {str(seed): length for seed, length in zip(seeds, lengths, strict=True)},
        })  # fmt: skip
    return Table(
        title="Failing length of every seed", rows=rows,
        header=("task", "cell", "recipe", *map(str, seeds), "median", "range"),
        notes=(
            "≥ L: no failure up to L. × the seed did not learn the task. - not run.", LEGEND, *recipe_notes(folder),
        ),
    ), objects  # fmt: skip
