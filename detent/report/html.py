"""HTML in which whatever comes from outside is escaped: elements are made by functions, never by pasting text."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Part = str | Html


def element(name: str, /, *parts: Part, **attributes: object) -> Html:
    """<name attributes>parts</name>; plain text is escaped, attributes named `class_` and `data_x` lose the bar.

    >>> element("p", "1 < 2", class_="odd")
    '<p class="odd">1 &lt; 2</p>'
    """
    told = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items())
    return Html(f"<{name}{told}>{joined(parts)}</{name}>")


def alone(name: str, /, **attributes: object) -> Html:
    """An element that holds nothing and is not closed, such as an image.

    >>> alone("img", alt='a "b"')
    '<img alt="a &quot;b&quot;">'
    """
    return Html(element(name, **attributes).removesuffix(f"</{name}>"))


def joined(parts: Iterable[Part]) -> Html:
    """The parts one after another, plain text escaped."""
    return Html("".join(part if isinstance(part, Html) else _text(part) for part in parts))


def _text(part: str) -> str:
    """Letters that turn the direction of writing, and other control characters, are shown by their number."""
    return escape("".join(letter if letter.isprintable() or letter in "\n\t" else _code(letter) for letter in part))


def _code(letter: str) -> str:
    return f"\\u{{{ord(letter):x}}}"
