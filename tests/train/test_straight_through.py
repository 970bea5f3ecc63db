"""The recipe `straight_through`: end to end from words and labels, pruned, certified, compressed."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from exactstate.automata import Moore, cyclic, flip_flop, tomita
from exactstate.certify.check import check
from exactstate.errors import NotLearned
from exactstate.nn import NFSM, Backbone
from exactstate.records import Row
from exactstate.tasks import Task
from exactstate.tasks import task as get_task
from exactstate.train import fit, realize, train
from exactstate.train.build import build_model
from exactstate.train.config import PROBED_REACHING, GradientConfig, TrainConfig, wide_heads
from exactstate.train.margins import margin_shortfall, widen_margins
from exactstate.train.recipes import configure
from exactstate.train.run import Run, load_run
from exactstate.train.straight_through import repair
from exactstate.train.trainer import Trainer
from exactstate.train.verify import extract_and_certify
from exactstate.train.wide import (
    Probes,
    WidePhase,
    accuracy,
    block_of,
    label_logits,
    prepare,
    shortest_wrong_word,
)
from tests.learning.machines import handshake

pytestmark = pytest.mark.usefixtures("one_thread")


@cache
def learned(name: str = "S3") -> Run:
    return train(configure(name, recipe="straight_through"))


def without_time(history: list[dict]) -> list[dict]:
    return [{key: value for key, value in row.items() if key != "seconds"} for row in history]


def test_gradient_learns_prunes_certifies_and_compresses() -> None:
    run = learned()
    stages = run.stages
    assert run.certified
    assert "float32" in run.certificate().proved
    assert check(run.certificate().content)
    assert stages["learned"]["heads"] == [12] * 8
    assert len(stages["pruned"]["heads"]) < 8
    assert tuple(stages["pruned"]["heads"]) == run.heads
    assert stages["pruned"]["configurations"] == len(run.extracted.reached)
    assert stages["pruned"]["parameters"] < stages["learned"]["parameters"]
    assert run.compressed is not None
    assert run.compressed.verdict
    assert stages["compressed"]["heads"] == [3, 2]
    assert run.config.recipe == "straight_through"


def test_gradient_counts_no_transition(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a transition was counted")

    monkeypatch.setattr(realize, "count_transitions", refuse)
    assert train(configure("Z2", recipe="straight_through")).certified


def test_gradient_does_not_look_at_the_target_before_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same words and labels with another machine behind them give the same network."""
    # no repair: what the verdict says is used after it
    config = configure("Z2", recipe="straight_through", gradient=GradientConfig(compress=False, repairs=0))
    target = get_task("Z2")
    other = replace(target, machine=replace(target.machine, tables=target.machine.tables[::-1]))
    monkeypatch.setattr(type(other), "stream", lambda self, *args, **kwargs: _stream(target, *args, **kwargs))
    blind = train(other, recipe="straight_through", restarts=0, gradient=config.gradient)
    assert not blind.certified
    monkeypatch.undo()
    assert blind.extracted.weights == train(config).extracted.weights


_stream = Task.stream


def test_gradient_from_outputs_alone() -> None:
    task = Task.of(tomita(4), name="no three 0s")
    run = train(task, recipe="gradient", supervise="outputs")
    assert run.certified
    assert run.task.label_kind == "outputs"
    assert run.tables == "one large head"


def test_gradient_refuses_with_a_wrong_word_and_a_way_out() -> None:
    config = configure("S3", recipe="straight_through", restarts=1, gradient=GradientConfig(steps=2, check_every=2))
    sentence = (
        r"S3 was not learned in 2 steps, attempt 2: .* of fresh words of 64 symbols are right, .* after '.*' the "
    )
    with pytest.raises(NotLearned, match=sentence + r"network outputs .* Try more heads or larger ones \(--heads\)"):
        train(config)


class Died(Exception):
    pass


@pytest.mark.parametrize(
    "row", [1, 4, pytest.param(2, marks=pytest.mark.slow), pytest.param(6, marks=pytest.mark.slow)]
)
def test_gradient_resumes_to_the_same_weights(row: int, tmp_path) -> None:
    seen: list[dict] = []

    def die(noted: dict) -> None:
        seen.append(noted)
        if len(seen) == row:
            raise Died

    whole = learned("Z2")
    with pytest.raises(Died):
        train(configure("Z2", recipe="straight_through"), die, out=tmp_path / "run", save_every=0.0)
    run = train(configure("Z2", recipe="straight_through"), out=tmp_path / "run")
    assert run.extracted.weights == whole.extracted.weights
    assert run.compressed is not None
    assert whole.compressed is not None
    assert run.compressed.extracted.weights == whole.compressed.extracted.weights
    assert without_time(run.history) == without_time(whole.history)
    assert not list((tmp_path / "run").glob("stage-pruned*"))


