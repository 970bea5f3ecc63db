"""Build the pages as HTML: `python docs/pages.py [FOLDER]`, or `make docs`.

Every Markdown file in docs becomes a page, and so does every one that links lead to; other files they lead to are
copied, at the same place relative to each other. A link that leads nowhere ends the build with a sentence. One more
page, docs/api.html, is written from the docstrings.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

from markdown_it import MarkdownIt

HERE = Path(__file__).parent
ROOT = HERE.parent
NAVIGATION = {
    "detent": "index", "Tour": "tour", "Your model": "in-your-model", "Your machine": "your-machine",
    "Certificates": "certificates", "When not": "when-not", "Performance": "performance", "Results": "results",
    "API": "api",
}  # fmt: skip
EXTRA = """
nav { padding-bottom: .6rem; margin-bottom: 1.6rem; border-bottom: 1px solid var(--line); }
nav a { margin-right: 1.1rem; white-space: nowrap; }
nav a[aria-current] { color: inherit; text-decoration: none; font-weight: 600; }
a { color: var(--s0); } img { max-width: 100%; background: #fff; }
pre code { font-size: inherit; }
table { display: block; overflow-x: auto; } th, td { white-space: normal; text-align: left; vertical-align: top; }
"""


class DeadLink(Exception):
    """A link that leads nowhere."""


def build(site: Path) -> list[Path]:
    """Write the site; the pages."""
    texts = pages(*sorted(HERE.rglob("*.md")))
    written = []
    for path, text in texts.items():
        written.append(_write(site, path.relative_to(ROOT).with_suffix(".html"), text))
    for file in {target for path, text in texts.items() for target in targets(path, text) if target.suffix != ".md"}:
        copy = site / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    sys.path.insert(0, str(HERE))
    from names import names_text

    return [*written, _write(site, Path("docs/api.html"), names_text())]


def pages(*first: Path) -> dict[Path, str]:
    """These Markdown files and all that links lead to, with their texts."""
    found: dict[Path, str] = {}
    waiting = [*first]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found[path] = path.read_text(encoding="utf-8")
            waiting += [target for target in targets(path, found[path]) if target.suffix == ".md"]
    return found


def targets(path: Path, text: str) -> Iterator[Path]:
    """The files that a page links to or shows; whatever has a scheme is somewhere else."""
    for link in links(text):
        if re.match(r"[a-z]+:", link) or link.startswith("#"):
            continue
        target = (path.parent / link.partition("#")[0]).resolve()
        if not target.is_file() or not target.is_relative_to(ROOT):
            raise DeadLink(f"{path.relative_to(ROOT)}: the link {link!r} leads nowhere.")
        yield target


def links(text: str) -> Iterator[str]:
    for token in _markdown().parse(text):
        for inner in token.children or ():
            address = inner.attrGet("href") if inner.type == "link_open" else inner.attrGet("src")
            if address:
                yield str(address)


def _write(site: Path, place: Path, text: str) -> Path:
    target = site / place
    target.parent.mkdir(parents=True, exist_ok=True)
    up = Path(*[".."] * (len(place.parts) - 1)) / "docs"
    menu = " ".join(
        f'<a href="{up}/{name}.html"{_current(place, name)}>{escape(title)}</a>' for title, name in NAVIGATION.items()
    )
    style = (ROOT / "detent" / "report" / "style.css").read_text(encoding="utf-8") + EXTRA
    title = next(iter(re.findall(r"^# (.+)$", text, re.MULTILINE)), "detent")
    body = _with_anchors(re.sub(r'(href="[^":]+)\.md(#[^"]*)?"', r'\1.html\2"', _markdown().render(text)))
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    target.write_text(
        f'<!doctype html>\n<html lang="en"><head>{head}<title>{escape(title)}</title><link rel="icon" href="data:,">'
        f"<style>{style}</style></head><body><nav>{menu}</nav><main>{body}</main></body></html>\n",
        encoding="utf-8",
    )
    return target


def _current(place: Path, name: str) -> str:
    return ' aria-current="page"' if place == Path("docs") / f"{name}.html" else ""


def _with_anchors(body: str) -> str:
    """Every heading with a name that links can lead to: its letters, and a number where that was taken."""
    taken: dict[str, int] = {}

    def named(heading: re.Match[str]) -> str:
        name = re.sub(r"[^\w -]", "", re.sub("<[^>]+>", "", heading[2])).strip().lower().replace(" ", "-")
        taken[name] = taken.get(name, -1) + 1
        return f'<{heading[1]} id="{name}{f"-{taken[name]}" if taken[name] else ""}">{heading[2]}</{heading[1]}>'

    return re.sub(r"<(h[1-4])>(.*?)</\1>", named, body)


def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


if __name__ == "__main__":
    where = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "site")
    try:
        made = build(where)
    except DeadLink as dead:
        sys.exit(f"docs: {dead}")
    print(f"{len(made)} pages: {where / 'docs' / 'index.html'}")
