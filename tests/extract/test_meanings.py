"""What single indices mean, on a stack made by hand and on heads that mean nothing."""

from __future__ import annotations

import numpy as np

from detent.automata import cyclic
from detent.extract.interpret import meanings
from tests.extract.building import side_by_side
from tests.extract.stories import stories
from tests.extract.test_earlier import looking_back


class Letter:
    name, values, of_state = "the last letter", ("none", "a", "b"), np.arange(3)


def test_registers_of_stories() -> None:
    told, cascade = stories(3)
    found = cascade.read(symbols=told.machine.symbols, grammar=told.grammar)
    first, item, *holders = meanings(found, told.registers)
    assert first is not None
    assert first.name == "the first name"
    assert first.values == {0: "idle", 1: "alice", 2: "bob", 3: "charlie"}
    assert item is None  # the last item that was named: no register of the task
    assert [holder.name for holder in holders if holder] == [
        "the holder of the ring", "the holder of the key", "the holder of the coin",
    ]  # fmt: skip
    assert all(holder.values == {0: "nobody", 1: "alice", 2: "bob", 3: "charlie"} for holder in holders if holder)


def test_one_symbol_late_and_before() -> None:
    found = looking_back(late=True).read(symbols=("a", "b", "c"))
    now, late = meanings(found, [Letter()])
    assert (now.name, now.values) == ("the last letter", {0: "none", 1: "a", 2: "b"})
    assert (late.name, late.values) == ("the last letter, one symbol ago", {0: "none", 1: "a", 2: "b"})
    _, asked = meanings(looking_back(late=False).read(symbols=("a", "b", "c")), [Letter()])
    assert asked.values == {0: "", 1: "a", 2: "b"}


def test_no_meaning() -> None:
    z4 = cyclic(4)
    assert meanings(side_by_side([z4.tables], lambda seen: seen[1][0], labels=4).read(), []) == [None]
    unclear = side_by_side([z4.tables], lambda seen: seen[0], labels=4).read()
    assert meanings(unclear, []) == [None]
