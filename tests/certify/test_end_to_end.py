"""From the weights of a network to a file that is checked again: read out, certified, proved, written, refused."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from exactstate.automata import symmetric
from exactstate.certify import Bounds, Certificate, QuestionMachine, certify
from exactstate.certify.check import check
from exactstate.extract import extract, rounding_errors
from exactstate.nn import Backbone
from tests.extract.building import realise, side_by_side
from tests.extract.groups import S4, by_points
from tests.extract.stories import stories

pytestmark = pytest.mark.usefixtures("one_thread")


@torch.no_grad()
def labels(model: Backbone, words: list[tuple[int, ...]]) -> np.ndarray:
    return model(torch.tensor(words))[0].argmax(-1).numpy()


def test_certificate_of_s3_from_weights_to_file(tmp_path: Path) -> None:
    s3 = symmetric(3)
    model = realise(side_by_side([s3.tables], lambda seen: seen[1][0], labels=6), width=24)
    found = extract(model, symbols=s3.symbols, labels=s3.states)
    verdict = certify(found, s3)
    rounding = {format: rounding_errors(model, found, format) for format in ("float32", "bfloat16")}
    made = Certificate.of(found, verdict, name="S3", rounding=rounding)
    made.write(tmp_path / "s3.json")
    assert check(tmp_path / "s3.json")
    assert "float32" in made.proved
    assert made.content["weights"] == found.weights
    assert any("rounded to float32" in sentence for sentence in made.content["rounding"]["float32"]["assumes"])
    text = (tmp_path / "s3.json").read_text()
    (tmp_path / "s3.json").write_text(text.replace("[1, 0, 4, 5, 2, 3]", "[1, 0, 4, 5, 3, 2]", 1))
    assert not check(tmp_path / "s3.json")


def test_certify_a_model_with_one_wrong_transition() -> None:
    """S4 by one head, with one of its 72 transitions wrong, at the state that is farthest from the start."""
    s4 = symmetric(4)
    tables = s4.tables.copy()
    farthest = s4.n_states - 1
    tables[2, farthest] = 0
    model = realise(side_by_side([tables], lambda seen: seen[1][0], labels=24), width=96)
    found = extract(model, symbols=s4.symbols, labels=s4.states)
    assert np.array_equal(found.head_tables[0], tables)
    verdict = certify(found, s4)
    assert not verdict
    word = tuple(s4.encode(list(verdict.failure.word)).tolist())
    assert len(word) == 7
    assert verdict.failure.kind == "conflict"
    wrong = labels(model, [word])[0] != s4.trajectory(np.array([word]))[0]
    assert wrong.tolist() == [False] * 6 + [True]
    shorter = np.array(list(product(range(3), repeat=6)))
    assert np.array_equal(labels(model, shorter.tolist()), s4.trajectory(shorter))
    assert s4.states[labels(model, [word])[0][-1]] == verdict.failure.output
    other = tuple(s4.encode(list(verdict.failure.other_word)).tolist())
    assert s4.states[s4.run(list(other))] == verdict.failure.other_state


def test_certify_a_model_with_one_wrong_read_out() -> None:
    s4 = symmetric(4)
    tables, states, start = by_points(s4, S4, (0, 1, 2))
    last = max(states, key=lambda indices: states[indices])

    def say(seen: tuple) -> int:
        return 0 if seen == (1, last) else states[seen[1]]

    model = realise(side_by_side(tables, say, labels=24, start=(start,)), width=96)
    verdict = certify(extract(model, symbols=s4.symbols, labels=s4.states), s4)
    assert verdict.failure.kind == "read-out"
    assert (verdict.failure.output, verdict.failure.wanted) == ("e", s4.states[states[last]])
    word = s4.encode(list(verdict.failure.word))
    assert word[-1] == 1
    assert labels(model, [tuple(word.tolist())])[0][-1] == 0


def test_certificate_of_stories_from_weights_to_file(tmp_path: Path) -> None:
    story_task, cascade = stories(2)
    model = realise(cascade, width=128, grammar=story_task.grammar)
    batch = story_task.sample(20, 61, np.random.default_rng(6))
    with torch.no_grad():
        seen = model.decode(model.hidden(torch.from_numpy(batch.inputs).long())[0])
        assert np.array_equal(model.readout(seen).argmax(-1).numpy(), batch.states)
        assert np.array_equal(model.answer_head(seen)[:, -1].argmax(-1).numpy(), batch.answers)

    found = extract(model, labels=story_task.machine.states, grammar=story_task.grammar)
    assert story_task.question is not None
    question = QuestionMachine.at_end(story_task.question, story_task.machine, story_task.grammar)
    verdict = certify(found, story_task.machine, question=question)
    made = Certificate.of(found, verdict, rounding={"float64": rounding_errors(model, found, "float64")})
    assert made.proved == ("float64",)
    made.write(tmp_path / "tso2.json")
    assert check(tmp_path / "tso2.json")

    everything = extract(model, labels=story_task.machine.states, symbols=story_task.machine.symbols)
    assert len(everything.configurations) > len(found.configurations)
    assert not certify(everything, story_task.machine)


def test_describe_stories() -> None:
    story_task, cascade = stories(3)
    found = cascade.read(symbols=story_task.machine.symbols, grammar=story_task.grammar)
    holders = story_task.question.holders
    registers = {f"the holder of the {item}": holders[:, i] for i, item in enumerate(("ring", "key", "coin"))}
    people = [name.split(" | ")[0] for name in story_task.machine.states]
    registers["the first name"] = [sorted(set(people)).index(name) for name in people]
    lines = found.describe(registers).splitlines()
    assert "layer 0, head 0 (4 indices) tracks the first name" in lines
    assert "layer 1, head 2 (4 indices) tracks the holder of the coin" in lines
    assert lines[0] == "13 symbols, 1,024 joint indices, 92 of them reached in 406 configurations"


def test_bounds_decide_what_is_proved() -> None:
    """The same tables with logits a millionth as large: exact all the same, and proved in float64 alone."""
    s3 = symmetric(3)
    model = realise(side_by_side([s3.tables], lambda seen: seen[1][0], labels=6), width=24)
    with torch.no_grad():
        model.layers[0].block.weight *= 1e-7
        model.layers[0].block.bias *= 1e-7
        model.layers[0].block.bias += 5.0
    found = extract(model, symbols=s3.symbols, labels=s3.states, verify=False)
    verdict = certify(found, s3)
    assert verdict
    margins = Bounds.margins(found, verdict)
    proved = [
        format
        for format in ("float64", "float32")
        if margins.exceed(Bounds.errors(found, verdict, rounding_errors(model, found, format)))
    ]
    assert proved == ["float64"]
