"""The page to play with inside a report: the machine of the run is in it, and nothing in it can run but its script."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from exactstate.report import page_of, play, write_report
from tests.browser import MISSING, Page, browser, program
from tests.report.test_page import Outline

in_browser = pytest.mark.skipif(program() is None, reason=MISSING)
STATUS = "document.querySelector('#panel-{} .status:not(:empty)').textContent"


def data_of(page: str) -> dict[str, object]:
    found = re.search(r'id="play-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_body_of_holds_machine_and_certificate(s3: Path) -> None:
    data = data_of(page_of(s3))
    assert data["machine"] == json.loads((s3 / "machine.json").read_text())
    assert data["certificate"] == (s3 / "certificate.json").read_text()


def test_policy_permits_exactly_the_script_of_the_page(s3: Path) -> None:
    outline = Outline(page := page_of(s3))
    (policy,) = (a["content"] for tag, a in outline.elements if tag == "meta" and a.get("http-equiv"))
    script = re.search(r'<script id="play-script">(.*?)</script>', page, re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert policy is not None
    assert re.findall(r"script-src ([^;]*)", policy) == [f"'sha256-{digest}'"]


def test_page_of_a_run_without_a_machine_has_no_script(s3: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(s3, tmp_path / "run"))
    (folder / "machine.json").unlink()
    page = page_of(folder)
    assert "<script" not in page
    assert "#play" not in page


def test_link_to_says_that_a_machine_is_too_large(s3: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "MAX_BYTES", 100)
    page = page_of(s3)
    assert data_of(page) == {"name": "S3", "machine": None, "certificate": None}
    assert "It has more than 100 bytes and is not in this file: open machine.json there." in page


def test_play_page_is_below_400_kilobytes() -> None:
    assert play.PAGE.stat().st_size < 400_000


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browser() as opened:
        yield opened


@in_browser
@pytest.mark.parametrize("run", ["s3", "hostile"])
def test_report_opens_the_page_with_the_machine_inside(page: Page, run: str, request: pytest.FixtureRequest) -> None:
    report = write_report(request.getfixturevalue(run))
    page.look(width=1100)
    page.complaints.clear()
    page.loaded.clear()
    page.open(report)
    assert page.ask("document.getElementById('play').childElementCount") == 0
    page.ask("document.querySelector('a[href=\"#play\"]').click()")
    page.ask("new Promise(done => setTimeout(done, 300))")
    assert page.ask("document.querySelector('main').hidden")
    assert "(this run)" in page.ask("document.querySelector('#panel-scan select').selectedOptions[0].textContent")
    assert "Equal after every symbol" in page.ask("document.querySelector('#panel-scan').textContent")
    page.ask("document.getElementById('tab-certificate').click()")
    assert page.ask("location.hash") == "#play/certificate"
    assert "Valid:" in page.ask(STATUS.format("certificate"))
    page.ask("document.querySelector('a[href=\"#\"]').click()")
    page.ask("new Promise(done => setTimeout(done, 300))")
    assert not page.ask("document.querySelector('main').hidden")
    assert page.ask("document.getElementById('play').hidden")
    assert page.complaints == []
    assert {address.partition(":")[0] for address in page.loaded} <= {"file", "data"}
    assert page.ask("document.querySelectorAll('#play img, #play iframe').length") == 0
