"""Machines as JSON: written, read, refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from exactstate.automata import Mealy, Moore, Semiautomaton
from exactstate.automata.io import parse_json, to_json
from exactstate.errors import BrokenFile

MEALY = Mealy(
    symbols=("a", "b"),
    tables=[[1, 0], [0, 0]],
    states=("p", "q"),
    start=1,
    outputs=("x", "y"),
    readout=[[0, 1], [1, 1]],
)
MOORE = Moore(symbols=("a",), tables=[[1, 0]], outputs=("x",), readout=[0, 0])


def entries(machine: Semiautomaton = MEALY, **changed: Any) -> str:
    return json.dumps({**json.loads(to_json(machine)), **changed})


def without(key: str) -> str:
    return json.dumps({name: value for name, value in json.loads(to_json(MEALY)).items() if name != key})


def test_to_json_text() -> None:
    assert json.loads(to_json(MEALY)) == {
        "format": "exactstate-machine", "version": 1, "kind": "mealy", "symbols": ["a", "b"], "states": ["p", "q"],
        "tables": [[1, 0], [0, 0]], "start": 1, "outputs": ["x", "y"], "readout": [[0, 1], [1, 1]],
    }  # fmt: skip
    assert json.loads(to_json(MOORE))["readout"] == [0, 0]
    assert set(json.loads(to_json(Semiautomaton(symbols=("a",), tables=[[0]])))) == {
        "format", "version", "kind", "symbols", "states", "tables",
    }  # fmt: skip


def test_parse_json_any_layout() -> None:
    assert parse_json(entries()) == MEALY
    assert parse_json(json.dumps(json.loads(to_json(MEALY)), indent=7, sort_keys=True)) == MEALY


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[1, 2]", "wanted a JSON object with \"format\": \"exactstate-machine\"; this is some other JSON"),
        ('{"alphabet": []}', "this is some other JSON"),
        ('{"format": "oldname-machine"}', "the format is 'oldname-machine', of another program or an older version"),
        ("{", "line 1: this is not JSON: expecting property name"),
        ('{"format":\n nonsense}', "line 2: this is not JSON: expecting value at column 2"),
        ("{" * 100_000, "this is not JSON|nested too deep"),
        ("[" * 100_000, "lists are nested too deep; a machine needs two levels"),
        ('{"start": ' + "9" * 10_000 + "}", "a number has too many digits"),
        ('{"start": NaN}', "NaN is not a number; tables hold integers"),
        ('{"format": 1,\n"format": 2}', "line 1: the entry format came twice"),
        (entries(version=2), "the entry version is 2; this exactstate reads version 1"),
        (entries(version=True), "the entry version is true; this exactstate reads version 1"),
        (entries(version=1.0), "the entry version is 1.0"),
        (entries(kind="nfa"), "the entry kind is 'nfa'; wanted one of mealy, moore, semiautomaton"),
        (entries(kind=["mealy"]), "the entry kind is a list of 1"),
        (without("start"), 'a mealy needs the entry "start"; it is missing'),
        (without("tables"), 'a mealy needs the entry "tables"; it is missing'),
        (entries(comment="hi"), "the entry comment does not belong in a mealy"),
        (entries(kind="semiautomaton"), "the entry start does not belong in a semiautomaton"),
        (entries(symbols="ab"), "the entry symbols is 'ab'; wanted a list of names"),
        (entries(symbols=[]), "the entry symbols is a list of 0; wanted a list of names"),
        (entries(symbols=["a", 1]), "the entry symbols has 1 at place 1; wanted a string"),
        (entries(symbols=["a", None]), "the entry symbols has null at place 1"),
        (entries(symbols=["a", "a"]), "every symbol has its own name; 'a' came twice"),
        (entries(states=["p", "p"]), "every state has its own name; 'p' came twice"),
        (entries(outputs=["x", "x"]), "every output has its own name; 'x' came twice"),
        (entries(states=["p", "\ud800"]), "the entry states has half a surrogate pair at place 1"),
        (entries(tables=[[1, 0]]), "the entry tables is a list of 1; wanted 2 rows, one per symbol"),
        (entries(tables={}), "the entry tables is an object; wanted 2 rows"),
        (entries(tables=[[1, 0], [0]]), r"the entry tables\[1\] is a list of 1; wanted 2 numbers, one per state"),
        (entries(tables=[[1, 0], 0]), r"the entry tables\[1\] is 0; wanted 2 numbers"),
        (entries(tables=[[1, 0], [0, 2]]), r"the entry tables\[1\]\[1\] is 2; wanted an integer from 0 to 1"),
        (entries(tables=[[1, -1], [0, 0]]), r"the entry tables\[0\]\[1\] is -1"),
        (entries(tables=[[True, 0], [0, 0]]), r"the entry tables\[0\]\[0\] is true; wanted an integer"),
        (entries(tables=[[1.0, 0], [0, 0]]), r"the entry tables\[0\]\[0\] is 1.0; wanted an integer"),
        (entries(tables=[["1", 0], [0, 0]]), r"the entry tables\[0\]\[0\] is '1'; wanted an integer"),
        (entries(tables=[[[1], 0], [0, 0]]), r"the entry tables\[0\]\[0\] is a list of 1; wanted an integer"),
        (entries(tables=[[10**400, 0], [0, 0]]), r"the entry tables\[0\]\[0\] is 10000"),
        (entries(start=2), "the entry start is 2; wanted an integer from 0 to 1"),
        (entries(start="p"), "the entry start is 'p'; wanted an integer"),
        (entries(start=None), "the entry start is null"),
        (entries(readout=[[0, 1], [1, 2]]), r"the entry readout\[1\]\[1\] is 2; wanted an integer from 0 to 1"),
        (entries(readout=[0, 1]), r"the entry readout\[0\] is 0; wanted 2 numbers"),
        (entries(MOORE, readout=[0]), "the entry readout is a list of 1; wanted 2 numbers"),
        (entries(MOORE, readout=[0, 1]), r"the entry readout\[1\] is 1; wanted an integer from 0 to 0"),
    ],
)  # fmt: skip
def test_parse_json_refuses_with_one_reason(text: str, sentence: str) -> None:
    with pytest.raises(BrokenFile, match=sentence) as caught:
        parse_json(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


def test_parse_json_names_the_line_of_the_entry() -> None:
    with pytest.raises(BrokenFile) as caught:
        parse_json(to_json(MEALY).replace('"start": 1', '"start": 5'))
    assert caught.value.line == to_json(MEALY).split('"start"')[0].count("\n") + 1


def test_parse_json_refuses_a_contradicting_kind() -> None:
    assert parse_json(entries(), kind="mealy") == MEALY
    with pytest.raises(BrokenFile, match='the file says it is a mealy; it cannot be read with kind="dfa"'):
        parse_json(entries(), kind="dfa")
