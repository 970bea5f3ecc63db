"""Cascades from answers: the loss, what is kept, the machine that it is, and a run of the recipe with them."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch

from exactstate._types import Ints
from exactstate.automata.io import write_machine
from exactstate.certify import certify
from exactstate.certify.check import check, summary
from exactstate.certify.target import difference_from_task
from exactstate.errors import InvalidConfig, InvalidInput, NotLearned
from exactstate.records import Row
from exactstate.report.sentences import claim
from exactstate.tasks import AnswerTask
from exactstate.tasks import task as get_task
from exactstate.train import Run, answer_cascade, configure, load_run, train
from exactstate.train.answer_cascade import AnswerCascade, AnswerCascadePhase, AnswerHeads
from exactstate.train.checkpoint import load, save
from exactstate.train.kept_layers import codes_of_layers
from exactstate.train.run import certify_run
from exactstate.train.verify import extract_and_certify

STORIES = get_task("TSO3")
TSO3 = AnswerTask.of_task(STORIES)
V, PEOPLE = TSO3.machine.n_symbols, 3


class Died(Exception):
    pass


def test_losses_are_those_of_a_hidden_markov_model_over_pairs() -> None:
    heads = AnswerHeads(3, 4, [0, 1, 0, 1], (2, 3), 2, torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    words, queries = torch.randint(3, (6, 7), generator=generator), torch.tensor([0, 1, 0, 1, 1, 1])
    answers = torch.randint(4, (6,), generator=generator)
    with torch.no_grad():
        found = heads.losses(words, queries, answers)
        lower, upper, chances = heads.lower.softmax(-1), heads.upper.softmax(-1), heads.readout.softmax(0)
        for h, query in enumerate((0, 1, 0, 1)):
            terms = []
            for word, answer in zip(words[queries == query], answers[queries == query], strict=True):
                state = torch.zeros(2, 3)
                state[0, 0] = 1.0
                for symbol in word:
                    state = torch.einsum("lk,lm,lkj->mj", state, lower[symbol, h // 2], upper[symbol, h])
                terms.append(-(state.sum(0) * chances[answer, h]).sum().log())
            assert float(found[h]) == pytest.approx(float(torch.stack(terms).mean()), rel=1e-4)  # float32, 7 steps


def given() -> AnswerCascade:
    """The first name of the sentence below, the holders of the items above, by the rules of stories."""
    lower = np.tile(np.arange(4), (V, 1))
    upper = np.tile(np.arange(4), (PEOPLE, V, 4, 1))
    for name in range(PEOPLE):
        lower[name] = [name + 1, 0, 0, 0]
        lower[PEOPLE + name] = 0  # an item ends the gift
        for first in range(PEOPLE):
            upper[:, name, 1 + first, [1 + first, 1 + name]] = [1 + name, 1 + first]
            upper[name, PEOPLE + name, 1 + first] = 1 + first
    answers = np.array([0, 0, 1, 2])
    tables = {item: upper[item].reshape(V * 4, 4) for item in range(PEOPLE)}
    return AnswerCascade(lower, tables, dict.fromkeys(range(PEOPLE), answers))


def test_kept_tables_are_layers_whose_heads_hold_the_answers() -> None:
    layers, drawn = given().layers(), STORIES.sample(256, 90, np.random.default_rng(5))
    paths, _ = layers.run(drawn.inputs.astype(np.int64))
    assert drawn.queries is not None
    held = paths[np.arange(256), -1, 1 + drawn.queries]
    assert np.array_equal(np.array([0, 0, 1, 2])[held], drawn.answers)
    codes = codes_of_layers(layers, TSO3, np.random.default_rng(6))
    assert codes.heads == ((4, 4, 4), (4, 4, 4))


def phase_of(seed: int = 1) -> AnswerCascadePhase:
    return AnswerCascadePhase(TSO3, np.random.default_rng(seed), torch.Generator().manual_seed(seed))


def one_hot(tables: Ints, d: int) -> torch.Tensor:
    return 50.0 * torch.nn.functional.one_hot(torch.from_numpy(tables), d)


def test_a_phase_keeps_what_answers_and_takes_the_same_steps_when_restored(tmp_path: Path) -> None:
    phase, right = phase_of(), given()
    assert right.lower is not None
    with torch.no_grad():
        phase.first.lower[:, 1, :4, :4] += one_hot(right.lower, 4)
        phase.first.upper[:, 5, :4, :4, :4] += one_hot(right.upper[2].reshape(V, 4, 4), 4)
        phase.first.readout[:, 5, :4] += one_hot(right.answers[2], 3).T
    phase.step()
    assert phase.check()["layer"] == 0
    assert phase.kept.lower is not None
    assert (phase.begun, phase.kept.upper) == (1, {})
    assert np.array_equal(phase.kept.lower[:, :4], right.lower)
    with torch.no_grad():
        rows = right.upper[1].reshape(V, 4, 4)
        phase.second.upper.view(V, 8, -1, 8, 8)[:, :4, 3, :4, :4] += one_hot(rows, 4)
        phase.second.readout[:, 3, :4] += one_hot(right.answers[1], 3).T
    phase.step()
    assert phase.check()["layer"] == 1
    assert list(phase.kept.upper) == [1]
    assert not phase.done
    save(tmp_path / "c", phase.module, phase.optimizer, phase.generator, {"state": phase.state()})
    other = phase_of(seed=2)
    other.load_state(load(tmp_path / "c", other.module, other.optimizer, other.generator)["state"])
    for one in (phase, other):
        one.step()
        one.check()
    assert other.state() == phase.state()
    assert torch.equal(other.second.upper, phase.second.upper)


def test_a_phase_begins_anew_where_no_head_is_ahead_or_a_lower_part_does_not_serve_all_queries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answer_cascade, "STEPS_UPPER", 1)
    monkeypatch.setattr(answer_cascade, "PATIENCE", 2)
    phase = phase_of()
    phase.step()
    before = phase.first.lower.detach().clone()
    phase.check()
    assert phase.begun == 0
    assert torch.equal(before, phase.first.lower)
    phase.step()
    phase.check()
    assert phase.begun == 2
    assert not torch.equal(before, phase.first.lower)
    phase.kept.lower, before = np.zeros((V, 8), np.int64), phase.first.lower.detach().clone()
    phase.step()
    phase.check()
    assert phase.kept.lower is None
    assert phase.begun == 3
    assert not torch.equal(before, phase.first.lower)


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    """Stories about two people, from their answers."""
    folder = tmp_path_factory.mktemp("answers") / "run"
    return train("TSO2", recipe="gradient", supervise="answers", width=64, out=folder), folder


def test_a_run_from_answers_is_certified_and_says_so(learned: tuple[Run, Path]) -> None:
    run, folder = learned
    assert run.certified
    assert run.verdict.explain().startswith("certified: every answer in every word of the grammar of any length equals")
    assert (run.config.supervise, run.tables, run.task.labels) == ("answers", "cascade", ("unlabeled",))
    content = run.certificate().content
    assert check(content)
    assert "float32" in run.certificate().proved
    assert difference_from_task(content, run.task) is None
    assert difference_from_task(content, get_task("TSO2")) is None
    assert difference_from_task(content, STORIES) is not None
    content = {**content, "target": {**content["target"], "tables": np.zeros_like(run.task.machine.tables).tolist()}}
    assert "about other states" in str(difference_from_task(content, run.task))
    lines = "\n".join(summary(run.certificate().content))
    assert "the labels are its answers alone" in lines
    assert "every answer in every word of the grammar of any length equals the target's; states and outputs" in lines
    assert claim(content).startswith("every answer correct in every word of the grammar")
    assert load_run(folder).certified
    assert (folder / "stage-answer-cascade.safetensors").exists()


def test_a_run_from_answers_is_certified_against_tasks_with_a_question_alone(
    learned: tuple[Run, Path], tmp_path: Path
) -> None:  # fmt: skip
    run, folder = learned
    assert certify_run(folder, "TSO2")[1]
    written = tmp_path / "unlabeled.json"
    write_machine(run.task.machine, written)
    with pytest.raises(InvalidConfig, match="asks no question"):
        certify_run(folder, str(written))
    with pytest.raises(InvalidInput, match="says nothing but answers: pass the question"):
        certify(run.extracted, run.task.machine, labels="outputs")


def test_a_network_with_wrong_answers_is_refused(learned: tuple[Run, Path]) -> None:
    run, _ = learned
    model = deepcopy(run.model)
    assert model.answer_head is not None
    with torch.no_grad():
        model.answer_head.weight.neg_(), model.answer_head.bias.neg_()
    assert not extract_and_certify(model, run.task)[1]


@pytest.mark.slow
def test_a_run_that_died_after_its_cascade_ends_in_the_same_weights(learned: tuple[Run, Path], tmp_path: Path) -> None:
    def die(row: Row) -> None:
        if row["phase"] == "realize":
            raise Died

    settings = {"recipe": "gradient", "supervise": "answers", "width": 64, "out": tmp_path / "run"}
    with pytest.raises(Died):
        train("TSO2", die, **settings)
    again = train("TSO2", **settings)
    for one, other in zip(again.model.parameters(), learned[0].model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_cascade_that_finds_nothing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_cascade, "ANSWER_STEPS", 2)
    with pytest.raises(NotLearned, match="TSO3 was not learned from answers in 2 steps: no head answers a query"):
        train("TSO3", recipe="gradient", supervise="answers", restarts=0)


def test_answers_go_with_gradient_and_with_questions() -> None:
    with pytest.raises(InvalidConfig, match="answers alone go with the recipe 'gradient'; 'distill' is given states"):
        configure("TSO3", supervise="answers")
    with pytest.raises(InvalidConfig, match="S3 asks no question"):
        train("S3", recipe="gradient", supervise="answers")
