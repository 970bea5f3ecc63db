"""The campaign redundancy, small."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from paper.experiments.redundancy import REDUNDANCY, WideModel, redundancy_row, spread_and_margin, train
from tests.docs.conftest import ROOT


def test_a_wide_network_is_extracted_without_pruning() -> None:
    row = redundancy_row("S3", "linear", 42, more=25, configurations=2000)
    assert row["right_at"] is not None
    assert row["certified"]
    assert row["kept"] < row["heads"] == 16
    assert row["configurations"] < 100
    assert row["float32_proved"]


def test_a_network_that_is_not_right_has_no_certificate() -> None:
    model, right_at = train("S3", "mlp", 42, more=0, most=1)
    assert right_at is None
    assert spread_and_margin(model, "S3")[0] > 0


def test_read_outs_differ() -> None:
    names = {kind: [name for name, _ in WideModel(2, 6, kind).readout.named_modules()] for kind in REDUNDANCY.cells}
    assert len({len(parts) for parts in names.values()}) == 3


def rows() -> list[dict[str, Any]]:
    lines = (ROOT / "results" / "redundancy.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_the_table_of_the_docs_is_made_from_the_rows() -> None:
    page = (ROOT / "docs" / "foreign-models.md").read_text(encoding="utf-8").splitlines()
    kinds = dict.fromkeys((row["task"], row["readout"]) for row in rows())
    wanted = set()
    for kind in kinds:
        mine = [row for row in rows() if (row["task"], row["readout"]) == kind]
        proved = [row for row in mine if row["kept"] is not None]
        cells = [*kind, f"{len(proved)} of {len(mine)}", span(row["kept"] for row in proved)]
        cells.append(span(row["configurations"] for row in proved))
        cells.append(f"{sum(row['float32_proved'] for row in proved)} of {len(proved)}" if proved else "")
        cells.append(span(f"{row['extract_seconds']:.1f}" for row in mine))
        wanted.add("|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|")
    assert {line for line in page if line.startswith(("| S3 |", "| S4 |", "| A5 |"))} == wanted


def span(values: Iterable[Any]) -> str:
    """The smallest and the largest, as numbers: `3`, `3 to 8`, or nothing."""
    ordered = sorted(dict.fromkeys(values), key=float)
    return " to ".join(map(str, dict.fromkeys(ordered[:1] + ordered[-1:])))


def test_the_table_of_the_runs_is_made_from_the_rows() -> None:
    text = (ROOT / "paper" / "trials.md").read_text(encoding="utf-8")
    page = text.split("## Redundant heads, run by run")[1].split("\n## ")[0].splitlines()
    wanted = set()
    for row in rows():
        found = ["not proved", "", ""]
        if row["kept"] is not None:
            assert row["certified"]
            proved = "yes" if row["float32_proved"] else "no"
            found = [f"{row['kept']} of {row['heads']}", str(row["configurations"]), proved]
        cells = [row["task"], row["readout"], str(row["seed"]), *found, f"{row['extract_seconds']:.1f}"]
        wanted.add("|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|")
    assert {line for line in page if line.startswith(("| S3 |", "| S4 |", "| A5 |"))} == wanted
