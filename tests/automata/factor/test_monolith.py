from __future__ import annotations

import numpy as np
import pytest

from detent.automata import cyclic, mathieu11, quaternion, symmetric
from detent.automata.congruence import meet, merge
from detent.automata.factor.budget import Work
from detent.automata.factor.lattice import monolith
from detent.errors import BudgetExceeded


@pytest.mark.parametrize("seed", range(80))
def test_against_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, A = int(rng.integers(2, 12)), int(rng.integers(1, 4))
    tables = rng.integers(0, n, (A, n))
    if seed % 3 == 0:
        tables = np.sort(tables, axis=1)
    if seed % 3 == 1:
        tables = rng.permuted(np.tile(np.arange(n), (A, 1)), axis=1)
    if seed % 2:
        tables = np.where(rng.random((A, n)) < 0.2, -1, tables)
    found = monolith(tables, Work(10**9))
    all_principal = [merge(tables, [(p, q)]) for p in range(n) for q in range(p)]
    always = meet(*all_principal).max() < n - 1  # some pair is merged by all of them
    assert (found.other is None) == always
    p, q = found.pair
    if always:
        assert all(c[p] == c[q] for c in all_principal)
    else:
        assert meet(merge(tables, [found.pair]), merge(tables, [found.other])).max() == n - 1


def test_groups() -> None:
    assert monolith(cyclic(16).tables, Work(10**9)).pair == (0, 8)
    assert monolith(quaternion().tables, Work(10**9)).other is None
    assert monolith(symmetric(3).tables, Work(10**9)).other is not None


def test_too_large_is_refused() -> None:
    with pytest.raises(BudgetExceeded, match="up to 2000 states; this one has 7920"):
        monolith(mathieu11().tables, Work(10**9))
    with pytest.raises(BudgetExceeded, match="more than the 10 steps"):
        monolith(cyclic(16).tables, Work(10))
