"""Machines out of a teacher: with one that knows the language, and one that errs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from exactstate._types import MISSING
from exactstate.text import TextModel
from exactstate.text.memory import Machine, Words
from exactstate.text.teacher import Reader, Teacher, find_commands, follows, reduced, without_quotients

VOCABULARY = 7
TURN, ASK = (0, 1, 2), 3
"""Tokens 0 to 2 turn a counter modulo three by as much; 3 asks, and 4 to 6 are the answers."""


class Counter(Teacher):
    """Knows the text so far, and errs in a share of answers that are told apart by the number of tokens before."""

    def __init__(self, wrong: float = 0.0) -> None:
        super().__init__(TextModel(VOCABULARY, width=4, cell="lstm"))
        self.generator, self.wrong = torch.Generator().manual_seed(0), wrong

    def start(self, batch: int) -> Tensor:
        places = torch.zeros(batch, 2 + VOCABULARY)
        places[:, 2:] = 1.0
        return places

    def step(self, places: Tensor, tokens: Tensor) -> Tensor:
        count = torch.where(tokens < 3, places[:, 0] + tokens, places[:, 0]) % 3
        asked = (tokens == ASK).float()
        lucky = torch.rand(len(places), generator=self.generator) >= self.wrong
        answer = torch.where(lucky, count, (count + 1) % 3).long() + 4
        known = torch.full((len(places), VOCABULARY), 0.01).scatter(1, answer[:, None], 0.94)
        free = torch.tensor([0.25, 0.25, 0.25, 0.25, 0.0, 0.0, 0.0]).expand(len(places), -1)
        return torch.cat([count[:, None], asked[:, None], torch.where(asked[:, None] > 0, known, free)], 1)


def texts(count: int, length: int) -> Tensor:
    generator, rows = np.random.default_rng(0), []
    for _ in range(count):
        row, at = list[int](), 0
        while len(row) < length:
            token = int(generator.integers(0, 4))
            at = (at + token) % 3 if token < 3 else at
            row += [token, at + 4] if token == ASK else [token]
        rows.append(row[:length])
    return torch.tensor(rows)


@pytest.mark.parametrize("wrong", [0.0, 0.03])
def test_reader_finds_question_commands_and_machine(wrong: float) -> None:
    reader = Reader(Counter(wrong), texts(400, 40))
    assert reader.questions == [(ASK,)]
    assert set(reader.commands) == {(0,), (1,), (2,), (3, 4), (3, 5), (3, 6)}
    (machine,) = reader.machines(2.0)
    assert len(machine.outputs) == 3
    state = machine.start
    for count, turn in enumerate((1, 1, 2, 0, 2, 2)):
        before = machine.outputs[state]
        state = int(machine.tables[reader.commands.index((turn,)), state])
        assert machine.outputs[state] == (before - 4 + turn) % 3 + 4, count
    assert machine.outputs[machine.start] == 4


def test_reader_finds_no_question_where_answers_do_not_follow_from_the_state() -> None:
    tokens = torch.randint(0, VOCABULARY, (200, 40), generator=torch.Generator().manual_seed(0))
    reader = Reader(Teacher(TextModel(VOCABULARY, width=4, cell="gru")), tokens)
    assert reader.questions == []
    assert reader.machines(1.0) == []


def test_teacher_steps_as_the_model_runs() -> None:
    torch.manual_seed(0)
    for cell in ("gru", "lstm"):
        model = TextModel(VOCABULARY, width=8, cell=cell).eval()
        teacher, tokens = Teacher(model), texts(3, 9)
        places = teacher.start(3)
        for t in range(9):
            places = teacher.step(places, tokens[:, t])
        wanted = model(tokens)[:, -1].softmax(-1).detach()
        torch.testing.assert_close(teacher.chances(places), wanted, rtol=1e-5, atol=1e-6)  # float32, other shapes
        words: Words = tuple(tokens[0].tolist())
        after, likely = teacher.after(teacher.start(1), words)
        torch.testing.assert_close(teacher.chances(after), wanted[:1], rtol=1e-5, atol=1e-6)
        assert likely.shape == (1, 9)


def test_find_commands_takes_the_frequent_ones_of_which_none_begins_another() -> None:
    tokens = np.array([[0, 1, 2, 2, 0, 1], [0, 1, 0, 1, 2, 2], [0, 1, 2, 2, 2, 2]] * 5)
    boundary = np.array([[0, 1, 1, 1, 0, 1], [0, 1, 0, 1, 1, 1], [0, 1, 0, 1, 1, 1]] * 5, bool)
    assert find_commands(tokens, boundary) == [(2,), (0, 1)]


def random_machine(n: int, generator: np.random.Generator) -> Machine:
    return Machine((0,), generator.integers(0, n, (3, n)), generator.integers(0, 2, n), 0)


def answers(machine: Machine) -> Callable[[list[int]], int]:
    def after(word: list[int]) -> int:
        state = machine.start
        for c in word:
            state = int(machine.tables[c, state])
        return int(machine.outputs[state])

    return after


def test_reduced_machine_answers_alike_and_has_no_two_states_alike() -> None:
    generator = np.random.default_rng(0)
    for _ in range(30):
        machine = random_machine(6, generator)
        doubled = Machine(
            (0,), np.concatenate([machine.tables + 6, machine.tables], 1), np.tile(machine.outputs, 2), 0
        )  # fmt: skip
        small, again = reduced(machine), reduced(doubled)
        assert len(again.outputs) == len(small.outputs) <= 6
        for word in generator.integers(0, 3, (20, 12)).tolist():
            assert answers(machine)(word) == answers(small)(word) == answers(again)(word)


def test_machine_that_follows_from_another_is_left_out() -> None:
    six = Machine((0,), np.stack([(np.arange(6) + k) % 6 for k in (0, 1, 2)]), np.arange(6), 4)
    three = Machine((1,), np.stack([(np.arange(3) + k) % 3 for k in (0, 1, 2)]), np.arange(3), 1)
    other = Machine((2,), np.stack([(np.arange(4) + k) % 4 for k in (0, 1, 2)]), np.arange(4), 0)
    assert follows(three, six)
    assert not follows(other, six)
    assert without_quotients([three, six, other]) == [six, other]
    assert MISSING not in six.tables
