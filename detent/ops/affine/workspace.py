"""A block's streams with time cut into chunks and rows innermost, where vector units want them.

    R, T  rows and steps of the block     K  steps of a chunk     C  chunks     f  width

The step t = c K + k of every row lies at [k, :, c], so step k of all chunks is one dense array.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from math import prod
from queue import SimpleQueue
from threading import Barrier
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from detent.ops.affine.scan import STEPS

# -- Memory for the large arrays of a block, used again for the next: fresh pages would cost more than the arithmetic.


class Room:
    """Named arrays of any shape, of the type and on the device of `like`; what was in them is not kept."""

    def __init__(self, like: Tensor) -> None:
        self.like = like
        self.held: dict[str, Tensor] = {}

    def __call__(self, name: str, *shape: int) -> Tensor:
        size = prod(shape)
        if name not in self.held or self.held[name].numel() < size:
            self.held[name] = self.like.new_empty(size)
        return self.held[name][:size].view(shape)


# -- Threads that each take whole tasks, with PyTorch's own threading switched off inside.

Task = TypeVar("Task")
Tool = TypeVar("Tool")
Result = TypeVar("Result")


def together(work: Callable[[Task, Tool], Result], tasks: Sequence[Task], tool: Callable[[], Tool]) -> list[Result]:
    """What `work` makes of every task, in order; as many at a time as PyTorch has threads, each with its own tool."""
    threads = min(torch.get_num_threads(), len(tasks))
    tools: SimpleQueue[Tool] = SimpleQueue()
    for _ in range(threads):
        tools.put(tool())

    def take(task: Task) -> Result:
        mine = tools.get()
        try:
            with torch.no_grad():
                return work(task, mine)
        finally:
            tools.put(mine)

    if threads <= 1:
        return [take(task) for task in tasks]
    return list(_crew(torch.get_num_threads(), os.getpid()).map(take, tasks))


@lru_cache(maxsize=1)
def _crew(threads: int, process: int) -> ThreadPoolExecutor:
    """The threads of this process; a fork has none of them, and makes its own."""
    meeting = Barrier(threads)

    def alone() -> None:
        torch.get_num_threads()  # a thread takes the common number when it first asks; after that it keeps its own
        torch.set_num_threads(1)
        meeting.wait()

    crew = ThreadPoolExecutor(threads, thread_name_prefix="detent", initializer=alone)
    list(crew.map(lambda _: None, range(threads)))
    torch.set_num_threads(threads)  # threads that PyTorch starts later take the number that was set last
    return crew


def lanes(x: Tensor) -> Tensor:
    """R T f -> K f C R; zeros follow the last step."""
    R, T, f = x.shape
    K = min(T, STEPS)
    C = -(-T // K)
    filled = pad(x, (0, 0, 0, C * K - T)) if C * K > T else x
    return filled.reshape(R, C, K, f).permute(2, 3, 1, 0).contiguous()


def rows(x: Tensor, T: int) -> Tensor:
    """K f C R -> R T f."""
    K, f, C, R = x.shape
    return x.permute(3, 2, 0, 1).reshape(R, C * K, f)[:, :T]


def shift(h: Tensor, start: Tensor, out: Tensor) -> Tensor:
    """The state before every step, from those after: K ... C R and ... R -> K ... C R."""
    out[1:] = h[:-1]
    out[0, ..., 1:, :] = h[-1, ..., :-1, :]
    out[0, ..., 0, :] = start
    return out
