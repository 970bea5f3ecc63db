"""Run a function in several processes that form a gloo group, and collect what it returns."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def _main(rank: int, world: int, folder: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=world)
    try:
        torch.save(function(rank, world, *arguments), f"{folder}/{rank}.pt")
        dist.barrier()
    finally:
        dist.destroy_process_group()


def run_ranks(world: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """`function(rank, world, *arguments)` on every rank; the results by rank."""
    # the server imports torch once and forks the ranks; this process is not forked, for it may have threads
    multiprocessing.get_context("forkserver").set_forkserver_preload(["torch.distributed", "exactstate.nn.nfsm"])
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(_main, (world, folder, function, arguments), nprocs=world, start_method="forkserver")
        return [torch.load(Path(folder) / f"{rank}.pt", weights_only=True) for rank in range(world)]
