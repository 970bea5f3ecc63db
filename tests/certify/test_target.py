"""What is asked at the end of a word, and wrong answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from exactstate.automata import Moore, symmetric
from exactstate.certify import QuestionMachine, certify
from exactstate.errors import InvalidInput, InvalidMachine
from exactstate.tasks import task
from tests.certify.certificates import s3, story


def question(people: int) -> QuestionMachine:
    story_task = task(f"TSO{people}")
    assert story_task.question is not None
    return QuestionMachine.at_end(
        story_task.question, story_task.machine, story_task.grammar, ("alice", "bob", "charlie")[:people]
    )


def test_question_machine_asks_at_the_end_of_a_story() -> None:
    story_task, asked = task("TSO3"), question(3)
    rng = np.random.default_rng(4)
    batch = story_task.sample(50, 40, rng)
    for word, state, item, answer in zip(batch.inputs, batch.states[:, -1], batch.queries, batch.answers, strict=True):
        z, found = asked.start, []
        for symbol in word.tolist():
            found.append(int(asked.queries[symbol, z]))
            z = int(asked.tables[symbol, z])
        assert found == [-1] * 39 + [item]
        assert asked.correct[state, item] == answer


def test_certify_stories_with_answers() -> None:
    found, verdict = story(3)
    assert verdict
    assert (verdict.task_states, verdict.configurations) == (44, 406)
    assert found.named.n_states == 44 + 1
    assert (
        "certified: the output after every word of the grammar of any length equals the target's" in verdict.explain()
    )


def test_certify_finds_a_wrong_answer_with_a_shortest_story() -> None:
    story_task, (found, _) = task("TSO2"), story()
    asked_at = np.flatnonzero([symbol == "?" for symbol in found.symbols])[0]
    finals = np.unique(found.readout_ids[asked_at][found.readout_ids[asked_at] >= 0])
    for final in finals:
        answers = found.answer_ids.copy()
        answers[final] = 1 - answers[final]
        wrong = certify(replace(found, answer_ids=answers), story_task.machine, question=question(2))
        assert wrong.failure.kind == "answer"
        assert {wrong.failure.output, wrong.failure.wanted} == {"alice", "bob"}
        word = wrong.failure.word
        assert len(word) in (15, 20)
        assert word[-1] == "?"
        state = story_task.machine.run(list(word))
        asked = story_task.question.query(story_task.machine.encode(list(word))[None, -2:])
        assert ("alice", "bob")[int(story_task.question.answer(asked, np.array([state]))[0])] == wrong.failure.wanted
        assert "the correct answer is" in wrong.explain()


def test_certify_finds_a_wrong_state_in_a_story() -> None:
    story_task, (found, _) = task("TSO2"), story()
    labels = found.label_ids.copy()
    labels[-1] = (labels[-1] + 1) % 12
    wrong = certify(replace(found, label_ids=labels), story_task.machine, question=question(2))
    assert wrong.failure.kind == "read-out"
    assert (
        story_task.grammar.outputs[story_task.grammar.readout[story_task.grammar.run(list(wrong.failure.word))]]
        != "refused"
    )


def test_question_machine_that_does_not_fit_is_refused() -> None:
    found, _ = s3()
    with pytest.raises(InvalidMachine, match="the task asks for answers, but the machine gives none"):
        certify(found, symmetric(3), question=question(2))
    story_found, _ = story()
    with pytest.raises(InvalidInput, match="wanted a question for 11 symbols and 12 states; got tables of shape"):
        certify(story_found, task("TSO2").machine, question=question(3))
    crooked = replace(question(2), queries=np.full((11, 3), 5))
    with pytest.raises(InvalidInput, match="the question asks for something, or moves to a state, that it does not"):
        certify(story_found, task("TSO2").machine, question=crooked)
    endless = Moore(symbols=("a",), tables=[[0]], outputs=("begun",), readout=[0])
    with pytest.raises(InvalidMachine, match="no word of this grammar is complete, so nothing is ever asked"):
        QuestionMachine.at_end(task("TSO2").question, endless, endless)
