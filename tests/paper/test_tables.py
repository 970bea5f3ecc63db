"""Tables of the rows of one experiment each."""

from __future__ import annotations

from typing import Any

from paper.tables import (
    counting_table,
    error_control_table,
    format_radius,
    paper_full_table,
    story_learning_table,
    text_table,
)


def test_format_radius_never_rounds_to_one() -> None:
    assert format_radius(1.0) == "1.000000"
    assert format_radius(0.99999999) == "1 - 1.0e-08"
    assert format_radius(0.25) == "0.250000"


def story_row(**changes: Any) -> dict[str, Any]:
    row = {
        "task": "TSO3", "supervision": "states", "seed": 42, "certified": True, "learned": True, "steps": 1200,
        "stories_right": 1.0, "first_error": 1600.0, "heads": [[12], [12, 12]], "proved": ["float32"],
        "cpu_seconds": 61.4,
    }  # fmt: skip
    return row | changes


def test_stories_tell_what_was_certified_learned_or_neither() -> None:
    unlearned = story_row(certified=False, learned=False, stories_right=0.254, first_error=30.2, heads=None, proved=[])
    asked = story_row(supervision="answers", certified=False, first_error=None, proved=[])
    cascade = story_row(form="cascade", seed=43)
    del cascade["stories_right"], cascade["first_error"]
    found = story_learning_table([story_row(), unlearned, asked, cascade]).rows
    assert found[0] == ("TSO3", "cascade", "states", "43", "certified", "1,200", "–", "–", "1 + 2", "float32", "61")
    assert found[1] == ("TSO3", "wide", "states", "42", "certified", "1,200", "100%", "1,600", "1 + 2", "float32", "61")
    assert found[2][4:] == ("not learned", "1,200", "25%", "30", "–", "–", "61")
    assert found[3][4:] == ("learned", "1,200", "100%", "–", "1 + 2", "–", "61")


def test_text_table_has_right_answers_by_language_and_cell() -> None:
    def row(language: str, cell: str, seed: int, right: int) -> dict[str, Any]:
        return {"language": language, "kind": "scopes", "split": "open", "cell": cell, "seed": seed,
                "budget_seconds": 20.0, "64": {"right": right, "asked": 10},
                "1024": {"right": 1, "asked": 4}}  # fmt: skip

    rows = [row("blocks", "lstm", 1, 9), row("blocks", "lstm", 2, 10), row("maps", "none", 1, 5)]
    table = text_table(rows)
    assert table.header == ("language", "kind", "split", "CPU seconds", "lstm", "none", "seeds")
    assert table.rows == [
        ("blocks", "scopes", "open", "20", "0.950 0.250", "–", "2"),
        ("maps", "scopes", "open", "20", "–", "0.500 0.250", "1"),
    ]


def test_paper_full_table_has_the_furthest_row_of_every_run() -> None:
    row = {
        "task": "S4", "seed": 42, "heads_given": [4, 3, 2], "finished": False, "certified": False, "steps": 950,
        "best_accuracy": 0.002, "first_error": 10.2, "machine": {"cpu": "AMD EPYC"},
    }  # fmt: skip
    wide = {**row, "heads_given": [12] * 16, "finished": True, "certified": True, "steps": 50, "best_accuracy": 1.0}
    other = {**row, "machine": {"cpu": "Intel(R) Xeon(R)"}, "steps": 800}
    again = {**row, "finished": True, "certified": True, "steps": 900}
    assert paper_full_table([{**row, "steps": 1_200}, row, wide, other, again]).rows == [
        ("S4", "42", "16 of 12", "certified", "50", "100%", "10.2", "AMD"),
        ("S4", "42", "4, 3, 2", "paused", "1,200", "0%", "10.2", "AMD"),
        ("S4", "42", "4, 3, 2", "certified", "900", "0%", "10.2", "AMD"),
        ("S4", "42", "4, 3, 2", "paused", "800", "0%", "10.2", "Intel"),
    ]


def test_counting_table_says_never_only_where_it_is_known() -> None:
    def rotation(format: str, rounded: str, first: int | None, by: str, word: str = "1 1 1") -> dict[str, Any]:
        return {"kind": "rotation", "word": word, "rounded": rounded, "format": format, "modulus": 3,
                "first_wrong": first, "by": by}  # fmt: skip

    rows = [
        *(rotation(format, place, 968, "read wrongly") for format in ("bf16", "fp16") for place in ("weights", "scan")),
        rotation("bf16", "steps", None, "cycle of 3"), rotation("fp16", "steps", None, "right for 65536 steps"),
        rotation("fp32", "weights", 134_743_032, "angle"), rotation("fp64", "weights", 41_741_455_399_884_657, "angle"),
        rotation("bf16", "scan", 5, "read wrongly", word="random"), {"kind": "cycle", "longest_cycle": 1},
        {"kind": "integer", "format": "uint8", "modulus": 3, "first_wrong": 256},
        {"kind": "table", "format": "table", "modulus": 3, "first_wrong": None},
    ]  # fmt: skip
    assert counting_table(rows).rows == [
        ("3", "968", "never", "968", "968", "> 65,536", "968", "134,743,032", "4.2e16", "256", "never")
    ]


def test_error_control_table_leaves_out_runs_that_learned_nothing() -> None:
    row = {
        "task": "S3", "cell": "mamba", "seed": 44, "max_length": 2048, "threshold": 0.5707, "predicted": 112,
        "measured": None, "failing_length": 81, "ratios": {"64": 0.48594, "256": 1.03906, "2048": 6.64594},
    }  # fmt: skip
    exact = {
        **row,
        "cell": "nfsm",
        "predicted": None,
        "failing_length": None,
        "ratios": dict.fromkeys(row["ratios"], 0.0),
    }
    assert error_control_table([row, {**row, "threshold": None}, exact]).rows == [
        ("S3", "NFSM", "44", "0.57", "0", "0", "0", "> 2,048", "> 2,048", "> 2,048"),
        ("S3", "Mamba⁻", "44", "0.57", "0.486", "1.039", "6.646", "112", "> 2,048", "81"),
    ]
