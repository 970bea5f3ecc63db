"""A machine as a filter: what it writes for lines, ends, chosen symbols and JSON, however the text is cut."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

from exactstate.automata import Mealy, tomita
from exactstate.errors import BackendUnavailable, InvalidConfig, InvalidWord
from exactstate.runtime import Machine
from exactstate.runtime.filter import Filter, with_reset
from tests.runtime import examples


def filtered(machine: Machine, text: str, cuts: tuple[int, ...] = (), **settings: object) -> str:
    work = Filter(machine=machine, **settings)  # type: ignore[arg-type]
    data = text.encode()
    edges = [0, *cuts, len(data)]
    parts = [work.feed(data[begin:end]) for begin, end in pairwise(edges)] + [work.finish()]
    work.tokenizer.refuse_unknown()
    return b"".join(parts).decode()


def answering() -> Machine:
    """Says who has the ball when asked, and nothing otherwise: 'ann' and 'ben' take it, '?' asks."""
    tables = np.array([[0, 0], [1, 1], [0, 1]])
    readout = np.array([[0, 0], [0, 0], [1, 2]])
    return Machine.of(
        Mealy(symbols=("ann", "ben", "?"), tables=tables, outputs=("", "ann!", "ben!"), readout=readout)
    )  # fmt: skip


LIGHT = examples.traffic_light()
CASES = [
    (LIGHT, {}, "go go stop\nstop\n\ngo", "walk walk wait\nwait\nwalk\n"),
    (LIGHT, {"states": True}, "go go stop\n", "green green red\n"),
    (LIGHT, {"last": True}, "go go stop\nstop\n\ngo", "walk\n"),
    (LIGHT, {"last": True}, "", "wait\n"),
    (LIGHT, {"last": True, "states": True}, "go stop", "red\n"),
    (LIGHT, {"each_line": True, "last": True}, "go go\n\nstop\ngo", "walk\nwait\nwait\nwalk\n"),
    (LIGHT, {"each_line": True, "last": True}, "go\n", "walk\n"),
    (LIGHT, {"at": ("stop",)}, "go stop go\ngo\nstop", "wait\nwait\n"),
    (LIGHT, {"at": ("stop",), "last": True}, "go go", ""),
    (LIGHT, {"form": "json"}, "go stop\n\ngo",
     '{"line": 1, "outputs": ["walk", "wait"]}\n{"line": 3, "outputs": ["walk"]}\n'),
    (LIGHT, {"form": "json", "last": True}, "go\nstop", '{"symbols": 2, "state": "red", "output": "wait"}\n'),
    (LIGHT, {"form": "json", "last": True, "each_line": True}, "go\nstop",
     '{"line": 1, "outputs": ["walk"]}\n{"line": 2, "outputs": ["wait"]}\n'),
    (LIGHT, {"unknown": "skip"}, "go fly stop", "walk wait\n"),
    (answering(), {}, "ben ? ann\n? ann ben\n\n", "ben!\nann!\n"),
    (answering(), {"each_line": True}, "ben ?\n? ?\nben", "ben!\nann! ann!\n"),
    (answering(), {"each_line": True, "last": True}, "ben ?\n? ? ben\nben", "ben!\nann!\n"),
    (answering(), {"form": "json", "last": True}, "ben", '{"symbols": 1, "state": "1", "output": null}\n'),
    (Machine.of(tomita(1)), {"each_line": True, "last": True}, "11\n\n101\n", "accept\naccept\nreject\n"),
]  # fmt: skip


@pytest.mark.parametrize(("machine", "settings", "text", "wanted"), CASES)
def test_filter_writes(machine: Machine, settings: dict[str, object], text: str, wanted: str) -> None:
    assert filtered(machine, text, **settings) == wanted
    for cut in range(len(text.encode())):
        assert filtered(machine, text, (cut,), **settings) == wanted
    assert filtered(machine, text, tuple(range(1, len(text))), **settings) == wanted


def test_filter_single_letters_without_blanks() -> None:
    bits = Machine.of(
        Mealy(symbols=("0", "1"), tables=np.array([[0, 1], [1, 0]]), outputs=("0", "1"), readout=[[0, 1], [1, 0]])
    )  # fmt: skip
    assert filtered(bits, "0110 1\n1") == "01001\n0\n"
    assert [json.loads(line)["outputs"] for line in filtered(bits, "01\n1", form="json").splitlines()] == [
        ["0", "1"],
        ["0"],
    ]


@pytest.mark.parametrize("each_line", [False, True])
def test_filter_long_texts_against_a_loop(each_line: bool) -> None:
    rng = np.random.default_rng(0)
    machine = examples.of_heads(examples.counters((3, 5, 2), 4, rng), rng)
    lines = [rng.integers(0, 4, int(rng.integers(0, 60))) for _ in range(500)]
    text = "\n".join(" ".join(machine.symbols[a] for a in line) for line in lines)
    state, wanted = machine.start, []
    for line in lines:
        said, states = examples.one_by_one(machine, line, machine.start if each_line else state)
        state = states[-1] if states else state
        wanted += [" ".join(machine.output_names[number] for number in said) + "\n"] if said else []
    cuts = tuple(sorted(rng.integers(0, len(text), 30).tolist()))
    for strategy in machine.strategies:
        assert filtered(machine, text, cuts, each_line=each_line, strategy=strategy) == "".join(wanted)


def test_with_reset_adds_a_symbol() -> None:
    rng = np.random.default_rng(1)
    for machine in (LIGHT, examples.m11(rng), examples.anything(3, 40, rng)):
        longer = with_reset(machine)
        assert longer.n_symbols == machine.n_symbols + 1
        word = rng.integers(0, machine.n_symbols, 50)
        assert longer.run([*word.tolist(), machine.n_symbols]) == machine.start
        assert longer.run(word) == machine.run(word)
    assert with_reset(Machine.of(Mealy(symbols=("reset",), tables=[[0]], outputs=("x",), readout=[[0]]))).symbols == (
        "reset",
        "reset'",
    )


def test_filter_refuses_wrong_settings() -> None:
    with pytest.raises(InvalidWord, match="unknown symbol 'walk' to answer at"):
        Filter(machine=LIGHT, at=("walk",))
    with pytest.raises(InvalidConfig, match="unknown='ignore' is neither"):
        Filter(machine=LIGHT, unknown="ignore")  # type: ignore[arg-type]
    with pytest.raises(BackendUnavailable, match="made without heads"):
        Filter(machine=LIGHT, strategy="heads")


def test_filter_abort_ends_the_line() -> None:
    work = Filter(machine=LIGHT)
    assert work.feed(b"go go what ") == b"walk walk"
    with pytest.raises(InvalidWord, match="unknown symbol 'what' on line 1, word 3"):
        work.tokenizer.refuse_unknown()
    assert work.abort() == b"\n"
