"""A layer's recurrence in blocks that fit a processor's cache, as one PyTorch operator with its own gradient.

    B  sequences     L  length     R, T  rows and steps of a block

What a recurrence reads at every step comes as streams, B L f each; what it shares over all steps as parameters. The
matrices and states of single steps, far larger than the streams, exist for one block (and thread) at a time; of the
states only those at block borders are kept, and the backward pass computes the rest again. A `Kernel` runs one block
and pulls gradients back through it; steps whose streams are zero leave its state as it is.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from math import prod
from queue import SimpleQueue
from threading import Barrier
from typing import Any, TypeVar

import torch
from torch import Tensor

from exactstate.baselines.chunked_scan import STEPS
from exactstate.errors import InvalidInput, unknown

CACHED, PARALLEL = 1 << 20, 1 << 26
"""Numbers of a block on a CPU, where they should stay near a core, and on a device that wants many at once."""
MIN_NUMBERS = 1 << 18
"""Numbers below which a block is not worth a turn of its own."""
ROW_GROUPS = 8
"""Groups of rows that can be worked on at the same time, if there are so many rows."""


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


class Kernel(ABC):
    """One block of one recurrence: streams R T f, start R ...; `class Mine(Kernel, name="mine")` lists it."""

    def __init_subclass__(cls, *, name: str) -> None:
        KERNELS[name] = cls()

    def sizes(self, start: Tensor) -> tuple[int, int]:
        """(numbers of a state, width of the output), by default of a state R d n that is read as d numbers."""
        return start.shape[1] * start.shape[2], start.shape[1]

    @abstractmethod
    def forward(
        self, streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, workspace: Workspace
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """(output R T o, last state R ...)."""

    @abstractmethod
    def backward(
        self, streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, output_grad: Tensor, last: Tensor,
        workspace: Workspace,
    ) -> tuple[list[Tensor], list[Tensor], Tensor]:  # fmt: skip
        """Gradients of the streams, the parameters and the start, from those of the output and the last state."""


KERNELS: dict[str, Kernel] = {}
"""By name; the module of a layer adds its own."""


def block(B: int, L: int, numbers: int, device: torch.device) -> tuple[int, int]:
    """(rows, steps) of a block, for states of so many numbers; the same however many threads there are."""
    lanes = max(16, (CACHED if device.type == "cpu" else PARALLEL) // (STEPS * numbers))
    most = max(1, -(-L // STEPS))
    fair = max(-(-B // ROW_GROUPS), MIN_NUMBERS // (STEPS * most * numbers)) if device.type == "cpu" else B
    rows = max(1, min(B, fair, lanes // min(4, most)))
    return rows, STEPS * min(max(1, lanes // rows), most)


def _pieces(count: int, size: int) -> list[slice]:
    return [slice(at, min(at + size, count)) for at in range(0, count, size)]


def _check(kernel: str, streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor) -> None:
    """Refuse tensors that are not of one floating-point type, device, batch and length."""
    if kernel not in KERNELS:
        raise unknown("kernel", kernel, KERNELS)
    if not streams or any(x.ndim < 3 or x.shape[:2] != streams[0].shape[:2] for x in streams):
        got = ", ".join(str(tuple(x.shape)) for x in streams) or "none"
        raise InvalidInput(f"streams are one or more tensors of shape B L ... with the same B and L; got {got}.")
    if start.ndim < 2 or start.shape[0] != streams[0].shape[0]:
        raise InvalidInput(
            f"start has one state for each of {streams[0].shape[0]} sequences; got shape {tuple(start.shape)}."
        )
    kinds = {(x.dtype, x.device) for x in (*streams, *shared, start)}
    if len(kinds) > 1 or not start.is_floating_point():
        got = ", ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds))
        raise InvalidInput(f"streams, parameters and start are of one floating-point type and device; got {got}.")


def _recur(
    kernel: str, streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, keep: bool
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    _check(kernel, streams, shared, start)
    run = KERNELS[kernel]
    B, L = streams[0].shape[:2]
    numbers, width = run.sizes(start)
    R, T = block(B, L, numbers, start.device)
    output = start.new_empty(B, L, width)
    borders = start.new_empty(-(-L // T) if keep else 0, *start.shape)
    last = start.clone()

    def go(rows: slice, workspace: Workspace) -> None:
        h = start[rows]
        for border, steps in enumerate(_pieces(L, T)):
            if keep:
                borders[border, rows] = h
            output[rows, steps], h = run.forward([x[rows, steps] for x in streams], shared, h, workspace)
        last[rows] = h

    parallel_map(go, _pieces(B, R), lambda: Workspace(start))
    return output, last, borders


recur = torch.library.custom_op("exactstate::recur", _recur, mutates_args=())


@recur.register_fake
def _(
    kernel: str, streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, keep: bool
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    B, L = streams[0].shape[:2]
    numbers, width = KERNELS[kernel].sizes(start)
    _, T = block(B, L, numbers, start.device)
    return (
        start.new_empty(B, L, width),
        start.new_empty(start.shape),
        start.new_empty(-(-L // T) if keep else 0, *start.shape),
    )


def _recur_backward(
    kernel: str, streams: Sequence[Tensor], shared: Sequence[Tensor], borders: Tensor, output_grad: Tensor, last: Tensor
) -> list[Tensor]:  # fmt: skip
    """Gradients of the streams, of the parameters, and of the start."""
    _check(kernel, streams, shared, last)
    run = KERNELS[kernel]
    B, L = streams[0].shape[:2]
    numbers, width = run.sizes(last)
    R, T = block(B, L, numbers, last.device)
    for name, tensor, shape in (
        ("borders", borders, (-(-L // T), *last.shape)), ("output_grad", output_grad, (B, L, width)),
    ):  # fmt: skip
        if tuple(tensor.shape) != shape or tensor.dtype != last.dtype:
            raise InvalidInput(
                f"{name} is {last.dtype} of shape {shape} here; got {tensor.dtype} of shape {tuple(tensor.shape)}."
            )
    grad_streams = [torch.empty_like(x, memory_format=torch.contiguous_format) for x in streams]
    grad_shared = [torch.zeros_like(x, memory_format=torch.contiguous_format) for x in shared]
    grad_start = last.clone(memory_format=torch.contiguous_format)

    def go(rows: slice, workspace: Workspace) -> list[Tensor]:
        g, totals = last[rows], [torch.zeros_like(x) for x in grad_shared]
        for border, steps in reversed(list(enumerate(_pieces(L, T)))):
            here = [x[rows, steps] for x in streams]
            pulled, summed, g = run.backward(
                here, shared, borders[border, rows], output_grad[rows, steps], g, workspace
            )
            for whole, part in zip(grad_streams, pulled, strict=True):
                whole[rows, steps] = part
            for total, part in zip(totals, summed, strict=True):
                total += part
        grad_start[rows] = g
        return totals

    for totals in parallel_map(go, _pieces(B, R), lambda: Workspace(last)):
        for whole, part in zip(grad_shared, totals, strict=True):
            whole += part
    return [*grad_streams, *grad_shared, grad_start]


recur_backward = torch.library.custom_op("exactstate::recur_backward", _recur_backward, mutates_args=())


@recur_backward.register_fake
def _(
    kernel: str, streams: Sequence[Tensor], shared: Sequence[Tensor], borders: Tensor, output_grad: Tensor, last: Tensor
) -> list[Tensor]:  # fmt: skip
    return [x.new_empty(x.shape) for x in (*streams, *shared, last)]


def _setup_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.kernel, streams, shared, _, kept = inputs
    assert kept, "a pass that is to be differentiated keeps its borders"
    ctx.streams = len(streams)
    ctx.save_for_backward(*streams, *shared, output[2])
    ctx.mark_non_differentiable(output[2])


def _backward(ctx: Any, output_grad: Tensor, last: Tensor, _borders: Tensor) -> tuple[Any, ...]:
    *given, borders = ctx.saved_tensors
    streams, shared = given[: ctx.streams], given[ctx.streams :]
    *grown, grad_start = recur_backward(ctx.kernel, streams, shared, borders, output_grad, last)
    return None, grown[: ctx.streams], grown[ctx.streams :], grad_start, None


recur.register_autograd(_backward, setup_context=_setup_context)


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
