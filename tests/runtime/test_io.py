"""Machine files: what is saved is loaded; damaged and hostile files are refused with the reason."""

from __future__ import annotations

import contextlib
import hashlib
import json
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactstate.automata import Mealy, cyclic, read_machine, write_machine
from exactstate.errors import BrokenFile, InvalidMachine, UnknownName
from exactstate.runtime import Heads, Machine, load, save
from exactstate.runtime.io import DIGEST, from_bytes, from_json, to_bytes, to_json
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


@pytest.mark.parametrize("extension", [".json", ".exactstate"])
@pytest.mark.parametrize("name", machines())
def test_save_and_load_round_trip(name: str, extension: str, tmp_path: Path) -> None:
    machine = machines()[name]
    machine.save(tmp_path / f"m{extension}")
    again = load(tmp_path / f"m{extension}")
    assert again == machine
    assert again.about == machine.about
    assert [path.name for path in tmp_path.iterdir()] == [f"m{extension}"]


def test_to_bytes_is_deterministic() -> None:
    assert to_bytes(ugly()) == to_bytes(ugly())
    for machine in machines().values():
        content = to_bytes(machine)
        assert to_bytes(from_bytes(content, "again")) == content
        text = to_json(machine)
        assert to_json(from_json(text.encode(), "again")) == text


def test_to_bytes_is_compact() -> None:
    machine = Machine.of(cyclic(200))
    assert len(to_bytes(machine)) < len(to_json(machine)) / 3


def test_to_bytes_layout() -> None:
    """As FORMAT.md says, written out by hand."""
    import hashlib
    import struct

    light = examples.traffic_light()
    machine = Machine.of(light.automaton, heads=Heads((light.automaton.tables,), (0,)), about={"a": 1})
    names = b"".join(
        struct.pack("<I", len(name)) + name for name in (b"go", b"stop", b"red", b"green", b"wait", b"walk")
    )
    body = (
        b"\x89EXSTAT\n" + struct.pack("<8I", 1, 0, 2, 2, 2, 0, 1, 1) + names + bytes([1, 1, 0, 0]) + bytes([0, 1])
        + struct.pack("<2I", 2, 0) + bytes([1, 1, 0, 0]) + struct.pack("<I", 7) + b'{"a":1}'
    )  # fmt: skip
    assert to_bytes(machine) == body + hashlib.sha256(body).digest()


def test_to_json_without_extras_is_that_of_automata(tmp_path: Path) -> None:
    machine = examples.traffic_light()
    machine.save(tmp_path / "light.json")
    assert read_machine(tmp_path / "light.json") == machine.automaton
    write_machine(machine.automaton, tmp_path / "other.json")
    assert (tmp_path / "other.json").read_text() == (tmp_path / "light.json").read_text()


def test_load_foreign_files(tmp_path: Path) -> None:
    machine = examples.traffic_light()
    save(machine, tmp_path / "light.dot")
    assert load(tmp_path / "light.dot") == machine
    (tmp_path / "no_extension").write_text(to_json(machine))
    assert load(tmp_path / "no_extension") == machine
    (tmp_path / "bytes").write_bytes(to_bytes(machine))
    assert load(tmp_path / "bytes") == machine


def test_load_a_semiautomaton(tmp_path: Path) -> None:
    document = json.loads(to_json(examples.traffic_light()))
    for entry in ("start", "outputs", "readout"):
        del document[entry]
    (tmp_path / "bare.json").write_text(json.dumps(document | {"kind": "semiautomaton", "about": {"x": 1}}))
    assert load(tmp_path / "bare.json").outputs("go stop") == ["green", "red"]


