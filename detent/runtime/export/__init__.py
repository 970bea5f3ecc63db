"""Machines as programs in other languages, each one file without dependencies.

`write(machine, path)` goes by the extension: .c, .js and .mjs, .onnx. Names become text that no compiler can misread,
whatever is in them.
"""

from __future__ import annotations

import os
from pathlib import Path

from detent.errors import unknown
from detent.records import write_atomically
from detent.runtime.export.c import to_c as to_c
from detent.runtime.export.js import to_javascript as to_javascript
from detent.runtime.export.onnx import to_onnx as to_onnx
from detent.runtime.machine import Machine


def write(machine: Machine, path: str | os.PathLike[str]) -> None:
    """Write the machine as a program, whole or not at all."""
    match Path(path).suffix.lower():
        case ".c":
            write_atomically(path, to_c(machine))
        case ".js" | ".mjs":
            write_atomically(path, to_javascript(machine))
        case ".onnx":
            write_atomically(path, to_onnx(machine))
        case suffix:
            raise unknown("extension", suffix, (".c", ".js", ".mjs", ".onnx"))
