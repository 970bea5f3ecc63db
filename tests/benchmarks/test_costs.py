"""The page of costs has the figures that follow from the newest reports, and no others."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from benchmarks import _costs
from benchmarks._costs import Terabyte, figures, latest, lines

PAGE = Path(__file__).parents[2] / "docs" / "costs.md"


def on_page(line: str) -> bool:
    text = PAGE.read_text("utf-8")
    return line in text.splitlines() if line.startswith("|") else line in " ".join(text.split())


def test_costs_of_the_page_follow_from_the_reports() -> None:
    assert [line for line in lines() if not on_page(line)] == []
    assert PAGE.read_text("utf-8").count("rediction") >= 3


@pytest.mark.parametrize(
    ("name", "pattern"), [("cluster", r"[\d.]+ CPU s, of them"), ("sequence_parallel", r"\d+\.\d+ s on two")]
)
def test_costs_of_other_reports_are_not_on_the_page(name: str, pattern: str, tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    shutil.copytree(_costs.REPORTS, folder)
    path = next(path for path in folder.glob(f"{name}_*.md") if latest(name) in path.read_text("utf-8"))
    text = path.read_text("utf-8")
    changed = re.sub(pattern, lambda found: re.sub(r"^[\d.]+", "12345.6", found[0]), text)
    assert changed != text
    path.write_text(changed, "utf-8")
    assert not all(on_page(line) for line in lines(folder))


def test_terabyte_reads_the_figures_of_two_workers() -> None:
    text = """- equal before timing: 5000000000 bytes: all
- exactstate run: 50 CPU s, of them 50 of its first process, whose peak is 53 MiB; meanwhile
- cluster, 1 worker: 9 CPU s, of them 9 of its first process, whose peak is 9 MiB, largest worker 9 MiB; meanwhile
- cluster, 2 workers: 75.0 CPU s, of them 9.5 of its first process, whose peak is 307 MiB, largest worker 304 MiB;"""
    found = Terabyte.measured(text)
    assert found == Terabyte(
        core_seconds=15_000, driver_seconds=1_900, driver_mib=307, worker_mib=304, overhead=1.5
    )  # fmt: skip
    assert found.hours(4) == 15_000 / 4 / 3600
    assert found.hours(64) == 1_900 / 3600


def test_figures_refuse_a_report_without_them() -> None:
    with pytest.raises(ValueError, match="was wanted in the report; got 0"):
        figures("nothing", r"(\d+) bytes")
    with pytest.raises(ValueError, match="got 2"):
        figures("1 bytes 2 bytes", r"(\d+) bytes")
