"""Read the JSON of a certificate: every key once, every number a number."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from detent.errors import BrokenFile

FORMAT, VERSION = "detent-certificate", 1


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a certificate file; refused when it is no certificate at all."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        reason = "there is no such file." if isinstance(error, FileNotFoundError) else f"{error.strerror}.".lower()
        raise BrokenFile(path, reason) from None
    try:
        content = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_constant)
    except UnicodeDecodeError:
        raise BrokenFile(path, "this is not UTF-8 text.") from None
    except json.JSONDecodeError as error:
        raise BrokenFile(
            path, f"this is not JSON: {error.msg.lower().removesuffix(' at')} at column {error.colno}.", error.lineno
        ) from None
    except RecursionError:
        raise BrokenFile(path, "lists are nested too deep for a certificate.") from None
    except ValueError as error:
        raise BrokenFile(path, f"{error}.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise BrokenFile(path, f'wanted a JSON object with "format": "{FORMAT}"; this is some other JSON.')
    if type(content.get("version")) is not int or content["version"] != VERSION:
        raise BrokenFile(path, f"this is version {content.get('version')!r:.20}; this detent reads version {VERSION}.")
    return content


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the entry {next(key for key in keys if keys.count(key) > 1)!r:.60} comes twice")
    return entries


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not a number that JSON knows")
