"""The figures that are drawn from rows, by name.

To add one: a file beside this with a function `paint(rows)`, and an entry in `FIGURES`. A figure reads rows from
`results/`, or from any file of the same form. `compute` makes the rows where that takes minutes at most; the others
are made by `command`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from exactstate.errors import BrokenFile
from exactstate.records import Row
from exactstate.report.figures import length_sweep
from paper.figures import comparison, drift, gap, geometry, tso, walltime
from paper.theory.drift import drift_rows

RESULTS = "results"


@dataclass(frozen=True, kw_only=True, slots=True)
class FigureSpec:
    """A figure that is drawn from rows."""

    name: str
    description: str
    """What it shows, in a sentence."""
    paint: Callable[[Sequence[Row]], Any]
    """Rows -> matplotlib Figure."""
    command: str
    """What makes the rows and writes them to `file`."""
    compute: Callable[[], Iterable[Row]] | None = None
    """Makes the rows, in minutes at most."""
    stem: str | None = None
    """Of the file with the rows, where it is not the name of the figure."""

    @property
    def file(self) -> str:
        """Where the rows are stored."""
        return f"{RESULTS}/{self.stem or self.name}.jsonl"

    def missing(self) -> BrokenFile:
        """The error for missing rows."""
        return BrokenFile(self.file, f"there are no rows here; make them with `{self.command}`, or pass --rows FILE.")


def _gap_rows() -> Iterable[Row]:
    from paper.theory.gap import gap_rows  # needs torch

    return gap_rows()


def _stream_rows() -> Iterable[Row]:
    from paper.experiments.story_stream import trained_stream_rows  # needs torch

    return trained_stream_rows()


FIGURES: dict[str, FigureSpec] = {spec.name: spec for spec in (
    FigureSpec(
        name="comparison", paint=comparison.paint, command="python -m paper run comparison",
        description="Share of right labels against length: NFSM, GRU, LSTM and Mamba- in the same model.",
    ),
    FigureSpec(
        name="drift", paint=drift.paint, compute=drift_rows,
        description="Phase and norm of a rotation whose weights were rounded once to each number format.",
        command="python -m paper figure drift --keep results/drift.jsonl",
    ),
    FigureSpec(
        name="gap", paint=gap.paint, compute=_gap_rows,
        description="Gap between parallel and sequential evaluation of the same recurrence; zero for the NFSM.",
        command="python -m paper figure gap --keep results/gap.jsonl",
    ),
    FigureSpec(
        name="geometry", paint=geometry.paint, command="python -m paper run geometry",
        description="State of trained models on Z5 under a constant word, in three windows, over the read-out regions.",
    ),
    FigureSpec(
        name="walltime", paint=walltime.paint, command="python -m benchmarks walltime",
        description="Time of one layer in a training step, against the length and the size of its state.",
    ),
    FigureSpec(
        name="sweep", stem="sweeps", paint=length_sweep.paint, command="python -m paper run sweeps",
        description="Accuracy against the length of words, per model and task.",
    ),
    FigureSpec(
        name="tso", stem="tso_stream", paint=tso.paint, compute=_stream_rows,
        command="python -m paper run story_stream --set run=runs/TSO4-42",
        description="Index of every head of a two-layer stack along one story, colored by its interpretation.",
    ),
)}  # fmt: skip
