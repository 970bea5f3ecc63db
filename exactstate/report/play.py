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
from exactstate.report.html import Html

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


def content(run: RunData) -> dict[str, object]:
    """The style sheet, switched off until the page is opened, the script, the data of the run, and what to say."""
    text = ": run it, watch its scan, check its certificate."
    if _machine(run) is None:
        name = run.folder.machine_path.name
        text = f". It has more than {MAX_BYTES:,} bytes and is not in this file: open {name} there."
    data = json.dumps(
        {"name": run.name, "machine": _machine(run), "certificate": _certificate(run)}, ensure_ascii=True
    )  # fmt: skip
    return {
        "style": Html(parts().style), "script": Html(parts().script), "text": text,
        "data": Html(data.replace("<", "\\u003c")),  # no text in it can end the element
    }  # fmt: skip


def _machine(run: RunData) -> object:
    path = run.folder.machine_path
    return json.loads(path.read_bytes()) if path.is_file() and path.stat().st_size <= MAX_BYTES else None


def _certificate(run: RunData) -> str | None:
    path = run.folder.certificate_path
    if run.certificate is None or path.stat().st_size > MAX_BYTES:
        return None
    return path.read_text(encoding="utf-8")
