"""One trained run that the tests of the verbs share; they must not change it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from exactstate.train import configure, train


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a certified run on S3."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("runs") / "S3"
    assert train("S3", recipe="induce", width=32, out=folder).certified
    torch.set_num_threads(threads)
    return folder


@pytest.fixture
def untrained(tmp_path: Path) -> Path:
    """The folder of a Mamba after one step."""
    config = configure("S3", cell="mamba", layers=1, width=8, channels=4, states=2, dropout=0.1)
    phase = replace(config.end_to_end, batch=2, length=4, steps=1, check_every=1, check_words=4)
    train(replace(config, end_to_end=phase), out=tmp_path / "run")
    return tmp_path / "run"
