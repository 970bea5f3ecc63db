"""What the names of the baselines' recipes stand for, from the rows of their runs: a note below a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from detent import records


def recipe_notes(results: Path) -> tuple[str, ...]:
    """One sentence for all recipes that baselines were trained by; none where no row tells."""
    path = results / "baselines.jsonl"
    rows = list(records.read(path)) if path.exists() else []
    told = {row["recipe"]: _told(row) for row in rows if row.get("over", True) and {"size", "settings"} <= set(row)}
    return (f"Baselines here: {'; '.join(f'{name}, {what}' for name, what in told.items())}.",) if told else ()


def _told(row: dict[str, Any]) -> str:
    size, settings = row["size"], row["settings"]
    return (
        f"{size['layers']} layers of width {size['width']}, words of {settings['length']}, "
        f"at most {settings['steps']} steps of {settings['batch']} words"
    )
