from __future__ import annotations

import numpy as np
import pytest
from sympy.combinatorics import Permutation, PermutationGroup

from detent.automata import (
    Moore,
    alternating,
    cyclic,
    dihedral,
    from_permutations,
    mathieu11,
    permutation,
    quaternion,
    symmetric,
)
from detent.errors import InvalidMachine

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


def test_letters_are_called_by_their_cycles() -> None:
    assert symmetric(4).symbols == ("(0 1)", "(1 2)", "(2 3)")
    assert alternating(5).symbols == ("(0 1 2)", "(1 2 3)", "(2 3 4)")


def test_a_letter_maps_q_to_x_after_q() -> None:
    machine = symmetric(3)
    # first (0 1), then (1 2): 0 -> 1 -> 2, 1 -> 0, 2 -> 1
    assert machine.states[machine.run(["(0 1)", "(1 2)"])] == "(0 2 1)"


@pytest.mark.parametrize("n", [1, 2, 5, 16])
def test_cyclic_adds(n: int) -> None:
    machine = cyclic(n)
    word = np.random.default_rng(n).integers(0, n, 50)
    assert np.array_equal(machine.trajectory(word), np.cumsum(word) % n)
    assert machine.symbols == machine.states == machine.outputs == tuple(map(str, range(n)))


def test_quaternion_multiplies_like_hamilton() -> None:
    machine = quaternion()
    assert machine.n_states == 8
    assert machine.symbols == ("i", "j")
    assert machine.states[machine.start] == "1"
    assert machine.states[machine.run("ii")] == machine.states[machine.run("jj")] == "-1"
    assert machine.states[machine.run("ji")] == "k"  # the last letter stands on the left: i·j
    assert machine.states[machine.run("ij")] == "-k"
    assert machine.states[machine.run("jiji")] == "-1"


def test_bad_generators_are_named() -> None:
    with pytest.raises(InvalidMachine, match="generator 1 sends 2 points to 0, so it is not a permutation"):
        from_permutations([[1, 0], [0, 0]])
    with pytest.raises(InvalidMachine, match=r"cycles are disjoint and made of the points 0\.\.2"):
        permutation([(0, 3)], 3)
    with pytest.raises(InvalidMachine, match="cycles are disjoint"):
        permutation([(0, 1), (1, 2)], 3)


@pytest.mark.parametrize(
    ("group", "n", "least"), [(cyclic, 0, 1), (symmetric, 1, 2), (alternating, 2, 3), (dihedral, 2, 3)]
)
def test_too_small_groups_are_refused(group, n: int, least: int) -> None:
    with pytest.raises(InvalidMachine, match=f"group needs n of at least {least}; got {n}"):
        group(n)
