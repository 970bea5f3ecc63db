"""Put a sweep down and take it up where it was: of words within a stream, of questions between two lengths."""

from __future__ import annotations

import contextlib
import io
import json
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from detent.evaluation.accuracy import Ints
from detent.evaluation.reader import Held
from detent.records import write_atomically

EVERY = 10.0
"""Seconds between two times."""


class PutDown:
    """One file that holds a sweep in progress; without a path it holds nothing."""

    def __init__(self, path: Path | None, asked: list[Any]) -> None:
        self.path, self.asked, self.last = path, json.dumps(asked), time.monotonic()

    def taken_up(self) -> tuple[int, Ints, Held | None, float] | None:
        """(length read, first errors, what the reader holds, seconds so far) of the same sweep, if it was put down."""
        if self.path is None or not self.path.exists():
            return None
        # a file of another sweep, or half a file, is as good as none: the sweep begins at the beginning
        with contextlib.suppress(OSError, ValueError, KeyError, zipfile.BadZipFile), np.load(self.path) as kept:
            if str(kept["asked"]) == self.asked:
                held = [kept[f"held_{number}"] for number in range(int(kept["count"]))]
                return int(kept["read"]), kept["first"], held, float(kept["seconds"])
        return None

    def now_and_then(self, read: int, first: Ints, held: Held, seconds: float) -> None:
        """Write everything that the rest of the sweep depends on, if it is time."""
        if self.path is None or time.monotonic() - self.last < EVERY:
            return
        written = io.BytesIO()
        arrays = {f"held_{number}": array for number, array in enumerate(held)}
        np.savez(written, asked=self.asked, read=read, first=first, seconds=seconds, count=len(held), **arrays)  # type: ignore[arg-type]
        write_atomically(self.path, written.getvalue())
        self.last = time.monotonic()

    def over(self) -> None:
        """The sweep has its answer."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


class Scores(dict[int, float]):
    """Accuracies by length, written to a file whenever there is a new one."""

    def __init__(self, path: Path, asked: list[Any]) -> None:
        self.path, self.asked = path, asked
        kept: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError):
            kept = json.loads(path.read_text(encoding="utf-8"))
        same = isinstance(kept, dict) and kept.get("asked") == asked
        super().__init__({int(length): float(share) for length, share in kept["scores"].items()} if same else {})

    def __setitem__(self, length: int, share: float) -> None:
        super().__setitem__(length, share)
        write_atomically(self.path, json.dumps({"asked": self.asked, "scores": dict(self)}))

    def over(self) -> None:
        """The sweep has its answer."""
        self.path.unlink(missing_ok=True)
