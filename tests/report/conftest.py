"""Folders of runs: one that was learned, and one whose names try to break out of the page."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from exactstate.automata import Moore, write_machine
from exactstate.train import train

HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "</style></td>&amp;", "'; \u202etxt.exe")


def learned(task: str, folder: Path) -> Path:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    run = train(task, out=folder, width=32)
    torch.set_num_threads(before)
    assert run.certified
    return folder


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return learned("S3", tmp_path_factory.mktemp("report") / "s3")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    machine = Moore(
        symbols=HOSTILE[:3], tables=[[1, 2, 0, 3], [0, 1, 2, 3], [3, 3, 3, 0]], states=HOSTILE, outputs=HOSTILE,
        readout=[0, 1, 2, 3],
    )  # fmt: skip
    write_machine(machine, folder / "hostile.json")
    return learned(str(folder / "hostile.json"), folder / "run")
