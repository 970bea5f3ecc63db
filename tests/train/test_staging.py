"""Which register goes into which layer is counted in the stories."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from detent.errors import InvalidConfig, InvalidInput
from detent.tasks import task as get_task
from detent.train.stack_supervision import stage, stories


def staged(name: str, batches: int = 4):
    task = get_task(name)
    return task, stage(task, list(islice(stories(task, np.random.default_rng(3)), batches)))


@pytest.mark.parametrize("people", [2, 3, 4, 5])
def test_the_first_name_comes_first_and_the_holders_follow(people: int) -> None:
    task, stages = staged(f"TSO{people}")
    below, above = stages.layers
    assert below[:3] == (("now", 0), ("late", 0), ("asked", 0))
    assert len(below) == people + 1
    assert above == tuple(("now", 1 + item) for item in range(people))
    assert stages.heads == task.layers
    assert stages.starts == ((0,) * (people + 1), (0,) * people)


def test_heads_along_a_story() -> None:
    """By hand: alice has the key . . bob has the ring ... who has the key ?"""
    task, stages = staged("TSO2")
    text = "alice has the key . . bob has the ring . alice swaps with bob . who has the key ?"
    word = np.array([[task.machine.symbols.index(token) for token in text.split()]])
    states = task.machine.trajectory(word)
    values = stages.parts[np.concatenate([[[0]], states], axis=1)]
    assert np.array_equal(values, stages.values(word))
    lower, upper = stages.heads_along(word, values)
    names = "-aaa---bbb--aaa-------"
    now = ["-ab".index(letter) for letter in names]
    assert lower[0, :, 0].tolist() == now
    assert lower[0, :, 1].tolist() == [0, *now[:-1]]  # one symbol late
    assert lower[0, :, 2].tolist() == [0] * 21 + [2]  # asked for the second item, at the question mark alone
    assert upper[0, :, 0].tolist() == [0] * 10 + [2] * 5 + [1] * 7  # the ring: bob's, then alice's
    assert upper[0, :, 1].tolist() == [0] * 4 + [1] * 11 + [2] * 7


def test_what_two_layers_cannot_carry_is_said() -> None:
    task = get_task("TSO3")
    batches = list(islice(stories(task, np.random.default_rng(3)), 4))
    scrambled = replace(task.registers[1], of_state=np.random.default_rng(0).integers(0, 4, task.machine.n_states))
    odd = replace(task, registers=(task.registers[0], scrambled, *task.registers[2:]))
    with pytest.raises(InvalidInput, match="the holder of the ring depends on more than the symbol"):
        stage(odd, batches)
    with pytest.raises(InvalidConfig, match="TSO3 takes 3 registers in a layer of 2 heads"):
        stage(replace(task, layers=((4, 4, 4, 4), (4, 4))), batches)
    with pytest.raises(InvalidConfig, match="S3 names no registers"):
        stage(get_task("S3"), [])
