"""How words and states are shown to people."""

from __future__ import annotations

from collections.abc import Sequence

_SHOWN = 24


def spelt(word: Sequence[str]) -> str:
    """The word in quotes; of a long one the beginning and the length.

    >>> spelt(("a", "b"))
    "'a b'"
    """
    if len(word) <= _SHOWN:
        return f"'{' '.join(word)}'"
    return f"'{' '.join(word[: _SHOWN // 2])} ...' ({len(word)} symbols)"
