"""examples/exported/page.html in a browser: it loads the exported machine, and its buttons work."""

from __future__ import annotations

import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from exactstate.automata import Moore
from exactstate.runtime import Machine
from tests.browser import MISSING, browser, program

EXPORTED = Path(__file__).parents[2] / "examples" / "exported"
PRESS = """[...document.querySelectorAll('button')].find(button => button.textContent === '{0}').click(),
document.getElementById('output').textContent + ' after ' + document.getElementById('count').textContent"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.skipif(program() is None, reason=MISSING)
def test_buttons_step_the_machine(tmp_path: Path) -> None:
    for name in ("page.html", "page.mjs"):
        shutil.copy(EXPORTED / name, tmp_path)
    names = ("locked", "open")
    door = Moore(symbols=("coin", "push"), tables=[[1, 1], [0, 0]], states=names, outputs=names, readout=[0, 1])
    Machine.of(door).export(tmp_path / "machine.mjs")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with browser() as page:
            page.look(width=390)
            page.open(f"http://127.0.0.1:{server.server_port}/page.html")
            outputs = [page.ask(PRESS.format(symbol)) for symbol in ("coin", "push", "push", "coin")]
            wrong = [complaint for complaint in page.complaints if "404" not in complaint]  # a browser requests an icon
    finally:
        server.shutdown()
        server.server_close()
    assert outputs == ["open after 1", "locked after 2", "locked after 3", "open after 4"]
    assert wrong == []
