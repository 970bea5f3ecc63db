"""The compiled kernels: one shared library with a plain C interface, and what to say when it is absent.

`library()` returns it or raises; `available()` and `why_not()` ask without raising. Nothing here knows torch.
Calls through ctypes release the interpreter lock for their whole duration.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

from detent.errors import BackendUnavailable, InvalidConfig
from detent.native.signatures import SIGNATURES

_REMEDY = "install a C++17 compiler (g++ or clang++), then install detent again"


@cache
def _load() -> ctypes.CDLL | str:
    """The library, or one sentence saying why there is none."""
    if os.environ.get("DETENT_NATIVE") == "0":
        return "the compiled kernels are switched off by DETENT_NATIVE=0; unset it"
    found = sorted(path for end in ("so", "pyd", "dylib") for path in Path(__file__).parent.glob(f"_kernels*.{end}"))
    if not found:
        return f"the compiled kernels were not built; {_REMEDY}"
    try:
        loaded = ctypes.CDLL(str(found[-1]))
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        return f"the compiled kernels could not be loaded ({error}); {_REMEDY}"
    return loaded


def why_not() -> str | None:
    """None when the compiled kernels are there, else the reason and the remedy."""
    loaded = _load()
    return loaded if isinstance(loaded, str) else None


def available() -> bool:
    return why_not() is None


def library() -> ctypes.CDLL:
    """The shared library with its signatures declared."""
    loaded = _load()
    if isinstance(loaded, str):
        raise BackendUnavailable(loaded[0].upper() + loaded[1:] + ".")
    return loaded


def _default_threads() -> int:
    asked = os.environ.get("DETENT_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_threads = _default_threads()


def threads() -> int:
    """How many threads a kernel may use: DETENT_THREADS, or every core this process may run on."""
    return _threads


def set_threads(count: int) -> int:
    """Let kernels use `count` threads from now on; returns what it was. Results do not depend on it."""
    global _threads
    if count < 1:
        raise InvalidConfig(f"kernels need at least one thread; got {count}.")
    before, _threads = _threads, int(count)
    return before
