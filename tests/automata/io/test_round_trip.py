"""read(write(machine)) == machine, for every machine that a format can represent, however ugly its names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactstate.automata import Mealy, Moore, Semiautomaton, read_machine, write_machine
from exactstate.automata.io import machine_text, parse_dot, parse_machine, to_dot

UGLY = (
    "", " ", "  x ", "a / b", "a/b", "/", " / ", "|", "a | b", "{a|b}", "<br/>", "a<br/>b", "\\n", "\\", "\n", "\r\n",
    "\t", '"', "'", "%", "%2F", "%zz", "a,b", "0->1", "->", "é", "\U0001f41f", "\u2028", "\x00", "\xa0", "__start0",
    "// x", "/* x", "#", "label=", "ε", "<eps>", "@0@", "0", "1", "01", "reject", "accept", "&amp;", "\\N", "}", "];",
)  # fmt: skip
names = st.sampled_from(UGLY) | st.text(max_size=6).filter(lambda name: not re.search("[\ud800-\udfff]", name))


@st.composite
def machines(draw: st.DrawFn, name: st.SearchStrategy[str] = names, kinds: str = "semi moore mealy dfa") -> Any:
    """Any machine: few states, parallel edges, self-loops, unreachable states, any start, unused outputs."""
    A, n, b = draw(st.integers(1, 4)), draw(st.integers(1, 6)), draw(st.integers(1, 4))
    kind = draw(st.sampled_from(kinds.split()))
    outputs = (
        ("reject", "accept") if kind == "dfa" else tuple(draw(st.lists(name, min_size=b, max_size=b, unique=True)))
    )

    def table(shape: tuple[int, ...], below: int) -> Any:
        size = int(np.prod(shape))
        return np.reshape(draw(st.lists(st.integers(0, below - 1), min_size=size, max_size=size)), shape)

    machine = Semiautomaton(
        symbols=tuple(draw(st.lists(name, min_size=A, max_size=A, unique=True))), tables=table((A, n), n),
        states=draw(st.sampled_from(((), tuple(draw(st.lists(name, min_size=n, max_size=n, unique=True)))))),
    )  # fmt: skip
    if kind == "semi":
        return machine
    shape, build = ((A, n), Mealy) if kind == "mealy" else ((n,), Moore)
    return build(
        symbols=machine.symbols, tables=machine.tables, states=machine.states, start=draw(st.integers(0, n - 1)),
        outputs=outputs, readout=table(shape, len(outputs)),
    )  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(machine=machines())
@pytest.mark.parametrize("format", ["dot", "json"])
def test_round_trip_dot_and_json_of_every_machine(format: str, machine: Semiautomaton) -> None:
    assert parse_machine(machine_text(machine, format=format), format=format, strict=True) == machine


@settings(max_examples=100, deadline=None)
@given(machine=machines(), dialect=st.sampled_from(["learnlib", "aalpy"]))
def test_round_trip_to_dot_with_every_option(machine: Semiautomaton, dialect: Any) -> None:
    assert parse_dot(to_dot(machine, dialect=dialect), strict=True) == machine


@pytest.mark.parametrize("extension", ["dot", "gv", "json"])
def test_round_trip_through_a_file(tmp_path: Path, extension: str) -> None:
    machine = Mealy(
        symbols=("a / b", "\n"), tables=[[1, 1, 0], [0, 1, 2]], states=("", " ", '"'), start=2,
        outputs=("\r", "unused", "%"), readout=[[0, 2, 2], [2, 0, 0]],
    )  # fmt: skip
    path = tmp_path / f"machine.{extension}"
    write_machine(machine, path)
    assert read_machine(path, strict=True) == machine


def test_round_trip_detects_one_flipped_entry() -> None:
    machine = Moore(symbols=("a",), tables=[[1, 0]], outputs=("reject", "accept"), readout=[0, 1])
    flipped = to_dot(machine).replace("s0 -> s1", "s0 -> s0")
    assert flipped != to_dot(machine)
    assert parse_dot(flipped) != machine
