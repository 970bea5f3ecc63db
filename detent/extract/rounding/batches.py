"""Work on many rows, some at a time, on all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from detent._types import Ints

AT_ONCE = 1 << 22
"""Numbers that a batch may hold, where it holds most."""
Result = TypeVar("Result")


def batches(rows: Ints, width: int) -> Iterator[Ints]:
    """At least one, so that no rows in are no rows of the right shape out."""
    at_once = max(1, AT_ONCE // width)
    for begin in range(0, max(1, len(rows)), at_once):
        yield rows[begin : begin + at_once]


def each(work: Callable[[Ints], Result], rows: Ints, width: int) -> list[Result]:
    """What `work` makes of every batch, in order.

    A thread takes a batch at a time and shares it with no other. The products of a batch are small: threads that share
    them wait for each other at every one, and on a busy machine they wait long.
    """
    threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(work, batches(rows, width)))
    finally:
        torch.set_num_threads(threads)
