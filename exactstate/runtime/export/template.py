"""Programs as templates beside this file: what stands in `@{...}` is filled in, everything else is the program."""

from __future__ import annotations

from pathlib import Path
from string import Template


class _Template(Template):
    delimiter = "@"


def filled(file: str, /, **values: object) -> str:
    """The program of a template."""
    return _Template((Path(__file__).parent / file).read_text(encoding="utf-8")).substitute(values)
