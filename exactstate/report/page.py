"""The report page: sections in order, nothing loaded from elsewhere; its only script is the page to play with."""

from __future__ import annotations

from pathlib import Path

from exactstate.records import write_atomically
from exactstate.report import play, sections
from exactstate.report.data import RunData
from exactstate.report.html import Html, element, joined, void_element
from exactstate.train.run_dir import RunDir

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Content security policy: the page loads nothing but what it contains, and without a machine it runs no script."""


def write_report(folder: str | Path, path: str | Path | None = None) -> Path:
    """Write the report of the run in a folder, as report.html there by default; returns its path."""
    written = RunDir(folder).report_path if path is None else Path(path)
    write_atomically(written, page_of(Path(folder)))
    return written


def page_of(folder: Path) -> str:
    """The report of a run as one HTML page."""
    run = RunData.load(folder)
    body = [
        element("h1", run.name),
        element("p", "What the network learned, and what is proved about it.", class_="soft"),
        sections.verdict(run),
    ]
    playable = run.machine is not None
    if playable:
        body.append(play.link_to(run))
    for title, section in (
        ("Task and network", sections.configuration(run)),
        ("Training", sections.training(run)),
        ("Learned, pruned, compressed", sections.stages(run)),
        ("The machine", sections.machines(run)),
        ("Transition tables of the heads", sections.heads(run)),
        ("A word, step by step", sections.step_by_step(run)),
        ("The certificate", sections.certificate(run)),
        ("Length sweep", sections.sweep(run)),
        ("Load and run the machine", sections.usage(run)),
    ):
        if section is not None:
            body.append(element("section", element("h2", title), section))
    return _document(f"{run.name} · exactstate", joined(body), run if playable else None)


def _document(title: str, body: Html, playable: RunData | None) -> str:
    style = Html((Path(__file__).parent / "style.css").read_text(encoding="utf-8"))
    policy = POLICY if playable is None else f"{POLICY}; {play.parts().policy}"
    head = [
        void_element("meta", charset="utf-8"),
        void_element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        void_element("meta", http_equiv="Content-Security-Policy", content=policy),
        void_element("link", rel="icon", href="data:,"),
        element("title", title),
        element("style", style, id="report-style"),
    ]
    main = [element("main", body)]
    if playable is not None:
        head.append(play.head_of())
        main.append(play.body_of(playable))
    whole = element("html", element("head", *head), element("body", *main), lang="en")
    return f"<!doctype html>\n{whole}\n"
