"""`detent table drift`: the step at which a rotation that was rounded once to each format is first read wrongly."""

from __future__ import annotations

from collections.abc import Sequence

from detent.cli._output import show
from detent.evaluate.tables import Grid
from detent.records import Row

# -- `detent table census`, laid out: folded to the terminal's width, or whole for Markdown and browsers.

TITLE = "Scan-compatible affine recurrences, by the branch they lie on"
NOTES = (
    "rho = 1: the largest spectral radius that the parameters permit attains one (or exceeds it). No bounded region is "
    "held under perturbations (R2), so no automaton is tracked at every length.",
    "rho < 1: it stays below one. Everything old is forgotten (R3), so only definite automata are tracked at every "
    "length, whose state the last k symbols tell.",
    "rho measured: smallest and largest spectral radius of 40 random matrices, half with gates as open as they may be.",
)


def census_grid(rows: Sequence[Row]) -> Grid:
    """All columns."""
    head = ("architecture", "source", "recurrence", "transition", "spectrum", "branch", "rho measured", "note")
    return Grid(title=TITLE, head=head, rows=[_cells(row) for row in rows], notes=NOTES)


def terminal(rows: Sequence[Row]) -> None:
    """The branches one below the other, without recurrences and notes, which would not fit."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", title=TITLE, title_justify="left")
    for name in ("architecture", "transition", "spectrum", "branch", "rho measured"):
        table.add_column(name, overflow="fold")
    for row in rows:
        name, _, _, transition, spectrum, branch, measured, _ = _cells(row)
        table.add_row(*map(Text, (name, transition, spectrum, branch, measured)))
    show(table, Text("\n" + "\n".join(NOTES), style="dim"))


def _cells(row: Row) -> tuple[str, ...]:
    low, high = (_rounded(radius) for radius in row["rho"])
    measured = low if low == high else f"{low} .. {high}"
    told = ("name", "source", "recurrence", "transition", "spectrum", "branch")
    return (*(row[key] for key in told), measured, row["note"])


def _rounded(radius: float) -> str:
    """Six digits, never rounding what is below one to one."""
    return f"{radius:.6f}" if not 0.9999995 <= radius < 1 - 1e-9 else f"1 - {1 - radius:.1e}"


def drift_grid(rows: Sequence[Row]) -> Grid:
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
    return Grid(
        title=f"The rotation by 2 pi / {order}, rounded once to each format and then iterated in fp64",
        head=("format", "cosine", "sine", "angle off per step", "log radius per step", "first wrong step", "by"),
        rows=lines,
        notes=(
            "iteration: found by multiplying, one step after the other.",
            "closed form: told by the angle of the rounded weights; nobody has waited for it.",
        ),
    )
