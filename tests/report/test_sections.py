"""Sections of a report that other tests of the page do not cover."""

from __future__ import annotations

from pathlib import Path

from exactstate.report.page import page_of
from exactstate.train import train
from exactstate.train.recipes import configure
from exactstate.train.run import load_run


def test_stages_show_what_was_learned_pruned_and_compressed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(configure("Z2", recipe="straight_through"), out=folder)
    page = page_of(folder)
    assert "Learned, pruned, compressed" in page
    for row in load_run(folder).stages.values():
        assert f"{row['parameters']:,}" in page
    assert "The compressed network has a valid certificate of its own." in page
    certificate = folder / "certificate-compressed.json"
    certificate.write_text(certificate.read_text().replace('"Z2', '"Z3', 1))
    assert "The compressed network has a certificate that is not valid." in page_of(folder)
    assert "channels" not in page