def test_load_and_save_refuse_missing_files_and_extensions(tmp_path: Path) -> None:
    machine = examples.traffic_light()
    with pytest.raises(BrokenFile, match=r"missing\.json: there is no such file"):
        load(tmp_path / "missing.json")
    with pytest.raises(BrokenFile, match="it cannot be read: is a directory"):
        load(tmp_path)
    with pytest.raises(UnknownName, match=r"unknown extension '.txt'.* Known: .json, .exactstate, .dot"):
        machine.save(tmp_path / "light.txt")
    with pytest.raises(BrokenFile, match=r"light\.json: it cannot be written: there is no folder"):
        machine.save(tmp_path / "nowhere" / "light.json")
    broken = Machine.of(type(machine.automaton)(**{**fields(machine), "symbols": ("\ud800", "b")}))
    for name in ("light.json", "light.exactstate"):
        with pytest.raises(InvalidMachine, match="half a surrogate pair"):
            broken.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def fields(machine: Machine) -> dict[str, object]:
    a = machine.automaton
    return {"symbols": a.symbols, "states": a.states, "tables": a.tables, "outputs": a.outputs, "readout": a.readout}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_save_and_load_any_names(data: st.DataObject) -> None:
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


def victim() -> Machine:
    light = examples.traffic_light().automaton
    return Machine.of(light, heads=Heads((light.tables,), (0,)), about={"task": "light"})


def sealed(body: bytes) -> bytes:
    """With the right SHA-256, as an attacker would write it."""
    return body + hashlib.sha256(body).digest()


def patched(place: int, *values: int, form: str = "<I") -> bytes:
    body = bytearray(to_bytes(victim())[:-DIGEST])
    for i, value in enumerate(values):
        struct.pack_into(form, body, place + i * struct.calcsize(form), value)
    return sealed(bytes(body))


# places in the file: magic 0, version 8, kind 12, symbols 16, states 20, outputs 24, start 28, heads 32, named 36
FIRST_NAME = 40
TABLES = FIRST_NAME + 6 * 4 + len("gostopredgreenwaitwalk")
READOUT, HEAD = TABLES + 4, TABLES + 6
ABOUT = HEAD + 8 + 4

HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing at all": (lambda: b"", "it ends too early: the magic wants 8 bytes"),
    "only the magic": (lambda: b"\x89EXSTAT\n", "it ends too early"),
    "wrong magic": (lambda: b"\x89BESENT\n" + to_bytes(victim())[8:], "it does not begin with"),
    "a later version": (lambda: patched(8, 2), "its version is 2; this exactstate reads version 1"),
    "an unknown kind": (lambda: patched(12, 2), "its kind is 2"),
    "no symbols": (lambda: patched(16, 0), "it has 0 symbols, 2 states and 2 outputs; wanted some of each"),
    "no states": (lambda: patched(20, 0), "it has 2 symbols, 0 states"),
    "no outputs": (lambda: patched(24, 0), "and 0 outputs"),
    "billions of symbols": (lambda: patched(16, 2**32 - 1), "the symbol names wants 17179869180 bytes"),
    "billions of states": (lambda: patched(20, 2**32 - 1), "the state names wants 17179869180 bytes"),
    "billions of nameless states": (
        lambda: sealed(
            b"\x89EXSTAT\n" + struct.pack("<8I", 1, 1, 1, 2**32 - 1, 1, 0, 0, 0) + b"\1\0\0\0a" + b"\1\0\0\0b"
        ),
        "the tables wants 17179869180 bytes",
    ),
    "billions of outputs": (lambda: patched(24, 2**32 - 1), "the output names wants 17179869180 bytes"),
    "billions of heads": (lambda: patched(32, 2**32 - 1), "it ends too early"),
    "a start out of range": (lambda: patched(28, 2), "start state 2 is out of range: there are 2 states"),
    "states named twice": (lambda: patched(36, 2), "its states are named 2; wanted 0 or 1"),
    "a name without end": (lambda: patched(FIRST_NAME, 2**31), "the name of symbol 0 wants 2147483648 bytes"),
    "a name that is not UTF-8": (
        lambda: patched(FIRST_NAME + 4, 0xFF, form="B"), "the name of symbol 0 holds the byte 0xff, which is not UTF-8",
    ),
    "a symbol that comes twice": (
        lambda: sealed(
            b"\x89EXSTAT\n" + struct.pack("<8I", 1, 0, 2, 1, 1, 0, 0, 0) + 2 * b"\1\0\0\0a" + b"\1\0\0\0x"
            + bytes(2) + bytes(1) + bytes(4)
        ),
        "every symbol has its own name; 'a' came twice",
    ),
    "a state out of range": (lambda: patched(TABLES + 2, 2, form="B"), "symbol 'stop' sends state 'red' to 2"),
    "an output out of range": (lambda: patched(READOUT, 9, form="B"), "state 'red' puts out 9"),
    "a head without indices": (lambda: patched(HEAD, 0), "head 0 has no indices"),
    "a head of billions": (lambda: patched(HEAD, 2**32 - 1), "the table of head 0 wants"),
    "a head that begins nowhere": (lambda: patched(HEAD + 4, 7), "head 0 starts at index 7, but it has 2 indices"),
    "a head out of range": (lambda: patched(HEAD + 8, 5, form="B"), "head 0: symbol 0 sends index 0 to 5"),
    "a head of another machine": (
        lambda: patched(HEAD + 8, 0, 1, 1, 0, form="B"), "the heads do not determine the state",
    ),
    "metadata that is not JSON": (lambda: patched(ABOUT + 4, ord("x"), form="B"), "its metadata is not JSON"),
    "metadata that is a list": (
        lambda: sealed(to_bytes(victim())[:ABOUT] + struct.pack("<I", 3) + b"[1]"), "its metadata is not a JSON object",
    ),
    "metadata with NaN": (
        lambda: sealed(to_bytes(victim())[:ABOUT] + struct.pack("<I", 9) + b'{"a":NaN}'), "NaN is not a number",
    ),
    "metadata with a name twice": (
        lambda: sealed(to_bytes(victim())[:ABOUT] + struct.pack("<I", 13) + b'{"a":1,"a":2}'), "'a' came twice",
    ),
    "metadata nested without end": (
        lambda: sealed(to_bytes(victim())[:ABOUT] + struct.pack("<I", 500_000) + b'{"a":' + b"[" * 499_995),
        "its metadata is",
    ),
    "trailing bytes": (lambda: sealed(to_bytes(victim())[:-DIGEST] + b"\0"), "it has 1 bytes after"),
    "a changed byte": (
        lambda: to_bytes(victim())[:TABLES] + b"\0" + to_bytes(victim())[TABLES + 1 :], "its SHA-256 is not that of",
    ),
    "a changed digest": (lambda: to_bytes(victim())[:-1] + b"\0", "its SHA-256 is not that of its content"),
}  # fmt: skip