def test_load_run_brings_the_compressed_network_back(tmp_path) -> None:
    run = train(configure("Z2", recipe="straight_through"), out=tmp_path / "run")
    again = load_run(tmp_path / "run")
    assert again.compressed is not None
    assert run.compressed is not None
    assert again.compressed.extracted.weights == run.compressed.extracted.weights
    assert again.extracted.weights == run.extracted.weights
    assert check(tmp_path / "run" / "certificate-compressed.json")


@pytest.mark.parametrize(
    ("labels", "heads"),
    [
        (2, (12,) * 8),
        (8, (12,) * 8),
        (9, (14,) * 8),
        (16, (24,) * 8),
        (17, (12,) * 16),
        (60, (12,) * 16),
        (120, (12,) * 16),
        (7920, (12,) * 32),
    ],
)
def test_wide_heads_depend_on_the_number_of_labels_alone(labels: int, heads: tuple[int, ...]) -> None:
    assert wide_heads(labels) == heads


def test_gradient_config_resolves_what_is_left_open() -> None:
    with_probes, without = GradientConfig().resolved(6, None), GradientConfig().resolved(24, None)
    assert (with_probes.probe_weight, with_probes.temperature, with_probes.length) == (1.0, 2.0, 16)
    assert (without.probe_weight, without.temperature, without.length) == (0.0, 1.0, 32)
    assert GradientConfig().resolved(24, (4, 3), attempt=1).heads == (4, 3, 4)
    assert GradientConfig(probe_weight=0.5, temperature=3.0, length=8).resolved(6, (2,)).temperature == 3.0


def wide(name: str = "S3", heads: tuple[int, ...] = (4, 4, 4)) -> tuple[Task, WidePhase]:
    task, generator = get_task(name), torch.Generator().manual_seed(0)
    settings = GradientConfig(check_words=8).resolved(len(task.labels), heads)
    model = build_model(TrainConfig(task=name, width=16, dropout=0.0), task, heads=(heads,), generator=generator)
    prepare(model, settings)
    return task, WidePhase(model, None, task, settings, np.random.default_rng(0))


def test_prepare_makes_an_untrained_layer_stay_where_it_is() -> None:
    _, phase = wide()
    block = block_of(phase.model)
    assert isinstance(block, NFSM)
    prepare(phase.model, replace(phase.settings, remember=50.0))
    x = torch.randn(1, 20, 16, generator=torch.Generator().manual_seed(1))
    assert (block.states(x) == 0).all()


def test_label_logits_are_those_of_the_model() -> None:
    task, phase = wide()
    words = torch.randint(task.machine.n_symbols, (3, 17), generator=torch.Generator().manual_seed(2))
    phase.model.eval()
    with torch.no_grad():
        torch.testing.assert_close(label_logits(phase.model, words), phase.model(words)[0], rtol=0, atol=1e-5)


def test_label_logits_without_a_gradient_are_those_with_one() -> None:
    """Symbols and joint indices that repeat are read out once; a batch may be empty."""
    task, phase = wide()
    words = torch.randint(task.machine.n_symbols, (9, 40), generator=torch.Generator().manual_seed(2))
    phase.model.eval()
    with torch.no_grad():
        once = label_logits(phase.model, words)
        assert label_logits(phase.model, words[:0]).shape == (0, 40, len(task.labels))
    torch.testing.assert_close(once, label_logits(phase.model, words).detach(), rtol=0, atol=1e-5)
    assert len(torch.unique(once.flatten(0, 1), dim=0)) < words.numel() // 2


