"""`detent table drift`: the step at which a rotation that was rounded once to each format is first read wrongly."""

from __future__ import annotations

from collections.abc import Sequence

from detent.evaluation.tables.grid import Grid
from detent.records import Row


def grid(rows: Sequence[Row]) -> Grid:
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
