"""Learning a noisy log by gradient: the network learns through wrong outputs, and its answers show the machine."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.machines import log_of
from exactstate.automata import Mealy, distinguishing_word
from exactstate.errors import InvalidInput
from exactstate.train.from_traces import learn_by_gradient

SWITCH = Mealy(
    symbols=("push", "wait"), tables=np.array([[1, 2, 0], [0, 1, 2]]), outputs=("off", "low", "high"),
    readout=np.array([[1, 2, 0], [0, 1, 2]]),
)  # fmt: skip
"""A lamp with three steps."""


def test_learn_by_gradient_through_wrong_outputs():
    log = log_of(SWITCH, 200, 12, np.random.default_rng(1), noise=0.05)
    learned = learn_by_gradient(log, steps=150)
    assert distinguishing_word(learned.machine, SWITCH) is None
    clean = log_of(SWITCH, 200, 12, np.random.default_rng(1))
    wrong = sum(
        a != b for (_, seen), (_, right) in zip(log, clean, strict=True) for a, b in zip(seen, right, strict=True)
    )
    assert learned.disagreeing == wrong > 80
    assert (learned.order, learned.traces) == ("gradient", 200)


def test_learn_by_gradient_without_steps_finds_nothing():
    """A network that has not learned does not show the machine."""
    log = log_of(SWITCH, 50, 12, np.random.default_rng(1))
    assert distinguishing_word(learn_by_gradient(log, steps=0, noise=0.0).machine, SWITCH) is not None


def test_learn_by_gradient_refuses_labels_at_the_end_only():
    with pytest.raises(InvalidInput, match="needs an output at every input"):
        learn_by_gradient([(["push", "push"], "low")])
