"""Tables of failing lengths from rows: lengths, medians, the join of rows, and the output formats."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from exactstate import records
from paper.lengths import FailingLength, Table, collect, in_order, median, min_max


def sweep_row(**changes: Any) -> dict[str, Any]:
    return {
        "task": "S3", "cell": "mamba", "recipe": "cpu", "seed": 42, "learned": True, "certified": False,
        "batch": 64, "max_length": 1 << 16, "failing_length": 120, "format": "float32", **changes,
    }  # fmt: skip


def fill(folder: Path, sweeps: list[dict[str, Any]], **others: list[dict[str, Any]]) -> Path:
    for name, rows in {"sweeps": sweeps, **others}.items():
        for row in rows:
            records.append(folder / f"{name}.jsonl", row)
    return folder


def line(folder: Path, task: str, cell: str) -> tuple[str, str, str]:
    """(median, range, learned) of the one recipe of a task and cell."""
    (group,) = collect(folder)[task, cell].values()
    return group.summary()


def test_failing_length_without_a_failure_sorts_last() -> None:
    assert min_max([FailingLength(10**7), FailingLength(64, at_least=True), FailingLength(5)]) == "[5; ≥64]"
    assert min_max([]) == "–"


def test_median_of_an_open_pair_is_the_lower() -> None:
    assert median([FailingLength(5), FailingLength(64, at_least=True)]) == FailingLength(5)
    assert median([FailingLength(5), FailingLength(8)]) == FailingLength(6)
    assert median([]) is None


def test_collect_of_an_empty_folder(tmp_path: Path) -> None:
    assert not collect(tmp_path)


def test_summary_takes_the_median_over_the_seeds_that_learned(tmp_path: Path) -> None:
    rows = [
        sweep_row(failing_length=100), sweep_row(seed=43, failing_length=140), sweep_row(seed=44, failing_length=None),
        sweep_row(seed=45, failing_length=3, learned=False),
    ]  # fmt: skip
    assert line(fill(tmp_path, rows), "S3", "mamba") == ("140", "[100; ≥64k]", "3/4")
    seeds = collect(tmp_path)["S3", "mamba"]["cpu"].seeds
    assert {seed: str(result) for seed, result in seeds.items()} == {42: "100", 43: "140", 44: "≥64k", 45: "×"}


def test_summary_marks_certificates_with_a_dagger(tmp_path: Path) -> None:
    trained = [
        {"task": "S3", "recipe": "induce", "seed": seed, "certified": True, "heads_given": None} for seed in (42, 43)
    ]
    swept = sweep_row(cell="nfsm", recipe="induce", failing_length=None, max_length=1 << 20, certified=True)
    fill(tmp_path, [], training=trained)
    assert line(tmp_path, "S3", "nfsm") == ("∞†", "–", "2/2")
    fill(tmp_path, [swept])
    assert line(tmp_path, "S3", "nfsm") == ("≥1M†", "[≥1M; ≥1M]", "2/2, 1 swept")
    fill(tmp_path, [], training=[{**trained[0], "seed": 44, "certified": False}])
    assert line(tmp_path, "S3", "nfsm")[2] == "2/3, 1 swept"
    fill(tmp_path, [], training=[{**trained[0], "seed": 45, "heads_given": [6]}])
    assert line(tmp_path, "S3", "nfsm")[2] == "2/3, 1 swept", "given heads are a different experiment"


def test_summary_of_a_task_that_no_seed_learned(tmp_path: Path) -> None:
    failed = {"task": "S4", "cell": "aussm", "recipe": "cpu", "learned": False}
    fill(tmp_path, [], baselines=[{**failed, "seed": 42}])
    assert line(tmp_path, "S4", "aussm") == ("×", "–", "0/1")
    fill(tmp_path, [], baselines=[{**failed, "seed": 43, "first_error": 9.25}])
    assert line(tmp_path, "S4", "aussm") == ("× 9.2", "–", "0/2")


def test_collect_ignores_unfinished_baselines(tmp_path: Path) -> None:
    row = {"task": "S4", "cell": "aussm", "recipe": "paper", "seed": 42, "learned": False, "finished": False}
    assert not collect(fill(tmp_path, [], baselines=[row]))
    fill(tmp_path, [], baselines=[{**row, "finished": True}])
    assert line(tmp_path, "S4", "aussm")[2] == "0/1"


@pytest.mark.parametrize("swapped", [False, True])
def test_collect_keeps_the_more_informative_of_two_sweeps(tmp_path: Path, swapped: bool) -> None:
    pairs = [
        (sweep_row(task="Z2", failing_length=None, max_length=1 << 12), sweep_row(task="Z2", failing_length=9000)),
        (sweep_row(task="Z16", failing_length=None, max_length=64), sweep_row(task="Z16", failing_length=None)),
        (sweep_row(task="S3", failing_length=80, batch=8), sweep_row(task="S3", failing_length=90, batch=512)),
        (sweep_row(task="S4", failing_length=7, format="float16"), sweep_row(task="S4", failing_length=91)),
    ]
    fill(tmp_path, [row for pair in pairs for row in (reversed(pair) if swapped else pair)])
    medians = [line(tmp_path, task, "mamba")[0] for task in ("Z2", "Z16", "S3", "S4")]
    assert medians == ["9000", "≥64k", "90", "91"]


def test_in_order_puts_known_tasks_first_and_recipes_on_lines_of_their_own(tmp_path: Path) -> None:
    fill(tmp_path, [sweep_row(task="mine", cell="bmru"), sweep_row(recipe="paper"), sweep_row(), sweep_row(task="Z2")])
    found = [(task, cell, recipe) for task, cell, recipe, _ in in_order(collect(tmp_path))]
    assert found == [
        ("Z2", "mamba", "cpu"), ("S3", "mamba", "cpu"), ("S3", "mamba", "paper"), ("mine", "bmru", "cpu"),
    ]  # fmt: skip


def test_table_renders_as_text_and_markdown() -> None:
    table = Table(title="T", header=("a", "b"), rows=[("1|2", "<x>"), ("", "longer")], notes=("n",))
    assert table.text().splitlines() == ["T", "", "a    b", "---  ------", "1|2  <x>", "     longer", "", "n"]
    assert table.markdown().splitlines()[2:5] == ["| a | b |", "| --- | --- |", r"| 1\|2 | <x> |"]


def test_collect_needs_no_torch(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['torch'] = None; from pathlib import Path; from paper.lengths import collect; "
        "print(*collect(Path(sys.argv[1])))"
    )
    fill(tmp_path, [sweep_row()])
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True)
    assert done.stdout == "('S3', 'mamba')\n", done.stderr
