"""A Griffe extension that makes Markdown of the docstrings.

- From `>>>` to the next empty line is code, as for doctest; Markdown alone would make nested quotations of it.
- `table[k][j]` in prose is no cross-reference: only `[text][exactstate...]` is one.
"""

from __future__ import annotations

import re
from typing import Any

import griffe


class MarkdownDocstrings(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(docstring: str) -> str:
    """The docstring with fenced doctests and escaped double subscripts."""
    lines: list[str] = []
    inside = False
    for line in docstring.splitlines():
        if not inside and line.lstrip().startswith(">>>"):
            lines += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line.lstrip() if inside else escape_subscripts(line))
    return "\n".join([*lines, *(["```"] if inside else [])])


def escape_subscripts(line: str) -> str:
    pieces = re.split(r"(`[^`]*`)", line)
    return "".join(
        piece if piece.startswith("`") else re.sub(r"\]\[(?!exactstate\.)", r"]\[", piece) for piece in pieces
    )
