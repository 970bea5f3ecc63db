from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from exactstate.automata import from_tables, tomita
from exactstate.errors import InvalidMachine

LANGUAGES = {
    1: lambda w: "0" not in w,
    2: lambda w: re.fullmatch("(10)*", w) is not None,
    3: lambda w: not any(len(one) % 2 and len(zero) % 2 for one, zero in re.findall("(1+)(0+)", w)),
    4: lambda w: "000" not in w,
    5: lambda w: w.count("0") % 2 == 0 and w.count("1") % 2 == 0,
    6: lambda w: (w.count("0") - w.count("1")) % 3 == 0,
    7: lambda w: re.fullmatch("0*1*0*1*", w) is not None,
}


@pytest.mark.parametrize("number", LANGUAGES)
def test_tomita_on_all_words_up_to_length_12(number: int) -> None:
    machine = tomita(number)
    assert machine.outputs == ("reject", "accept")
    assert machine.readout[machine.start] == LANGUAGES[number]("")
    for length in range(1, 13):
        words = np.array(list(itertools.product((0, 1), repeat=length)))
        accepted = machine.output_ids(words)[:, -1].astype(bool)
        assert accepted.tolist() == [LANGUAGES[number]("".join(map(str, word))) for word in words.tolist()]


def test_tomita_has_seven_languages() -> None:
    with pytest.raises(InvalidMachine, match="numbered 1 to 7; got 8"):
        tomita(8)


def test_from_tables() -> None:
    machine = from_tables([[1, 2, 0], [0, 0, 0]], symbols=("next", "zero"), start=2)
    assert machine.outputs == machine.states == ("0", "1", "2")
    assert machine.run(["next", "next"]) == 1
    named = from_tables(np.array([[1, 0]]), states=("off", "on"), outputs=("dark", "light"), readout=[0, 1])
    assert named.symbols == ("0",)
    assert named.output_ids("000").tolist() == [1, 0, 1]
    with pytest.raises(InvalidMachine, match="outputs and readout are given together"):
        from_tables([[0]], readout=[0])
    with pytest.raises(InvalidMachine, match="at least one symbol; got none"):
        from_tables([])
    with pytest.raises(InvalidMachine, match="sends state '0' to 4"):
        from_tables([[4]])
