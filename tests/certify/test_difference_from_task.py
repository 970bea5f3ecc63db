"""`difference_from_task`: what a certificate's target is, is found out by comparing it, not by its name."""

from __future__ import annotations

import pytest

from exactstate.automata import Moore, symmetric
from exactstate.certify.certificate import sealed
from exactstate.certify.check import check
from exactstate.certify.target import difference_from_task, grammar_machine, question_machine, target_machine
from exactstate.tasks import Task, task
from tests.certify.certificates import certificate
from tests.certify.forgery import forged


def test_difference_from_task_of_the_same_target() -> None:
    assert difference_from_task(certificate("S3"), task("S3")) is None


def test_difference_from_task_of_a_forgery() -> None:
    """Another machine under the same name, symbols and digest: the file is consistent, and it is not S3."""
    content = forged(certificate("S3"))
    assert check(content)
    why = difference_from_task(content, task("S3"))
    assert why is not None
    assert why.startswith("after ")
    assert "and S3 " in why


def test_difference_from_task_with_other_symbols() -> None:
    assert "it reads '(0 1)', '(1 2)', and Z2" in str(difference_from_task(certificate("S3"), task("Z2")))


def test_difference_from_task_of_outputs() -> None:
    content = certificate("Tomita4")
    same, other = (Task.of(machine, name="mine") for machine in _tomita(4, 7))
    assert difference_from_task(content, same) is None
    assert "after '0 0 0' it outputs" in str(difference_from_task(content, other))


def _tomita(*numbers: int) -> list[Moore]:
    from exactstate.automata import tomita

    return [tomita(number) for number in numbers]


def test_difference_from_task_of_a_grammar() -> None:
    """A certificate about fewer words than the task has is not a certificate of the task."""
    content, story = certificate("TSO2"), task("TSO2")
    assert content["question"]["answers"] != []
    inside = grammar_machine(content["grammar"], content["symbols"])
    assert inside.outputs == ("permitted", "refused")
    content["grammar"]["refused"][inside.tables[0, inside.start]] ^= 1
    assert "the grammars of the file and of TSO2 differ at" in str(difference_from_task(content, story))


def test_difference_from_task_of_a_question() -> None:
    content, story = certificate("TSO2"), task("TSO2")
    content["question"]["answers"] = list(story_answers(story))
    assert difference_from_task(content, story) is None
    content["question"]["right"][0][0] ^= 1
    assert "it asks other questions" in str(difference_from_task(content, story))
    content["question"] = None
    assert difference_from_task(content, story) == "TSO2 asks a question, and the other does not"


def test_difference_from_task_of_states_in_another_order() -> None:
    """Answers belong to states by number: with two states exchanged, they are those of other states."""
    content, story = certificate("TSO2"), task("TSO2")
    content["question"]["answers"] = list(story_answers(story))
    order = [0, 2, 1, *range(3, story.machine.n_states)]
    target = content["target"]
    target["states"] = [target["states"][state] for state in order]
    target["tables"] = [[order[row[state]] for state in order] for row in target["tables"]]
    assert "its questions are about other states, or in another order" in str(difference_from_task(content, story))


def story_answers(story: Task) -> tuple[str, ...]:
    from exactstate.certify.target import task_question

    question = task_question(story)
    assert question is not None
    return question.answers


def test_target_machine_round_trip() -> None:
    content = certificate("S3")
    inside = target_machine(content["target"], content["symbols"])
    assert (inside.symbols, inside.states) == (symmetric(3).symbols, symmetric(3).states)
    assert question_machine(certificate("TSO2")["question"]).queries.max() >= 0


@pytest.mark.parametrize("key", ["format", "version"])
def test_check_of_a_mapping_of_another_format(key: str) -> None:
    content = certificate("S3")
    content[key] = "other" if key == "format" else 2
    report = check(sealed(content))
    assert not report
    assert ("some other JSON" if key == "format" else "this is version 2") in report.findings[0]
