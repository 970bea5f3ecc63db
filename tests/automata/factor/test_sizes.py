"""Heads whose sizes are given: what fits is found and checked, what does not is not."""

from __future__ import annotations

import numpy as np
import pytest

from detent.automata import alternating, cyclic, flip_flop, symmetric
from detent.automata.factor.factor import factor_into


@pytest.mark.parametrize(
    ("machine", "heads"),
    [
        (symmetric(3), (3, 2)),
        (symmetric(3), (2, 3)),
        (symmetric(3), (6,)),
        (symmetric(3), (7, 2)),
        (symmetric(4), (4, 3, 2)),
        (symmetric(4), (4, 4, 4)),
        (symmetric(4), (24, 1)),
        (alternating(5), (5, 12)),
        (alternating(5), (5, 5, 5)),
        (cyclic(6), (3, 2)),
        (flip_flop(), (3,)),
    ],
    ids=lambda value: str(value),
)
def test_heads_that_fit_carry_every_state(machine, heads):
    found = factor_into(machine, heads)
    assert found is not None
    assert len(found.partitions) == len(heads)
    assert all(size <= d for size, d in zip(found.sizes, heads, strict=True))
    codes = np.stack(found.partitions, axis=1)
    assert len(np.unique(codes, axis=0)) == machine.n_states
    for chi, table in zip(found.partitions, found.tables, strict=True):
        for a in range(machine.n_symbols):
            assert np.array_equal(table[a][chi], chi[machine.tables[a].astype(int)])


@pytest.mark.parametrize(
    ("machine", "heads"), [(symmetric(3), (2, 2)), (symmetric(4), (5, 5)), (cyclic(16), (8, 2)), (cyclic(16), (15,))]
)
def test_heads_that_do_not_fit_are_not_found(machine, heads):
    assert factor_into(machine, heads) is None
