"""One page with every table and figure, from the rows of the repository and from none."""

from __future__ import annotations

import re
from pathlib import Path

from paper.figures.registry import FIGURES
from paper.overview import write_overview
from paper.pages import ROOT, TABLES


def test_write_overview_from_the_rows_of_the_repository(tmp_path: Path) -> None:
    found = write_overview(tmp_path, ROOT / "results")
    assert found.missing == []
    assert {one.name for one in (*found.first, *found.tables)} == {*TABLES, "census"}
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Missing" not in page
    pictures = re.findall(r'<img src="([^"]+)"', page)
    assert {*pictures} == {f"{name}.svg" for name in (*FIGURES, "realization")}
    for picture in pictures:
        assert (tmp_path / picture).read_bytes() == (ROOT / "docs" / "figures" / picture).read_bytes(), picture
    for name in ("summary", "seeds", "counting"):
        assert f"python -m paper table {name}" in page
    assert "∞† · ≥1M†" in page


def test_write_overview_names_what_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    found = write_overview(tmp_path / "page", tmp_path / "results")
    missing = {one.name for one in found.missing}
    assert missing == {*FIGURES, *(name for name, (_, place) in TABLES.items() if place != "results")}
    page = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    assert "there are no rows: counting.jsonl" in page
    assert "make them with `python -m paper run geometry`".replace("`", "`") in page
