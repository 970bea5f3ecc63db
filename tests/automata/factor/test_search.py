from __future__ import annotations

import numpy as np
import pytest

from exactstate.automata import alternating, cyclic, flip_flop, symmetric, tomita
from exactstate.automata.congruence import is_congruence, meet
from exactstate.automata.factor.cover import cheapest_cover
from exactstate.automata.factor.lattice import Work, lattice
from exactstate.automata.factor.search import cost, search
from tests.automata.machines import modular_arithmetic

PLENTY = 10**9


MACHINES = {
    "Z30": cyclic(30), "S3": symmetric(3), "S4": symmetric(4), "A5": alternating(5), "S5": symmetric(5),
    "flip_flop": flip_flop(), "calculator": modular_arithmetic(6), "tomita5": tomita(5),
}  # fmt: skip


@pytest.mark.parametrize("name", MACHINES)
def test_search_finds_what_listing_all_congruences_proves(name: str) -> None:
    machine = MACHINES[name]
    known = lattice(machine.tables, Work(PLENTY))
    proven = cheapest_cover(known.sizes.tolist(), known.separates, states=machine.n_states, work=Work(PLENTY))
    family = search(machine.tables, np.random.default_rng(1), Work(400_000))
    assert cost(family) == sum(known.sizes[c] ** 2 for c in proven.chosen)
    assert all(is_congruence(machine, member) for member in family)
    assert meet(*family).max() == machine.n_states - 1


def test_search_is_deterministic() -> None:
    machine = symmetric(5)
    first, second = (search(machine.tables, np.random.default_rng(3), Work(100_000)) for _ in range(2))
    assert len(first) == len(second)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
