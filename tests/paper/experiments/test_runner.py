"""The runner: jobs with a row are skipped, rows are appended as jobs finish, settings have types."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from exactstate import records
from exactstate.errors import InvalidConfig, UnknownName
from exactstate.records import Row
from paper.cli import run as command
from paper.experiments.campaigns import CAMPAIGNS
from paper.experiments.runner import Campaign, Job, Options, run


def compute(seed: int, fail_at: int | None = None) -> list[Row]:
    if seed == fail_at:
        raise KeyboardInterrupt
    return [{"seed": seed, "square": seed**2}, {"detail_of": seed}]


def squares(options: Options) -> Iterator[Job]:
    fail_at = int(options.settings["fail_at"])
    for seed in options.seeds:
        yield Job({"seed": seed}, partial(compute, seed, fail_at))


CAMPAIGN = Campaign(
    name="squares", summary="Squares.", file="squares.jsonl", jobs=squares, seeds=(1, 2, 3),
    settings={"fail_at": 0, "rate": 0.5, "verbose": False, "label": "x"},
)  # fmt: skip


def test_run_appends_the_rows_of_missing_jobs_and_stamps_them(tmp_path: Path) -> None:
    rows = tmp_path / "deep" / "rows.jsonl"
    done = list(run(CAMPAIGN, CAMPAIGN.options(rows=rows, seeds=[2])))
    assert [job.key for job, _ in done] == [{"seed": 2}]
    first, second = records.read(rows)
    assert (first["seed"], first["square"], second) == (2, 4, {"detail_of": 2})
    assert {"date", "machine", "command", "versions"} < set(first)
    assert ("commit" in first) == (Path(__file__).parents[3] / ".git").exists()
    assert [len(new) for _, new in run(CAMPAIGN, CAMPAIGN.options(rows=rows))] == [2, 0, 2]
    assert [row["seed"] for row in records.read(rows) if "seed" in row] == [2, 1, 3]


def test_run_keeps_finished_jobs_when_interrupted_and_resumes(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    with pytest.raises(KeyboardInterrupt):
        list(run(CAMPAIGN, CAMPAIGN.options(rows=rows, settings=["fail_at=3"])))
    assert [row["seed"] for row in records.read(rows) if "seed" in row] == [1, 2]
    assert [len(new) for _, new in run(CAMPAIGN, CAMPAIGN.options(rows=rows))] == [0, 0, 2]


def test_is_done_compares_the_key_and_ignores_unfinished_rows() -> None:
    job = Job({"task": "S3", "heads": [3, 2]}, dict)
    assert job.is_done([{"task": "S3", "heads": [3, 2], "steps": 9}])
    assert not job.is_done([{"task": "S3", "heads": [3, 2], "finished": False}, {"task": "S3", "heads": [6]}, {}])


def test_options_parse_settings_by_the_type_of_the_default() -> None:
    options = CAMPAIGN.options(settings=["fail_at=7", "rate=2", "verbose=true", "label=a=b"])
    assert options.settings == {"fail_at": 7, "rate": 2.0, "verbose": True, "label": "a=b"}
    assert options.rows == Path("results/squares.jsonl")
    assert CAMPAIGN.options().settings == CAMPAIGN.settings


def test_options_refuse_what_the_campaign_does_not_have() -> None:
    with pytest.raises(UnknownName, match=r"unknown setting 'rat'\. Did you mean 'rate'\?"):
        CAMPAIGN.options(settings=["rat=1"])
    with pytest.raises(InvalidConfig, match="fail_at takes a value such as 0; got 'many'"):
        CAMPAIGN.options(settings=["fail_at=many"])
    with pytest.raises(InvalidConfig, match="squares does not vary tasks; leave --tasks out"):
        CAMPAIGN.options(tasks=["S3"])
    with pytest.raises(InvalidConfig, match="squares has one recipe; leave --recipe out"):
        CAMPAIGN.options(recipe="paper")


def test_run_command_prints_lines_json_and_interruptions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(CAMPAIGNS, "squares", CAMPAIGN)
    rows = str(tmp_path / "rows.jsonl")
    assert command(["run", "squares", "--rows", rows, "--seeds", "1,2", "--set", "fail_at=2"]) == 130
    out, err = capsys.readouterr()
    assert (out, err) == ("1: done\n", "exactstate: interrupted; repeat the command to resume squares.\n")
    assert command(["run", "squares", "--rows", rows, "--seeds", "1,2", "--json"]) == 0
    assert '"square": 4' in capsys.readouterr().out
    assert command(["run", "squares", "--rows", rows, "--seeds", "1,2"]) == 0
    assert capsys.readouterr().out == f"squares: 0 new rows in {rows}, 2 jobs skipped\n"


def test_run_command_lists_the_campaigns_and_refuses_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["run"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in CAMPAIGNS)
    assert command(["run", "--json"]) == 0
    assert '"budget": 2000' in capsys.readouterr().out
    assert command(["run", "trainin"]) == 2
    assert "unknown experiment 'trainin'. Did you mean 'training' or " in capsys.readouterr().err
    assert command(["run", "training", "--seeds", "a"]) == 2
    assert "seeds are numbers separated by commas, such as 42,43; got 'a'" in capsys.readouterr().err


@pytest.mark.slow
def test_run_on_a_cluster_appends_every_row_once_and_resumes(tmp_path: Path) -> None:
    """Two processors of this machine; the job that is there already does not run again."""
    alone, together = tmp_path / "alone.jsonl", tmp_path / "together.jsonl"
    list(run(CAMPAIGN, CAMPAIGN.options(rows=alone)))
    list(run(CAMPAIGN, CAMPAIGN.options(rows=together, seeds=[2])))
    found = list(run(CAMPAIGN, CAMPAIGN.options(rows=together), cluster="local", workers=2))
    assert sorted(len(new) for _, new in found) == [0, 2, 2]

    def squares_of(path: Path) -> list[tuple[int, int]]:
        return sorted((row["seed"], row["square"]) for row in records.read(path) if "seed" in row)

    assert squares_of(together) == squares_of(alone) == [(1, 1), (2, 4), (3, 9)]
    assert {row["command"] for row in records.read(together) if "seed" in row} == {records.stamp()["command"]}
    assert [len(new) for _, new in run(CAMPAIGN, CAMPAIGN.options(rows=together), cluster="local")] == [0, 0, 0]
