from __future__ import annotations

import itertools

import numpy as np
import pytest

from detent.automata import flip_flop, from_maps, permutation_reset
from detent.automata.monoids import elements, map_name
from detent.errors import BudgetExceeded, InvalidMachine
from tests.automata.oracles import closure


@pytest.mark.parametrize("seed", range(20))
def test_a_word_ends_in_the_composite_of_its_letters(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, A = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    maps = [tuple(int(k) for k in row) for row in rng.integers(0, d, (A, d))]
    machine = from_maps(maps, names=[f"x{a}" for a in range(A)])
    found, _ = elements(np.array(maps))
    assert {tuple(row) for row in found.tolist()} == closure(maps)
    assert machine.n_states == len(found)
    assert machine.start == 0
    for length in range(4):
        for word in itertools.product(range(A), repeat=length):
            points = tuple(range(d))
            for letter in word:
                points = tuple(maps[letter][k] for k in points)
            assert tuple(found[machine.run(list(word))].tolist()) == points
            assert machine.states[machine.run(list(word))] == map_name(points)


def test_elements_are_numbered_breadth_first_in_the_order_of_the_letters() -> None:
    machine = from_maps([[1, 2, 0, 3], [0, 0, 2, 3], [1, 0, 3, 2]], names="abc")
    order, queue = {0: None}, [0]
    for state in queue:
        for letter in range(3):
            target = int(machine.tables[letter, state])
            if target not in order:
                order[target] = None
                queue.append(target)
    assert list(order) == list(range(machine.n_states))


def test_outputs_are_the_elements() -> None:
    machine = from_maps([[0, 0], [1, 1]], names=("reset", "set"))
    assert machine.states == machine.outputs == ("e", "[0 0]", "[1 1]")
    assert machine.readout.tolist() == [0, 1, 2]


def test_all_maps_of_four_points() -> None:
    assert from_maps([[1, 2, 3, 0], [1, 0, 2, 3], [0, 0, 2, 3]]).n_states == 4**4


def test_flip_flop_remembers_the_last_reset_or_set() -> None:
    machine = flip_flop()
    assert machine.symbols == machine.states == machine.outputs == ("identity", "reset", "set")
    for word in itertools.product(range(3), repeat=5):
        said = [letter for letter in word if letter]
        assert machine.run(list(word)) == (said[-1] if said else 0)


def test_permutation_reset() -> None:
    machine = permutation_reset(4)
    assert machine.tables.tolist() == [[1, 2, 3, 0], [1, 0, 2, 3], [0, 0, 0, 0]]
    assert machine.run(["rotate", "rotate", "rotate", "reset", "swap"]) == 1


@pytest.mark.parametrize(
    ("images", "name"),
    [
        ([0], "e"),
        ([0, 1, 2], "e"),
        ([1, 0, 3, 2], "(0 1)(2 3)"),
        ([2, 0, 1], "(0 2 1)"),
        ([*range(10), 11, 10], "(10 11)"),
        ([1, 1], "[1 1]"),
    ],
)
def test_map_name(images: list[int], name: str) -> None:
    assert map_name(images) == name


def test_broken_maps_are_named() -> None:
    with pytest.raises(InvalidMachine, match=r"map 1 sends point 0 to 2, but there are 2 points \(0\.\.1\)"):
        from_maps([[0, 1], [2, 0]])
    with pytest.raises(InvalidMachine, match="maps of different lengths"):
        from_maps([[0, 1], [0]])
    with pytest.raises(InvalidMachine, match=r"one row of integers for each letter; got float64 of shape \(0,\)"):
        from_maps([])
    with pytest.raises(InvalidMachine, match="one row of integers for each letter; got float64"):
        from_maps(np.zeros((1, 2)))
    with pytest.raises(InvalidMachine, match="at least 2 states; got 1"):
        permutation_reset(1)


def test_too_many_elements_are_refused() -> None:
    with pytest.raises(BudgetExceeded, match="more than 100 elements; raise the limit"):
        from_maps([[1, 2, 3, 4, 0], [1, 0, 2, 3, 4]], limit=100)
    assert from_maps([[1, 2, 3, 4, 0], [1, 0, 2, 3, 4]], limit=120).n_states == 120
