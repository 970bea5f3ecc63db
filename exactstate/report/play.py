"""The page to play with inside a report: `report.html#play` opens it with the machine and the certificate of the run.

`play.html` beside this file is built from web/ (`make web`) and committed, so that a report needs no node. Its one
style sheet and its one script are taken over; the data of the run stand beside them as JSON, which nothing executes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from exactstate.report.data import RunData
from exactstate.report.html import Html, element

PAGE = Path(__file__).parent / "play.html"
MAX_BYTES = 1_000_000
"""Of a machine or certificate that is put into the report; larger ones can be dropped on the page as files."""


class Parts(NamedTuple):
    style: str
    script: str

    @property
    def policy(self) -> str:
        """What a content security policy has to permit: this script, and the worker that it starts."""
        digest = base64.b64encode(hashlib.sha256(self.script.encode()).digest()).decode()
        return f"script-src 'sha256-{digest}'; worker-src blob:"


@lru_cache(maxsize=1)
def parts() -> Parts:
    """The style sheet and the script of the page."""
    page = PAGE.read_text(encoding="utf-8")
    style = re.search(r'<style id="play-style">(.*?)</style>', page, re.DOTALL)
    script = re.search(r'<script id="play-script">(.*?)</script>', page, re.DOTALL)
    assert style is not None, "play.html has no style sheet: build it with `make web`"
    assert script is not None, "play.html has no script: build it with `make web`"
    return Parts(style[1], script[1])


def head_of() -> Html:
    """The style sheet, switched off until the page is opened."""
    return element("style", Html(parts().style), id="play-style", media="not all")


def link_to(run: RunData) -> Html:
    text = ": run it, watch its scan, check its certificate."
    if _machine(run) is None:
        name = run.folder.machine_path.name
        text = f". It has more than {MAX_BYTES:,} bytes and is not in this file: open {name} there."
    rest = f"{text} The page is in this file; it needs JavaScript and no network."
    return element("p", element("a", "Play with this machine", href="#play"), rest, class_="soft")


def body_of(run: RunData) -> Html:
    """The place of the page, the data of the run and the script."""
    data = {"name": run.name, "machine": _machine(run), "certificate": _certificate(run)}
    text = json.dumps(data, ensure_ascii=True).replace("<", "\\u003c")  # no text in it can end the element
    return Html(
        element("div", id="play", hidden="")
        + element("script", Html(text), type="application/json", id="play-data")
        + element("script", Html(parts().script), id="play-script")
    )


def _machine(run: RunData) -> object:
    path = run.folder.machine_path
    return json.loads(path.read_bytes()) if path.is_file() and path.stat().st_size <= MAX_BYTES else None


def _certificate(run: RunData) -> str | None:
    path = run.folder.certificate_path
    if run.certificate is None or path.stat().st_size > MAX_BYTES:
        return None
    return path.read_text(encoding="utf-8")
