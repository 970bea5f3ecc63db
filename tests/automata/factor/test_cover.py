from __future__ import annotations

import itertools

import numpy as np

from exactstate.automata.factor.cover import CheapestProduct, cheapest_cover
from exactstate.automata.factor.lattice import Work
from tests.cases import in_one_case


@in_one_case("seed", range(60))
def test_cheapest_cover_against_all_families(seed: int) -> None:
    rng = np.random.default_rng(seed)
    candidates, pairs = int(rng.integers(1, 8)), int(rng.integers(1, 7))
    apart = rng.random((candidates, pairs)) < 0.4
    apart = np.vstack([apart, np.ones(pairs, bool)])
    sizes = [*rng.integers(2, 9, candidates).tolist(), 12]
    found = cheapest_cover(sizes, apart, states=2, work=Work(10**6))
    families = [
        family
        for count in range(1, 5)
        for family in itertools.combinations(range(candidates + 1), count)
        if apart[list(family)].any(axis=0).all()
    ]
    assert found.proven
    assert apart[list(found.chosen)].any(axis=0).all()
    assert sum(sizes[c] ** 2 for c in found.chosen) == min(sum(sizes[c] ** 2 for c in f) for f in families)


def test_cheapest_cover_out_of_work_is_not_proven() -> None:
    rng = np.random.default_rng(0)
    apart = np.vstack([rng.random((40, 30)) < 0.2, np.ones(30, bool)])
    sizes = [*rng.integers(2, 9, 40).tolist(), 100]
    found = cheapest_cover(sizes, apart, states=2, work=Work(100))
    assert not found.proven
    assert apart[list(found.chosen)].any(axis=0).all()


@in_one_case("wanted", range(1, 200))
def test_cheapest_product(wanted: int) -> None:
    sizes = (3, 4, 7)
    best = min(
        sum(d * d for d in family)
        for count in range(6)
        for family in itertools.combinations_with_replacement(sizes, count)
        if np.prod(family, initial=1) >= wanted
    )
    assert CheapestProduct(sizes)(wanted) == best
