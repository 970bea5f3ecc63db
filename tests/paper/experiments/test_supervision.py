"""The data of weaker supervision, and one machine learned from it end to end."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from exactstate import task as get_task
from paper.experiments import supervision
from paper.experiments.supervision import IGNORED, Data


def data_of(kind: str, name: str = "S3", seed: int = 0) -> Data:
    machine = supervision.MACHINES[name]()
    return Data(machine, np.random.default_rng(seed), by_state=name in ("S3", "S4", "A5"), **supervision.KINDS[kind])


def test_serial_adder_adds() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = (int(one) for one in rng.integers(0, 1 << 15, 2))
        word = [f"{a >> k & 1}+{b >> k & 1}" for k in range(16)]
        machine = supervision.serial_adder()
        digits = [int(machine.outputs[k]) for k in machine.output_ids(machine.encode(word))]
        assert sum(digit << k for k, digit in enumerate(digits)) == a + b


def test_login_is_locked_after_three_wrong_passwords_until_it_is_reset() -> None:
    machine = supervision.login()
    word = ["wrong", "wrong", "wrong", "right", "reset", "right", "wrong", "logout", "wrong"]
    outputs = [machine.outputs[k] for k in machine.output_ids(machine.encode(word))]
    assert outputs == ["no", "no", "locked", "locked", "ok", "ok", "ignored", "bye", "no"]


def test_last_labels_are_right_and_alone() -> None:
    data = data_of("last")
    words, labels = data.sample(50, 9)
    expected = torch.from_numpy(get_task("S3").machine.trajectory(words.numpy()).astype(np.int64))
    assert ((labels != IGNORED).sum(1) == 1).all()
    assert torch.equal(labels[labels != IGNORED], expected[labels != IGNORED])


def test_wrong_labels_have_their_share() -> None:
    data = data_of("wrong 20%")
    words, labels = data.sample(400, 50)
    expected = torch.from_numpy(get_task("S3").machine.trajectory(words.numpy()).astype(np.int64))
    assert abs(float((labels != expected).float().mean()) - 0.2) < 4 * (0.2 * 0.8 / labels.numel()) ** 0.5


def test_is_right_notices_one_wrong_label() -> None:
    class Oracle(torch.nn.Module):
        wrong_at: int | None = None

        def forward(self, words: torch.Tensor) -> torch.Tensor:
            states = torch.from_numpy(get_task("S3").machine.trajectory(words.numpy()).astype(np.int64))
            if self.wrong_at is not None:
                states[0, self.wrong_at] = (states[0, self.wrong_at] + 1) % 6
            return torch.nn.functional.one_hot(states, 6).float()

    oracle = Oracle()
    assert supervision.is_right(oracle, data_of("every"))  # type: ignore[arg-type]
    oracle.wrong_at = 63
    assert not supervision.is_right(oracle, data_of("every"))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["last", pytest.param("cloud", marks=pytest.mark.slow)])
def test_supervision_row_of_the_adder_is_certified(kind: str) -> None:
    row = supervision.supervision_row("adder", kind, 42, 500)
    assert row["certified"], row["verdict"]


def test_supervision_row_says_when_nothing_was_learned() -> None:
    row = supervision.supervision_row("A5", "last", 42, 1)
    assert not row["certified"]
    assert row["verdict"] == "not learned in 1 steps"
