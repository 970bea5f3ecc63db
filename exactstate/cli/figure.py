"""`exactstate figure`: draw a machine, the tables of its heads, or accuracy against length."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exactstate import records
from exactstate.cli._errors import CommandGroup
from exactstate.cli._output import AsJson, print_json, print_text
from exactstate.errors import BrokenFile, InvalidConfig, unknown
from exactstate.records import Row

if TYPE_CHECKING:
    from exactstate.automata import Mealy, Moore

ENDINGS = (".svg", ".png", ".pdf", ".dot")
Margins = list[float | None] | None

Picture = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Output file: .svg, .png or .pdf.")]
RowsAsJson = Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")]

app = typer.Typer(
    cls=CommandGroup.of("figure"), no_args_is_help=True, rich_markup_mode="markdown",
    help="Draw a machine, its tables, or a length sweep. Example: `exactstate figure machine S3 -o s3.svg`.",
)  # fmt: skip


@app.command("machine")
def machine(
    name: Annotated[str, typer.Argument(metavar="TASK|FILE|RUN", help="A task, a machine file, or a run's folder.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help=".svg, .png, .pdf or .dot.")],
    beside: Annotated[
        str | None, typer.Option(metavar="TASK|FILE", help="Draw this machine beside it and compare the two.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw a machine: states as circles, symbols as arrows. A run's machine is drawn beside its target.

    The file name's ending selects the format: `.svg`, `.png` and `.pdf` are pictures, `.dot` is text for Graphviz.
    A picture of more than about thirty states leaves details out and lists them.

    Examples:

        exactstate figure machine S3 -o s3.svg
        exactstate figure machine mine.dot -o mine.png
        exactstate figure machine runs/S3-42-gradient -o learned.svg
        exactstate figure machine mine.dot --beside Tomita4 -o both.svg
    """
    from exactstate.automata import write_machine
    from exactstate.automata.draw import draw

    if output.suffix.lower() not in ENDINGS:
        raise unknown("ending", output.suffix or str(output), ENDINGS)
    title, drawn = _machine_of(name)
    beside = beside or _target_of(Path(name))
    notes: list[str] = []
    if output.suffix.lower() == ".dot":
        write_machine(drawn, output)
    elif beside is not None:
        notes = _side_by_side((title, drawn), _machine_of(beside), output)
    else:
        notes = draw(drawn, output, title=title)
    if as_json:
        print_json({"task": title, "states": drawn.n_states, "file": str(output), "notes": notes})
    else:
        print_text(f"{title}, {drawn.n_states} states: {output}", *notes)


def _machine_of(name: str) -> tuple[str, Moore | Mealy]:
    """(name, machine) of a task, a file, or a run's folder."""
    from exactstate.tasks import task
    from exactstate.train.run_dir import RunDir

    folder = Path(name)
    if folder.is_dir():
        machine = RunDir(folder).machine_path
        if not machine.exists():
            raise BrokenFile(
                folder, f"there is no {machine.name} here; name the folder of a run of `exactstate train`."
            )
        return folder.name, task(machine).machine
    named = task(name)
    return named.name, named.machine


def _target_of(folder: Path) -> str | None:
    """The target of a run: a machine file or the name of a task; None if this is not a run."""
    from exactstate.train.run_dir import RunDir

    run = RunDir(folder)
    if run.target_path.exists():
        return str(run.target_path)
    try:
        return str(run.config()["task"])
    except BrokenFile:
        return None


def _side_by_side(first: tuple[str, Any], second: tuple[str, Any], output: Path) -> list[str]:
    from exactstate.automata.draw.save import save
    from exactstate.report.figures.machine import compare, paint

    save(paint(first[1], second[1], (first[0], second[0])), output)
    return [compare(first[1], second[1])[1]]


@app.command("tables")
def tables(
    name: Annotated[
        str, typer.Argument(metavar="RUN|CERTIFICATE|TASK|FILE", help="Where the tables are.", show_default=False)
    ],
    output: Picture,
    as_json: RowsAsJson = False,
) -> None:
    """Draw the transition table of every head and symbol as a matrix.

    From a run or a certificate: the learned tables, shaded by the margin of the logits. From a machine file: the tables
    of its heads. From a task or a machine without heads: the tables of its factorization, which nothing has learned.

    Examples:

        exactstate figure tables runs/S3-42-gradient -o s3.svg
        exactstate figure tables results/certificates/S4-42.json -o s4.png
        exactstate figure tables A5 -o a5.svg
    """
    from exactstate.automata.draw.save import picture_format, save
    from exactstate.report.figures.tables import paint

    picture_format(output)
    title, rows = table_rows(name)
    save(paint(rows, title), output)
    if as_json:
        print_json(rows)
    else:
        print_text(f"{title}, {len(rows)} tables: {output}")


