"""Text for people: names from files are data, and must not act on the terminal that shows them."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with control and formatting characters escaped, line by line; halves of surrogate pairs as well.

    >>> printable("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def one_line(name: str) -> str:
    """A name as part of a line: ends of lines in it are escaped, too, so that it cannot imitate a line of its own."""
    return printable(name).replace("\n", "\\n")
