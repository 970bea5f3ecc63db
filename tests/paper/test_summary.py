"""The line of every task, what is missing, and the profile, from given rows."""

from __future__ import annotations

from pathlib import Path

from paper.failing_lengths import published
from paper.summary import behind, profile, summary
from tests.paper.test_lengths import fill, sweep_row

TASKS = list(dict.fromkeys(task for task, _ in published()[1]))


def test_summary_has_a_line_for_every_task_and_no_empty_cell(tmp_path: Path) -> None:
    rows = summary(tmp_path)[0].rows
    assert [row[0] for row in rows] == TASKS
    assert rows[TASKS.index("S3")] == (
        "S3", "not run · ≥1M†", "not run · 186", "not run · 128", "not run · 133", *["not run"] * 4,
    )  # fmt: skip


def test_summary_puts_runs_of_one_recipe_beside_the_published(tmp_path: Path) -> None:
    failed = {"task": "S3", "cell": "gru", "recipe": "cpu", "seed": 42, "learned": False, "first_error": 23.0}
    fill(
        tmp_path, [sweep_row(failing_length=100), sweep_row(seed=43, failing_length=9, recipe="cpu-long")],
        baselines=[failed], learning=[{"task": "S3", "recipe": "gradient", "seed": 42, "certified": True}],
        story_learning=[
            {"task": "TSO3", "form": "cascade", "supervision": "states", "seed": 42, "certified": False},
            {"task": "TSO3", "form": "wide", "supervision": "states", "seed": 43, "certified": True},
        ],
    )  # fmt: skip
    rows = summary(tmp_path)[0].rows
    assert rows[TASKS.index("S3")][1:3] == ("∞† (1/1) · ≥1M†", "100 (1/1) · 186")
    assert rows[TASKS.index("S3")][5:7] == ("× 23.0 (0/1)", "not run")
    assert rows[TASKS.index("TSO3")][1] == "× (0/1) · ≥1M"
    fill(tmp_path, [], learning=[
        {"task": "Z2", "recipe": "gradient", "seed": seed, "certified": True} for seed in range(42, 47)
    ])  # fmt: skip
    assert summary(tmp_path)[0].rows[TASKS.index("Z2")][1] == "∞† · ≥1M†"


def test_behind_names_what_is_not_run_and_what_is_learned_less(tmp_path: Path) -> None:
    failed = {"task": "Z2", "cell": "mamba", "recipe": "cpu", "learned": False, "first_error": 23.0}
    budget = {"task": "S3", "recipe": "paper", "heads_given": [3, 2], "horizon": 100_000, "masks": 4, "steps": 9,
              "last_check": {"first_error": 5.0}}  # fmt: skip
    fill(
        tmp_path, [sweep_row(seed=seed) for seed in range(42, 47)],
        baselines=[{**failed, "seed": 42}, {**failed, "seed": 43, "learned": True}],
        paper_recipe=[
            {**budget, "seed": 42, "certified": True}, {**budget, "seed": 43, "certified": False},
            {**budget, "seed": 44, "certified": True, "masks": 1024},
        ],
    )  # fmt: skip
    found = {(row["cell"], row["recipe"]): row for row in behind(tmp_path)[1]}
    mamba = found["mamba", "cpu"]
    assert mamba["not_run"] == [task for task in TASKS if task not in ("Z2", "S3")]
    assert (mamba["few_seeds"], mamba["learned_less"]) == (["Z2 2"], ["Z2 1/2 (5/5)"])
    assert found["nfsm", "paper"]["learned_less"] == ["S3 1/2 (5/5)"]
    assert found["nfsm", "gradient"]["not_run"] == TASKS


def test_profile_is_that_of_the_recipes(tmp_path: Path) -> None:
    lines = profile(tmp_path)[0].rows
    assert ("layers", "2", "4") in lines
    assert ("steps at most", "1,000", "100,000") in lines
    assert ("words begin short", "yes", "no") in lines
