"""HTML in which text from outside is always escaped: the template of a page, and pictures in it."""

from __future__ import annotations

import base64
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup as Html


@lru_cache(maxsize=1)
def page_template() -> Template:
    """page.html beside this file; what is put into it is escaped, and control characters are shown."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, finalize=_visible, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("page.html")


def drawing(svg: bytes, alt: str) -> Html:
    """A picture in the page, its colors turned around in dark mode.

    >>> drawing(b"<svg/>", "a dot")
    Markup('<img class="drawing" src="data:image/svg+xml;base64,PHN2Zy8+" alt="a dot">')
    """
    data = base64.b64encode(svg).decode()
    return Html('<img class="drawing" src="data:image/svg+xml;base64,{}" alt="{}">').format(data, _visible(alt))


def _visible(text: Any) -> Any:
    """Characters that change the writing direction, and other control characters, are shown by their code point."""
    if isinstance(text, Html) or not isinstance(text, str):
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else f"\\u{{{ord(char):x}}}" for char in text)