@app.command("sweep")
def sweep(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUN]...", help="Folders of runs with sweeps.", show_default=False)
    ] = None,
    output: Picture = Path("sweep.svg"),
    rows: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Rows of `exactstate sweep --rows FILE` (JSON lines).")
    ] = None,
    as_json: RowsAsJson = False,
) -> None:
    """Draw accuracy against the length of words: a panel per task, a line per run that `exactstate sweep` has swept.

    A cross marks the failing length; an arrow marks a certified run.

    Examples:

        exactstate figure sweep runs/S3-42-gradient -o sweep.svg
        exactstate figure sweep --rows results/sweeps.jsonl -o sweeps.png
    """
    from exactstate.automata.draw.save import picture_format, save
    from exactstate.report.figures.length_sweep import paint
    from exactstate.train.run_dir import RunDir

    picture_format(output)
    files = [*(RunDir(run).sweeps_path for run in runs or ()), *([rows] if rows is not None else [])]
    if not files:
        raise InvalidConfig("name the folders of runs, or a file of rows with --rows FILE.")
    for file in files:
        if not file.is_file():
            raise BrokenFile(file, "there are no sweeps here; `exactstate sweep RUN` makes them.")
    found = [row for file in files for row in records.read(file)]
    save(paint(found), output)
    if as_json:
        print_json(found)
    else:
        print_text(f"sweep, {len(found)} rows: {output}")


def table_rows(name: str) -> tuple[str, list[Row]]:
    """(title, rows for `exactstate.report.figures.tables`) of a run, a certificate, a machine file or a task."""
    from exactstate.report.figures.tables import rows_of_machine
    from exactstate.tasks import task
    from exactstate.train.run_dir import RunDir

    path = Path(name)
    if path.is_dir():
        run = RunDir(path)
        path = run.certificate_path if run.certificate_path.exists() else run.machine_path
    if path.suffix == ".json" and path.is_file() and _is_certificate(path):
        return _certificate_rows(path)
    if path.is_file() and path.suffix in (".json", ".exactstate"):
        rows = _machine_rows(path)
        if rows:
            return path.stem, rows
    named = task(str(path) if path.is_file() else name)
    return f"{named.name}, heads of its factorization", rows_of_machine(named.machine)


def _is_certificate(path: Path) -> bool:
    return '"exactstate-certificate"' in path.read_text(encoding="utf-8", errors="replace")[:4096]


def _certificate_rows(path: Path) -> tuple[str, list[Row]]:
    from exactstate.certify import Certificate

    certificate = Certificate.read(path)
    content, rows = certificate.content, []
    for layer, about in enumerate(content["layers"]):
        for head, tables in enumerate(about["tables"]):
            for window, table in zip(about["windows"], tables, strict=True):
                symbol, margins = _window(content, layer, head, window)
                rows.append({"layer": layer, "head": head, "symbol": symbol, "table": table, "margins": margins})
    return certificate.name, rows


def _window(content: dict[str, Any], layer: int, head: int, window: list[int]) -> tuple[str, Margins]:
    """(the inputs in a window, the margins there: recorded per symbol, so only for windows of one symbol)."""
    names = ["-" if at < 0 else _name(content, layer, at) for at in window]
    margins = content["margins"]["logits"][layer][head][window[-1]] if layer == 0 and len(window) == 1 else None
    return " | ".join(names), margins


def _name(content: dict[str, Any], layer: int, at: int) -> str:
    """An input of a layer: the symbol and, above the first layer, the indices of the heads below."""
    below, *indices = content["layers"][layer]["inputs"][at]
    if layer == 0:
        return str(content["symbols"][below])
    return f"{_name(content, layer - 1, below)} {''.join(map(str, indices))}"


def _machine_rows(path: Path) -> list[Row]:
    from exactstate.runtime import load

    machine = load(path)
    if machine.heads is None:
        return []
    return [
        {"layer": 0, "head": h, "symbol": symbol, "table": [int(k) for k in table], "margins": None}
        for h, head in enumerate(machine.heads.tables) for symbol, table in zip(machine.symbols, head, strict=True)
    ]  # fmt: skip
