"""What the labels of a DOT file say: names, inputs and outputs; and how our own files write any name at all.

Foreign labels come in dialects: `in / out`, `in/out`, several of them on lines of their own (`\n`, `<br/>`),
inputs merged as `a | b`, inputs on the first line and the output on the second, records `{ name | output }`.
Only a bar with blanks around it merges inputs: published models have inputs such as `state|0|b`.

In our own files (marked by the graph attribute detent_machine) nothing is guessed. A name is written as it is,
except that unprintable characters, quotes, backslashes, percent signs, outer blanks and the separators that
could follow it are percent-encoded UTF-8: `a/b` becomes `a%2Fb`. Ordinary names stay as they are.
"""

from __future__ import annotations

import html
import re
from urllib.parse import quote, unquote

from detent.automata.io.dot.parser import Html
from detent.errors import InvalidMachine

_BREAK = re.compile(r"<\s*/?\s*br\s*/?\s*>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_LABEL_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ORDINARY = re.compile(r"[\w!$&'()*+,\-.:;=?@\[\]^`~#]*", re.ASCII)
_UNSAFE = frozenset('"\\%')


def lines_of(label: str, node: str = "") -> list[str]:
    """The lines of a label as it would be drawn, without outer blanks and empty lines."""
    if isinstance(label, Html):
        lines = [html.unescape(_TAG.sub("", line)) for line in _BREAK.split(label)]
    elif "\\" in label:
        lines = _LABEL_ESCAPE.sub(lambda escape: _drawn(escape.group(1), node), label).split("\n")
    else:
        lines = label.split("\n") if "\n" in label else [label]
    return [kept for line in lines if (kept := line.strip())]


def _drawn(after: str, node: str) -> str:
    return "\n" if after in "nlr" else node if after == "N" else after


def in_and_out(label: str) -> tuple[str, str] | None:
    """Cut `in / out` at the first slash with blanks around it, or else at the first slash."""
    before, slash, after = label.partition(" / ")
    if not slash:
        before, slash, after = label.partition("/")
    return (before.strip(), after.strip()) if slash else None


def record(label: str) -> tuple[str, str] | None:
    """Cut `{ name | output }` or `name|output` at the first bar; ports such as <f0> are dropped."""
    inside = label.strip()
    if inside.startswith("{") and inside.endswith("}"):
        inside = inside[1:-1]
    before, bar, after = _TAG.sub("", inside).partition("|")
    return (before.strip(), after.strip()) if bar else None


def merged(inputs: str) -> list[str]:
    """The inputs of `a | b | c`."""
    return [one.strip() for one in inputs.split(" | ")]


def escape(name: str, separators: str = "") -> str:
    """The name as our own files write it, safe in front of any of the separators."""
    if _ORDINARY.fullmatch(name):
        return name
    unsafe = _UNSAFE.union(separators)
    try:
        safe = "".join(quote(c, safe="") if c in unsafe or not c.isprintable() else c for c in name)
    except UnicodeEncodeError:
        raise InvalidMachine(f"the name {name!r} holds half a surrogate pair, which no text file can hold.") from None
    inner = safe.strip(" ")
    before = len(safe) - len(safe.lstrip(" "))
    return "%20" * before + inner + "%20" * (len(safe) - before - len(inner))


def unescape(written: str) -> str:
    """The name behind what `escape` wrote; blanks around it are not part of it."""
    return unquote(written.strip(" "), errors="strict") if "%" in written else written.strip(" ")
