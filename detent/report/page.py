"""The page: sections in order, one style sheet, no script, nothing from anywhere else."""

from __future__ import annotations

from pathlib import Path

from detent.records import write_atomically
from detent.report import sections
from detent.report.data import Told
from detent.report.html import Html, alone, element, joined
from detent.report.sections import trained, usage
from detent.train.run_dir import RunDir

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What the page may load: nothing but what is in it."""


def write_report(folder: str | Path, path: str | Path | None = None) -> Path:
    """Write the report of the run in a folder, as report.html there if nothing else is said; where it is."""
    written = RunDir(folder).report_path if path is None else Path(path)
    write_atomically(written, page_of(Path(folder)))
    return written


def page_of(folder: Path) -> str:
    """The report of a run as one HTML page."""
    told = Told.of(folder)
    body = [
        element("h1", told.name),
        element("p", "What a network learned, and what is proved about it.", class_="soft"),
    ]
    body.append(sections.verdict(told))
    for title, section in (
        ("What was trained", trained(told)),
        ("Learning", sections.curve(told)),
        ("The machine", sections.machines(told)),
        ("Tables of the heads", sections.heads(told)),
        ("A word, step by step", sections.step_by_step(told)),
        ("The certificate", sections.certificate(told)),
        ("Longer words", sections.sweep(told)),
        ("Load it, run it", usage(told)),
    ):
        if section is not None:
            body.append(element("section", element("h2", title), section))
    return _framed(f"{told.name} · detent", joined(body))


def _framed(title: str, body: Html) -> str:
    style = Html((Path(__file__).parent / "style.css").read_text(encoding="utf-8"))
    head = [
        alone("meta", charset="utf-8"),
        alone("meta", name="viewport", content="width=device-width, initial-scale=1"),
        alone("meta", http_equiv="Content-Security-Policy", content=POLICY),
        alone("link", rel="icon", href="data:,"),
        element("title", title),
        element("style", style),
    ]
    whole = element("html", element("head", *head), element("body", element("main", body)), lang="en")
    return f"<!doctype html>\n{whole}\n"
