"""Tasks on threads: in order, with tools that are never shared, and PyTorch's own threads left as they were."""

from __future__ import annotations

from collections.abc import Iterator
from time import sleep

import pytest
import torch

from exactstate.baselines.blocks import Workspace, parallel_map


@pytest.fixture(params=[1, 2, 3], ids="threads={}".format)
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_in_order_and_one_at_a_time_per_tool(threads: int) -> None:
    made: list[list[int]] = []

    def tool() -> list[int]:
        made.append([])
        return made[-1]

    def work(task: int, mine: list[int]) -> tuple[int, bool]:
        mine.append(task)
        sleep(0.002 * (5 - task % 5))
        alone = mine[-1] == task
        return task * task, alone

    assert parallel_map(work, list(range(20)), tool) == [(k * k, True) for k in range(20)]
    assert len(made) == threads
    assert sorted(task for mine in made for task in mine) == list(range(20))
    assert torch.get_num_threads() == threads


def test_inside_there_is_one_thread_and_no_gradient(threads: int) -> None:
    weight = torch.ones(3, requires_grad=True)
    seen = parallel_map(lambda task, _: (torch.get_num_threads(), (weight * task).requires_grad), [1, 2, 3, 4], object)
    assert seen == [(1, False)] * 4


def test_nothing_to_do(threads: int) -> None:
    assert parallel_map(lambda task, tool: task, [], object) == []


def test_an_error_comes_back(threads: int) -> None:
    def work(task: int, _: object) -> float:
        return 1 / task

    with pytest.raises(ZeroDivisionError):
        parallel_map(work, [1, 0, 2], object)
    assert parallel_map(work, [1, 2], object) == [1.0, 0.5]


def test_rooms_are_used_again() -> None:
    workspace = Workspace(torch.zeros(1, dtype=torch.float64))
    first, second = workspace("a", 4, 5), workspace("b", 20)
    assert first.dtype == torch.float64
    assert workspace("a", 2, 5).data_ptr() == first.data_ptr() != second.data_ptr()
    assert workspace("a", 100).shape == (100,)
