"""Is every entry of a certificate what it should be: names, whole numbers in range, rows of one length?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Refused(Exception):
    """The reason why a certificate is not accepted."""


def entries(value: object, where: str, *keys: str) -> dict[str, Any]:
    """An object with exactly these keys."""
    if not isinstance(value, dict):
        raise Refused(f"{where} is {_seen(value)}; wanted an object.")
    for key in keys:
        if key not in value:
            raise Refused(f"{where} has no entry {key!r}.")
    for key in value:
        if key not in keys:
            raise Refused(f"{where} has an entry {key!r:.60} that does not belong there.")
    return value


def text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise Refused(f"{where} is {_seen(value)}; wanted a string.")
    return value


def listed(value: object, where: str, count: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (count is not None and len(value) != count):
        wanted = "a list" if count is None else f"a list of {count}"
        raise Refused(f"{where} is {_seen(value)}; wanted {wanted}.")
    return value


def names(value: object, where: str, *, least: int = 1) -> list[str]:
    """Different strings."""
    for i, name in enumerate(listed(value, where)):
        text(name, f"{where}[{i}]")
    found: list[str] = value  # type: ignore[assignment]
    if len(found) < least:
        raise Refused(f"{where} is empty.")
    if len(set(found)) < len(found):
        raise Refused(f"{where} holds {next(n for n in found if found.count(n) > 1)!r:.60} twice.")
    return found


def whole(value: object, where: str, low: int, below: int) -> int:
    """A whole number from low to below - 1."""
    # bool is a subclass of int, and true is no number
    if type(value) is not int or not low <= value < below:
        raise Refused(f"{where} is {_seen(value)}; wanted a whole number from {low} to {below - 1}.")
    return value


def row(value: object, where: str, count: int | None, low: int, below: int) -> list[int]:
    found = listed(value, where, count)
    for i, entry in enumerate(found):
        if type(entry) is not int or not low <= entry < below:
            whole(entry, f"{where}[{i}]", low, below)
    return found


def rows(value: object, where: str, count: int | None, length: int, low: int, below: int) -> list[list[int]]:
    """Rows of one length, of whole numbers."""
    return [row(entry, f"{where}[{i}]", length, low, below) for i, entry in enumerate(listed(value, where, count))]


def ranged(value: object, where: str, ranges: list[tuple[int, int]]) -> list[list[int]]:
    """Rows in which every place has a range of its own."""
    low, below = min(low for low, _ in ranges), max(below for _, below in ranges)
    found = rows(value, where, None, len(ranges), low, below)
    for i, entry in enumerate(found):
        for k, (number, (low, below)) in enumerate(zip(entry, ranges, strict=True)):
            if not low <= number < below:
                whole(number, f"{where}[{i}][{k}]", low, below)
    return found


def distinct(value: list[list[int]], where: str) -> dict[tuple[int, ...], int]:
    """The number of every row; no two are the same."""
    number = {tuple(entry): i for i, entry in enumerate(value)}
    if len(number) < len(value):
        again = next(i for i, entry in enumerate(value) if number[tuple(entry)] != i)
        raise Refused(f"{where}[{again}] comes twice.")
    return number


def amounts(value: object, where: str, known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Numbers that are not negative where `known` says so, null elsewhere; an array of that shape, with infinities."""
    found = np.full(known.shape, np.inf)
    _fill(value, where, known, found)
    return found


def _fill(value: object, where: str, known: NDArray[np.bool_], found: NDArray[np.float64]) -> None:
    for i, entry in enumerate(listed(value, where, len(known))):
        at = f"{where}[{i}]"
        if known.ndim > 1:
            _fill(entry, at, known[i], found[i])
        elif not known[i]:
            if entry is not None:
                raise Refused(f"{at} is {_seen(entry)}; wanted null, for nothing is chosen there.")
        elif type(entry) is not float or not (0 <= entry < math.inf):
            raise Refused(f"{at} is {_seen(entry)}; wanted a decimal number that is not negative.")
        else:
            found[i] = entry


def _seen(value: object) -> str:
    """What came, in a few words."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    return f"{value!r:.60}"
