"""`interpret`: what the heads of machines built by hand track."""

from __future__ import annotations

import numpy as np

from exactstate.automata import cyclic
from exactstate.extract.interpret import meanings
from tests.extract.building import Cascade, Input, side_by_side
from tests.extract.stories import stories

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
        symbols=3, heads=((3, 3),), kernel_size=2, rule=rule, labels=3, say=lambda seen: seen[1][0],
    )  # fmt: skip


def test_describe_finds_a_register_one_symbol_late() -> None:
    lines = looking_back(late=True).read(symbols=("a", "b", "c")).describe({"the last letter": np.arange(3)})
    assert "head 0 (3 indices) tracks the last letter" in lines
    assert "head 1 (3 indices) tracks the last letter, one symbol ago" in lines


def test_describe_finds_the_previous_symbol() -> None:
    lines = looking_back(late=False).read(symbols=("a", "b", "c")).describe({"the last letter": np.arange(3)})
    assert "head 1 (3 indices) tracks which of a, b stands before 'c'" in lines


LAST_LETTER = {"the last letter": ("none", "a", "b")}


def test_meanings_of_stories_are_their_registers() -> None:
    told, cascade = stories(3)
    found = cascade.read(symbols=told.machine.symbols, grammar=told.grammar)
    registers = {one.name: [one.values[value] for value in one.of_state] for one in told.registers}
    first, item, *holders = meanings(found, registers)
    assert first is not None
    assert first.name == "the first name"
    assert first.values == {0: "idle", 1: "alice", 2: "bob", 3: "charlie"}
    assert item is None  # the last item that was named: no register of the task
    assert [holder.name for holder in holders if holder] == [
        "the holder of the ring", "the holder of the key", "the holder of the coin",
    ]  # fmt: skip
    assert all(holder.values == {0: "nobody", 1: "alice", 2: "bob", 3: "charlie"} for holder in holders if holder)


def test_meanings_one_symbol_late_and_before() -> None:
    found = looking_back(late=True).read(symbols=("a", "b", "c"))
    now, late = meanings(found, LAST_LETTER)
    assert (now.name, now.values) == ("the last letter", {0: "none", 1: "a", 2: "b"})
    assert (late.name, late.values) == ("the last letter, one symbol ago", {0: "none", 1: "a", 2: "b"})
    _, asked = meanings(looking_back(late=False).read(symbols=("a", "b", "c")), LAST_LETTER)
    assert asked.values == {0: "", 1: "a", 2: "b"}


def test_meanings_are_none_where_nothing_is_determined() -> None:
    z4 = cyclic(4)
    assert meanings(side_by_side([z4.tables], lambda seen: seen[1][0], labels=4).read(), {}) == [None]
    unclear = side_by_side([z4.tables], lambda seen: seen[0], labels=4).read()
    assert meanings(unclear, {}) == [None]
