"""Docstrings become Markdown."""

from __future__ import annotations

from docs.griffe_markdown import markdown


def test_markdown_fences_doctests() -> None:
    text = "Add.\n\n>>> 1 + 1\n2\n\nMore.\n\n    >>> 2 + 2\n    4"
    fenced = "Add.\n\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore.\n\n\n```pycon\n>>> 2 + 2\n4\n```"
    assert markdown(text) == fenced


def test_markdown_escapes_double_subscripts() -> None:
    assert markdown("table[a][k] and `table[a][k]`") == "table[a]\\[k] and `table[a][k]`"
    assert markdown("see [the layer][exactstate.nn.NFSM]") == "see [the layer][exactstate.nn.NFSM]"
