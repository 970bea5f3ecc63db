"""Checkpoints: what was saved and loaded ends with the same bits; anything else is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from exactstate.errors import BrokenFile
from exactstate.train import EndToEndPhase, checkpoint
from tests.train.test_phases import SMALL, model_of


def trained(tmp_path, interrupted):
    """Ten steps of both phases' optimisers, put down in the middle or not."""
    torch.manual_seed(7)
    task, model = model_of("S3", (3, 2))
    phase = EndToEndPhase(model, task, SMALL, np.random.default_rng(7))
    for step in range(10):
        if interrupted and step == 4:
            counters = {"steps": phase.steps}
            checkpoint.save(tmp_path / "last", phase.module, phase.optimizer, phase.generator, counters)
            torch.manual_seed(99)
            task, model = model_of("S3", (3, 2), seed=5)
            phase = EndToEndPhase(model, task, SMALL, np.random.default_rng(11))
            phase.steps = checkpoint.load(tmp_path / "last", phase.module, phase.optimizer, phase.generator)["steps"]
        phase.step()
    return phase


def test_checkpoint_save_and_load_give_the_same_bits(tmp_path):
    whole, resumed = trained(tmp_path, False), trained(tmp_path, True)
    assert whole.loss == resumed.loss
    for one, other in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"nonsense"])
def test_checkpoint_load_refuses_what_is_no_checkpoint(tmp_path, content):
    task, model = model_of("Z2", (2,))
    phase = EndToEndPhase(model, task, SMALL, np.random.default_rng(0))
    (tmp_path / "last").write_bytes(content)
    with pytest.raises(BrokenFile, match="this is not a checkpoint of this run"):
        checkpoint.load(tmp_path / "last", phase.module, phase.optimizer, phase.generator)
