"""What tasks say about themselves."""

from __future__ import annotations

import pytest

from detent import automata
from detent.tasks import Task, describe, task


def test_a_group() -> None:
    about = describe(task("S4"))
    assert (about.name, about.states, about.symbols) == ("S4", 24, 3)
    assert about.heads == (4, 3, 2)
    assert about.layers == ((4, 3, 2),)
    assert not about.definite
    assert about.why.startswith("not definite: '(0 1)' keeps")


def test_a_task_can_be_definite_where_its_machine_is_not() -> None:
    drawn, machine = describe(task("DFF5")), describe(task("FF"))
    assert drawn.definite.order == 5
    assert not drawn.machine_definite
    assert drawn.why.endswith("so on the words that are drawn, though not on all words")
    assert not machine.definite
    assert drawn.heads == machine.heads


def test_a_definite_machine_is_definite_on_all_words() -> None:
    about = describe(Task.of(automata.from_tables([[0, 0], [1, 1]]), name="last letter"))
    assert about.definite.order == 1
    assert about.machine_definite
    assert "though not on all words" not in about.why


@pytest.mark.parametrize("people", [3, 4, 5])
def test_stories_take_the_stack_of_the_paper(people: int) -> None:
    about = describe(task(f"TSO{people}"))
    first, second = about.layers
    assert first == (people + 1,) * (people + 1)
    assert second == (people + 1,) * people
    assert about.heads == first + second
    assert f"{people + 1} heads of {people + 1}, then {people} heads of {people + 1} indices" in about.factoring


def test_a_description_is_made_once() -> None:
    assert describe(task("S3")) is describe(task("S3"))