def test_wrong_words_of_a_check_are_trained_on_again() -> None:
    _, phase = wide()
    phase.settings = replace(phase.settings, replay=0.25, check_words=64, check_length=16)
    phase.curriculum.length = 12
    words, labels = torch.zeros(2, 64, 12, dtype=torch.long)
    share, generator = phase.settings.replay, phase.generator
    assert phase.mistakes.mix(words, labels, share, generator)[0] is words  # nothing was wrong yet
    phase.check()
    wrong = {tuple(symbols[:12]): tuple(right[:12]) for symbols, right in phase.mistakes.words}
    assert 16 <= len(wrong) <= phase.mistakes.most
    replayed, wanted = phase.mistakes.mix(words, labels, share, generator)
    for word, label in zip(replayed[:16].tolist(), wanted[:16].tolist(), strict=True):
        assert wrong[tuple(word)] == tuple(label)
    assert (replayed[16:] == 0).all()
    assert phase.state()["mistakes"] == phase.mistakes.words  # a resumed run trains on the same words
    phase.curriculum.length = 20  # longer than the words of the check
    longer = torch.zeros(64, 20, dtype=torch.long)
    assert phase.mistakes.mix(longer, longer, share, generator)[0] is longer


def test_words_that_reach_every_state_are_short_and_many() -> None:
    machine = handshake()
    sampler = get_task(machine).sampler
    settings = GradientConfig().resolved(machine.n_states, None).reaching(sampler)
    assert (settings.length, settings.batch, settings.replay) == (12, 128, 0.25)
    assert GradientConfig().resolved(6, None).reaching(get_task("S3").sampler).replay == 0.0
    assert wide_heads(40) == (12,) * 16
    assert wide_heads(20, PROBED_REACHING) == (30,) * 8
    assert wide_heads(40, PROBED_REACHING) == (45,) * 4


def test_a_refused_network_is_repaired_with_the_words_that_refuse_it() -> None:
    run = learned()
    model = deepcopy(run.model)
    with torch.no_grad():
        model.readout.bias[0] += 30.0  # every answer is the first label
    refused = extract_and_certify(model, run.task)
    assert not refused[1]
    notes: list[Row] = []
    repaired = repair(run.config, run.task, model, Trainer(None, notes.append))
    assert extract_and_certify(repaired, run.task)[1]
    assert not extract_and_certify(model, run.task)[1]  # a copy was trained
    assert [row["step"] for row in notes] == list(range(1, len(notes) + 1))
    assert notes[-1]["counterexamples"] == 0


def test_a_run_killed_while_it_repairs_resumes_to_the_same_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    procedure = fit.PROCEDURES["straight_through"]

    def spoiled(config: TrainConfig, task: Task, trainer: Trainer) -> Backbone:
        model = deepcopy(procedure(config, task, trainer))
        with torch.no_grad():
            model.readout.bias[0] += 30.0
        return model

    class Killed(Exception):
        pass

    def kill(row: Row) -> None:
        if row["phase"] == "repair":
            raise Killed

    monkeypatch.setitem(fit.PROCEDURES, "straight_through", spoiled)
    config = configure("S3", recipe="straight_through")
    config = replace(config, gradient=replace(config.gradient, compress=False))
    whole = train(config, out=tmp_path / "whole")
    with pytest.raises(Killed):
        train(config, kill, out=tmp_path / "killed")
    resumed = train(config, out=tmp_path / "killed")
    assert whole.certified
    assert any(row["phase"] == "repair" for row in whole.history)
    assert resumed.certificate().content == whole.certificate().content
    assert without_time(resumed.history) == without_time(whole.history)


def test_words_grow_longer_once_most_of_a_check_are_right() -> None:
    run = learned()
    settings = replace(GradientConfig().resolved(6, None), long_length=40, check_words=16)
    phase = WidePhase(deepcopy(run.model), None, run.task, settings, np.random.default_rng(0))
    assert phase.curriculum.longest == settings.length == 16
    for longest in (24, 32, 40, 40):
        phase.check()
        assert phase.curriculum.longest == longest
    phase.curriculum.length = 40
    assert phase.state()["lengths"] == [40, 40]


def test_probes_predict_from_one_head_each() -> None:
    probes = Probes((2, 3), 4, torch.Generator().manual_seed(0))
    states = torch.zeros(1, 1, 5)
    states[0, 0, 1] = states[0, 0, 2 + 2] = 1
    expected = -sum(probes.weight[row].log_softmax(-1)[3] for row in (1, 4))
    torch.testing.assert_close(probes.losses(states, torch.tensor([[3]])).squeeze(), expected)


def test_accuracy_of_a_network_that_is_wrong_and_of_one_that_is_right() -> None:
    task, phase = wide()
    assert accuracy(phase.model, task, np.random.default_rng(0), 128, 64) < 1.0
    assert accuracy(learned().model, task, np.random.default_rng(0), 128, 512) == 1.0


