"""Teaching codes, the loss of the paper, and putting a run down and taking it up again."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from exactstate.nn import NFSM, Backbone
from exactstate.nn.losses import (
    NOISE_DEVIATION,
    class_weights,
    exploration_penalty,
    first_error,
    mask,
    record_calls,
    tracking_loss,
)
from exactstate.tasks import task as get_task
from exactstate.train import (
    EndToEndConfig,
    EndToEndPhase,
)
from exactstate.train.phases import Curriculum, Mistakes, Rate
from tests.conftest import SAMPLED

SMALL = EndToEndConfig(batch=16, length=12, check_words=32, check_every=5)


def model_of(name, heads, *, width=32, start=None, seed=0):
    task = get_task(name)
    generator = torch.Generator().manual_seed(seed)
    block = NFSM(width, heads, initial_state=start, generator=generator, **SAMPLED)
    symbols, labels = task.machine.n_symbols, task.machine.n_states
    return task, Backbone(symbols, labels, [block], width=width, generator=generator)


def test_rate_falls_from_the_first_value_to_the_last() -> None:
    rate = Rate(1.0, 0.1, 100)
    assert [rate.at(step) for step in (0, 50, 100, 1000)] == pytest.approx([1.0, 0.55, 0.1, 0.1])


def test_curriculum_grows_to_the_longest_and_restarts() -> None:
    words = Curriculum(8, 10)
    lengths = []
    for _ in range(3):
        words.grow()
        lengths.append(words.length)
    assert lengths == [9, 10, 10]
    words.restart()
    assert words.length == 8
    words.grow(64)
    assert words.length == 10
    assert Curriculum(8, 5).length == 5


def test_mistakes_replace_the_first_words_of_a_batch() -> None:
    mistakes, generator = Mistakes(most=2), np.random.default_rng(0)
    words, labels = torch.zeros(8, 3, dtype=torch.int64), torch.zeros(8, 3, dtype=torch.int64)
    assert mistakes.mix(words, labels, 0.5, generator)[0] is words
    mistakes.add([[[1, 1, 1], [2, 2, 2]], [[3, 3], [4, 4]], [[5, 5, 5, 5], [6, 6, 6, 6]]])
    assert [word for word, _ in mistakes.words] == [[3, 3], [5, 5, 5, 5]]  # the oldest is forgotten
    mixed, wanted = mistakes.mix(words, labels, 0.5, generator)
    assert mixed.tolist() == [[5, 5, 5]] + [[0, 0, 0]] * 7  # the other is too short
    assert wanted.tolist() == [[6, 6, 6]] + [[0, 0, 0]] * 7
    assert mistakes.mix(words, labels, 0.5, generator, repeats=9)[0].tolist() == [[5, 5, 5]] * 4 + [[0, 0, 0]] * 4


def test_first_error_and_mask():
    labels = torch.tensor([[0, 1, 1], [1, 1, 0], [0, 0, 0]])
    logits = torch.nn.functional.one_hot(torch.tensor([[0, 1, 1], [1, 0, 1], [1, 0, 0]]), 2).float()
    first = first_error(logits, labels)
    assert first.tolist() == [3, 1, 0]
    wanted = [[1, 1, 1], [1, 1, math.exp(-3)], [1, math.exp(-3), math.exp(-6)]]
    torch.testing.assert_close(mask(first, 3, 3.0), torch.tensor(wanted))


def test_class_weights_of_rare_labels_are_larger():
    labels = torch.tensor([[0, 0, 0, 0, 0, 0, 0, 0, 1]])
    weights = class_weights(labels, 3, 0.5)
    torch.testing.assert_close(weights[0, 8] / weights[0, 0], torch.tensor(8**0.5))
    torch.testing.assert_close(weights.mean(), torch.tensor(1.0))
    assert torch.equal(class_weights(labels, 3, 0.0), torch.ones(1, 9))


def test_tracking_loss_is_the_formula():
    generator = torch.Generator().manual_seed(1)
    logits, labels = torch.randn(4, 6, 3, generator=generator), torch.randint(0, 3, (4, 6), generator=generator)
    loss, first = tracking_loss(logits, labels, rate=3.0, balance=0.5)
    total = 0.0
    counts = torch.bincount(labels.flatten(), minlength=3)
    for b in range(4):
        above = below = 0.0
        for t in range(6):
            weight = math.exp(-3.0 * max(0, t - int(first[b]))) / math.sqrt(int(counts[labels[b, t]]))
            above += weight * float(-logits[b, t].log_softmax(0)[labels[b, t]])
            below += weight
        total += above / below
    assert float(loss.detach()) == pytest.approx(total / 4, rel=1e-5)  # float32


def test_exploration_penalty_is_the_formula_at_the_states_of_this_pass():
    task, model = model_of("S4", (4, 3))
    with torch.no_grad():
        model.layers[0].block.weight.mul_(6)
    batch = task.sample(8, 10, np.random.default_rng(0))
    model.train()
    with record_calls(model) as calls:
        model(torch.from_numpy(batch.inputs.astype(np.int64)), seed=3)
    (call,) = calls
    first = torch.tensor([0, 1, 5, 9, 10, 10, 2, 3])
    block, total = call.block, 0.0
    for b in range(8):
        t = int(first[b])
        if t == 10:
            continue
        before = call.states_before(first)[b]
        theta = (call.rows[b, t] @ block.weight.T + block.bias).detach()
        for column, d, at in ((int(before[0]), 4, 0), (int(before[1]), 3, 16)):
            u = theta[at + column * d : at + (column + 1) * d] / 0.5
            total += max(0.0, float(u.std(correction=0)) / NOISE_DEVIATION - 1) ** 2 / 2
    assert float(exploration_penalty(call, first).detach()) == pytest.approx(total / 8, rel=1e-4)
    assert total > 0
    # states before step t are those of a pass over the first t steps with the same noise
    _, alone = block(call.rows[:1, :7].detach(), seed=3)
    assert torch.equal(call.states_before(torch.full((8,), 7))[0], alone[0])


def test_end_to_end_phase_reduces_the_loss():
    torch.manual_seed(0)
    task, model = model_of("Z2", (2,))
    phase = EndToEndPhase(model, task, SMALL, np.random.default_rng(0))
    losses = []
    for _ in range(40):
        phase.step()
        losses.append(phase.loss)
    assert sum(losses[-10:]) < sum(losses[:10])
    assert set(phase.check()) == {"loss", "first_error", "accuracy", "gradient"}
