"""The site is built without a warning, documents every public name, and reads well in a browser."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.browser import MISSING, Page, browser, program
from tests.docs.conftest import ROOT, mkdocs_build
from tests.report.test_in_a_browser import PICTURES, unreadable

PACKAGES = sorted(
    path.parent.name for path in (ROOT / "detent").glob("*/__init__.py") if path.parent.name not in ("cli", "csrc")
)
MODULES = [*PACKAGES, "errors", "records"]
"""What has an API page."""


def public_names(module: str) -> list[str]:
    """What a package exports, or what a module defines."""
    package = import_module(f"detent.{module}")
    defined = [
        name
        for name, value in vars(package).items()
        if not name.startswith("_") and inspect.getmodule(value) is package and callable(value)
    ]
    return sorted(getattr(package, "__all__", defined))


def test_every_page_of_docs_is_in_the_site(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        name = "index" if page.stem == "README" else page.stem
        assert (site / page.parent.relative_to(ROOT / "docs") / f"{name}.html").is_file(), page


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_documented(site: Path, module: str) -> None:
    text = (site / "api" / f"{module}.html").read_text(encoding="utf-8")
    headings = re.findall(r'<h2 id="[^"]+" class="doc doc-heading">\s*<code[^>]*></code>\s*(\w+)', text)
    assert sorted(headings) == public_names(module)
    for name in public_names(module):
        value = getattr(import_module(f"detent.{module}"), name)
        if callable(value):
            written = inspect.getdoc(value) or ""
            generated = dataclasses.is_dataclass(value) and written.startswith(f"{name}(")
            assert written and not generated, f"detent.{module}.{name} has no docstring"


def test_the_overview_links_every_name_of_the_front_door(site: Path) -> None:
    import detent

    text = (site / "api" / "index.html").read_text(encoding="utf-8")
    for name in detent.__all__:
        assert re.search(rf'href="\w+\.html#[\w.]+"[^>]*><code>detent\.{name}</code>', text), name


def test_an_api_page_shows_arguments_and_examples(site: Path) -> None:
    text = re.sub("<[^>]+>", "", (site / "api" / "nn.html").read_text(encoding="utf-8"))
    for argument in inspect.signature(import_module("detent").NFSM).parameters:
        assert re.search(rf"\b{argument}\b", text)
    assert "&gt;&gt;&gt; layer" in text


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert re.findall(r'<(?:script|img|link)\b[^>]*(?:src|href)="(?:https?:)?//[^"]+"', text) == [], page


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("[a page](missing.md)", "contains a link 'missing.md', but the target is not found"),
        ("[a file](../missing.py)", "contains a link '../missing.py', but the target"),
        ("[a heading](#missing)", "contains a link '#missing', but there is no such anchor"),
        (
            "[a heading](other.md#missing)",
            "contains a link 'other.md#missing', but the doc 'other.md' does not contain",
        ),
    ],
)
def test_a_dead_link_fails_the_build(tmp_path: Path, text: str, warning: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Page\n\n{text}\n")
    (tmp_path / "docs" / "other.md").write_text("# Other page\n")
    (tmp_path / "mkdocs.yml").write_text(
        f"INHERIT: {ROOT / 'mkdocs.yml'}\nhooks: []\nextra_css: []\nnav: [index.md, other.md]\nplugins: []\n"
    )
    built = mkdocs_build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert built.returncode != 0
    assert warning in built.stderr


HIDDEN = "Skip to content"
"""A link that is transparent until the keyboard reaches it."""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The site on a server; search needs one."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browser() as opened:
        yield opened


@pytest.mark.skipif(program() is None, reason=MISSING)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")], ids=["desktop, light", "phone, dark"])
def test_every_page_in_a_browser(page: Page, site: Path, address: str, width: int, scheme: str) -> None:
    page.look(width=width, scheme=scheme)
    pages = [path.relative_to(site) for path in sorted(site.rglob("*.html")) if path.name != "404.html"]
    for path in pages:
        page.complaints.clear()
        page.open(f"{address}/{path}")
        assert page.complaints == [], path
        assert [picture for picture in page.ask(PICTURES) if not (picture["shown"] and picture["alt"])] == [], path
        assert [text for text in unreadable(page) if text["text"] != HIDDEN] == [], path
        assert page.ask("document.documentElement.scrollWidth") <= width, path
    assert len(pages) > 40


SEARCH = """new Promise(resolve => {
  const input = document.querySelector('.md-search__input');
  const found = document.querySelector('.md-search-result__list');
  new MutationObserver(() => found.querySelector('a') && resolve([...found.querySelectorAll('a')].map(a => decodeURI(a.href))))
    .observe(found, {childList: true, subtree: true});
  document.querySelector('label[for=__search]').click();
  input.focus();
  input.value = 'WORD';
  input.dispatchEvent(new Event('input', {bubbles: true}));
  input.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}));
})"""


@pytest.mark.skipif(program() is None, reason=MISSING)
def test_search_finds_a_function(page: Page, address: str) -> None:
    page.look(width=1280)
    page.open(f"{address}/index.html")
    links = page.ask(SEARCH.replace("WORD", "minimize"))
    assert any("#detent.automata.minimize.minimize" in link for link in links), links
