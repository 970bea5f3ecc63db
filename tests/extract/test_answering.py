"""A stack made by hand, as a machine that answers questions."""

from __future__ import annotations

import numpy as np
import pytest

from detent.errors import InvalidInput
from detent.extract.result import answering
from detent.tasks.free_order_stories import NOT_UNDERSTOOD
from tests.extract.building import side_by_side
from tests.extract.stories import stories


def test_it_answers_at_the_question_mark_alone() -> None:
    told, cascade = stories(2)
    found = cascade.read(symbols=told.machine.symbols, grammar=told.grammar)
    machine = answering(found, ["?"])
    assert machine.outputs == ("", "0", "1", NOT_UNDERSTOOD)
    text = "alice has the key . bob has the ring . . bob swaps with alice . who has the key ?"
    said = [machine.outputs[n] for n in machine.output_ids(machine.encode(text.split()))]
    assert said == [""] * 20 + ["1"]
    wrong = [machine.outputs[n] for n in machine.output_ids(machine.encode(["alice", "has", "has", "the", "key", "."]))]
    assert wrong == ["", "", NOT_UNDERSTOOD, "", "", ""]


def test_a_model_without_answers_is_refused() -> None:
    found = side_by_side([np.array([[0, 1], [1, 0]])], lambda seen: seen[1][0], labels=2).read()
    with pytest.raises(InvalidInput, match="this model gives no answers"):
        answering(found, ["0"])
