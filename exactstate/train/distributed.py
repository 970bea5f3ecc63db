"""Data-parallel training under `torchrun`: rank 0 trains, all ranks compute gradients of their share of every batch.

Rank 0 runs the recipe as if it were alone, and alone writes to the folder of the run. In every step of the wide phase
of the recipe `gradient` it sends the weights and the words, every rank differentiates the loss of its share of the
words, and rank 0 adds the gradients up in the order of the ranks. The other ranks hold nothing that a checkpoint
would have to keep: when torchrun starts the group again after a rank was killed, rank 0 resumes from its checkpoint,
and the run ends with the weights of one that was not interrupted. A run with another number of ranks ends with other
weights.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from exactstate.errors import BackendUnavailable, InvalidConfig

if TYPE_CHECKING:
    from exactstate.tasks import Task
    from exactstate.train.config import TrainConfig
    from exactstate.train.wide import WidePhase

STOP, ATTEMPT, STEP = range(3)
"""What rank 0 asks of the others: to end, to build the model of an attempt, to compute gradients of a step."""
CONNECT, WAIT = timedelta(minutes=2), timedelta(days=7)
"""How long ranks wait for each other at the start, and for a command: rank 0 may certify for hours."""


@dataclass
class Group:
    """The ranks of this run."""

    rank: int
    world: int

    def ask(self, *numbers: int) -> None:
        """Send a command with up to three numbers, from rank 0."""
        dist.broadcast(torch.tensor([*numbers, *[0] * (4 - len(numbers))]), 0)

    def asked(self) -> list[int]:
        command = torch.zeros(4, dtype=torch.int64)
        dist.broadcast(command, 0)
        return [int(number) for number in command]


_active: Group | None = None


def world_size() -> int:
    """The number of processes that torchrun started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def _connect() -> None:
    """Make the group of all ranks, or give up after CONNECT, so that torchrun starts all again.

    torchrun keeps one store through all restarts. Ranks find each other's addresses in it, and would find those of
    ranks that have ended: every restart has keys of its own.
    """
    try:
        store, rank, world = next(dist.rendezvous("env://", timeout=CONNECT))
        restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = dist.PrefixStore(f"restart-{restart}", store)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=CONNECT)
    except RuntimeError as error:
        raise BackendUnavailable(
            f"the {world_size()} ranks of this run could not connect ({str(error).splitlines()[0]}); torchrun "
            "--max-restarts N starts all again, and the run resumes."
        ) from None


@contextmanager
def data_parallel() -> Iterator[Group | None]:
    """The group of this process, which rank 0 ends with the block; None where there is one process."""
    global _active
    if world_size() == 1:
        yield None
        return
    _connect()
    dist.distributed_c10d._set_pg_timeout(WAIT, dist.group.WORLD)
    group = Group(dist.get_rank(), dist.get_world_size())
    _active = group
    try:
        yield group
        if group.rank == 0:
            group.ask(STOP)
    except BaseException as error:
        if type(error) is RuntimeError and "gloo" in str(error):
            raise BackendUnavailable(
                "another rank of this run has ended; torchrun --max-restarts N starts all again, and the run resumes."
            ) from None
        if group.rank == 0:
            with suppress(RuntimeError):  # the other ranks may be gone
                group.ask(STOP)
        raise
    finally:
        _active = None
        dist.destroy_process_group()


def begin_attempt(attempt: int) -> None:
    """Let the other ranks build the model of an attempt."""
    if _active is not None:
        _active.ask(ATTEMPT, attempt)


def backward(phase: WidePhase, words: Tensor, labels: Tensor) -> tuple[float, float, float]:
    """Set the gradients of a step; returns the loss, the mean first error of the words, the share of right labels."""
    phase.optimizer.zero_grad(set_to_none=True)
    if _active is None or not phase.parallel:
        loss, first, right = phase.compute_loss(words, labels)
        loss.backward()
        return float(loss.detach()), float(first.float().mean()), float(right)
    _active.ask(STEP, *words.shape, phase.total_steps + phase.steps)
    return _share_of_step(_active, phase, words, labels)


def serve(group: Group, config: TrainConfig, task: Task) -> None:
    """Compute gradients until rank 0 ends; it alone reacts to signals."""
    from exactstate.train.straight_through import wide_phase
    from exactstate.train.trainer import one_thread

    if config.cell != "nfsm" or config.recipe != "straight_through" or task.layers is not None:
        what = "a task of two layers" if task.layers is not None else f"{config.cell} by {config.recipe}"
        raise InvalidConfig(f"torchrun trains the recipe straight_through of the NFSM; {what} takes one process.")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    phase: WidePhase | None = None
    seed = config.seed
    with one_thread():
        while True:
            command, *numbers = group.asked()
            if command == STOP:
                return
            if command == ATTEMPT:
                phase, seed = wide_phase(config.with_attempt_seed(numbers[0]), task, numbers[0])[1], numbers[0]
                continue
            assert phase is not None
            B, L, step = numbers
            phase.prepare_step()
            phase.generator = np.random.default_rng([seed, step, group.rank])
            torch.manual_seed(int(phase.generator.integers(2**63)))
            phase.optimizer.zero_grad(set_to_none=True)
            _share_of_step(group, phase, *torch.empty(2, B, L, dtype=torch.int64))


def _share_of_step(group: Group, phase: WidePhase, words: Tensor, labels: Tensor) -> tuple[float, float, float]:
    """Words, labels and weights from rank 0; the sum of all gradients and what `backward` returns to rank 0."""
    batch = torch.stack([words.long(), labels.long()])
    dist.broadcast(batch, 0)
    parameters = list(phase.module.parameters())
    weights = torch.cat([parameter.detach().flatten() for parameter in parameters])
    dist.broadcast(weights, 0)
    sizes = [parameter.numel() for parameter in parameters]
    with torch.no_grad():
        for parameter, part in zip(parameters, weights.split(sizes), strict=True):
            parameter.copy_(part.view_as(parameter))
    mine = batch.tensor_split(group.world, 1)[group.rank]
    share = mine.shape[1] / batch.shape[1]
    loss, first, right = phase.compute_loss(mine[0], mine[1])
    (loss * share).backward()
    flat = [torch.zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in parameters]
    numbers = torch.stack([loss.detach(), first.float().mean(), right]) * share
    own = torch.cat([*flat, numbers])
    gathered = [torch.empty_like(own) for _ in range(group.world)] if group.rank == 0 else None
    dist.gather(own, gathered, 0)
    if gathered is None:
        return 0.0, 0.0, 0.0
    total = gathered[0]
    for part in gathered[1:]:
        total = total + part
    *grads, numbers = total.split([*sizes, 3])
    for parameter, grad in zip(parameters, grads, strict=True):
        parameter.grad = grad.view_as(parameter)
    return float(numbers[0]), float(numbers[1]), float(numbers[2])
