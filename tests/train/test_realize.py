"""Codes are realized in networks of one layer and of two, and the networks know them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from exactstate._types import MISSING
from exactstate.nn import NFSM, Backbone
from exactstate.tasks import Task
from exactstate.tasks import task as get_task
from exactstate.train import (
    EndToEndConfig,
    EndToEndPhase,
    Realize,
    StateCodes,
    codes_of_counts,
    count_transitions,
    realize,
)
from exactstate.train.realize import Targets
from exactstate.train.registers import codes_of_registers
from tests.conftest import SAMPLED


def model_of(task: Task, codes: StateCodes, width: int, generator: torch.Generator) -> Backbone:
    blocks = [
        NFSM(width, heads, initial_state=start, generator=generator, **SAMPLED)
        for heads, start in zip(codes.heads, codes.starts, strict=True)
    ]
    asks = task.question is not None
    return Backbone(
        task.machine.n_symbols, len(task.labels), blocks, width=width, kernel_size=1 + asks,
        answers=task.question.n_answers if asks else 0, generator=generator,
    )  # fmt: skip


def learned(phase: Realize) -> Realize:
    while not phase.done:
        phase.step()
        if phase.steps % phase.check_every == 0:
            phase.check()
    return phase


def counted_phase(name: str, heads: tuple[int, ...] | None = None, seed: int = 0, label_of=None) -> Realize:
    """One layer of width 32 with the codes that were counted in words of a task."""
    task, generator = get_task(name), torch.Generator().manual_seed(seed)
    counts = count_transitions(task, np.random.default_rng(seed), batch=64, length=64)
    codes = codes_of_counts(counts, heads, seed=seed, label_of=label_of)
    assert codes is not None
    return Realize(model_of(task, codes, 32, generator), codes, generator=np.random.default_rng(seed),
                   weights=generator)  # fmt: skip


@pytest.mark.parametrize(("name", "heads"), [("S3", None), ("Z5", None), ("FF", (3,)), ("S3", (6,))])
def test_realize_learns_the_machine(name: str, heads: tuple[int, ...] | None) -> None:
    torch.manual_seed(0)
    phase = learned(counted_phase(name, heads))
    assert phase.margins()[0] >= 4
    model, fresh = phase.network().eval(), get_task(name).sample(32, 500, np.random.default_rng(1))
    with torch.no_grad():
        said, _ = model(torch.from_numpy(fresh.inputs.astype(np.int64)))
    assert np.array_equal(said.argmax(-1).numpy(), fresh.states)


def test_realize_outputs_by_the_read_out_itself() -> None:
    """Three outputs of S3, of two states each, that no head determines."""
    torch.manual_seed(0)
    outputs = np.array([0, 1, 2, 0, 1, 2])
    phase = learned(counted_phase("S3", label_of=outputs))
    assert not phase.readers
    model, fresh = phase.network().eval(), get_task("S3").sample(32, 500, np.random.default_rng(1))
    with torch.no_grad():
        said, _ = model(torch.from_numpy(fresh.inputs.astype(np.int64)))
    assert np.array_equal(said.argmax(-1).numpy(), outputs[fresh.states])


def test_targets_refuse_an_index_that_does_not_follow() -> None:
    rows = np.array([[MISSING, 0, 0, 1, 1, MISSING], [MISSING, 0, 0, 0, 0, MISSING]], np.int32)
    with pytest.raises(AssertionError, match="is not a function of its window"):
        Targets(StateCodes(((2,),), ((0,),), rows), 1)


def phase_of_stories(people: int, *, width: int = 64, seed: int = 0) -> Realize:
    task, generator = get_task(f"TSO{people}"), torch.Generator().manual_seed(seed)
    codes = codes_of_registers(task, np.random.default_rng(seed), free_order=False)
    return Realize(model_of(task, codes, width, generator), codes, generator=np.random.default_rng(seed),
                   weights=generator)  # fmt: skip


@pytest.fixture(scope="module")
def two_people() -> Realize:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    phase = learned(phase_of_stories(2))
    phase.network()
    torch.set_num_threads(before)
    return phase


def test_realize_learns_stories_of_any_length(two_people: Realize) -> None:
    assert two_people.streak == 2, two_people.margins()
    model, task = two_people.model.eval(), get_task("TSO2")
    for length in (15, 61, 503):
        batch = task.sample(16, length, np.random.default_rng(length))
        with torch.no_grad():
            h, _ = model.hidden(torch.from_numpy(batch.inputs.astype(np.int64)))
            assert np.array_equal(model.label_logits(h).argmax(-1).numpy(), batch.states)
            assert np.array_equal(model.answer_logits(h[:, -1]).argmax(-1).numpy(), batch.answers)


def test_margins_are_those_of_the_network(two_people: Realize) -> None:
    """A bent move of either layer, or a bent answer, shows."""
    phase = two_people
    tables, reads = phase.margins()
    assert tables >= 4
    assert reads >= 3
    with torch.no_grad():
        for layer in phase.layers:
            layer.block.bias[0] -= 1e3  # the first head shall not stay at index 0
            assert phase.margins()[0] < -1e3
            layer.block.bias[0] += 1e3
        phase.model.answer_head.bias[1] += 1e3
        assert phase.margins()[1] < -100
        phase.model.answer_head.bias[1] -= 1e3


def test_end_to_end_phase_trains_the_answer_head() -> None:
    """The gradient of the released phase reaches the second read-out."""
    phase = phase_of_stories(2, width=16)
    model = phase.model
    before = model.answer_head.weight.clone()
    settings = EndToEndConfig(batch=4, length=16, check_words=4)
    EndToEndPhase(model, get_task("TSO2"), settings, np.random.default_rng(0)).step()
    assert not torch.equal(model.answer_head.weight, before)


def test_end_to_end_phase_accuracy_counts_wrong_answers(two_people: Realize) -> None:
    model, task = two_people.model, get_task("TSO2")
    tracking = EndToEndPhase(model, task, EndToEndConfig(length=31, check_words=32), np.random.default_rng(5))
    assert tracking.accuracy() == 1.0
    with torch.no_grad():
        model.answer_head.bias[0] += 1e3
        assert 0 < tracking.accuracy() < 1
        model.answer_head.bias[0] -= 1e3


def test_sample_reads_half_with_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    phase = phase_of_stories(3, width=16)
    monkeypatch.setattr(realize, "ROWS", 20)
    rows = phase._sample_reads()
    assert (phase.targets.answers[rows] != MISSING).sum() == 10
    assert len(rows) == 20
