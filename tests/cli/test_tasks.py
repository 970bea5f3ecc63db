"""`exactstate tasks`: the list, and the description of one task."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exactstate import automata
from exactstate.automata import Moore, write_machine
from exactstate.cli._app import run
from exactstate.tasks import NAMES, task

Captured = pytest.CaptureFixture[str]


def rows(arguments: list[str], said: Captured) -> list[dict[str, object]]:
    assert run(["tasks", *arguments, "--json"]) == 0
    out, err = said.readouterr()
    assert err == ""
    found = json.loads(out)
    assert isinstance(found, list)
    return found


def test_tasks_as_json_lists_every_task_once(capsys: Captured) -> None:
    found = {row["name"]: row for row in rows([], capsys)}
    assert tuple(found) == NAMES
    for name, row in found.items():
        machine = task(str(name)).machine
        assert (row["states"], row["symbols"]) == (machine.n_states, machine.n_symbols)
    assert [name for name, row in found.items() if row["definite"]] == ["DFF5"]
    assert found["DFF5"]["order"] == 5
    assert found["DFF5"]["machine_definite"] is False


# what the paper chose by hand, as the sum of the squares of the heads
@pytest.mark.parametrize(
    ("name", "cost"), [("Z2", 4), ("S3", 13), ("S4", 29), ("A5", 169), ("M11", 484), ("DFF5", 9), ("FF", 9)]
)
def test_tasks_suggest_heads_at_least_as_good_as_the_paper(name: str, cost: int, capsys: Captured) -> None:
    heads = rows([name], capsys)[0]["heads"]
    assert isinstance(heads, list)
    assert sum(d * d for d in heads) <= cost


def test_tasks_prints_a_table(capsys: Captured) -> None:
    assert run(["tasks"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert lines[0].split() == ["task", "states", "symbols", "heads", "definite"]
    assert [line.split()[0] for line in lines[1 : len(NAMES) + 1]] == list(NAMES)
    assert all(line == line.rstrip() for line in lines)
    assert "\x1b" not in out


def test_tasks_describes_one_task(capsys: Captured) -> None:
    assert run(["tasks", "dff5"]) == 0
    out, _ = capsys.readouterr()
    assert out.startswith("DFF5: remember the last reset or set")
    assert "3: identity; reset; set" in out
    assert "4 times identity in a row is always followed by another letter" in out
    assert "definite of order 5" in out
    assert "this holds for the words that are drawn, not for all words" in " ".join(out.split())
    assert "not definite: 'identity' keeps" in out


def test_tasks_describes_a_machine_file(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "mine.dot"
    automata.write_machine(automata.symmetric(3), path)
    (row,) = rows([str(path)], capsys)
    assert row["name"] == "mine"
    assert row["states"] == 6
    assert sorted(row["heads"]) == [2, 3]  # type: ignore[call-overload]


def test_tasks_of_a_machine_with_control_characters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names are data: in a terminal they must not clear the screen, set its title, or reverse the text."""
    names = ("a\x1b[2J", "b\x9b31m", "c\u202ed")
    machine = Moore(symbols=names[:2], tables=[[1, 2, 0], [0, 1, 2]], states=names, outputs=names, readout=[0, 1, 2])
    write_machine(machine, tmp_path / "m.json")
    for command in (["tasks", str(tmp_path / "m.json")], ["tasks", str(tmp_path / "m.json"), "--json"]):
        assert run(command) == 0
        out, err = capsys.readouterr()
        assert all(letter.isprintable() or letter == "\n" for letter in out + err)
        assert "2J" in out
    assert run(["certify", str(tmp_path / "m.json"), "--against", "S3"]) == 2
    assert all(letter.isprintable() or letter == "\n" for letter in capsys.readouterr().err)
