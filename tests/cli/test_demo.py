"""The demo runs, draws, checks, and would say so if a state were wrong."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from detent.cli import demo


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "LENGTH", 500)
    return tmp_path


def test_the_demo(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.demo() == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "every state is the composite of the letters read so far" in out
    assert (elsewhere / "runs/demo/s3.svg").read_bytes().find(b"<svg") >= 0
    assert (elsewhere / "runs/demo/s3.png").read_bytes().startswith(b"\x89PNG")


def test_the_demo_barks(elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    honest = demo.composed

    def one_wrong(*arguments: object) -> np.ndarray:
        found = honest(*arguments)  # type: ignore[arg-type]
        found[3, 77] = found[found != found[3, 77]][0]
        return found

    monkeypatch.setattr(demo, "composed", one_wrong)
    assert demo.demo() == 1
    assert "SHOULD BE, and is not" in capsys.readouterr().out


def test_permutations_are_composed_one_by_one() -> None:
    images = [(1, 0, 2), (0, 2, 1)]
    found = demo.composed(np.array([[0, 1, 0, 1, 0, 1]]), images)[0]
    assert len(set(found[:6].tolist())) == 6 == len(list(permutations(range(3))))
    assert found[-1] == 0 * 1 + 1 * 3 + 2 * 9  # (01)(12) three times over is the identity
