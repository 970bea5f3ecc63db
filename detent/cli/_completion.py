"""What the shell offers when a name is half typed; where nothing fits, it offers files."""

from __future__ import annotations

from collections.abc import Iterable

CELLS = ("nfsm", "mamba", "aussm", "pdssm", "bmru")
RECIPES = ("default", "anchored", "paper", "cpu", "cpu-long", "cpu-short")
"""Those of `detent.train`, which would bring torch: somebody waits with a finger on the key."""


def tasks(incomplete: str) -> list[str]:
    """Tasks, whatever their case."""
    from detent.tasks import NAMES

    return _beginning(incomplete, NAMES)


def cells(incomplete: str) -> list[str]:
    """Cells that can be trained."""
    return _beginning(incomplete, CELLS)


def recipes(incomplete: str) -> list[str]:
    """Recipes of the NFSM and of baselines."""
    return _beginning(incomplete, RECIPES)


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.casefold().startswith(incomplete.casefold())]
