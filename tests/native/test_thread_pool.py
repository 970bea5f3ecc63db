"""Threads that stay: callers that come together, children of fork(), more threads than cores, always the same bits."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from exactstate import native
from exactstate.ops import cpu

ROWS, WIDTH, ENTRIES = 2048, 64, 96


@pytest.fixture(autouse=True)
def as_many_threads_as_before():
    before = native.threads()
    yield
    native.set_threads(before)


def some(seed: int) -> tuple[torch.Tensor, ...]:
    draw = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(*shape, generator=draw) for shape in ((ROWS, WIDTH), (ENTRIES, WIDTH), (ENTRIES,)))


def alone(seed: int) -> torch.Tensor:
    native.set_threads(1)
    return cpu.logits(*some(seed))


@pytest.mark.parametrize("threads", [2, 3, 7, 16])
def test_as_many_threads_as_are_wanted_again_and_again(threads: int) -> None:
    wanted = alone(0)
    native.set_threads(threads)
    assert all(torch.equal(cpu.logits(*some(0)), wanted) for _ in range(200))


def test_callers_that_come_at_once() -> None:
    """One caller leases the pool and the others run alone; no caller gets another's numbers."""
    wanted = [alone(seed) for seed in range(8)]
    native.set_threads(3)

    def often(seed: int) -> bool:
        return all(torch.equal(cpu.logits(*some(seed)), wanted[seed]) for _ in range(50))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(often, range(8)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork() here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_child_has_threads_of_its_own() -> None:
    wanted = alone(1)
    native.set_threads(4)
    assert torch.equal(cpu.logits(*some(1)), wanted)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os._exit(0 if all(torch.equal(cpu.logits(*some(1)), wanted) for _ in range(20)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert torch.equal(cpu.logits(*some(1)), wanted)
