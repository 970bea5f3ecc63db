"""Stories as training data: labels of the machine, answers, checks that notice a wrong network."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from detent import NFSM
from detent.errors import InvalidConfig
from detent.nn import Backbone
from detent.tasks import task as get_task
from paper.experiments.stories import MARGIN, Stories, certified, fit, widen_margins


def make_stories(supervision: str = "states") -> Stories:
    return Stories(get_task("TSO3"), supervision, np.random.default_rng(0))


def make_model(stories: Stories, heads: tuple[int, ...] = (4, 4)) -> Backbone:
    torch.manual_seed(0)
    machine = stories.task.machine
    return Backbone(
        machine.n_symbols, machine.n_states, [NFSM(16, heads), NFSM(16, heads)], width=16, dropout=0.0, kernel_size=2,
        answers=stories.question.n_answers,
    )  # fmt: skip


def test_labels_are_the_states_and_the_holder_asked_for() -> None:
    stories = make_stories()
    tokens, states, answers = stories.sample(8, 7, extra=2)
    machine = stories.task.machine
    assert tokens.shape == states.shape == (8, 37)
    assert np.array_equal(machine.trajectory(tokens.numpy()), states.numpy())
    for row, (words, answer) in enumerate(zip(tokens.tolist(), answers.tolist(), strict=True)):
        item, person = machine.symbols[words[-2]], machine.symbols[answer]
        assert f"{item}: {person}" in machine.states[int(states[row, -1])]


def test_a_task_without_stories_and_unknown_supervision_are_refused() -> None:
    with pytest.raises(InvalidConfig, match="S3 asks no question"):
        Stories(get_task("S3"), "states", np.random.default_rng(0))
    with pytest.raises(InvalidConfig, match="states, answers; got 'labels'"):
        make_stories("labels")


@pytest.mark.parametrize("supervision", ["states", "answers"])
def test_an_untrained_network_is_not_called_learned(supervision: str) -> None:
    stories = make_stories(supervision)
    row = fit(make_model(stories), stories, seconds=0.5)
    assert not row["learned"]
    assert row["steps"] > 0
    assert (row["first_error"] is None) == (supervision == "answers")


def test_a_network_that_has_not_learned_is_not_certified() -> None:
    stories = make_stories()
    row = certified(make_model(stories, heads=(2,)).eval(), stories.task, stories)
    assert not row.get("certified", False)
    assert row["verdict"]


def test_margins_grow() -> None:
    stories = make_stories()
    model = make_model(stories)

    @torch.no_grad()
    def least_lead() -> float:
        logits, _ = model.eval()(torch.arange(stories.task.machine.n_symbols)[None])
        best = logits.topk(2, dim=-1).values
        return float((best[..., 0] - best[..., 1]).min())

    before = least_lead()
    widen_margins(model, stories)
    assert before < 0.5 * MARGIN
    assert least_lead() > before
