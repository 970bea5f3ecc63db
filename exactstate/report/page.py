"""The report page: page.html filled with the sections of a run; its only script is the page to play with."""

from __future__ import annotations

from pathlib import Path

from exactstate.records import write_atomically
from exactstate.report import play, sections
from exactstate.report.data import RunData
from exactstate.report.html import Html, page_template
from exactstate.train.run_dir import RunDir

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Content security policy: the page loads nothing but what it contains, and without a machine it runs no script."""


def write_report(folder: str | Path, path: str | Path | None = None) -> Path:
    """Write the report of the run in a folder, as report.html there by default; returns its path."""
    written = RunDir(folder).report_path if path is None else Path(path)
    write_atomically(written, page_of(Path(folder)))
    return written


def page_of(folder: Path) -> str:
    """The report of a run as one HTML page; page.html decides what is shown where."""
    run = RunData.load(folder)
    playable = play.content(run) if run.machine is not None else None
    return page_template().render(
        run=run, play=playable, policy=POLICY if playable is None else f"{POLICY}; {play.parts().policy}",
        style=Html((Path(__file__).parent / "style.css").read_text(encoding="utf-8")),
        **{section.__name__: section(run) for section in sections.ALL},
    ) + "\n"  # fmt: skip
