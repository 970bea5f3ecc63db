"""`exactstate check`: valid, not valid with the reason, or not a certificate."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from exactstate.certify import Certificate
from exactstate.certify.certificate import sealed
from exactstate.cli._app import run
from tests.certify.certificates import certificate, make_key
from tests.certify.forgery import forged

Captured = pytest.CaptureFixture[str]


def write(folder: Path, name: str) -> Path:
    path = folder / f"{name}.json"
    Certificate(certificate(name)).write(path)
    return path


def test_check_of_a_valid_certificate(tmp_path: Path, capsys: Captured) -> None:
    path = write(tmp_path, "S3")
    assert run(["check", str(path)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(f"{path}: valid\n  S3: compared with a target of 6 states")
    assert "weakest column: head 0" in out
    assert "established: the file is consistent" in out
    assert out.splitlines()[-1].startswith("  not established: which weights it is about")
    rounding = next(line for line in out.splitlines() if "rounding: proved" in line)
    assert "given arithmetic as in its 1 assumptions and margins and bounds as in the file" in rounding


def test_check_of_a_changed_digit(tmp_path: Path, capsys: Captured) -> None:
    path = write(tmp_path, "S3")
    text = path.read_text()
    assert "[1, 0, 2, -1]" in text
    path.write_text(text.replace("[1, 0, 2, -1]", "[2, 0, 1, -1]", 1))
    assert run(["check", str(path)]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(f"{path}: not valid\n  the content was changed after it was sealed")
    assert out.count("\n") == 3


def test_check_of_several_as_json(tmp_path: Path, capsys: Captured) -> None:
    good, bad = write(tmp_path, "TSO2"), write(tmp_path, "Tomita4")
    content = certificate("Tomita4")
    content["counts"]["reached"] += 1
    Certificate(content).write(bad)
    assert run(["check", str(good), str(bad), "--json"]) == 1
    first, second = json.loads(capsys.readouterr().out)
    assert (first["valid"], first["name"], first["proved"]) == (True, "TSO2", ["float32", "float16"])
    assert first["counts"]["task_states"] == 12
    assert (second["valid"], len(second["findings"])) == (False, 2)
    assert second["findings"][1] == "counts.reached is 5; there are 4."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "bad.json, line 1: this is not JSON"),
        ("{}", 'wanted a JSON object with "format": "exactstate-certificate"'),
    ],
)
def test_check_of_a_file_that_is_not_a_certificate(text: str, sentence: str, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "bad.json").write_text(text)
    assert run(["check", str(tmp_path / "bad.json")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert sentence in err
    assert run(["check", str(tmp_path / "missing.json")]) == 2
    assert "there is no such file" in capsys.readouterr().err


def test_check_does_not_import_torch(tmp_path: Path) -> None:
    path = write(tmp_path, "S3")
    program = (
        f"import sys; sys.modules['torch'] = None\nfrom exactstate.cli import main; main(['check', {str(path)!r}])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_check_weights_and_against(trained: Path, capsys: Captured) -> None:
    """The three things that can be established, each by its own option."""
    path = trained / "certificate.json"
    assert run(["check", str(path), "--weights", str(trained), "--against", "S3"]) == 0
    out = capsys.readouterr().out
    assert f"established: it is about these weights: {trained / 'model.safetensors'}" in out
    assert "established: its target is S3: the same states after every word" in out
    assert "not established" not in out
    assert run(["check", str(path), "--weights", str(trained / "model.safetensors")]) == 0
    assert "not established: which task its target is (--against)" in capsys.readouterr().out
    assert run(["check", str(path), "--against", "S3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["established"] == ["consistent", "target"]


def test_check_of_a_forgery(trained: Path, tmp_path: Path, capsys: Captured) -> None:
    """Another machine, with the name and digest of S3: valid by itself, refused by both comparisons."""
    true = json.loads((trained / "certificate.json").read_text())
    Certificate(forged(true)).write(tmp_path / "forged.json")
    assert run(["check", str(tmp_path / "forged.json")]) == 0
    assert "not established" in capsys.readouterr().out
    assert run(["check", str(tmp_path / "forged.json"), "--weights", str(trained), "--against", "S3", "--json"]) == 1
    row = json.loads(capsys.readouterr().out)[0]
    assert (row["valid"], row["established"]) == (False, ["consistent"])
    assert "it is not about the weights in" in row["findings"][0]
    assert "its target is not S3" in row["findings"][1]


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="signatures need ssh-keygen, of OpenSSH")
def test_check_sign_and_verify(tmp_path: Path, capsys: Captured) -> None:
    path = write(tmp_path, "S3")
    private, key = make_key(tmp_path / "key")
    assert run(["check", str(path), "--verify", str(key)]) == 2
    assert "there is no signature to read" in capsys.readouterr().err
    assert run(["check", str(path), "--sign", str(private)]) == 0
    assert f"signed: {path}.sig" in capsys.readouterr().out
    assert run(["check", str(path), "--verify", str(key)]) == 0
    assert "established: it was signed with the key" in capsys.readouterr().out
    content = certificate("S3")
    Certificate(sealed({**content, "name": "another"})).write(path)
    assert run(["check", str(path), "--verify", str(key)]) == 1
    assert "is not a signature of this content" in capsys.readouterr().out


def test_check_does_not_sign_what_is_not_valid(tmp_path: Path) -> None:
    path = write(tmp_path, "S3")
    assert run(["check", str(path), "--against", "Z2", "--sign", "key"]) == 1
    assert not (tmp_path / "S3.json.sig").exists()


def test_check_prints_no_control_characters(tmp_path: Path, capsys: Captured) -> None:
    content = certificate("S3")
    content["name"] = "a\x1b[2J\u202eb\u009b"
    content["symbols"][0] = "\x07\x1b]0;title\x07"
    Certificate(sealed(content)).write(tmp_path / "c.json")
    assert run(["check", str(tmp_path / "c.json")]) == 0
    out = capsys.readouterr().out
    assert r"a\x1b[2J\u202eb\x9b: compared" in out
    assert all(letter.isprintable() or letter == "\n" for letter in out)
    assert run(["check", str(tmp_path / "c.json"), "--json"]) == 0
    out = capsys.readouterr().out
    assert all(letter.isprintable() or letter == "\n" for letter in out)
    assert json.loads(out)[0]["name"] == content["name"]
