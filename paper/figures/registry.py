"""The figures that are drawn from rows, by name. To add one: a file beside this with `paint(rows)`, and an entry here.

A figure reads rows that were measured, in `results`, or any others of the same form. Where they can be made while one
waits, `computed_by` names the function that makes them; elsewhere `command` is what makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from detent.errors import BrokenFile
from detent.records import Row

RESULTS = "results"


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawing:
    """A figure that is drawn from rows."""

    name: str
    """Of the figure, of its file in this folder, and of `results/NAME.jsonl`."""
    about: str
    """What it shows, in a sentence."""
    command: str
    """What makes the rows and keeps them in `results`."""
    computed_by: str | None = None
    """A function without arguments that makes the rows in minutes at most, as `module:function`."""
    stem: str | None = None
    """Of the file with the rows, where that is not the name of the figure."""

    @property
    def file(self) -> str:
        """Where the rows are kept."""
        return f"{RESULTS}/{self.stem or self.name}.jsonl"

    def paint(self, rows: Sequence[Row]) -> Any:
        """The figure, as a matplotlib Figure."""
        return import_module(f"paper.figures.{self.name}").paint(rows)

    def missing(self) -> BrokenFile:
        """The error for rows that are not there."""
        return BrokenFile(self.file, f"no rows are here; `{self.command}` makes them, or name others with --rows.")


FIGURES: dict[str, Drawing] = {drawing.name: drawing for drawing in (
    Drawing(
        name="drift", computed_by="paper.theory.drift:drift_rows",
        about="A perfectly trained rotation, rounded once to each number format, leaves its states behind.",
        command="detent figure drift --keep results/drift.jsonl",
    ),
    Drawing(
        name="gap", computed_by="paper.theory.gap:gap_rows",
        about="Parallel against sequential evaluation of the same recurrence: a gap, and for the NFSM none.",
        command="detent figure gap --keep results/gap.jsonl",
    ),
    Drawing(
        name="geometry", command="python -m paper.experiments.geometry",
        about="The state of trained models on Z5 under a constant word, in three windows, over the read-out's regions.",
    ),
    Drawing(
        name="walltime", command="python -m benchmarks walltime",
        about="What one layer costs in a training step, against the length and the size of its state.",
    ),
    Drawing(
        name="sweep", stem="sweeps", command="python -m paper.experiments.sweeps",
        about="Accuracy against the length of words, per model and task.",
    ),
    Drawing(
        name="tso", stem="tso_stream", computed_by="paper.experiments.story_stream:computed",
        command="python -m paper.experiments.story_stream RUN",
        about="The attractor indices of all heads of a two-layer stack along one story, coloured by what they mean.",
    ),
)}  # fmt: skip
