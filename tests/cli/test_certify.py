"""`exactstate certify`: runs and machine files against their targets."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from exactstate.automata import Moore, symmetric, tomita, write_machine
from exactstate.cli._app import run as command
from exactstate.train import train

Captured = pytest.CaptureFixture[str]


def test_certify_of_a_run_writes_a_certificate_that_check_accepts_until_it_is_changed(
    trained: Path, tmp_path: Path, capsys: Captured
) -> None:
    written = tmp_path / "again.json"
    assert command(["certify", str(trained), "-o", str(written)]) == 0
    out = capsys.readouterr().out
    assert "the output after every word of any length equals the target's" in out
    assert f"certificate written to {written}" in out
    assert command(["check", str(written)]) == 0
    kept = json.loads((trained / "certificate.json").read_text())
    assert kept["sha256"] == json.loads(written.read_text())["sha256"]
    capsys.readouterr()
    text = written.read_text()
    digit = text.index('"matching"') + text[text.index('"matching"') :].index("1")
    written.write_text(text[:digit] + "2" + text[digit + 1 :])
    assert command(["check", str(written)]) == 1
    assert "the content was changed after it was sealed" in capsys.readouterr().out


def test_certify_finds_the_shortest_word_for_one_wrong_transition(tmp_path: Path, capsys: Captured) -> None:
    """S4 with the farthest state's last letter sent astray: the shortest word that shows it has seven letters."""
    s4 = symmetric(4)
    tables = s4.tables.copy()
    tables[2, s4.n_states - 1] = 0
    bent = Moore(symbols=s4.symbols, tables=tables, states=s4.states, outputs=s4.outputs, readout=s4.readout)
    write_machine(bent, tmp_path / "bent.json")
    assert command(["certify", str(tmp_path / "bent.json"), "--against", "S4", "--json"]) == 1
    row = json.loads(capsys.readouterr().out)
    assert (row["certified"], row["certificate"], len(row["word"])) == (False, None, 7)
    shorter = np.array(list(product(range(3), repeat=6)))
    assert np.array_equal(bent.trajectory(shorter), s4.trajectory(shorter))
    assert bent.run(row["word"]) != s4.run(row["word"])
    assert command(["certify", str(tmp_path / "bent.json"), "--against", "S4"]) == 1
    assert capsys.readouterr().out.startswith("not certified: after '")


def test_certify_compares_outputs_of_machines_with_different_states(tmp_path: Path, capsys: Captured) -> None:
    """A machine of eight states against the four of Tomita's fourth language: other states, the same answers."""
    fourth = tomita(4)
    twice = np.concatenate([fourth.tables + fourth.n_states, fourth.tables], axis=1)
    large = Moore(
        symbols=fourth.symbols, tables=twice, outputs=fourth.outputs, readout=np.tile(fourth.readout, 2),
        start=fourth.start,
    )  # fmt: skip
    write_machine(large, tmp_path / "large.json")
    assert command(["certify", str(tmp_path / "large.json"), "--against", "Tomita4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labels"] == "outputs"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["certify", "RUN/machine.json"], "does not name its target; add --against TASK or --against FILE"),
        (["certify", "RUN/machine.json", "--against", "S4"], "they must read the same symbols"),
        (["certify", "RUN/machine.json", "--against", "S3", "-o", "c.json"], "is about the weights of a network"),
        (["certify", "RUN", "--against", "S33"], "there is no task S33"),
        (["certify", "missing.json", "--against", "S3"], "missing.json: there is no such file"),
        (["certify", "EMPTY"], "this is not the folder of a run: there is no config.json in it."),
    ],
)
def test_certify_of_wrong_calls(
    arguments: list[str], sentence: str, trained: Path, tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "empty").mkdir()
    filled = [a.replace("RUN", str(trained)).replace("EMPTY", str(tmp_path / "empty")) for a in arguments]
    assert command(filled) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert sentence in err


def test_certify_of_a_run_on_a_machine_file_that_is_gone(tmp_path: Path, capsys: Captured) -> None:
    generator = np.random.default_rng(3)
    tables = np.stack([generator.permutation(5), generator.permutation(5)])
    write_machine(Moore(symbols="ab", tables=tables, outputs="vwxyz", readout=np.arange(5)), tmp_path / "mine.json")
    train(tmp_path / "mine.json", recipe="induce", width=32, out=tmp_path / "run")
    shutil.move(tmp_path / "mine.json", tmp_path / "gone.json")
    assert command(["certify", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out.startswith("mine, induce, seed 42: compared with a target of 5 states")


def test_certify_of_a_machine_file_does_not_import_torch(trained: Path) -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        f"from exactstate.cli import main; main(['certify', {str(trained / 'machine.json')!r}, '--against', 'S3'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
