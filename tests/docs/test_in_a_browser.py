"""The pages in a real browser: quiet, with their pictures, readable in light and dark, and no wider than a phone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import MISSING, Page, browser, program
from tests.report.test_in_a_browser import PICTURES, unreadable

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))

import pages

pytestmark = pytest.mark.skipif(program() is None, reason=MISSING)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return pages.build(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browser() as opened:
        yield opened


@pytest.mark.parametrize(("width", "scheme"), [(1000, "light"), (390, "dark")], ids=["desk, light", "phone, dark"])
def test_every_page(page: Page, site: list[Path], width: int, scheme: str) -> None:
    page.look(width=width, scheme=scheme)
    for path in site:
        page.complaints.clear()
        page.open(path)
        assert page.complaints == [], path
        assert [picture for picture in page.ask(PICTURES) if not (picture["shown"] and picture["alt"])] == [], path
        assert unreadable(page) == [], path
        assert page.ask("document.documentElement.scrollWidth") <= width, path
    assert len(site) > 20
