"""Shared fixtures: a seeded generator, one thread, uninitialized memory that is never zero."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

# two workers of two threads each on two cores would wait for each other
os.environ.setdefault("OMP_NUM_THREADS", "1")
# a shell starts background jobs with SIGINT ignored, and programs inherit that; some tests interrupt programs
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# whether Triton's kernels are interpreted is decided when Triton is imported, by transformers for one; the tests of the
# kernels need it, and other tests must not see the variable
os.environ["TRITON_INTERPRET"] = "1"
import exactstate.ops.triton_kernels  # noqa: F401

del os.environ["TRITON_INTERPRET"]


@pytest.fixture
def generator():
    """A torch generator with a fixed seed."""
    import torch

    return torch.Generator().manual_seed(20261115)


@pytest.fixture
def one_thread():
    """One thread: faster than two for tiny networks that are evaluated thousands of times."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def poisoned(monkeypatch):
    """torch.empty returns impossible values, so that an output that a kernel does not write is detected."""
    import torch

    empty = torch.empty

    def impossible(*shape, **options):
        tensor = empty(*shape, **options)
        if tensor.device.type == "meta":
            return tensor
        if tensor.is_floating_point() or tensor.is_complex():
            return tensor.fill_(float("nan"))
        return tensor.fill_(torch.iinfo(tensor.dtype).max) if tensor.dtype != torch.bool else tensor

    monkeypatch.setattr(torch, "empty", impossible)


SAMPLED: dict[str, Any] = {"noise": True, "temperature": 0.5, "remember": 0.0}
"""An NFSM as in the paper: sampled tables, no bias."""


def backends_under_test() -> list[str]:
    """Every backend by name; an absent one is a failure, not a skip, unless the environment narrows the list."""
    return os.environ.get("EXACTSTATE_TEST_BACKENDS", "reference,tree,cpu").split(",")
