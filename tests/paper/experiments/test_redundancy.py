"""The campaign redundancy, small."""

from __future__ import annotations

import json

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


def test_the_table_of_the_docs_is_made_from_the_rows() -> None:
    page = (ROOT / "docs" / "foreign-models.md").read_text(encoding="utf-8").splitlines()
    lines = (ROOT / "results" / "redundancy.jsonl").read_text(encoding="utf-8").splitlines()
    wanted = set()
    for row in map(json.loads, lines):
        found = ["not proved", "", ""]
        if row["kept"] is not None:
            assert row["certified"]
            proved = "yes" if row["float32_proved"] else "no"
            found = [f"{row['kept']} of {row['heads']}", str(row["configurations"]), proved]
        cells = [row["task"], row["readout"], str(row["seed"]), *found, f"{row['extract_seconds']:.1f}"]
        wanted.add("|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|")
    assert {line for line in page if line.startswith(("| S3 |", "| S4 |", "| A5 |"))} == wanted
