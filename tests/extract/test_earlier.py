"""Heads that a convolution lets look back: one symbol late, and at what stood before."""

from __future__ import annotations

import numpy as np

from tests.extract.building import Cascade, Input

KEPT, LAST = [0, 1, 2], 2


def looking_back(late: bool) -> Cascade:
    """Symbols a, b set the first head and c asks; the second follows one symbol late, or sees what c asks about."""

    def after(symbol: int) -> list[int]:
        return [symbol + 1] * 3 if symbol < LAST else KEPT

    def rule(layer: int, window: list[Input | None]) -> list[list[int]]:
        before, now = window
        assert now is not None
        then = KEPT if before is None else after(before[0])
        asks = [before[0] + 1 if now[0] == LAST and before is not None and before[0] < LAST else 0] * 3
        return [after(now[0]), then if late else asks]

    return Cascade(
        symbols=3, heads=((3, 3),), reach=2, rule=rule, labels=3, say=lambda seen: seen[1][0],
    )  # fmt: skip


def test_one_symbol_late() -> None:
    lines = looking_back(late=True).read(symbols=("a", "b", "c")).describe({"the last letter": np.arange(3)})
    assert "head 0 (3 indices) tracks the last letter" in lines
    assert "head 1 (3 indices) tracks the last letter, one symbol ago" in lines


def test_what_stood_before() -> None:
    lines = looking_back(late=False).read(symbols=("a", "b", "c")).describe({"the last letter": np.arange(3)})
    assert "head 1 (3 indices) tracks which of a, b stands before 'c'" in lines
