"""`detent figure`: drawings by name, of machines here and of rows in `figure_rows`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from detent.cli._errors import Verbs
from detent.cli._output import AsJson, print_json
from detent.cli.figure_rows import verb_of
from detent.errors import BrokenFile, unknown
from detent.records import Row
from paper.figures import FIGURES

if TYPE_CHECKING:
    from detent.automata import Mealy, Moore

# -- Where `detent figure tables` finds tables: in a certificate, in a machine file with heads, or in a factoring.

Margins = list[float | None] | None
CERTIFIED, MACHINE = "certificate.json", "machine.json"


def table_rows(name: str) -> tuple[str, list[Row]]:
    """(title, rows as `detent.report.figures.tables` takes them) of a run, a certificate, a machine file or a task."""
    from detent.report.figures.tables import rows_of_machine
    from detent.tasks import task

    path = Path(name)
    if path.is_dir():
        path = path / (CERTIFIED if (path / CERTIFIED).exists() else MACHINE)
    if path.suffix == ".json" and path.is_file() and _is_certificate(path):
        return _certified(path)
    if path.is_file() and path.suffix in (".json", ".detent"):
        rows = _heads(path)
        if rows:
            return path.stem, rows
    found = task(str(path) if path.is_file() else name)
    return f"{found.name}, heads of its factoring", rows_of_machine(found.machine)


def _is_certificate(path: Path) -> bool:
    return '"detent-certificate"' in path.read_text(encoding="utf-8", errors="replace")[:4096]


def _certified(path: Path) -> tuple[str, list[Row]]:
    from detent.certify import Certificate

    certificate = Certificate.read(path)
    content, rows = certificate.content, []
    for layer, about in enumerate(content["layers"]):
        for head, tables in enumerate(about["tables"]):
            for window, table in zip(about["windows"], tables, strict=True):
                symbol, margins = _read_at(content, layer, head, window)
                rows.append({"layer": layer, "head": head, "symbol": symbol, "table": table, "margins": margins})
    return certificate.name, rows


def _read_at(content: dict[str, Any], layer: int, head: int, window: list[int]) -> tuple[str, Margins]:
    """(what is read at a window, the margins there, which are known by symbol and not by window)."""
    names = ["-" if at < 0 else _name(content, layer, at) for at in window]
    margins = content["margins"]["logits"][layer][head][window[-1]] if layer == 0 and len(window) == 1 else None
    return " | ".join(names), margins


def _name(content: dict[str, Any], layer: int, at: int) -> str:
    """An input of a layer: the symbol, and above the first layer the indices of the heads below."""
    below, *indices = content["layers"][layer]["inputs"][at]
    if layer == 0:
        return str(content["symbols"][below])
    return f"{_name(content, layer - 1, below)} {''.join(map(str, indices))}"


def _heads(path: Path) -> list[Row]:
    from detent.runtime import load

    machine = load(path)
    if machine.heads is None:
        return []
    return [
        {"layer": 0, "head": h, "symbol": symbol, "table": [int(k) for k in table], "margins": None}
        for h, head in enumerate(machine.heads.tables) for symbol, table in zip(machine.symbols, head, strict=True)
    ]  # fmt: skip


ENDINGS = (".svg", ".png", ".pdf", ".dot")

Subject = Annotated[str, typer.Argument(metavar="TASK|FILE", help="A task, or a machine file.")]
Picture = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to: .svg, .png or .pdf.")]

app = typer.Typer(
    cls=Verbs.of("figure"), no_args_is_help=True, rich_markup_mode="markdown",
    help="Draw something by name. Example: `detent figure machine S3 -o s3.svg`.",
)  # fmt: skip


@app.command("machine")
def machine(
    name: Annotated[str, typer.Argument(metavar="TASK|FILE|RUN", help="A task, a machine file, or a run's folder.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to: .svg, .png, .pdf or .dot.")],
    beside: Annotated[
        str | None, typer.Option(metavar="TASK|FILE", help="Draw this one beside it, and say whether they agree.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw a machine: states as circles, symbols as arrows. A run's machine is drawn beside its target.

    The ending of the file says what it will be: `.svg`, `.png` and `.pdf` are pictures, `.dot` is text for Graphviz.
    Beyond some thirty states a picture shows less, and says what it left out.

    Examples:

        detent figure machine S3 -o s3.svg
        detent figure machine mine.dot -o mine.png
        detent figure machine runs/S3-42-default -o learned.svg
        detent figure machine mine.dot --beside Tomita4 -o both.svg
    """
    from detent.automata import write_machine
    from detent.automata.draw import draw

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
        print(f"{title}, {drawn.n_states} states: {output}", *notes, sep="\n")


