"""Rows into runs: what training and sweeps say of every task, cell, recipe and seed.

`training.jsonl` holds the NFSM's runs, `baselines.jsonl` those of the baselines, `sweeps.jsonl` the length sweeps. A
run may be known from any of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from detent import records
from detent.evaluation.tables.length import Length

Row = dict[str, Any]


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
    length = Length(row["longest"], at_least=True) if failing is None else Length(failing)
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
