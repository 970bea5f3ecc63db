"""Peak memory is what a call holds at most, not what was there before nor what it leaves behind.

Measured in a process of its own: what an allocator does with memory that is freed depends on all that it did before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
import torch

from benchmarks._memory import available_bytes, peak_bytes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads what the Linux kernel counts")

MEGABYTE = 1 << 20


def filled(megabytes: int) -> torch.Tensor:
    return torch.ones(megabytes * MEGABYTE, dtype=torch.uint8)


def one_after_another() -> None:
    for megabytes in (40, 80, 60):
        filled(megabytes)


def together() -> tuple[torch.Tensor, ...]:
    return tuple(map(filled, (40, 80, 60)))


def nothing() -> None: ...


def many() -> list[torch.Tensor]:
    return [torch.ones(4096, dtype=torch.uint8) for _ in range(16_000)]


def peak_beside(held_megabytes: int, call: Callable[[], object]) -> float:
    """Megabytes, while others are held; the call has been made before."""
    held = filled(held_megabytes)
    call()
    peak = peak_bytes(call) / MEGABYTE
    del held
    return peak


def elsewhere(call: Callable[[], object]) -> float:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(peak_beside, 200, call).result()


@pytest.mark.parametrize(("call", "megabytes"), [(one_after_another, 80), (together, 180), (nothing, 0)])
def test_peak_bytes_is_the_most_held_at_once(call: Callable[[], object], megabytes: int) -> None:
    assert abs(elsewhere(call) - megabytes) < 8


def test_peak_bytes_after_small_arrays_were_freed() -> None:
    assert elsewhere(many) > 60


def test_available_memory_is_positive() -> None:
    assert available_bytes() > 64 * MEGABYTE
