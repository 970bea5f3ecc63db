"""The tables of the documentation are those of the rows, and another row would be noticed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from exactstate import records
from exactstate.errors import ExactstateError
from paper.pages import MARKED, PAGES, ROOT, TABLES, with_tables


@pytest.mark.parametrize("name", PAGES)
def test_tables_of_a_page_are_the_rows(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert MARKED.search(text)
    assert with_tables(text) == text, "python -m paper pages writes it anew"


def test_every_table_is_on_a_page() -> None:
    named = {mark[1] for name in PAGES for mark in MARKED.finditer((ROOT / name).read_text(encoding="utf-8"))}
    assert named == {*TABLES} - {"drift"}  # docs/precision.md has its summaries


def test_with_tables_follows_the_rows(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "results", tmp_path / "results", ignore=lambda folder, names: {"certificates", "machines"})
    page = "# Page\n\n<!-- python -m paper table summary -->\n\n## Next\n\nText.\n"
    before = with_tables(page, tmp_path)
    assert before.startswith("# Page\n\n<!-- python -m paper table summary -->\n\n| task |")
    assert before.endswith(" |\n\n## Next\n\nText.\n")
    assert with_tables(before, tmp_path) == before
    row = next(row for row in records.read(tmp_path / "results" / "learning.jsonl") if row["task"] == "S4")
    records.append(tmp_path / "results" / "learning.jsonl", {**row, "seed": 47, "certified": False})
    after = with_tables(before, tmp_path)
    assert "∞† (5/6)" in after
    assert len(after.splitlines()) == len(before.splitlines())


def test_with_tables_refuses_an_unknown_name() -> None:
    with pytest.raises(ExactstateError, match=r"unknown table 'sumary'\. Did you mean 'summary'"):
        with_tables("<!-- python -m paper table sumary -->\n\n")
