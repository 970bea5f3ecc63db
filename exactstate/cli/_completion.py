"""Shell completion of names; where none fits, the shell completes files."""

from __future__ import annotations

from collections.abc import Iterable


def tasks(incomplete: str) -> list[str]:
    """Names of tasks."""
    from exactstate.tasks import NAMES

    return _starting_with(incomplete, NAMES)


def cells(incomplete: str) -> list[str]:
    """Cells that can be trained."""
    from exactstate.baselines.cells import CELLS

    return _starting_with(incomplete, CELLS)


def recipes(incomplete: str) -> list[str]:
    """Recipes of the NFSM and of baselines."""
    from exactstate.train.recipes import RECIPES

    return _starting_with(incomplete, RECIPES)


def _starting_with(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.casefold().startswith(incomplete.casefold())]
