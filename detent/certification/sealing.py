"""How a certificate is written: rows on lines of their own, and a SHA-256 of the content as its seal."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """The content with its SHA-256: of its JSON without white space, keys sorted, only ASCII, in UTF-8."""
    without = {key: value for key, value in content.items() if key != "sha256"}
    text = json.dumps(without, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return {**without, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def laid_out(content: dict[str, Any]) -> str:
    """The content as JSON for files: what has lists in lists is spread over lines, a list of plain values is one."""
    return _spread(content, "") + "\n"


def _spread(value: Any, indent: str) -> str:
    inner = indent + " "
    if isinstance(value, dict) and value:
        rows = [f"{inner}{json.dumps(key)}: {_spread(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, list | dict) for item in value):
        return "[\n" + ",\n".join(inner + _spread(item, inner) for item in value) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False)
