"""What is saved is loaded, equal; both forms say the same; nothing half-written is left behind."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detent.automata import Mealy, cyclic, read_machine, write_machine
from detent.errors import BrokenFile, InvalidMachine, UnknownName
from detent.runtime import Heads, Machine, load, save
from detent.runtime.io.binary import from_bytes, to_bytes
from detent.runtime.io.json_format import from_json, to_json
from tests.runtime import examples

UGLY = ('"', "\\", "*/", "//", "<script>", "'", "%s", "??/", "\n", "\0", "λ", "🙂", "a b", "", "\u2028", "end\r\n")


def ugly() -> Machine:
    """A machine whose names would break any careless writer."""
    A, n = len(UGLY), 5
    rng = np.random.default_rng(0)
    return Machine.of(
        Mealy(
            symbols=UGLY, states=UGLY[:n], tables=rng.integers(0, n, (A, n)), start=2, outputs=UGLY[::-1],
            readout=rng.integers(0, A, (A, n)),
        ),
        about={"note": "".join(UGLY), "sha256": "00" * 32},
    )  # fmt: skip


def machines() -> dict[str, Machine]:
    rng = np.random.default_rng(1)
    return {
        "moore": examples.traffic_light(),
        "mealy": examples.anything(3, 5, rng),
        "ugly": ugly(),
        "heads": Machine.of(examples.m11().automaton, heads=examples.points_of_m11(), about={"task": "M11"}),
        "300 states": examples.anything(2, 300, rng, outputs=70_000),
        "70,000 states": examples.anything(1, 70_000, rng),
    }


@pytest.mark.parametrize("extension", [".json", ".detent"])
@pytest.mark.parametrize("name", machines())
def test_what_is_saved_is_loaded(name: str, extension: str, tmp_path: Path) -> None:
    machine = machines()[name]
    machine.save(tmp_path / f"m{extension}")
    again = load(tmp_path / f"m{extension}")
    assert again == machine
    assert again.about == machine.about
    assert [path.name for path in tmp_path.iterdir()] == [f"m{extension}"]


def test_the_same_machine_has_the_same_bytes() -> None:
    assert to_bytes(ugly()) == to_bytes(ugly())
    for machine in machines().values():
        content = to_bytes(machine)
        assert to_bytes(from_bytes(content, "again")) == content
        text = to_json(machine)
        assert to_json(from_json(text.encode(), "again")) == text


def test_the_binary_form_is_compact() -> None:
    machine = Machine.of(cyclic(200))
    assert len(to_bytes(machine)) < len(to_json(machine)) / 3


def test_the_layout_byte_by_byte() -> None:
    """As FORMAT.md says, written out by hand."""
    import hashlib
    import struct

    light = examples.traffic_light()
    machine = Machine.of(light.automaton, heads=Heads((light.automaton.tables,), (0,)), about={"a": 1})
    names = b"".join(
        struct.pack("<I", len(name)) + name for name in (b"go", b"stop", b"red", b"green", b"wait", b"walk")
    )
    body = (
        b"\x89DETENT\n" + struct.pack("<8I", 1, 0, 2, 2, 2, 0, 1, 1) + names + bytes([1, 1, 0, 0]) + bytes([0, 1])
        + struct.pack("<2I", 2, 0) + bytes([1, 1, 0, 0]) + struct.pack("<I", 7) + b'{"a":1}'
    )  # fmt: skip
    assert to_bytes(machine) == body + hashlib.sha256(body).digest()


def test_json_without_extras_is_what_automata_write(tmp_path: Path) -> None:
    machine = examples.traffic_light()
    machine.save(tmp_path / "light.json")
    assert read_machine(tmp_path / "light.json") == machine.automaton
    write_machine(machine.automaton, tmp_path / "other.json")
    assert (tmp_path / "other.json").read_text() == (tmp_path / "light.json").read_text()


def test_foreign_files_are_read_too(tmp_path: Path) -> None:
    machine = examples.traffic_light()
    save(machine, tmp_path / "light.dot")
    assert load(tmp_path / "light.dot") == machine
    (tmp_path / "no_extension").write_text(to_json(machine))
    assert load(tmp_path / "no_extension") == machine
    (tmp_path / "bytes").write_bytes(to_bytes(machine))
    assert load(tmp_path / "bytes") == machine


def test_a_semiautomaton_in_a_file(tmp_path: Path) -> None:
    document = json.loads(to_json(examples.traffic_light()))
    for entry in ("start", "outputs", "readout"):
        del document[entry]
    (tmp_path / "bare.json").write_text(json.dumps(document | {"kind": "semiautomaton", "about": {"x": 1}}))
    assert load(tmp_path / "bare.json").outputs("go stop") == ["green", "red"]


def test_where_there_is_nothing_to_read_or_write(tmp_path: Path) -> None:
    machine = examples.traffic_light()
    with pytest.raises(BrokenFile, match=r"missing\.json: there is no such file"):
        load(tmp_path / "missing.json")
    with pytest.raises(BrokenFile, match="it cannot be read: is a directory"):
        load(tmp_path)
    with pytest.raises(UnknownName, match=r"unknown extension '.txt'.* Known: .json, .detent, .dot"):
        machine.save(tmp_path / "light.txt")
    with pytest.raises(BrokenFile, match=r"light\.json: it cannot be written: there is no folder"):
        machine.save(tmp_path / "nowhere" / "light.json")
    broken = Machine.of(type(machine.automaton)(**{**fields(machine), "symbols": ("\ud800", "b")}))
    for name in ("light.json", "light.detent"):
        with pytest.raises(InvalidMachine, match="half a surrogate pair"):
            broken.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def fields(machine: Machine) -> dict[str, object]:
    a = machine.automaton
    return {"symbols": a.symbols, "states": a.states, "tables": a.tables, "outputs": a.outputs, "readout": a.readout}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_names_come_back(data: st.DataObject) -> None:
    text = st.text(st.characters(blacklist_categories=("Cs",)), max_size=8)
    symbols = data.draw(st.lists(text, min_size=1, max_size=4, unique=True))
    outputs = data.draw(st.lists(text, min_size=1, max_size=4, unique=True))
    n = data.draw(st.integers(1, 5))
    rng = np.random.default_rng(data.draw(st.integers(0, 100)))
    machine = Machine.of(
        Mealy(
            symbols=tuple(symbols), tables=rng.integers(0, n, (len(symbols), n)), outputs=tuple(outputs),
            readout=rng.integers(0, len(outputs), (len(symbols), n)),
        ),
        about=data.draw(st.dictionaries(text, st.one_of(text, st.integers(), st.none(), st.booleans()), max_size=3)),
    )  # fmt: skip
    assert from_bytes(to_bytes(machine), "bytes") == machine
    assert from_json(to_json(machine).encode(), "text") == machine
