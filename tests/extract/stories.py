"""A stack that tracks shuffled objects, thought up by hand: the first layer parses, the second holds the items.

First layer: who is being talked about, and which item was named last. Second layer: the holder of every item; with a
convolution over two tokens it sees who was being talked about before the token. Index 0 is nobody, i + 1 is person i.
"""

from __future__ import annotations

import numpy as np

from exactstate.tasks import Task
from exactstate.tasks import task as get_task
from exactstate.tasks.shuffled_objects import Vocabulary, reachable_states
from tests.extract.building import Cascade, Input


def stories(people: int) -> tuple[Task, Cascade]:
    """The task, and a cascade that does it on words of the grammar."""
    N, everyone = people, np.arange(people + 1)
    state_number = {state: n for n, state in enumerate(reachable_states(Vocabulary(N)))}

    def parse(token: int) -> list[list[int]]:
        same = everyone.tolist()
        if token < N:
            return [[token + 1] + [0] * N, same]
        if token < 2 * N:
            return [[0] * (N + 1), [token - N + 1] * (N + 1)]
        return [same, same]

    def hold(before: Input | None, now: Input) -> list[list[int]]:
        token, task = now[0], before[1][0] if before is not None else 0
        tables = [everyone.tolist() for _ in range(N)]
        if task and token < N:
            swapped = everyone.tolist()
            swapped[task], swapped[token + 1] = token + 1, task
            return [swapped] * N
        if task and token < 2 * N:
            tables[token - N] = [task] * (N + 1)
        return tables

    def rule(layer: int, window: list[Input | None]) -> list[list[int]]:
        before, now = window
        assert now is not None
        return parse(now[0]) if layer == 0 else hold(before, now)

    def say(seen: Input) -> int:
        _, (person, _), holders = seen
        return state_number[person - 1, tuple(k - 1 for k in holders)]

    def answer(seen: Input) -> int:
        _, (_, item), holders = seen
        return max(holders[item - 1] - 1, 0) if item else 0

    told = get_task(f"TSO{N}")
    return told, Cascade(
        symbols=told.machine.n_symbols, heads=((N + 1, N + 1), (N + 1,) * N), kernel_size=2, rule=rule, say=say,
        labels=told.machine.n_states, answer=answer, answers=N,
    )  # fmt: skip
