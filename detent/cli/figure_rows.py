"""Figures that are drawn from rows, each as a verb: rows from `results`, from a file, or computed on the spot."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from detent import records
from detent.cli._output import console, print_json
from detent.errors import BrokenFile, InvalidConfig
from paper.figures import Drawing

Picture = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to: .svg, .png or .pdf.")
]  # fmt: skip


def verb_of(drawing: Drawing) -> Callable[..., None]:
    """What `detent figure NAME` does."""

    def draw(
        output: Picture = None,
        rows: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw these rows instead (JSON lines).")] = None,
        keep: Annotated[
            Path | None,
            typer.Option(metavar="FILE", help="Compute the rows, and keep them in this file."),
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print the rows, for programs.")] = False,
    ) -> None:
        from detent.automata.draw.save import picture_format, save

        if output is None and keep is None and not as_json:
            raise InvalidConfig("name a picture with -o FILE, or ask for the rows with --json or --keep FILE.")
        if output is not None:
            picture_format(output)
        found = rows_of(drawing, rows, keep)
        if output is not None:
            save(drawing.paint(found), output)
        if as_json:
            print_json(found)
        else:
            print(f"{drawing.name}, {len(found)} rows: {output or keep}")

    draw.__doc__ = f"{drawing.about}\n\n{_origin(drawing)}\n\nExample:\n\n    {_example(drawing)}\n"
    return draw


def _origin(drawing: Drawing) -> str:
    made = "are computed on the spot (they can be kept with --keep)" if drawing.computed_by else "have to be made first"
    return f"Rows come from `{drawing.file}`; without that file they {made}: `{drawing.command}`."


def _example(drawing: Drawing) -> str:
    return f"detent figure {drawing.name} -o {drawing.name}.svg"


def rows_of(drawing: Drawing, given: Path | None = None, keep: Path | None = None) -> list[records.Row]:
    """The rows to draw: those of a file that was named, those in `results`, or new ones."""
    if given is not None and keep is not None:
        raise InvalidConfig("--rows draws rows that are there, --keep computes new ones; ask for one of the two.")
    if keep is not None:
        if drawing.computed_by is None:
            raise InvalidConfig(f"the rows of {drawing.name} are not computed here; `{drawing.command}` makes them.")
        if keep.exists():
            raise InvalidConfig(f"{keep} is there already; draw it with --rows, or name another file.")
        return list(_computed(drawing, keep))
    kept = given or Path(drawing.file)
    if kept.exists() or given is not None:
        if not kept.is_file():
            raise BrokenFile(kept, "this is no file with rows.")
        return list(records.read(kept))
    if drawing.computed_by is None:
        raise drawing.missing()
    return list(_computed(drawing, None))


def _computed(drawing: Drawing, keep: Path | None) -> Iterator[records.Row]:
    """The rows as they come, each on disk before the next when they are kept."""
    module, _, name = str(drawing.computed_by).partition(":")
    made_by = f"{module}.{name}"
    with _said(f"computing the rows of {drawing.name} ({made_by})") as update:
        stamp = {} if keep is None else records.stamp()
        for count, row in enumerate(getattr(import_module(module), name)(), start=1):
            update(f"{drawing.name}: {count} rows")
            if keep is not None:
                records.append(keep, {**row, **(stamp if count == 1 else {})})
            yield row


@contextmanager
def _said(sentence: str) -> Iterator[Callable[[str], Any]]:
    """Say what takes a while, on the error stream; on a terminal with a line that follows it."""
    if not sys.stderr.isatty():
        print(f"detent: {sentence}", file=sys.stderr)
        yield lambda words: None
        return
    with console(stderr=True).status(sentence) as status:
        yield status.update
