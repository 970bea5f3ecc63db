"""Stories as training data: labels of the machine, answers, checks that notice a wrong network."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from exactstate import NFSM
from exactstate.errors import InvalidConfig
from exactstate.nn import Backbone
from exactstate.tasks import task as get_task
from exactstate.train import answer_cascade
from exactstate.train.margins import margin_shortfall
from paper.experiments import story_learning as module
from paper.experiments.campaigns import CAMPAIGNS
from paper.experiments.story_learning import MARGIN, Stories, certified, fit, widen_margins, widest


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


def test_a_network_that_has_not_learned_is_not_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROUNDS", 2)
    monkeypatch.setattr(module, "ROUND_SECONDS", 0.1)
    monkeypatch.setattr(module, "MARGIN_STEPS", 2)
    stories = make_stories()
    row = certified(make_model(stories, heads=(2,)).eval(), stories.task, stories)
    assert row["certified"] is False
    assert row["rounds"] == 2
    assert "not certified: after" in row["verdict"]


def test_margins_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MARGIN_STEPS", 20)
    stories = make_stories()
    model = make_model(stories)
    tokens, states, _ = stories.sample(32, stories.fewest)

    @torch.no_grad()
    def lacking() -> float:
        return float(margin_shortfall(model.eval()(tokens)[0].flatten(0, 1), states.flatten(), MARGIN).mean())

    before = lacking()
    widen_margins(model, stories)
    assert lacking() < 0.9 * before


def test_widening_ends_where_stories_go_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    stories = make_stories()
    model = make_model(stories)
    shares = iter([1.0, 1.0, 1.0, 0.5])  # two checks after every part: the second part goes wrong
    monkeypatch.setattr(stories, "check", lambda *_: (next(shares), 0.0))
    with torch.no_grad():
        monkeypatch.setattr(
            module, "widen_margins", lambda model, _: model.readout.bias.fill_(model.readout.bias[0] + 1)
        )
        model.readout.bias.zero_()
        kept = widest(model, stories)
    assert kept.readout.bias[0] == 1
    assert model.readout.bias[0] == 0
    assert next(shares, None) is None


def test_cascades_are_learned_from_states_and_from_answers() -> None:
    jobs = list(CAMPAIGNS["story_learning"].jobs(CAMPAIGNS["story_learning"].options(tasks=["TSO3"], seeds=[42])))
    assert [job.key["supervision"] for job in jobs] == ["states", "answers"]
    assert [job.key["form"] for job in jobs] == ["cascade", "cascade"]


def test_a_cascade_that_finds_nothing_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_cascade, "ANSWER_STEPS", 1)
    row = module.cascade_row("TSO2", "answers", 0)
    assert (row["learned"], row["certified"], row["supervision"]) == (False, False, "answers")
    assert "TSO2 was not learned from answers in 1 steps, attempt 3" in row["verdict"]
