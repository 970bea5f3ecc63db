"""A line on the error stream that says how far training is; nothing when that is not a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from detent.cli.output import console

SHOWN = {"loss": "loss", "first_error": "first error", "accuracy": "accuracy", "table_margin": "margins",
         "read_margin": "and"}  # fmt: skip


class Live:
    """Shows the last row of the history, and how long the phase may still take.

    `longest` says how many steps each phase takes at most; most end earlier.
    """

    def __init__(self, longest: dict[str, int]) -> None:
        self.longest, self.phase, self.begun = longest, "", (0, 0.0)
        self.status = console(stderr=True).status("looking at the words") if sys.stderr.isatty() else None

    def __enter__(self) -> Live:
        if self.status is not None:
            self.status.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.status is not None:
            self.status.stop()

    def __call__(self, row: dict[str, Any]) -> None:
        if self.status is not None:
            self.status.update(self.line(row, time.monotonic()))

    def line(self, row: dict[str, Any], now: float) -> str:
        """What is shown of a row at this moment."""
        step, most = row["step"], self.longest.get(row["phase"])
        if row["phase"] != self.phase:
            self.phase, self.begun = row["phase"], (step, now)
        if row["phase"] == "released" and step == most:
            return "reading the machine out, bounding its rounding"
        told = ", ".join(f"{name} {row[key]:.3g}" for key, name in SHOWN.items() if isinstance(row.get(key), float))
        again = f"restart {row['attempt']}, " if row.get("attempt") else ""
        of, left = "" if most is None else f"/{most:,}", ""
        if most is not None and step > self.begun[0]:
            each = (now - self.begun[1]) / (step - self.begun[0])
            left = f", at most {duration((most - step) * each)} left"
        return f"{again}{row['phase']}, step {step:,}{of}: {told.replace(', and', ' and')}{left}"


def duration(seconds: float) -> str:
    """A time in its two largest units."""
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{hours} h" if hours < 48 else f"{round(hours / 24)} days"
