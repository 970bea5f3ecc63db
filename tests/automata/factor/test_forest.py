from __future__ import annotations

import numpy as np
import pytest

from detent._types import MISSING
from detent.automata.congruence import merge
from detent.automata.factor.budget import Work
from detent.automata.factor.coarsen import Forest


@pytest.mark.parametrize("never", [0, 0.3])
@pytest.mark.parametrize("seed", range(30))
def test_merging_and_taking_back(seed: int, never: float) -> None:
    rng = np.random.default_rng(seed)
    n = 12
    tables = np.where(rng.random((2, n)) < never, MISSING, rng.integers(0, n, (2, n)))
    crowd = rng.integers(0, 9, n)
    forest = Forest(tables, [{int(c)} for c in crowd], Work(10**9))
    accepted: list[tuple[int, int]] = []
    for p, q in rng.integers(0, n, (40, 2)).tolist():
        before = forest.partition()
        wanted = merge(tables, [*accepted, (p, q)])
        possible = len(np.unique(wanted * 9 + crowd)) == n  # no block holds two of one crowd
        fewer = int(before.max() - wanted.max())
        assert forest.would_merge(p, q) == (fewer if possible else 0)
        assert np.array_equal(forest.partition(), before)
        assert forest.merge(p, q) == (possible and fewer > 0)
        if possible:
            accepted.append((p, q))
        assert np.array_equal(forest.partition(), wanted if possible else before)
        assert forest.count == forest.partition().max() + 1
        assert forest.draw(rng) in {forest.root(block) for block in range(n)}
