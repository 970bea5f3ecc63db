"""`exactstate demo`: its output, saved runs, exit codes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from exactstate.cli import demo
from exactstate.cli._app import run
from exactstate.train import TrainConfig


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demo") / "runs"
    with pytest.MonkeyPatch.context() as patch:
        honest = demo._baseline_config
        settings = {"steps": 60, "check_every": 30, "check_words": 32, "length": 8, "batch": 32}

        def small(cell: str) -> TrainConfig:
            config = honest(cell)
            return replace(config, end_to_end=replace(config.end_to_end, **settings))

        patch.setattr(demo, "_baseline_config", small)
        assert run(["demo", "--out", str(out), "--max-length", "4096", "--json"]) == 0
        yield out  # type: ignore[misc]


def test_demo_shows_saved_runs(shown: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--out", str(shown), "--max-length", "4096"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "correct on every word of every length; smallest margin" in out
    assert re.search(r"\n  no failure \(\d", out)
    assert "fails at length" in out
    assert "(0 1) (1 2)" in out
    assert re.search(r"NFSM +proved correct on every word of every length; tested up to 4,096 moves\n", out)
    assert re.search(
        r"step \d+: keep a head of 3 indices and a head of \d indices, which follow a part of the order", out
    )
    assert "exactly; no two orders are confused" in out
    assert re.search(r"the kept heads alone are the network now, .* \(\d+\.\d s\)", out)
    assert re.search(r"GRU +nothing proved; ", out)
    assert re.search(r"Mamba +nothing proved; fails at \d+ moves; \d+% of words correct at \d+ moves\n", out)


def test_demo_says_what_is_kept_as_it_happens() -> None:
    said: list[str] = []
    tell = demo._told(lambda sentence, depth: said.append(sentence))
    for step, kept, left in ((100, [], 1.79), (200, [3], 0.69), (300, [3], 0.69), (400, [3, 2], 0.0)):
        tell({"attempt": 0, "phase": "search", "step": step, "kept": kept, "open": left})
    tell({"attempt": 0, "phase": "realize", "step": 10})
    assert said == [
        "step 200: keep a head of 3 indices, which follows a part of the order exactly; 0.69 nats are left open",
        "step 400: keep a head of 2 indices, which follows a part of the order exactly; no two orders are confused",
    ]


def test_demo_report_has_all_sweeps(shown: Path) -> None:
    page = (shown / "nfsm" / "report.html").read_text()
    assert "nfsm: no failure up to length 4,096" in page
    assert "mamba: fails at length" in page
    assert "gru: " in page
    assert "lstm: " in page
    assert "nfsm" not in (shown / "mamba" / "report.html").read_text()


def test_demo_as_json(shown: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--out", str(shown), "--max-length", "4096", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["nfsm"]["certified"] is True
    assert result["nfsm"]["failing_length"] is None
    assert 1 <= result["mamba"]["failing_length"] <= 4096


def test_demo_prints_the_program_as_it_was_called(
    shown: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo.sys, "argv", [str(tmp_path / ".venv" / "bin" / "exactstate"), "demo"])
    for found, said in ((None, ".venv/bin/exactstate tasks"), ("/usr/bin/exactstate", "  exactstate tasks")):
        monkeypatch.setattr(demo.shutil, "which", lambda _, found=found: found)
        demo._write_next_steps(shown / "nfsm" / "report.html", 1.0)
        assert said in capsys.readouterr().out


def test_demo_interrupted_says_how_to_resume(
    shown: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "_baseline", stopped)
    assert run(["demo", "--out", str(shown), "--max-length", "4096", "--json"]) == 130
    assert capsys.readouterr() == ("", f"exactstate: interrupted; repeat the command to resume {shown}.\n")


def test_demo_exits_with_1_when_the_baseline_does_not_fail(
    shown: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    honest = demo._baseline
    monkeypatch.setattr(demo, "_baseline", lambda *a: honest(*a) | {"failing_length": None})
    assert run(["demo", "--out", str(shown), "--max-length", "4096", "--json"]) == 1
    capsys.readouterr()