def test_widen_margins_changes_no_choice() -> None:
    run = learned("Z2")
    model, before = deepcopy(run.model), run.extracted
    settings = GradientConfig(margin=8.0)
    widen_margins(model, before, settings)
    after, verdict = extract_and_certify(model, run.task)
    assert verdict
    assert np.array_equal(after.layers[0].tables[after.layers[0].used], before.layers[0].tables[before.layers[0].used])
    assert after.weakest.margin >= 4.0
    assert after.label_margins.min() >= 4.0


def test_shortest_wrong_word_names_one_or_says_that_there_is_none() -> None:
    task, phase = wide()
    assert "the network outputs" in shortest_wrong_word(phase.model, task, np.random.default_rng(0))
    sentence = shortest_wrong_word(learned().model, task, np.random.default_rng(0))
    assert sentence == "none of 1024 random words of 32 symbols is wrong"


@pytest.mark.slow
def test_gradient_learns_machines_of_ones_own() -> None:
    machine = Moore.of(flip_flop())
    assert train(machine, recipe="gradient").certified
    assert train(Moore.of(cyclic(3)), recipe="gradient").certified


def test_margin_shortfall_is_what_a_lead_lacks() -> None:
    logits = torch.tensor([[0.0, 0.25, -1.0], [5.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    assert margin_shortfall(logits, torch.tensor([1, 0, 0]), 1.0).tolist() == [0.75, 0.0, 3.0]


def test_heads_that_do_not_follow_the_state_are_drawn_anew() -> None:
    """Head 0 is the sign of S3 by itself; the others are as they were drawn."""
    _, phase = wide()
    block = block_of(phase.model)
    with torch.no_grad():
        swap = torch.zeros(4, 4)
        swap[0, 1] = swap[1:, 0] = 1.0  # a row is a current index; every symbol changes the sign
        block.weight[:16], block.bias[:16] = 0.0, 20.0 * swap.flatten()
    phase.settings = replace(phase.settings, renew_every=2, renew_below=0.9)
    before = block.weight.detach().clone()
    phase.renew_heads()
    assert phase.renewed == [2]
    assert not phase.given_up
    assert torch.equal(block.weight[:16], before[:16])
    assert not any(torch.equal(block.weight[at : at + 16], before[at : at + 16]) for at in (16, 32))
    phase.steps = 1
    phase.curriculum.length = 16
    phase.step()
    assert len(phase.renewed) == 2
    assert phase.curriculum.length == phase.settings.first_length
    assert phase.check()["renewed"] == sum(phase.renewed)


def test_attempt_without_a_head_that_follows_the_state_is_given_up() -> None:
    _, phase = wide()
    phase.settings = replace(phase.settings, renew_every=1, renew_below=1.1)
    phase.step()
    phase.check()
    assert phase.done
    assert not phase.learned
    assert phase.state()["given_up"]


def test_heads_are_drawn_anew_only_while_a_wide_layer_learns() -> None:
    _, phase = wide()
    assert not phase.renewing
    phase.settings = replace(phase.settings, renew_every=10)
    assert phase.renewing
    phase.steps = 10
    phase.start_round(1)
    assert not phase.renewing


def test_many_states_renew_their_heads() -> None:
    few, many = configure("A5", recipe="straight_through"), configure("S5", recipe="straight_through")
    assert (few.gradient.renew_every, many.gradient.renew_every) == (0, 300)
    assert many.restarts > few.restarts
    thousands = configure("M11", recipe="gradient")
    assert thousands.search is not None
    assert thousands.restarts < thousands.search.attempts  # no attempt is straight through


def test_a_run_with_renewed_heads_resumes_to_the_same_weights(tmp_path: Path) -> None:
    config = configure("S3", recipe="straight_through", seed=42)
    settings = replace(config.gradient, renew_every=35, renew_below=0.1, compress=False)
    config = replace(config, restarts=0, gradient=settings)
    whole = train(config)
    assert any(row.get("renewed") for row in whole.history)
    assert not train(config, out=tmp_path, until=30).finished
    assert not train(config, out=tmp_path, until=45).finished
    rest = train(config, out=tmp_path)
    assert rest.certified
    assert rest.steps == whole.steps > 45
    states = (run.model.state_dict().values() for run in (whole, rest))
    assert all(map(torch.equal, *states))
