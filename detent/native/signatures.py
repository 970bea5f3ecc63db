"""The C interface as data: name -> (result, arguments). Pointers travel as addresses, sizes as int64."""

from __future__ import annotations

from ctypes import c_int, c_int64, c_void_p
from typing import Any

SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "detent_run_words": (
        c_int64,
        [c_void_p, c_int, c_int64, c_int64, c_void_p, c_int, c_int64, c_int64, c_void_p, c_void_p, c_void_p, c_int],
    ),
}
