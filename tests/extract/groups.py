"""Permutation groups for tests, worked out with itertools and dictionaries rather than with the library."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exactstate.automata import Moore


def images_of(machine: Moore, letters: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """What every state of a word problem does to the points, found by walking from the identity."""
    found = {0: tuple(range(len(letters[0])))}
    for state in (queue := [0]):
        for letter, table in zip(letters, machine.tables.tolist(), strict=True):
            if table[state] not in found:
                found[table[state]] = tuple(letter[point] for point in found[state])
                queue.append(table[state])
    return [found[state] for state in range(machine.n_states)]


def by_points(
    machine: Moore, letters: Sequence[Sequence[int]], points: Sequence[int]
) -> tuple[list[np.ndarray], dict[tuple[int, ...], int], tuple[int, ...]]:
    """(the table of every head, the state of every joint index, where heads begin): one head follows one point."""
    images = images_of(machine, letters)
    states = {tuple(image[point] for point in points): state for state, image in enumerate(images)}
    assert len(states) == machine.n_states
    return [np.array(letters)] * len(points), states, tuple(points)


def is_odd(images: Sequence[int]) -> bool:
    """By counting cycles."""
    seen, cycles = set(), 0
    for point in range(len(images)):
        cycles += point not in seen
        while point not in seen:
            seen.add(point)
            point = images[point]
    return (len(images) - cycles) % 2 == 1


S3 = [(1, 0, 2), (0, 2, 1)]
S4 = [(1, 0, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2)]
