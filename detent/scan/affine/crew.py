"""Threads that each take whole tasks, with PyTorch's own threading switched off inside.

A block's arrays are small. Splitting every operation on them among cores, as PyTorch would, means a meeting of all
threads after each; splitting the rows means one meeting at the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from queue import SimpleQueue
from threading import Barrier
from typing import TypeVar

import torch

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
