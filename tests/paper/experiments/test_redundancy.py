"""The campaign redundancy, small."""

from __future__ import annotations

from paper.experiments.redundancy import REDUNDANCY, WideModel, redundancy_row, spread_and_margin, train


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
