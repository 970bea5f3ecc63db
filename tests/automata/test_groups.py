"""Groups and monoids as machines, against sympy and against composition by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sympy.combinatorics import Permutation, PermutationGroup

from exactstate.automata import (
    Moore,
    alternating,
    cyclic,
    dihedral,
    flip_flop,
    from_maps,
    from_permutations,
    mathieu11,
    mathieu12,
    permutation,
    symmetric,
)
from exactstate.automata.groups import elements, map_name
from exactstate.errors import BudgetExceeded, InvalidMachine
from tests.automata.oracles import closure
from tests.cases import in_one_case

A = permutation([range(11)], 11)
B = permutation([(2, 6, 10, 7), (3, 9, 4, 5)], 11)


def check_against_sympy(machine: Moore, generators: list[list[int]], seed: int = 0) -> None:
    """Order, and the element reached by random words, whose name sympy reads back."""
    group = PermutationGroup([Permutation(g) for g in generators])
    assert machine.n_states == group.order()
    rng, degree = np.random.default_rng(seed), len(generators[0])
    for _ in range(20):
        word = rng.integers(0, len(generators), 15)
        product = Permutation(degree - 1)
        for letter in word:
            product = product * Permutation(generators[letter])  # sympy multiplies from left to right as well
        name = machine.states[machine.run(word)]
        cycles = [] if name == "e" else [list(map(int, c.split())) for c in name[1:-1].split(")(")]
        assert Permutation(cycles, size=degree) == product


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_symmetric(n: int) -> None:
    check_against_sympy(symmetric(n), [permutation([(i, i + 1)], n) for i in range(n - 1)])


@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_alternating(n: int) -> None:
    check_against_sympy(alternating(n), [permutation([(i, i + 1, i + 2)], n) for i in range(n - 2)])


@pytest.mark.parametrize("n", [3, 4, 7])
def test_dihedral(n: int) -> None:
    turn, flip = [(i + 1) % n for i in range(n)], [-i % n for i in range(n)]
    check_against_sympy(dihedral(n), [turn, flip])
    assert dihedral(n).n_states == 2 * n


def test_mathieu11() -> None:
    machine = mathieu11()
    assert machine.symbols == ("a", "b", "a^-1", "b^-1")
    inverses = [[int(k) for k in np.argsort(g)] for g in (A, B)]
    check_against_sympy(machine, [A, B, *inverses])
    assert machine.n_states == 7920
    assert machine.run(["a", "b", "b^-1", "a^-1"]) == 0


def test_from_permutations_names_letters_by_their_cycles() -> None:
    assert symmetric(4).symbols == ("(0 1)", "(1 2)", "(2 3)")
    assert alternating(5).symbols == ("(0 1 2)", "(1 2 3)", "(2 3 4)")


def test_from_permutations_letter_maps_q_to_x_after_q() -> None:
    machine = symmetric(3)
    # first (0 1), then (1 2): 0 -> 1 -> 2, 1 -> 0, 2 -> 1
    assert machine.states[machine.run(["(0 1)", "(1 2)"])] == "(0 2 1)"


@pytest.mark.parametrize("n", [1, 2, 5, 16])
def test_cyclic_adds(n: int) -> None:
    machine = cyclic(n)
    word = np.random.default_rng(n).integers(0, n, 50)
    assert np.array_equal(machine.trajectory(word), np.cumsum(word) % n)
    assert machine.symbols == machine.states == machine.outputs == tuple(map(str, range(n)))


def test_from_permutations_refuses_bad_generators() -> None:
    with pytest.raises(InvalidMachine, match="generator 1 sends 2 points to 0, so it is not a permutation"):
        from_permutations([[1, 0], [0, 0]])
    with pytest.raises(InvalidMachine, match=r"cycles are disjoint and made of the points 0\.\.2"):
        permutation([(0, 3)], 3)
    with pytest.raises(InvalidMachine, match="cycles are disjoint"):
        permutation([(0, 1), (1, 2)], 3)


@pytest.mark.parametrize(
    ("group", "n", "least"), [(cyclic, 0, 1), (symmetric, 1, 2), (alternating, 2, 3), (dihedral, 2, 3)]
)
def test_groups_that_are_too_small_are_refused(group, n: int, least: int) -> None:
    with pytest.raises(InvalidMachine, match=f"group needs n of at least {least}; got {n}"):
        group(n)


@in_one_case("seed", range(20))
def test_from_maps_word_ends_in_the_composite_of_its_letters(seed: int) -> None:
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


def test_elements_are_numbered_breadth_first_in_letter_order() -> None:
    machine = from_maps([[1, 2, 0, 3], [0, 0, 2, 3], [1, 0, 3, 2]], names="abc")
    order, queue = {0: None}, [0]
    for state in queue:
        for letter in range(3):
            target = int(machine.tables[letter, state])
            if target not in order:
                order[target] = None
                queue.append(target)
    assert list(order) == list(range(machine.n_states))


def test_from_maps_outputs_are_the_elements() -> None:
    machine = from_maps([[0, 0], [1, 1]], names=("reset", "set"))
    assert machine.states == machine.outputs == ("e", "[0 0]", "[1 1]")
    assert machine.readout.tolist() == [0, 1, 2]


def test_from_maps_all_maps_of_four_points() -> None:
    assert from_maps([[1, 2, 3, 0], [1, 0, 2, 3], [0, 0, 2, 3]]).n_states == 4**4


def test_flip_flop_remembers_the_last_reset_or_set() -> None:
    machine = flip_flop()
    assert machine.symbols == machine.states == machine.outputs == ("identity", "reset", "set")
    for word in itertools.product(range(3), repeat=5):
        said = [letter for letter in word if letter]
        assert machine.run(list(word)) == (said[-1] if said else 0)


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


def test_from_maps_refuses_broken_maps() -> None:
    with pytest.raises(InvalidMachine, match=r"map 1 sends point 0 to 2, but there are 2 points \(0\.\.1\)"):
        from_maps([[0, 1], [2, 0]])
    with pytest.raises(InvalidMachine, match="maps of different lengths"):
        from_maps([[0, 1], [0]])
    with pytest.raises(InvalidMachine, match=r"one row of integers for each letter; got float64 of shape \(0,\)"):
        from_maps([])
    with pytest.raises(InvalidMachine, match="one row of integers for each letter; got float64"):
        from_maps(np.zeros((1, 2)))


def test_from_maps_refuses_too_many_elements() -> None:
    with pytest.raises(BudgetExceeded, match="more than 100 elements; raise the limit"):
        from_maps([[1, 2, 3, 4, 0], [1, 0, 2, 3, 4]], limit=100)
    assert from_maps([[1, 2, 3, 4, 0], [1, 0, 2, 3, 4]], limit=120).n_states == 120


def test_mathieu12_is_sharply_transitive_on_five_points():
    """As many elements as sequences of five of the twelve points, and each sends (0, .., 4) to another sequence."""
    machine = mathieu12()
    assert machine.n_states == 95040 == 12 * 11 * 10 * 9 * 8
    letters = np.array([
        permutation([range(11)], 12),
        permutation([(2, 6, 10, 7), (3, 9, 4, 5)], 12),
        permutation([(0, 11), (1, 10), (2, 5), (3, 7), (4, 8), (6, 9)], 12),
    ])  # fmt: skip
    images = np.full((machine.n_states, 5), -1)
    images[0], queue = np.arange(5), [0]
    for state in queue:
        for letter, successor in zip(letters, machine.tables[:, state], strict=True):
            if images[successor, 0] < 0:
                images[successor] = letter[images[state]]
                queue.append(successor)
    assert len(np.unique(images, axis=0)) == machine.n_states
    assert all(np.array_equal(np.sort(table), np.arange(machine.n_states)) for table in machine.tables)
