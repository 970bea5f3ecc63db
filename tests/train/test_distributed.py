"""Data-parallel training: the gradient of the whole batch, and under torchrun the same certificate after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from torch import Tensor

from exactstate.errors import BackendUnavailable, InvalidConfig
from exactstate.tasks import task as get_task
from exactstate.train import distributed
from exactstate.train.distributed import Group, backward, serve
from exactstate.train.phases import labels_of, tokens_of
from exactstate.train.recipes import configure
from exactstate.train.straight_through import wide_phase
from exactstate.train.wide import WidePhase
from tests.ops.ranks import run_ranks

ROOT = Path(__file__).parents[2]


def first_step() -> tuple[WidePhase, Tensor, Tensor]:
    task = get_task("S3")
    config = configure("S3", cell="nfsm", recipe="straight_through", seed=1)
    torch.manual_seed(1)
    _, phase = wide_phase(config, task, 0)
    phase.prepare_step()
    batch = task.sample(16, 12, phase.generator)
    return phase, tokens_of(batch), labels_of(batch)


def gradients(phase: WidePhase) -> Tensor:
    return torch.cat(
        [parameter.grad.flatten() for parameter in phase.module.parameters() if parameter.grad is not None]
    )


def one_step(rank: int, world: int) -> Tensor:
    group = Group(rank, world)
    if rank > 0:
        serve(group, configure("S3", cell="nfsm", recipe="straight_through", seed=1), get_task("S3"))
        return torch.zeros(0)
    distributed._active = group
    phase, words, labels = first_step()
    distributed.begin_attempt(0)
    numbers = torch.tensor(backward(phase, words, labels))
    group.ask(distributed.STOP)
    return torch.cat([gradients(phase), numbers])


# float32 sums of a few hundred terms, taken in another order
TOLERANCE = {"atol": 1e-6, "rtol": 1e-4}


def test_backward_on_two_ranks_is_that_of_the_whole_batch() -> None:
    found, _ = run_ranks(2, one_step)
    phase, words, labels = first_step()
    numbers = torch.tensor(backward(phase, words, labels))
    torch.testing.assert_close(found, torch.cat([gradients(phase), numbers]), **TOLERANCE)
    half, _, _ = first_step()
    backward(half, words[:8], labels[:8])
    assert not torch.allclose(found[:-3], gradients(half), **TOLERANCE)


def test_serve_refuses_other_recipes() -> None:
    with pytest.raises(InvalidConfig, match="torchrun trains the recipe straight_through of the NFSM; gru by cpu"):
        serve(Group(1, 2), configure("S3", cell="gru", recipe="cpu", seed=1), get_task("S3"))


@pytest.fixture
def kept_store(monkeypatch: pytest.MonkeyPatch) -> torch.distributed.TCPStore:
    """A store that outlives the ranks, as that of torchrun, in the environment of rank 0."""
    store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    names = {"RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port),
             "TORCHELASTIC_USE_AGENT_STORE": "True"}  # fmt: skip
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    return store


def test_connect_after_a_restart_has_keys_of_its_own(
    kept_store: torch.distributed.TCPStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a rank that is early finds the addresses of ranks that have ended."""
    monkeypatch.setenv("WORLD_SIZE", "1")
    keys = []
    for restart in ("0", "1", "1"):
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", restart)
        before = kept_store.num_keys()
        distributed._connect()
        torch.distributed.destroy_process_group()
        keys.append(kept_store.num_keys() - before)
    first, second, again = keys
    assert second > 0
    assert first >= second  # the first call counts clients, too
    assert again == 0


def test_connect_without_the_other_rank_ends_with_a_sentence(
    kept_store: torch.distributed.TCPStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributed, "CONNECT", timedelta(seconds=1))
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(BackendUnavailable, match=r"the 2 ranks of this run could not connect .* starts all again"):
        distributed._connect()
    assert not torch.distributed.is_initialized()


def torchrun(folder: Path, *, kill: bool) -> dict[str, object]:
    """Train S3 on two ranks; with `kill`, kill rank 1 after the first row of the history."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts",
               "2", "-m", "exactstate", "train", "S3", "--out", str(folder)]  # fmt: skip
    process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"})
    history = folder / "history.jsonl"
    deadline = time.monotonic() + 300
    while kill and process.poll() is None and time.monotonic() < deadline:
        if history.exists() and history.read_text().count("\n") >= 1:
            os.kill(_rank_one(process.pid), signal.SIGKILL)
            break
        time.sleep(0.05)
    assert process.wait(timeout=600) == 0
    names = ("certificate.json", "machine.json", "certificate-compressed.json")  # certificates name the weights' hash
    return {name: json.loads((folder / name).read_text()) for name in names}


def _rank_one(parent: int) -> int:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status, variables = (entry / "stat").read_text(), (entry / "environ").read_bytes()
            except OSError:
                continue
            if int(status.rpartition(")")[2].split()[1]) == parent and b"\0RANK=1\0" in b"\0" + variables:
                return int(entry.name)
    raise AssertionError(f"torchrun {parent} has no rank 1")


@pytest.mark.slow
def test_torchrun_with_a_killed_rank_ends_in_the_same_certificate(tmp_path: Path) -> None:
    whole, killed = torchrun(tmp_path / "whole", kill=False), torchrun(tmp_path / "killed", kill=True)
    assert killed == whole