def test_from_bytes_reads_the_undamaged_file() -> None:
    assert from_bytes(to_bytes(victim()), "well") == victim()
    assert from_bytes(patched(8, 1), "well") == victim()


@pytest.mark.parametrize("name", HOSTILE)
def test_from_bytes_refuses_hostile_files(name: str, tmp_path: Path) -> None:
    make, reason = HOSTILE[name]
    path = tmp_path / "hostile.exactstate"
    path.write_bytes(make())
    tracemalloc.start()
    with pytest.raises(BrokenFile) as refused:
        load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert reason in str(refused.value)
    assert str(refused.value).startswith(f"{path}: ")
    assert len(str(refused.value)) < 400
    assert peak < 50 << 20


def test_from_bytes_refuses_every_truncation() -> None:
    whole = to_bytes(victim())
    for length in range(len(whole)):
        with pytest.raises(BrokenFile):
            from_bytes(whole[:length], "cut")
        with pytest.raises(BrokenFile):
            from_bytes(sealed(whole[: max(length - DIGEST, 0)]), "cut and sealed")


def test_from_bytes_refuses_every_flipped_bit() -> None:
    whole = to_bytes(victim())
    for place in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << bit
            with pytest.raises(BrokenFile):
                from_bytes(bytes(damaged), "damaged")


def test_from_bytes_refuses_noise() -> None:
    """Whatever is sealed into a file, it is a machine or it is refused."""
    rng = np.random.default_rng(0)
    whole = to_bytes(victim())
    for _ in range(300):
        body = bytearray(whole[:-DIGEST])
        for place in rng.integers(8, len(body), 4):
            body[place] = rng.integers(256)
        with contextlib.suppress(BrokenFile):
            from_bytes(sealed(bytes(body)), "noise").run([0])


def document(**change: Any) -> str:
    return json.dumps({**json.loads(to_json(victim())), **change})


