"""Every entry of the registry has its file; what is missing is said with the command that makes it."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import pytest

from paper.figures import FIGURES


@pytest.mark.parametrize("name", FIGURES)
def test_an_entry_is_a_file_that_paints(name: str) -> None:
    assert callable(import_module(f"paper.figures.{name}").paint)


@pytest.mark.parametrize("name", [name for name, drawing in FIGURES.items() if drawing.computed_by])
def test_what_computes_rows_is_there(name: str) -> None:
    module, _, function = str(FIGURES[name].computed_by).partition(":")
    assert find_spec(module) is not None
    assert callable(getattr(import_module(module), function))


def test_missing_rows_name_the_command() -> None:
    sentence = "results/geometry.jsonl: no rows are here; `python -m paper.experiments.geometry` makes them"
    assert str(FIGURES["geometry"].missing()).startswith(sentence)
