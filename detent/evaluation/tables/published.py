"""The figures of the paper, from a data file: they stand beside ours and never among them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from detent.evaluation.tables.length import Length


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
