"""`python -m paper`: tables and figures from rows in results, from a file, or computed; errors that leave no file."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import typer

from exactstate import records
from paper.census import ARCHITECTURES
from paper.cli import app, run
from paper.experiments.campaigns import CAMPAIGNS, LONG
from paper.experiments.runner import Campaign, Job, Options
from paper.figures.registry import FIGURES
from paper.pages import TABLES
from tests.paper.figures.test_drift import rows

ROOT = Path(__file__).parents[2]
Captured = pytest.CaptureFixture[str]
DRIFT = [
    {"kind": "summary", "format": "fp16", "order": 7, "cosine": 0.62353515625, "sine": 0.78173828125,
     "angle_error": -9.357367e-05, "log_radius": -4.4586e-05, "first_wrong_step": 4797, "by": "iteration"},
    {"kind": "step", "format": "fp16", "step": 1, "phase_error": -9.4e-05, "log_norm": 0.0, "by": "iteration"},
]  # fmt: skip


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(path: str, content: list[dict]) -> None:
    for row in content:
        records.append(path, row)


def commands() -> Iterator[tuple[str, object]]:
    """The words that lead to every command, and the command."""
    waiting: list[tuple[list[str], object]] = [([], typer.main.get_command(app))]
    while waiting:
        words, command = waiting.pop()
        inside = getattr(command, "commands", None)
        if inside:
            waiting += [([*words, name], one) for name, one in inside.items()]
        else:
            yield " ".join(words), command


COMMANDS = dict(commands())


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_and_json(name: str, capsys: Captured) -> None:
    assert run([*name.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert re.search(rf"python -m paper {name}( |$)", out.replace("│", " "), re.MULTILINE)
    assert "--json" in out
    for option in COMMANDS[name].params:  # type: ignore[attr-defined]
        assert getattr(option, "help", None), option.name


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_table_census_names_every_architecture(form: str, capsys: Captured) -> None:
    assert run(["table", "census", "--format", form]) == 0
    printed = capsys.readouterr().out
    for entry in ARCHITECTURES:
        assert entry.name in printed
    assert "definite automata" in printed


def test_table_census_as_json(capsys: Captured) -> None:
    assert run(["table", "census", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in printed] == [entry.name for entry in ARCHITECTURES]
    assert {"recurrence", "transition", "spectrum", "branch", "realizes", "note", "rho"} <= printed[0].keys()


def test_table_census_needs_no_torch() -> None:
    program = "import sys; from paper.cli import run; run(['table', 'census']); assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, cwd=ROOT).returncode == 0


def test_table_drift_has_a_line_per_format(capsys: Captured) -> None:
    write("results/drift.jsonl", DRIFT)
    assert run(["table", "drift"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "The rotation by 2 pi / 7, rounded once to each format and then iterated in fp64"
    wanted = ["fp16", "0.62353515625", "0.78173828125", "-9.357e-05", "-4.459e-05", "4,797", "iteration"]
    assert lines[4].split() == wanted


@pytest.mark.parametrize(("form", "part"), [("markdown", "| fp16 | 0.62353515625 |"), ("text", "4,797")])
def test_table_drift_in_other_formats(form: str, part: str, capsys: Captured) -> None:
    write("results/drift.jsonl", DRIFT)
    assert run(["table", "drift", "--format", form]) == 0
    assert part in capsys.readouterr().out


@pytest.mark.parametrize("name", ["results", "seeds"])
def test_table_of_lengths_in_every_format(name: str, tmp_path: Path, capsys: Captured) -> None:
    for form, part in (("text", "Mamba⁻"), ("markdown", "| --- |")):
        assert run(["table", name, "--rows", str(tmp_path), "--format", form]) == 0
        assert part in capsys.readouterr().out
    assert run(["table", name, "--rows", str(tmp_path), "--json"]) == 0
    assert {"S3", "FF"} <= {entry["task"] for entry in json.loads(capsys.readouterr().out)}
    assert run(["table", name, "--rows", "nowhere"]) == 2
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.parametrize(("ending", "begins"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_figure_draws_the_rows_in_results(ending: str, begins: bytes, capsys: Captured) -> None:
    write("results/drift.jsonl", rows())
    assert run(["figure", "drift", "-o", f"drift{ending}"]) == 0
    assert Path(f"drift{ending}").read_bytes().startswith(begins)
    assert capsys.readouterr() == (f"drift, {len(rows())} rows: drift{ending}\n", "")


def test_figure_prints_given_rows_as_json(capsys: Captured) -> None:
    write("mine.jsonl", rows())
    assert run(["figure", "drift", "--rows", "mine.jsonl", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == rows()


def test_figure_keep_computes_and_stamps_the_rows(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FIGURES, "drift", replace(FIGURES["drift"], compute=rows))
    assert run(["figure", "drift", "--keep", "results/drift.jsonl", "-o", "drift.svg"]) == 0
    assert "computing the rows of drift" in capsys.readouterr().err
    first, *rest = records.read("results/drift.jsonl")
    assert rest == rows()[1:]
    assert {"date", "machine", "command"} < set(first)
    assert Path("drift.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["geometry", "-o", "g.svg"], "results/geometry.jsonl: there are no rows here; make them with"),
        (["drift"], "name a picture with -o FILE, or get the rows with --json or --keep FILE"),
        (["drift", "-o", "d.gif"], "unknown picture format '.gif'"),
        (["drift", "--rows", "gone.jsonl", "-o", "d.svg"], "gone.jsonl: this is not a file of rows"),
        (["drift", "--rows", "a.jsonl", "--keep", "b.jsonl"], "use one of the two"),
        (["geometry", "--keep", "g.jsonl"], "are not computed here; make them with `python -m paper run geometry`"),
        (["drft", "-o", "d.svg"], "unknown figure 'drft'. Did you mean 'drift'?"),
        (["realization", "S4", "-o", "r.svg"], "cells are drawn for at most 12 states; this machine has 24"),
        (["realization", "Z5", "--word", "9", "-o", "r.svg"], "unknown symbol '9'"),
    ],
)
def test_figure_of_bad_input_leaves_no_file(arguments: list[str], sentence: str, capsys: Captured) -> None:
    assert run(["figure", *arguments]) == 2
    assert sentence in capsys.readouterr().err
    assert list(Path().iterdir()) == []


def test_figure_keep_never_overwrites(capsys: Captured) -> None:
    write("mine.jsonl", rows())
    before = Path("mine.jsonl").read_bytes()
    assert run(["figure", "drift", "--keep", "mine.jsonl"]) == 2
    assert "mine.jsonl exists" in capsys.readouterr().err
    assert Path("mine.jsonl").read_bytes() == before


def test_figure_refuses_rows_of_another_figure(capsys: Captured) -> None:
    write("mine.jsonl", rows())
    assert run(["figure", "geometry", "--rows", "mine.jsonl", "-o", "g.svg"]) == 2
    assert "rows of kind 'window'" in capsys.readouterr().err


def test_figure_realization_reports_when_the_state_is_lost(capsys: Captured) -> None:
    assert run(["figure", "realization", "Z5", "--word", "1 1 1 1 1 1", "--eta", "0.2", "-o", "z5.svg"]) == 0
    assert "Z5, 6 steps, without restoration the state is lost at step 3: z5.svg" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["comparison", "supervision"])
def test_the_table_of_a_campaign_and_its_rows(name: str, capsys: Captured) -> None:
    rows = str(ROOT / "results" / f"{name}.jsonl")
    assert run(["table", name, "--format", "markdown", "--rows", rows]) == 0
    assert "| --- |" in capsys.readouterr().out
    assert run(["table", name, "--json", "--rows", rows]) == 0
    assert len(json.loads(capsys.readouterr().out)) > 50
    assert run(["table", name, "--rows", "nowhere.jsonl"]) == 2
    assert "nowhere.jsonl" in capsys.readouterr().err


def test_long_resumes_campaigns_in_order_and_skips_what_is_done(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    from paper.experiments import campaigns

    done: list[tuple[str, dict]] = []

    def jobs(name: str) -> Callable[[Options], Iterator[Job]]:
        def compute(options: Options) -> dict:
            done.append((name, dict(options.settings)))
            return {"kind": name}

        return lambda options: iter([Job({"kind": name}, partial(compute, options))])

    small = {
        name: Campaign(name=name, summary="", file=f"{name}.jsonl", jobs=jobs(name), settings={"minutes": 5.0})
        for name in ("first", "second")
    }
    monkeypatch.setattr(campaigns, "CAMPAIGNS", small)
    monkeypatch.setattr(campaigns, "LONG", {"first": (), "second": ("minutes=30",)})
    assert run(["long", "--rounds", "2"]) == 0
    assert done == [("first", {"minutes": 5.0}), ("second", {"minutes": 30.0})]
    assert capsys.readouterr().out.splitlines() == [
        "first: done", "first: 1 new rows in results/first.jsonl, 0 jobs skipped",
        "second: done", "second: 1 new rows in results/second.jsonl, 0 jobs skipped",
        "first: 0 new rows in results/first.jsonl, 1 jobs skipped",
        "second: 0 new rows in results/second.jsonl, 1 jobs skipped",
    ]  # fmt: skip


def test_long_names_campaigns_and_settings_that_exist() -> None:
    for name, settings in LONG.items():
        assert CAMPAIGNS[name].options(settings=settings)


def test_overview_says_what_is_missing(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "rows").mkdir()
    assert run(["overview", "-o", "page", "--rows", "rows"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{len(TABLES) + 1} tables, {len(FIGURES) + 1} figures: page/index.html\n")
    assert "counting is missing: there are no rows: counting.jsonl" in out
    assert run(["overview", "-o", "page", "--rows", "nowhere"]) == 2
