"""Peak memory of a call, as counted by the Linux kernel."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path


def peak_bytes(call: Callable[[], object]) -> int:
    """Increase of the resident memory of this process during the call."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # or memory that was freed but kept would be counted as there before
    Path("/proc/self/clear_refs").write_text("5")  # the highest mark so far is forgotten
    before = _of("/proc/self/status", "VmRSS")
    call()
    return _of("/proc/self/status", "VmHWM") - before


def available_bytes() -> int:
    """Memory that is available without swapping."""
    return _of("/proc/meminfo", "MemAvailable")


def _of(file: str, field: str) -> int:
    line = next(line for line in Path(file).read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024
