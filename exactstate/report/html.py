"""HTML elements as functions, so that text from outside is always escaped."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from html import escape


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Part = str | Html


def element(name: str, /, *parts: Part, **attributes: object) -> Html:
    """<name attributes>parts</name>; plain text is escaped; `class_` becomes `class`, `http_equiv` `http-equiv`.

    >>> element("p", "1 < 2", class_="odd")
    '<p class="odd">1 &lt; 2</p>'
    """
    pairs = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items())
    return Html(f"<{name}{pairs}>{joined(parts)}</{name}>")


def void_element(name: str, /, **attributes: object) -> Html:
    """An element without content and closing tag, such as an image.

    >>> void_element("img", alt='a "b"')
    '<img alt="a &quot;b&quot;">'
    """
    return Html(element(name, **attributes).removesuffix(f"</{name}>"))


def drawing(svg: bytes, alt: str) -> Html:
    """A picture in the page, its colors turned around in dark mode.

    >>> drawing(b"<svg/>", "a dot")
    '<img class="drawing" src="data:image/svg+xml;base64,PHN2Zy8+" alt="a dot">'
    """
    return void_element(
        "img", class_="drawing", src=f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}", alt=alt
    )


def joined(parts: Iterable[Part]) -> Html:
    """The parts one after another, plain text escaped."""
    return Html("".join(part if isinstance(part, Html) else _escaped(part) for part in parts))


def _escaped(text: str) -> str:
    """Characters that change the writing direction, and other control characters, are shown by their code point."""
    return escape("".join(char if char.isprintable() or char in "\n\t" else _code_point(char) for char in text))


def _code_point(char: str) -> str:
    return f"\\u{{{ord(char):x}}}"
