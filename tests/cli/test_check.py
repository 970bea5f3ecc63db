"""`detent check`: valid, not valid with the reason, or not a certificate."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from detent.certify import Certificate
from detent.cli._app import run
from tests.certify.certificates import certificate

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
        ("{}", 'wanted a JSON object with "format": "detent-certificate"'),
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
    program = f"import sys; sys.modules['torch'] = None\nfrom detent.cli import main; main(['check', {str(path)!r}])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
