"""In which order tables name tasks and cells, and what they call them."""

from __future__ import annotations

from collections.abc import Iterator

from detent.evaluation.tables.gathering import Gathered, Runs

TASKS = ("Z2", "Z16", "S3", "S4", "A5", "M11", "DFF5", "FF", "TSO3", "TSO4", "TSO5")
CELLS = {"nfsm": "NFSM", "mamba": "Mamba-", "aussm": "AUSSM", "pdssm": "PD-SSM", "bmru": "BMRU"}
PAPER = ("nfsm", "mamba", "aussm", "pdssm")
"""Cells that the paper has figures for."""


def in_order(found: Gathered) -> Iterator[tuple[str, str, str | None, Runs]]:
    """(task, cell, recipe, runs): the paper's tasks and cells, run here or not, then whatever else was run."""
    asked = [(task, cell) for task in TASKS for cell in CELLS if cell in PAPER or (task, cell) in found]
    for task, cell in [*asked, *sorted(key for key in found if key not in set(asked))]:
        recipes = found.get((task, cell), {})
        for recipe in sorted(recipes):
            yield task, cell, recipe, recipes[recipe]
        if not recipes:
            yield task, cell, None, Runs()
