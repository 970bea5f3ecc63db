"""Peak memory is what a call holds at most, not what was there before nor what it leaves behind."""

from __future__ import annotations

import sys

import pytest
import torch

from benchmarks._memory import available_bytes, peak_bytes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads what the Linux kernel counts")

MEGABYTE = 1 << 20


def filled(megabytes: int) -> torch.Tensor:
    return torch.ones(megabytes * MEGABYTE, dtype=torch.uint8)


def test_the_most_that_was_held_at_once() -> None:
    """All above 32 MB: smaller arrays may be kept by the allocator when they are freed, and then do count."""

    def one_after_another() -> None:
        for megabytes in (40, 80, 60):
            filled(megabytes)

    def together() -> tuple[torch.Tensor, ...]:
        return tuple(map(filled, (40, 80, 60)))

    held = filled(200)
    for call, megabytes in ((one_after_another, 80), (together, 180), (lambda: filled(0), 0)):
        assert abs(peak_bytes(call) / MEGABYTE - megabytes) < 8
    del held


def test_small_arrays_that_were_freed_are_not_there_before() -> None:
    def many() -> list[torch.Tensor]:
        return [torch.ones(4096, dtype=torch.uint8) for _ in range(16_000)]

    many()
    assert peak_bytes(many) > 60 * MEGABYTE


def test_there_is_memory_to_be_had() -> None:
    assert available_bytes() > 64 * MEGABYTE
