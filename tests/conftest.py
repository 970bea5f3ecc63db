"""What every test may ask for: a generator of its own, and memory that is never conveniently zero."""

from __future__ import annotations

import os

import pytest

# two workers of two threads each on two cores would wait for each other most of the time
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture
def generator():
    """A torch generator with a fixed seed."""
    import torch

    return torch.Generator().manual_seed(20261115)


@pytest.fixture
def one_thread():
    """Tiny networks are evaluated thousands of times: one thread is quicker than two that wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def poisoned(monkeypatch):
    """torch.empty hands out impossible values, so that an output a kernel forgot to write is seen."""
    import torch

    empty = torch.empty

    def impossible(*shape, **settings):
        tensor = empty(*shape, **settings)
        if tensor.device.type == "meta":
            return tensor
        if tensor.is_floating_point() or tensor.is_complex():
            return tensor.fill_(float("nan"))
        return tensor.fill_(torch.iinfo(tensor.dtype).max) if tensor.dtype != torch.bool else tensor

    monkeypatch.setattr(torch, "empty", impossible)


def backends_under_test() -> list[str]:
    """Every backend by name; an absent one is a failure, not a skip, unless the environment narrows the list."""
    return os.environ.get("DETENT_TEST_BACKENDS", "reference,tree,cpu").split(",")
