"""The pages in docs run: every `>>>` gives what stands below it, and every link and picture leads somewhere."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
ESSAYS = [page for page in PAGES if ">>> " in page.read_text(encoding="utf-8")]


def failures(page: Path) -> list[str]:
    """What a page promises and does not give; its fences are no part of any output."""
    text = re.sub(r"^```.*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    test = doctest.DocTestParser().get_doctest(text, {"__name__": "essay"}, page.name, str(page), 0)
    assert test.examples
    runner.run(test, out=said.append)
    return said


@pytest.mark.parametrize("page", ESSAYS, ids=lambda page: page.stem)
def test_an_essay_says_what_its_code_gives(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert "".join(failures(page)) == ""


def test_an_essay_that_says_something_else_is_caught(tmp_path: Path) -> None:
    (tmp_path / "wrong.md").write_text("# Sums\n\n```python\n>>> 2 + 2\n5\n```\n")
    assert "Expected:\n    5\nGot:\n    4" in "".join(failures(tmp_path / "wrong.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert link.startswith("https://") or (page.parent / link).exists(), link
