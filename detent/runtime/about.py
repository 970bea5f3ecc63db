"""What is said about a machine: plain data that JSON can hold and give back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from detent.errors import InvalidMachine

About = Mapping[str, Any]


def plain_data(about: About) -> dict[str, Any]:
    """The metadata as JSON gives it back; refused when it cannot hold it."""
    try:
        text = json.dumps(dict(about), allow_nan=False, ensure_ascii=False)
        text.encode()
        return dict(json.loads(text))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidMachine(f"what is said about a machine is plain data for JSON: {error}.") from None


def to_text(about: About) -> str:
    """The metadata on one line; nothing for none."""
    return json.dumps(about, ensure_ascii=False, separators=(",", ":")) if about else ""


def from_text(text: str) -> dict[str, Any]:
    """The metadata in a text that `to_text` could have written."""

    def constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is not a number")

    def unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        for key, value in pairs:
            if key in entries:
                raise ValueError(f"{key!r} came twice")
            entries[key] = value
        return entries

    if not text:
        return {}
    try:
        about = json.loads(text, parse_constant=constant, object_pairs_hook=unique)
    except RecursionError:
        raise InvalidMachine("its metadata is nested too deep.") from None
    except ValueError as error:
        raise InvalidMachine(f"its metadata is not JSON: {error}.") from None
    if not isinstance(about, dict) or not about:
        raise InvalidMachine("its metadata is no JSON object with something in it.")
    return about
