"""The digest of the weights in a safetensors file, without torch: the same as `exactstate.extract` computes of a model.

A certificate names the weights that it is about by this digest, so whatever shows a certificate beside weights can see
whether they belong together.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from exactstate.errors import BrokenFile, unreadable

DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool",
}  # fmt: skip
"""Names of types in safetensors, and in torch."""
MAX_HEADER = 100_000_000
"""Bytes; the limit of the format."""


def digest_of_file(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of the weights in a file, in hexadecimal: of all tensors, sorted by name, as FORMAT.md says."""
    digest = hashlib.sha256()
    try:
        data = Path(path).read_bytes()
        header, begin = _header(data)
        for name in sorted(header):
            entry = header[name]
            first, end = (begin + int(offset) for offset in entry["data_offsets"])
            if not begin <= first <= end <= len(data):
                raise ValueError(f"the tensor {name!r:.60} lies outside the file")
            shape = "x".join(str(int(size)) for size in entry["shape"])
            digest.update(f"{name} {DTYPES[entry['dtype']]} {shape}\n".encode())
            digest.update(data[first:end])
            digest.update(b"\n")
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BrokenFile(path, f"this is not a safetensors file ({error}).") from None
    return digest.hexdigest()


def _header(data: bytes) -> tuple[dict[str, Any], int]:
    """(the description of every tensor, where the tensors begin)."""
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > min(len(data) - 8, MAX_HEADER):
        raise ValueError("it ends before its header does")
    header = json.loads(data[8 : 8 + size])
    if not isinstance(header, dict):
        raise ValueError("its header is not an object")
    header.pop("__metadata__", None)
    return header, 8 + size
