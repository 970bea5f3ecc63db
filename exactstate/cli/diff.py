"""`exactstate diff`: compare two machines, or two versions of one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from exactstate.cli._machines import Missing, read_any
from exactstate.cli._output import AsJson, print_json, print_text


def diff(
    first: Annotated[str, typer.Argument(metavar="A", help="A machine file, a task, or the folder of a run.")],
    second: Annotated[str, typer.Argument(metavar="B", help="What to compare it with.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="A picture of both: .svg, .png or .pdf.")
    ] = None,
    missing: Missing = "refuse",
    as_json: AsJson = False,
) -> None:
    """Compare two machines by the names of their symbols and outputs, over the symbols that both read.

    Prints a shortest word on which their outputs differ, with both answers, and every transition that differs after
    states are aligned by the words that reach them. Order of lines and numbering of states do not matter. Exit code 0
    when the machines are equivalent, 1 when they differ.

    Examples:

        exactstate diff old.dot new.dot
        exactstate diff old.dot new.dot -o difference.svg
        exactstate diff runs/S3-42-gradient S3
        exactstate diff old.dot new.dot --missing sink --json
    """
    from exactstate.automata.difference import difference
    from exactstate.automata.draw.save import picture_format, save

    if output is not None:
        picture_format(output)
    found = difference(read_any(first, missing), read_any(second, missing))
    if output is not None:
        from exactstate.report.figures.machine import paint

        save(paint(found.first, found.second, (Path(first).name, Path(second).name)), output)
    if as_json:
        print_json({
            "first": first, "second": second, "equivalent": bool(found), "symbols": list(found.symbols),
            "only_first": list(found.only_first), "only_second": list(found.only_second),
            "word": None if found.word is None else list(found.word), "outputs": [list(part) for part in found.outputs],
            "transitions": [
                {"state": one.state, "other_state": one.other_state, "symbol": one.symbol, "first": list(one.first),
                 "second": list(one.second)}
                for one in found.transitions
            ],
            "states_only_first": list(found.unmatched[0]), "states_only_second": list(found.unmatched[1]),
            "file": None if output is None else str(output),
        })  # fmt: skip
    else:
        print_text(found.explain())
        if output is not None:
            print_text(f"drawn in {output}")
    raise typer.Exit(0 if found else 1)
