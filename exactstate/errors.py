"""The errors of exactstate: one small tree. Every message says what came, what was wanted, and the way out."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class ExactstateError(Exception):
    """The base class of all errors that exactstate raises."""


class InvalidMachine(ExactstateError, ValueError):
    """Tables, symbols, states or outputs that are not a machine."""


class InvalidWord(ExactstateError, ValueError):
    """A word or a start state that the machine cannot read."""


class InvalidConfig(ExactstateError, ValueError):
    """An option outside its valid range."""


class InvalidInput(ExactstateError, ValueError):
    """A tensor or array of the wrong shape, type or content."""


class UnknownName(ExactstateError, LookupError):
    """A name that is not among the known ones."""


class BrokenFile(ExactstateError, ValueError):
    """A file that cannot be read or written; the message says where."""

    def __init__(self, path: object, reason: str, line: int | None = None) -> None:
        self.path, self.reason, self.line = str(path), reason, line
        place = f"{path}, line {line}" if line is not None else f"{path}"
        super().__init__(f"{place}: {reason}")


def unreadable(path: object, error: OSError) -> BrokenFile:
    """The error for a file that the system does not give."""
    if isinstance(error, FileNotFoundError):
        return BrokenFile(path, "there is no such file.")
    return BrokenFile(path, f"it cannot be read: {(error.strerror or str(error)).lower()}.")


def utf8(content: bytes, source: object) -> str:
    """The text of a file without a byte order mark; BrokenFile with the line of the first byte that is none."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BrokenFile(source, f"byte {content[error.start]:#04x} is not UTF-8 text.", line) from None


class NotLearned(ExactstateError, RuntimeError):
    """Training that ended without a usable network; the message says how far it came."""


class BackendUnavailable(ExactstateError, RuntimeError):
    """A backend that is not available; the message says why and what to do."""


class BudgetExceeded(ExactstateError, RuntimeError):
    """A computation that would exceed its budget."""


def unknown(kind: str, name: str, known: Iterable[str]) -> UnknownName:
    """The error for a name that is not among `known`, with the nearest ones that are."""
    names = list(known)
    folded = {candidate.casefold(): candidate for candidate in names}
    near = [folded[match] for match in get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)]
    hint = f" Did you mean {' or '.join(repr(candidate) for candidate in near)}?" if near else ""
    return UnknownName(f"unknown {kind} {name!r}.{hint} Known: {', '.join(names)}.")
