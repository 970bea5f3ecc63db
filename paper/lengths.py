"""Failing lengths by task, cell, recipe and seed, from a folder of rows.

It holds `training.jsonl` (NFSM runs), `baselines.jsonl` (runs of other cells) and `sweeps.jsonl` (length sweeps of
both). `collect` joins them; `failing_lengths.py` and `summary.py` lay them out. No torch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import total_ordering
from pathlib import Path

from exactstate import records
from exactstate.baselines.cells import CELLS
from exactstate.records import Row
from exactstate.tasks import NAMES

NOT_LEARNED, OPEN, UNSWEPT, NOT_RUN, NOTHING = "×", "…", "learned", "not run", "–"
DAGGER = "†"
"""Marks a certified run."""
ALWAYS = f"∞{DAGGER}"
"""Certified, not swept."""
UNITS = {"k": 1 << 10, "M": 1 << 20}


@dataclass(frozen=True, kw_only=True)
class Table:
    """A title, a header, rows of strings, and notes below."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: tuple[str, ...] = ()

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


def median(lengths: Sequence[FailingLength]) -> FailingLength | None:
    """The middle length; of an even number the mean of the middle two, or the lower one if the upper is open."""
    if not lengths:
        return None
    ordered = sorted(lengths)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return low if high.at_least else FailingLength((low.value + high.value) // 2)


def min_max(lengths: Sequence[FailingLength]) -> str:
    """`[minimum; maximum]`, a dash for no lengths."""
    return f"[{min(lengths)}; {max(lengths)}]" if lengths else NOTHING


@dataclass
class SeedResult:
    """The result of one seed."""

    learned: bool | None = None
    certified: bool = False
    failing: FailingLength | None = None
    """None when it was not swept."""
    batch: int = 0
    """Words per length of that sweep."""
    first_error: float | None = None
    """Where it was not learned: the mean position of the first wrong label in training words at the end."""

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
        """A failing length, or how far it came."""
        if self.learned:
            dagger = DAGGER if self.certified else ""
            return f"{self.failing}{dagger}" if self.failing else ALWAYS if dagger else UNSWEPT
        mark = OPEN if self.learned is None else NOT_LEARNED
        return mark if self.first_error is None else f"{mark} {self.first_error:.1f}"


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
        """(median failing length, range, seeds that learned); where none did, how far the best one came."""
        if not self.seeds:
            return NOT_RUN, NOTHING, NOTHING
        counts = [f"{self.learned}/{len(self.seeds)}"]
        if open_runs := sum(result.learned is None for result in self.seeds.values()):
            counts.append(f"{open_runs} open")
        if not self.learned:
            best = max(self.seeds.values(), key=lambda result: result.first_error or 0.0)
            return str(best), NOTHING, ", ".join(counts)
        if not self.lengths:
            return ALWAYS if self.certified else UNSWEPT, NOTHING, ", ".join(counts)
        if len(self.lengths) < self.learned:
            counts.append(f"{len(self.lengths)} swept")
        dagger = DAGGER if self.certified else ""
        return f"{median(self.lengths)}{dagger}", min_max(self.lengths), ", ".join(counts)


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
            trained = result(row, row["cell"])
            trained.learned, trained.first_error = row["learned"], row.get("first_error")
    for row in _rows(folder / "sweeps.jsonl"):
        if row["format"] == "float32":
            result(row, row["cell"]).add_sweep(row)
    return groups


def _rows(path: Path) -> Iterator[Row]:
    return records.read(path) if path.exists() else iter(())


def in_order(groups: Collected) -> Iterator[tuple[str, str, str, RunGroup]]:
    """(task, cell, recipe, group): tasks and cells in the order in which exactstate lists them, others after them."""

    def place(key: tuple[str, str]) -> tuple[int, str, int, str]:
        (task, cell), cells = key, list(CELLS)
        return (
            NAMES.index(task) if task in NAMES else len(NAMES), task,
            cells.index(cell) if cell in cells else len(cells), cell,
        )  # fmt: skip

    for task, cell in sorted(groups, key=place):
        for recipe in sorted(groups[task, cell]):
            yield task, cell, recipe, groups[task, cell][recipe]
