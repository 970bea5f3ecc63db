"""Coarsening ends where no blocks can be merged; mergers can be undone."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from exactstate._types import MISSING
from exactstate.automata import alternating, symmetric
from exactstate.automata.congruence import is_congruence, meet, merge, respects
from exactstate.automata.factor.coarsen import Forest, coarsen
from exactstate.automata.factor.lattice import Work
from exactstate.automata.minimize import numbered
from tests.cases import in_one_case

PLENTY = 10**9


@in_one_case("seed", range(30))
@pytest.mark.parametrize("kind", ["group", "machine", "partial"])
def test_coarsen_ends_where_nothing_more_can_be_merged(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    tables = symmetric(4).tables if kind == "group" else np.sort(rng.integers(0, 14, (2, 14)), axis=1)
    tables = np.where(rng.random(tables.shape) < 0.3, MISSING, tables) if kind == "partial" else tables
    n = tables.shape[1]
    rest = numbered(rng.integers(0, n - 3, n))
    top = coarsen(tables, np.arange(n), rest, rng, Work(PLENTY), from_first=kind == "group")
    assert respects(tables, top)
    assert meet(top, rest).max() == n - 1
    for p in range(n):
        for q in range(p):
            if top[p] != top[q]:
                pairs = [(p, q), *((int(np.flatnonzero(top == block)[0]), s) for s, block in enumerate(top))]
                assert meet(merge(tables, pairs), rest).max() < n - 1


def test_coarsen_on_many_blocks_gives_up_but_stays_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["exactstate.automata.factor.coarsen"], "_MIN_DRAWN_BLOCKS", 1)
    machine, rng = alternating(5), np.random.default_rng(0)
    rest = numbered(np.where(np.arange(60) == 7, 0, np.arange(60)))
    for from_first in (False, True):
        top = coarsen(machine.tables, np.arange(60), rest, rng, Work(PLENTY), from_first=from_first)
        assert is_congruence(machine, top)
        assert top[0] != top[7]
        assert top.max() < 59


@pytest.mark.parametrize("never", [0, 0.3])
@in_one_case("seed", range(30))
def test_forest_merge_and_undo(seed: int, never: float) -> None:
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
