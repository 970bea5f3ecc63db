"""Cut DOT text into tokens: names, quoted and HTML strings, arrows, marks. One regular expression, one pass.

Wider than Graphviz in one thing only: a bare name may begin with a digit, since machine files name states 1a.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from detent.automata.files.reading import Reading, shown

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<name>    (?:(?<!\w)-)?(?:\d+\.\d* | \.\d+) | (?<!\w)-\d+ | \w+ )
    | (?P<mark>    [][{};,=:+] )
    | (?P<arrow>   -> | -- )
    | (?P<plain>   "[^"\\]*" )
    | (?P<quote>   " )
    | (?P<comment> //[^\n]* | /\*.*?\*/ )
    | (?P<html>    < )
    | (?P<hash>    \#[^\n]* )
    | (?P<end>     \Z )
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(\r\n|.)", re.DOTALL)
_ANGLE = re.compile(r"[<>]")


class Html(str):
    """The inside of an HTML string, so that its tags are not taken for text."""


class Token(NamedTuple):
    kind: str
    """arrow, name, mark, string or end."""
    value: str
    position: int


def tokens(reading: Reading, position: int = 0) -> Iterator[Token]:
    """The tokens of the text from a position on, ending with one of kind `end`."""
    text = reading.text
    match = _TOKEN.match
    while found := match(text, position):
        kind = found.lastgroup or ""
        start, position = found.start(kind), found.end()
        if kind == "plain":
            yield Token("string", text[start + 1 : position - 1], start)
        elif kind == "quote":
            position = _quote_end(reading, start)
            yield Token("string", _ESCAPE.sub(_meant, text[start + 1 : position - 1]), start)
        elif kind == "html":
            position = _html_end(reading, start)
            yield Token("string", Html(text[start + 1 : position - 1]), start)
        elif kind == "hash" and not _may_comment(text, start):
            raise reading.error(_complaint(text, start), reading.line(start))
        elif kind not in ("comment", "hash"):
            yield Token(kind, found.group(kind), start)
            if kind == "end":
                return
    while text[position].isspace():
        position += 1
    raise reading.error(_complaint(text, position), reading.line(position))


def _quote_end(reading: Reading, start: int) -> int:
    """Behind the quote that closes the string: the first one after an even number of backslashes."""
    text, end = reading.text, start
    while (end := text.find('"', end + 1)) >= 0:
        before = end
        while text[before - 1] == "\\":
            before -= 1
        if (end - before) % 2 == 0:
            return end + 1
    raise reading.error("the string that begins with '\"' is never closed.", reading.line(start))


def _meant(escape: re.Match[str]) -> str:
    """Only the escaped quote and the joined line belong to DOT; other escapes are left for the label."""
    after = escape.group(1)
    return after if after == '"' else "" if after.endswith("\n") else escape.group()


def _html_end(reading: Reading, start: int) -> int:
    depth = 0
    for angle in _ANGLE.finditer(reading.text, start):
        depth += 1 if angle.group() == "<" else -1
        if depth == 0:
            return angle.end()
    raise reading.error("the HTML string that begins with '<' is never closed.", reading.line(start))


def _may_comment(text: str, start: int) -> bool:
    """Whether a # opens a comment: at the beginning of a line, or after a finished statement."""
    before = text[text.rfind("\n", 0, start) + 1 : start].rstrip()
    return not before or before[-1] in ";{}]"


def _complaint(text: str, start: int) -> str:
    if text.startswith("/*", start):
        return "the comment that begins with /* is never closed."
    around = text[start : start + 20].split("\n")[0]
    return f"{shown(around)} is not DOT; names with other letters than a-z, 0-9 and _ are written in quotes."
