"""Scratch memory and threads for the blocks of a recurrence."""

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


class Workspace:
    """Named scratch arrays, of the type and on the device of `like`, reused from block to block.

    Fresh pages would cost more than the arithmetic. An array's contents are lost when its name is requested again.
    """

    def __init__(self, like: Tensor) -> None:
        self.like = like
        self.arrays: dict[str, Tensor] = {}

    def __call__(self, name: str, *shape: int) -> Tensor:
        size = prod(shape)
        if name not in self.arrays or self.arrays[name].numel() < size:
            self.arrays[name] = self.like.new_empty(size)
        return self.arrays[name][:size].view(shape)


Task = TypeVar("Task")
Resource = TypeVar("Resource")
Result = TypeVar("Result")


def parallel_map(
    work: Callable[[Task, Resource], Result], tasks: Sequence[Task], resource: Callable[[], Resource]
) -> list[Result]:
    """[work(task, resource) for every task], on as many threads as PyTorch has; each thread has a resource of its own.

    Inside, PyTorch's own threading is switched off and no gradient is recorded.
    """
    threads = min(torch.get_num_threads(), len(tasks))
    free: SimpleQueue[Resource] = SimpleQueue()
    for _ in range(threads):
        free.put(resource())

    def run(task: Task) -> Result:
        mine = free.get()
        try:
            with torch.no_grad():
                return work(task, mine)
        finally:
            free.put(mine)

    if threads <= 1:
        return [run(task) for task in tasks]
    return list(_thread_pool(torch.get_num_threads(), os.getpid()).map(run, tasks))


@lru_cache(maxsize=1)
def _thread_pool(threads: int, process: int) -> ThreadPoolExecutor:
    """The thread pool of this process; a forked process starts its own."""
    all_started = Barrier(threads)

    def start() -> None:
        torch.get_num_threads()  # the first call in a thread adopts the global number; later ones are its own
        torch.set_num_threads(1)
        all_started.wait()

    pool = ThreadPoolExecutor(threads, thread_name_prefix="exactstate", initializer=start)
    list(pool.map(lambda _: None, range(threads)))
    torch.set_num_threads(threads)  # threads that PyTorch starts later adopt the number that was set last
    return pool