def _machine_of(name: str) -> tuple[str, Moore | Mealy]:
    """(name, machine) of a task, a file, or a run's folder."""
    from detent.tasks import task

    folder = Path(name)
    if folder.is_dir():
        if not (folder / "machine.json").exists():
            raise BrokenFile(folder, "there is no machine.json here; a folder that `detent train` left has one.")
        return folder.name, task(folder / "machine.json").machine
    found = task(name)
    return found.name, found.machine


def _target_of(folder: Path) -> str | None:
    """What a run was trained on; None for what is no run."""
    if not folder.is_dir():
        return None
    if (folder / "target.json").exists():
        return str(folder / "target.json")
    try:
        return str(json.loads((folder / "config.json").read_text(encoding="utf-8"))["task"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _side_by_side(first: tuple[str, Any], second: tuple[str, Any], output: Path) -> list[str]:
    from detent.automata.draw.save import save
    from detent.report.figures.machine import compared, paint

    save(paint(first[1], second[1], (first[0], second[0])), output)
    return [compared(first[1], second[1])[1]]


@app.command("realization")
def realization(
    name: Subject,
    output: Picture,
    word: Annotated[str | None, typer.Option(help="Symbols; one that sees many states if left out.")] = None,
    eta: Annotated[float, typer.Option(help="How far off a step may be, in heights of a cell.")] = 0.11,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows, for programs.")] = False,
) -> None:
    """Draw how a state is carried along a word: put back at every step, and not put back.

    Every state of a small machine has a cell. Computing a step spreads the state over a ball; restoration pulls it
    back, and without restoration the ball grows until it covers several cells.

    Examples:

        detent figure realization Z5 -o z5.svg
        detent figure realization mine.dot --word "a b b a" --eta 0.2 -o mine.png
    """
    from detent.automata.draw.save import picture_format, save
    from paper.figures.cells import cell_rows, wandering_word
    from paper.figures.realization import paint

    picture_format(output)
    title, drawn = _machine_of(name)
    symbols = (
        wandering_word(drawn, 7)
        if word is None
        else [int(a) for a in drawn.encode(word.split() if " " in word else word)]
    )
    rows = cell_rows(drawn, symbols, eta)
    save(paint(drawn, rows, title), output)
    if as_json:
        print_json(rows)
    else:
        lost = next((row["step"] for row in rows if row["kind"] == "read" and len(row["states"]) > 1), None)
        ends = "the state stays known" if lost is None else f"without restoration the state is lost at step {lost}"
        print(f"{title}, {len(symbols)} steps, {ends}: {output}")


@app.command("tables")
def tables(
    name: Annotated[
        str, typer.Argument(metavar="RUN|CERTIFICATE|TASK|FILE", help="Where the tables are.", show_default=False)
    ],
    output: Picture,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows, for programs.")] = False,
) -> None:
    """Draw what every symbol does to the indices of every head, as matrices.

    From a run or a certificate these are the tables that were learned, the darker the larger the margin of the logit;
    from a machine file its heads; from a task or a machine without heads those of its factoring, learned by nobody.

    Examples:

        detent figure tables runs/S3-42-default -o s3.svg
        detent figure tables results/certificates/S4-42.json -o s4.png
        detent figure tables A5 -o a5.svg
    """
    from detent.automata.draw.save import picture_format, save
    from detent.report.figures.tables import paint

    picture_format(output)
    title, rows = table_rows(name)
    save(paint(rows, title), output)
    if as_json:
        print_json(rows)
    else:
        print(f"{title}, {len(rows)} tables: {output}")


for _drawing in FIGURES.values():
    app.command(_drawing.name)(verb_of(_drawing))


@app.callback()
def _root() -> None:
    pass
