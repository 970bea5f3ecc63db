"""`exactstate figure`: draw a machine, the tables of its heads, or accuracy against length."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from exactstate import records
from exactstate.cli._errors import CommandGroup
from exactstate.cli._machines import named_machine
from exactstate.cli._output import AsJson, print_json, print_text
from exactstate.errors import BrokenFile, InvalidConfig, unknown
from exactstate.records import Row

ENDINGS = (".svg", ".png", ".pdf", ".dot")

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
    from exactstate.automata import draw, write_machine
    from exactstate.automata.draw.save import save
    from exactstate.report.figures.machine import compare, paint
    from exactstate.train.run_dir import RunDir

    if output.suffix.lower() not in ENDINGS:
        raise unknown("ending", output.suffix or str(output), ENDINGS)
    title, drawn = named_machine(name)
    other = named_machine(beside) if beside is not None else None
    if other is None and RunDir(name).exists:
        task = RunDir(name).task()
        other = task.name, task.machine
    notes: list[str] = []
    if output.suffix.lower() == ".dot":
        write_machine(drawn, output)
    elif other is not None:
        save(paint(drawn, other[1], (title, other[0])), output)
        notes = [compare(drawn, other[1])[1]]
    else:
        notes = draw(drawn, output, title=title)
    if as_json:
        print_json({"task": title, "states": drawn.n_states, "file": str(output), "notes": notes})
    else:
        print_text(f"{title}, {drawn.n_states} states: {output}", *notes)


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
    from exactstate.automata import factor
    from exactstate.report.figures.tables import rows_of_heads
    from exactstate.runtime import load
    from exactstate.train.run_dir import RunDir

    path = Path(name)
    if path.is_dir():
        run = RunDir(path)
        path = run.certificate_path if run.certificate_path.exists() else run.machine_path
    if path.suffix == ".json" and path.is_file() and _is_certificate(path):
        return _certificate_rows(path)
    if path.is_file() and path.suffix in (".json", ".exactstate") and (heads := load(path).heads) is not None:
        return path.stem, rows_of_heads(load(path).symbols, heads.tables)
    title, machine = named_machine(str(path) if path.is_file() else name)
    return f"{title}, heads of its factorization", rows_of_heads(machine.symbols, factor(machine).tables)


def _is_certificate(path: Path) -> bool:
    return '"exactstate-certificate"' in path.read_text(encoding="utf-8", errors="replace")[:4096]


def _certificate_rows(path: Path) -> tuple[str, list[Row]]:
    from exactstate.certify import Certificate
    from exactstate.report.head_tables import input_name

    certificate = Certificate.read(path)
    content: dict[str, Any] = certificate.content
    rows: list[Row] = []
    for layer, about in enumerate(content["layers"]):
        for head, tables in enumerate(about["tables"]):
            of_symbols = content["margins"]["logits"][layer][head] if layer == 0 and content["reach"] == 1 else None
            for window, table in zip(about["windows"], tables, strict=True):
                symbol = " | ".join(input_name(content, layer, at) for at in window)
                margins = None if of_symbols is None else of_symbols[window[-1]]
                rows.append({"layer": layer, "head": head, "symbol": symbol, "table": table, "margins": margins})
    return certificate.name, rows
