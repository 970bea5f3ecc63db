"""A small stack that is trained on stories of two people, in its folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from exactstate.train import Run, train


@pytest.fixture(scope="session")
def stack_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stack") / "TSO2-42"


@pytest.fixture(scope="session")
def stack(stack_folder: Path) -> Run:
    return train("TSO2", width=64, out=stack_folder)


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