LIGHT = [[1, 1], [0, 0]]
HOSTILE_TEXT = {
    "nothing": ("", "it is empty"),
    "not an object": ("[1, 2]", "this is some other JSON"),
    "cut short": (to_json(victim())[:-10], "this is not JSON"),
    "two documents": (to_json(victim()) * 2, "this is not JSON"),
    "not a number": (document().replace('"start": 0, "outputs"', '"start": NaN, "outputs"'), "NaN is not a number"),
    "a name twice": (document().replace('"version": 1', '"version": 1, "version": 1'), "version came twice"),
    "a name twice inside": (document(about={}).replace("{}", '{"a": 1, "a": 2}'), "a came twice"),
    "nested without end": ("[" * 200_000, "nested too deep"),
    "nested without end inside": (document(about=0).replace('"about": 0', '"about": ' + "[" * 200_000), "too deep"),
    "a later version": (document(version=2), "version is 2; this exactstate reads version 1"),
    "version as a float": (document(version=1.0), "version is 1.0"),
    "a state out of range": (document(tables=[[1, 2], [0, 0]]), "tables[0][1] is 2; wanted an integer from 0 to 1"),
    "a state that is true": (document(tables=[[True, 1], [0, 0]]), "tables[0][0] is true"),
    "a state that is 1.0": (document(tables=[[1.0, 1], [0, 0]]), "tables[0][0] is 1.0"),
    "a row too short": (document(tables=[[1], [0, 0]]), "tables[0] is a list of 1; wanted 2 numbers"),
    "a symbol twice": (document(symbols=["a", "a"]), "every symbol has its own name; 'a' came twice"),
    "a stranger": (document(color="red"), "color does not belong in a moore"),
    "heads that are none": (document(heads=[]), "the entry heads is not a list of heads"),
    "heads that are numbers": (document(heads=[1]), "the entry heads[0] wants the entries start and tables"),
    "a head with more": (document(heads=[{"start": 0, "tables": LIGHT, "x": 1}]), "and no others"),
    "a head begun at true": (document(heads=[{"start": True, "tables": LIGHT}]), "heads[0].start holds true"),
    "a head begun at -1": (document(heads=[{"start": -1, "tables": LIGHT}]), "heads[0].start holds -1"),
    "a head with one row": (document(heads=[{"start": 0, "tables": [[0]]}]), "heads[0].tables wants 2 rows"),
    "a head out of range": (document(heads=[{"start": 0, "tables": [[5, 0], [0, 0]]}]), "sends index 0 to 5"),
    "a head with 1.0": (document(heads=[{"start": 0, "tables": [[1.0, 0], [0, 0]]}]), "tables[0] holds 1.0"),
    "a ragged head": (document(heads=[{"start": 0, "tables": [[0, 1], [0]]}]), "heads[0].tables[1] wants 2 numbers"),
    "a huge number": (document(heads=[{"start": 10**30, "tables": LIGHT}]), "heads[0].start holds 1000"),
    "a head of another": (document(heads=[{"start": 0, "tables": [[0, 1], [1, 0]]}]), "do not determine the state"),
    "metadata that is a list": (document(about=[1]), "the entry about is not an object"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_TEXT)
def test_from_json_refuses_hostile_files(name: str, tmp_path: Path) -> None:
    text, reason = HOSTILE_TEXT[name]
    path = tmp_path / "hostile.json"
    path.write_text(text)
    with pytest.raises(BrokenFile) as refused:
        load(path)
    assert reason in str(refused.value)
    assert str(refused.value).startswith(str(path))
    assert len(str(refused.value)) < 400


def test_from_json_refuses_text_that_is_not_utf8() -> None:
    with pytest.raises(BrokenFile, match="text, line 2: byte 0xff is not UTF-8 text"):
        from_json(b'{"format":\n "\xff"}', "text")


def test_from_json_reads_the_undamaged_file() -> None:
    assert from_json(document().encode(), "well") == victim()


def test_a_binary_file_of_an_older_name_is_refused_whatever_its_ending(tmp_path: Path) -> None:
    path = tmp_path / "machine.older"
    path.write_bytes(b"\x89OLDER!\n" + to_bytes(victim())[8:])
    with pytest.raises(BrokenFile, match="it is no binary machine; write it anew"):
        load(path)
