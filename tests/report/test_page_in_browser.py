"""The report in a real browser: quiet, complete, readable in light, dark and print, and no wider than a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from exactstate.report import write_report
from tests.browser import MISSING, Page, browser, program

pytestmark = pytest.mark.skipif(program() is None, reason=MISSING)

READABLE = 4.5
"""Ratio of luminances for text, WCAG 2.2, level AA."""

CONTRASTS = """(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = colour => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = node => {
    for (let e = node; e; e = e.parentElement) {
      const colour = rgba(getComputedStyle(e).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement, text = walk.currentNode.textContent.trim();
    if (!text || !node.checkVisibility() || node.tagName === 'title') continue;
    const style = getComputedStyle(node), ink = rgba(node.namespaceURI.endsWith('svg') ? style.fill : style.color);
    const [dark, bright] = [light(ink), light(behind(node))].sort((a, b) => a - b);
    found.push({text: text.slice(0, 40), ratio: (bright + 0.05) / (dark + 0.05), size: parseFloat(style.fontSize)});
  }
  return found;
})()"""
PICTURES = "[...document.images].map(image => ({shown: image.complete && image.naturalWidth > 0, alt: image.alt}))"
WIDER = """[...document.querySelectorAll('body *')]
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll, pre'))
  .map(e => e.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browser() as opened:
        yield opened


def unreadable(page: Page) -> list[Any]:
    return [text for text in page.ask(CONTRASTS) if text["ratio"] < READABLE]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1100, 390])
@pytest.mark.parametrize("run", ["s3", "hostile"])
def test_write_report_page_is_readable(
    page: Page, run: str, width: int, scheme: str, request: pytest.FixtureRequest
) -> None:
    page.look(width=width, scheme=scheme)
    page.complaints.clear()
    page.loaded.clear()
    report = write_report(request.getfixturevalue(run))
    page.open(report)
    page.ask("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert page.complaints == []
    assert {address.partition(":")[0] for address in page.loaded} == {"file", "data"}
    pictures = page.ask(PICTURES)
    assert len(pictures) == 3 + ("Heads, one after the other" in report.read_text())
    assert all(picture["shown"] and picture["alt"] for picture in pictures)
    assert len(page.ask(CONTRASTS)) > 50
    assert unreadable(page) == []
    assert page.ask("document.documentElement.scrollWidth") <= width
    assert page.ask(WIDER) == []
    dark = page.ask("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")


def test_write_report_page_prints(page: Page, s3: Path) -> None:
    page.look(width=800, scheme="dark", media="print")
    page.open(write_report(s3))
    assert page.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert unreadable(page) == []
    assert page.printed().startswith(b"%PDF")


def test_browser_checks_detect_a_bad_page(page: Page, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<p style='color: #999'>pale</p><p>dark</p><div style='width: 2000px'>wide</div>"
        "<img src='missing.png' alt='gone'><script>console.error('oh'); nothing.here()</script>"
    )
    page.look(width=390)
    page.complaints.clear()
    page.open(bad)
    assert [text["text"] for text in unreadable(page)] == ["pale"]
    assert page.ask(PICTURES) == [{"shown": False, "alt": "gone"}]
    assert page.ask(WIDER) == ['<div style="width: 2000px">wide</div>']
    assert {complaint.partition(":")[0] for complaint in page.complaints} == {"console.error", "exception", "log"}
