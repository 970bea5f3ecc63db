"""All tables and figures on one page, written from the rows: `python -m paper overview`, or `make paper`.

Nothing here takes hours: what does is a campaign, and its rows are read. A table or figure whose rows are missing is
named on the page with the command that makes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from exactstate import records
from paper.census import census_rows
from paper.figures.registry import FIGURES, FigureSpec
from paper.lengths import Table
from paper.pages import TABLES, make_table
from paper.tables import census_table

PAGE = Path(__file__).parent / "overview.html"
FIRST = ("summary", "seeds", "behind", "profile")
"""Tables that are shown at the top; the others are folded."""
REALIZATION = "1 1 3 1 2 1 1"
"""A word of Z5 whose state is lost without restoration."""


@dataclass(frozen=True)
class Shown:
    """A table or a figure of the page."""

    name: str
    about: str
    command: str
    """What prints or draws it."""
    table: Table | None = None
    figure: str = ""
    """Name of the picture, beside the page."""
    missing: str = ""
    """Why there is none."""


@dataclass
class Overview:
    """What is on the page."""

    first: list[Shown] = field(default_factory=list)
    figures: list[Shown] = field(default_factory=list)
    tables: list[Shown] = field(default_factory=list)
    rows: list[tuple[str, int, str, str]] = field(default_factory=list)
    """(file, number of rows, date of the newest, the command that wrote it)."""

    @property
    def missing(self) -> list[Shown]:
        return [one for one in (*self.first, *self.figures, *self.tables) if one.missing]


def write_overview(folder: Path, results: Path = Path("results")) -> Overview:
    """Write index.html and the pictures into a folder; what is on the page."""
    folder.mkdir(parents=True, exist_ok=True)
    found = Overview(rows=[_file_of_rows(path) for path in sorted(results.glob("*.jsonl"))])
    for name, (about, place) in TABLES.items():
        shown = _table(name, about, results.parent / place if place != "results" else results)
        (found.first if name in FIRST else found.tables).append(shown)
    about = "Scan-compatible affine recurrences with their spectra and what each can track at every length."
    found.tables.append(Shown("census", about, "python -m paper table census", census_table(census_rows())))
    found.figures = draw_figures(folder, results)
    records.write_atomically(folder / "index.html", _page(found))
    return found


def _table(name: str, about: str, rows: Path) -> Shown:
    command = f"python -m paper table {name}"
    if not rows.exists():
        return Shown(name, about, command, missing=f"there are no rows: {rows.name}")
    return Shown(name, about, command, make_table(name, rows)[0])


def draw_figures(folder: Path, results: Path = Path("results")) -> list[Shown]:
    """Draw every figure whose rows are there, and the one that is computed."""
    return [*(_figure(spec, results, folder) for spec in FIGURES.values()), _realization(folder)]


def _figure(spec: FigureSpec, results: Path, folder: Path) -> Shown:
    from exactstate.automata.draw.save import save

    rows, command = results / Path(spec.file).name, f"python -m paper figure {spec.name} -o {spec.name}.svg"
    if not rows.exists():
        return Shown(
            spec.name, spec.description, command, missing=f"there are no rows; make them with `{spec.command}`"
        )
    save(spec.paint(list(records.read(rows))), folder / f"{spec.name}.svg")
    return Shown(spec.name, spec.description, command, figure=f"{spec.name}.svg")


def _realization(folder: Path) -> Shown:
    from exactstate.automata.draw.save import save
    from exactstate.tasks import task
    from paper.figures.realization import cell_rows, paint

    machine = task("Z5").machine
    symbols = [int(letter) for letter in machine.encode(REALIZATION.split())]
    save(paint(machine, cell_rows(machine, symbols, 0.11), "Z5"), folder / "realization.svg")
    about = "A state that is restored at every step, and one that is not."
    command = f'python -m paper figure realization Z5 --word "{REALIZATION}" -o realization.svg'
    return Shown("realization", about, command, figure="realization.svg")


def _file_of_rows(path: Path) -> tuple[str, int, str, str]:
    rows = list(records.read(path))
    last = max((row for row in rows if "date" in row), key=lambda row: str(row["date"]), default={})
    return path.name, len(rows), str(last.get("date", ""))[:10], str(last.get("command", ""))


def _page(found: Overview) -> str:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(PAGE.read_text(encoding="utf-8")).render(found=found)
