"""Two layers are taught the registers of stories, and know them."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch

from exactstate.nn import NFSM, Backbone
from exactstate.tasks import task as get_task
from exactstate.train import EndToEndConfig, EndToEndPhase, PretrainConfig
from exactstate.train.stack_pretraining import StackPretrainer, StackPretrainPhase
from exactstate.train.stack_supervision import assign_registers, collect_targets, sample_stories
from tests.conftest import SAMPLED


def stack_phase(people: int, *, width: int = 64, steps: int = 400, seed: int = 0) -> StackPretrainPhase:
    task, generator = get_task(f"TSO{people}"), torch.Generator().manual_seed(seed)
    told = sample_stories(task, np.random.default_rng(seed), batch=128)
    layout = assign_registers(task, list(islice(told, 4)))
    blocks = [
        NFSM(width, heads, initial_state=start, generator=generator, **SAMPLED)
        for heads, start in zip(layout.heads, layout.starts, strict=True)
    ]
    model = Backbone(
        task.machine.n_symbols, task.machine.n_states, blocks, width=width, kernel_size=2, answers=people,
        generator=generator,
    )  # fmt: skip
    pretrainer = StackPretrainer(model, layout, collect_targets(told, layout), PretrainConfig(steps=steps), generator)
    return StackPretrainPhase(pretrainer, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def two_people() -> StackPretrainPhase:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    phase = stack_phase(2)
    while not phase.done:
        phase.step()
        if phase.steps % phase.check_every == 0:
            phase.check()
    phase.pretrainer.fold_readers()
    torch.set_num_threads(before)
    return phase


def test_stack_pretrain_phase_learns_stories_of_any_length(two_people: StackPretrainPhase) -> None:
    assert two_people.streak == 2, two_people.pretrainer.margins()
    model, task = two_people.pretrainer.model.eval(), get_task("TSO2")
    for length in (15, 61, 503):
        batch = task.sample(16, length, np.random.default_rng(length))
        with torch.no_grad():
            h, _ = model.hidden(torch.from_numpy(batch.inputs.astype(np.int64)))
            assert np.array_equal(model.label_logits(h).argmax(-1).numpy(), batch.states)
            assert np.array_equal(model.answer_logits(h[:, -1]).argmax(-1).numpy(), batch.answers)


def test_stack_pretrainer_margins_are_those_of_the_network(two_people: StackPretrainPhase) -> None:
    """A bent move of either layer, or a bent answer, shows."""
    pretrainer = two_people.pretrainer
    tables, reads = pretrainer.margins()
    assert tables >= 4
    assert reads >= 3
    with torch.no_grad():
        for layer in pretrainer.layers:
            layer.block.bias[0] -= 1e3  # the first head shall not stay at index 0
            assert pretrainer.margins()[0] < -1e3
            layer.block.bias[0] += 1e3
        pretrainer.model.answer_head.bias[1] += 1e3
        assert pretrainer.margins()[1] < -100
        pretrainer.model.answer_head.bias[1] -= 1e3


def test_end_to_end_phase_trains_the_answer_head() -> None:
    """The gradient of the released phase reaches the second read-out."""
    phase = stack_phase(2, width=16)
    model = phase.pretrainer.model
    before = model.answer_head.weight.clone()
    settings = EndToEndConfig(batch=4, length=16, check_words=4)
    EndToEndPhase(model, get_task("TSO2"), settings, np.random.default_rng(0)).step()
    assert not torch.equal(model.answer_head.weight, before)


def test_end_to_end_phase_accuracy_counts_wrong_answers(two_people: StackPretrainPhase) -> None:
    model, task = two_people.pretrainer.model, get_task("TSO2")
    tracking = EndToEndPhase(model, task, EndToEndConfig(length=31, check_words=32), np.random.default_rng(5))
    assert tracking.accuracy() == 1.0
    with torch.no_grad():
        model.answer_head.bias[0] += 1e3
        assert 0 < tracking.accuracy() < 1
        model.answer_head.bias[0] -= 1e3


def test_sample_reads_half_with_a_query() -> None:
    phase = stack_phase(3, width=16)
    phase.config = replace(phase.config, rows=20)
    rows = phase._sample_reads()
    assert (phase.pretrainer.targets.answers[rows] >= 0).sum() == 10
    assert len(rows) == 20
