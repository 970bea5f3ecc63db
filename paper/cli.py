"""`python -m paper`: the paper's tables, figures and experiments.

python -m paper table summary|results|seeds|census|...
python -m paper figure drift|gap|geometry|realization|tso|walltime|sweep -o FILE
python -m paper run NAME
python -m paper overview|pages|long
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exactstate import records
from exactstate.cli._errors import CommandGroup, Interrupted, exit_code_of
from exactstate.cli._output import AsJson, console, print_json
from exactstate.cli.figure import Picture, RowsAsJson
from exactstate.errors import BrokenFile, InvalidConfig, InvalidInput, unknown
from paper.figures.registry import FIGURES, FigureSpec
from paper.pages import TABLES, make_table

if TYPE_CHECKING:
    from paper.experiments.runner import Campaign

HELP = """Reproduce the paper: its tables, its figures, and the experiments behind their rows.

    python -m paper table results       failing lengths, beside the published ones
    python -m paper table census        architectures by the spectrum of their transitions
    python -m paper figure drift -o drift.svg
    python -m paper run                 the experiments, by name
    python -m paper run training --tasks S3 --seeds 42
    python -m paper overview            everything on one page, from the rows
    python -m paper long                what takes hours, resumed
"""


class Form(StrEnum):
    text = "text"
    markdown = "markdown"


Format = Annotated[Form, typer.Option("--format", help="Output format.")]


def existing(folder: Path) -> Path:
    if not folder.is_dir():
        raise InvalidInput(f"there is no folder {folder}; name the one that holds training.jsonl and sweeps.jsonl.")
    return folder


def _typer(kind: str, help: str) -> typer.Typer:
    return typer.Typer(
        cls=CommandGroup.of(kind), no_args_is_help=True, rich_markup_mode="markdown", pretty_exceptions_enable=False,
        help=help, context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip


app = _typer("verb", HELP)
table = _typer("table", "Print a table of the paper. Example: `python -m paper table census`.")
figure = _typer("figure", "Draw a figure of the paper. Example: `python -m paper figure drift -o drift.svg`.")
app.add_typer(table, name="table")
app.add_typer(figure, name="figure")


@table.command("census")
def census(form: Format = Form.text, as_json: AsJson = False) -> None:
    """Print scan-compatible affine recurrences with their spectra and what each can track at every length.

    The last column is measured: the spectral radii of 40 random matrices of the architecture. Sources, recurrences and
    notes are in --json.

    Examples:

        python -m paper table census
        python -m paper table census --format markdown > census.md
    """
    from paper.census import census_rows
    from paper.tables import census_table

    rows = census_rows()
    print_json(rows) if as_json else print(getattr(census_table(rows), form)())


def _table_verb(name: str) -> Callable[..., None]:
    """The command `python -m paper table NAME`."""
    about, place = TABLES[name]

    def show(
        rows: Annotated[Path, typer.Option("--rows", metavar="PATH", help="Where the rows are.")] = Path(place),
        form: Format = Form.text,
        as_json: AsJson = False,
    ) -> None:
        grid, found = make_table(name, existing(rows) if place == "results" else rows)
        print_json(found) if as_json else print(getattr(grid, form)())

    show.__doc__ = f"{about}\n\nExample:\n\n    python -m paper table {name} --format markdown > {name}.md\n"
    return show


for _name in TABLES:
    table.command(_name)(_table_verb(_name))


@figure.command("realization")
def realization(
    name: Annotated[str, typer.Argument(metavar="TASK|FILE", help="A task, or a machine file.")],
    output: Picture,
    word: Annotated[
        str | None, typer.Option(help="Symbols of the input; by default a word that visits many states.")
    ] = None,
    eta: Annotated[float, typer.Option(help="Largest error of a step, in heights of a cell.")] = 0.11,
    as_json: RowsAsJson = False,
) -> None:
    """Draw how a state is carried along a word, restored at every step and not restored.

    Every state of a small machine has a cell. The error of a step spreads the state over an interval. Restoration
    returns it to the code point; without restoration the interval grows until it covers several cells.

    Examples:

        python -m paper figure realization Z5 -o z5.svg
        python -m paper figure realization mine.dot --word "a b b a" --eta 0.2 -o mine.png
    """
    from exactstate.automata.draw.save import picture_format, save
    from exactstate.tasks import task
    from paper.figures.realization import cell_rows, exploring_word, paint

    picture_format(output)
    named = task(name)
    machine = named.machine
    symbols = (
        exploring_word(machine, 7)
        if word is None
        else [int(a) for a in machine.encode(word.split() if " " in word else word)]
    )
    rows = cell_rows(machine, symbols, eta)
    save(paint(machine, rows, named.name), output)
    if as_json:
        print_json(rows)
    else:
        lost = next((row["step"] for row in rows if row["kind"] == "read" and len(row["states"]) > 1), None)
        outcome = "the state stays known" if lost is None else f"without restoration the state is lost at step {lost}"
        print(f"{named.name}, {len(symbols)} steps, {outcome}: {output}")


def _figure_verb(name: str) -> Callable[..., None]:
    """The command `python -m paper figure NAME`."""

    def draw(
        output: Annotated[
            Path | None, typer.Option("--output", "-o", metavar="FILE", help="Output file: .svg, .png or .pdf.")
        ] = None,
        rows: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw these rows (JSON lines).")] = None,
        keep: Annotated[
            Path | None, typer.Option(metavar="FILE", help="Compute the rows and write them to this file.")
        ] = None,
        as_json: RowsAsJson = False,
    ) -> None:
        from exactstate.automata.draw.save import picture_format, save

        spec = FIGURES[name]
        if output is None and keep is None and not as_json:
            raise InvalidConfig("name a picture with -o FILE, or get the rows with --json or --keep FILE.")
        if output is not None:
            picture_format(output)
        found = figure_rows(spec, rows, keep)
        if output is not None:
            save(spec.paint(found), output)
        if as_json:
            print_json(found)
        else:
            print(f"{name}, {len(found)} rows: {output or keep}")

    spec = FIGURES[name]
    made = "are computed (store them with --keep)" if spec.compute is not None else "have to be made first"
    origin = f"Rows are read from `{spec.file}`; if that file is missing, they {made}: `{spec.command}`."
    draw.__doc__ = f"{spec.description}\n\n{origin}\n\nExample:\n\n    python -m paper figure {name} -o {name}.svg\n"
    return draw


for _name in FIGURES:
    figure.command(_name)(_figure_verb(_name))


@app.command("overview")
def overview(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder of the page.")] = Path(
        "build/paper"
    ),
    rows: Annotated[Path, typer.Option("--rows", metavar="FOLDER", help="Folder of the rows.")] = Path("results"),
    as_json: AsJson = False,
) -> None:
    """Write every table and figure that does not need hours on one page, index.html, from the rows.

    Examples:

        python -m paper overview
        python -m paper overview -o /tmp/paper --rows results
    """
    from paper.overview import write_overview

    found = write_overview(output, existing(rows))
    missing = {one.name: one.missing for one in found.missing}
    if as_json:
        print_json({"page": str(output / "index.html"), "missing": missing})
    else:
        print(f"{len(found.first) + len(found.tables)} tables, {len(found.figures)} figures: {output / 'index.html'}")
        for name, why in missing.items():
            print(f"{name} is missing: {why}")


@app.command("pages")
def pages(as_json: AsJson = False) -> None:
    """Write the tables and figures of the documentation anew, from the rows of this checkout.

    Example:

        python -m paper pages
    """
    from paper.pages import write_pages

    changed = write_pages()
    print_json(changed) if as_json else print(f"changed: {', '.join(changed) or 'nothing'}")


@app.command("long")
def long(
    cluster: Annotated[
        str | None, typer.Option(metavar="local|ADDRESS", help="Run the jobs on a Ray cluster, side by side.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processors of a local cluster. Default: all.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="How often all of it is resumed.")] = 1,
    as_json: RowsAsJson = False,
) -> None:
    """Resume the campaigns that take hours, one after the other: learning, the paper's recipe, baselines, sweeps.

    What is finished is skipped, so an interrupted command resumes when it is repeated. A run of the paper's recipe gets
    some more minutes in every round.

    Examples:

        python -m paper long
        python -m paper long --cluster local --rounds 10
    """
    from paper.experiments.campaigns import LONG

    for _ in range(rounds):
        for name, settings in LONG.items():
            run_campaign(name, settings=list(settings), cluster=cluster, workers=workers, as_json=as_json)


@app.command("run")
def run_campaign(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="An experiment; all are listed if left out.")
    ] = None,
    tasks: Annotated[str, typer.Option(metavar="A,B,...", help="Only these tasks.")] = "",
    cells: Annotated[str, typer.Option(metavar="A,B,...", help="Only these cells.")] = "",
    seeds: Annotated[str, typer.Option(metavar="N,N,...", help="Only these seeds.")] = "",
    recipe: Annotated[str | None, typer.Option(help="Train by this recipe.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Another setting; may be repeated.")
    ] = None,
    rows: Annotated[Path | None, typer.Option(metavar="FILE", help="Append the rows to this file.")] = None,
    runs: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the training runs.")] = Path("runs"),
    cluster: Annotated[
        str | None, typer.Option(metavar="local|ADDRESS", help="Run the jobs on a Ray cluster, side by side.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processors of a local cluster. Default: all.")] = None,
    as_json: RowsAsJson = False,
) -> None:
    """Run an experiment and append its rows to a file in `results`. Jobs whose row is there are skipped.

    An interrupted experiment resumes when the command is repeated.

    Examples:

        python -m paper run
        python -m paper run training --tasks S3,S4 --seeds 42
        python -m paper run paper_recipe --set budget=1000
        python -m paper run training --tasks S3 --cluster local
    """
    from paper.experiments.campaigns import CAMPAIGNS
    from paper.experiments.runner import run as run_jobs

    if name is None:
        _list_campaigns(list(CAMPAIGNS.values()), as_json)
        return
    if name not in CAMPAIGNS:
        raise unknown("experiment", name, CAMPAIGNS)
    campaign = CAMPAIGNS[name]
    options = campaign.options(
        rows=rows, runs=runs, tasks=_split(tasks), cells=_split(cells), seeds=_numbers(seeds), recipe=recipe,
        settings=settings or (),
    )  # fmt: skip
    new: list[records.Row] = []
    skipped = 0
    try:
        for job, computed in run_jobs(campaign, options, cluster=cluster, workers=workers):
            new += computed
            skipped += not computed
            if computed and not as_json:
                print(_job_sentence(job.key, computed[0]), flush=True)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; repeat the command to resume {name}.") from None
    if as_json:
        print_json(new)
    else:
        print(f"{name}: {len(new)} new rows in {options.rows}, {skipped} jobs skipped")


def _list_campaigns(campaigns: list[Campaign], as_json: bool) -> None:
    if as_json:
        print_json([
            {"name": one.name, "summary": one.summary, "rows": f"results/{one.file}", "tasks": one.tasks,
             "cells": one.cells, "seeds": one.seeds, "recipe": one.recipe, "settings": dict(one.settings)}
            for one in campaigns
        ])  # fmt: skip
        return
    for one in campaigns:
        print(f"{one.name:14}{one.summary} (results/{one.file})")
        if one.settings:
            print(f"{'':14}--set {' '.join(f'{key}={value}' for key, value in one.settings.items()).lower()}")


def _job_sentence(key: records.Row, row: records.Row) -> str:
    """One line about a finished job."""
    outcome = [name if row[name] else f"not {name}" for name in ("certified", "learned") if name in row]
    seconds = [f"{row['seconds']:.1f} s"] if "seconds" in row else []
    return f"{' '.join(str(value) for value in key.values())}: {', '.join([*outcome, *seconds]) or 'done'}"


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in _split(text)]
    except ValueError:
        raise InvalidConfig(f"seeds are numbers separated by commas, such as 42,43; got {text!r}.") from None


def figure_rows(spec: FigureSpec, given: Path | None = None, keep: Path | None = None) -> list[records.Row]:
    """The rows to draw: of a given file, of `results`, or computed."""
    if given is not None and keep is not None:
        raise InvalidConfig("--rows draws existing rows, --keep computes new ones; use one of the two.")
    if keep is not None:
        if spec.compute is None:
            raise InvalidConfig(f"the rows of {spec.name} are not computed here; make them with `{spec.command}`.")
        if keep.exists():
            raise InvalidConfig(f"{keep} exists; draw it with --rows, or name another file.")
        return list(_computed(spec, keep))
    file = given or Path(spec.file)
    if file.exists() or given is not None:
        if not file.is_file():
            raise BrokenFile(file, "this is not a file of rows.")
        return list(records.read(file))
    if spec.compute is None:
        raise spec.missing()
    return list(_computed(spec, None))


def _computed(spec: FigureSpec, keep: Path | None) -> Iterator[records.Row]:
    """The computed rows; if they are kept, each is on disk before the next is computed."""
    assert spec.compute is not None
    with _status(f"computing the rows of {spec.name}") as update:
        stamp = {} if keep is None else records.stamp()
        for count, row in enumerate(spec.compute(), start=1):
            update(f"{spec.name}: {count} rows")
            if keep is not None:
                records.append(keep, {**row, **(stamp if count == 1 else {})})
            yield row


@contextmanager
def _status(sentence: str) -> Iterator[Callable[[str], Any]]:
    """Print a sentence on the error stream; on a terminal, a status line that can be updated."""
    if not sys.stderr.isatty():
        print(f"exactstate: {sentence}", file=sys.stderr)
        yield lambda text: None
        return
    with console(stderr=True).status(sentence) as status:
        yield status.update


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def run(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code."""
    return exit_code_of(lambda: app(args=list(arguments), prog_name="python -m paper", standalone_mode=False))
