"""`exactstate tasks`: list the tasks, with their sizes, definiteness and suggested heads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from exactstate._text import one_line
from exactstate.cli import _completion
from exactstate.cli._output import AsJson, facts, print_json, show, with_progress

if TYPE_CHECKING:
    from exactstate.tasks import Description, Task


def tasks(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME|FILE", show_default=False, autocompletion=_completion.tasks,
            help="Tasks or machine files (.dot, .json) to describe in detail. Default: list all tasks.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """List the tasks: states, symbols, definite or not and why, suggested heads.

    A task is **definite** when the last few symbols of a word determine the state. The **heads** are sizes of quotients
    that together distinguish all states: pass them to the layer.

    Examples:

        exactstate tasks                   all tasks
        exactstate tasks S4 DFF5           two of them in detail
        exactstate tasks mine.dot --json   a machine of yours, for a program
    """
    from exactstate.tasks import NAMES, describe, task

    selected = [task(name) for name in names or NAMES]
    described = [describe(one) for one in with_progress(selected, name=lambda one: one.name)]
    if as_json:
        print_json([_row(about) for about in described])
    elif names:
        for one, about in zip(selected, described, strict=True):
            _show(one, about)
    else:
        _list(described)


def _row(about: Description) -> dict[str, Any]:
    return {
        "name": about.name, "about": about.about, "words": about.words, "states": about.states,
        "symbols": about.symbols, "definite": bool(about.definite), "order": about.definite.order,
        "machine_definite": about.machine_definite, "why": about.why, "heads": list(about.heads),
        "layers": [list(layer) for layer in about.layers], "factoring": about.factoring,
    }  # fmt: skip


def _list(rows: list[Description]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("task", no_wrap=True)
    table.add_column("states", justify="right")
    table.add_column("symbols", justify="right")
    table.add_column("heads", no_wrap=True)
    table.add_column("definite", overflow="fold")
    for about in rows:
        sizes = (str(about.states), str(about.symbols), _heads(about))
        table.add_row(about.name, *sizes, Text(_definite(about)))
    show(table, Text("\n`exactstate tasks NAME` describes one in detail; a machine file is a task too.", style="dim"))


def _heads(about: Description) -> str:
    return " | ".join(" ".join(map(str, layer)) for layer in about.layers)


def _definite(about: Description) -> str:
    """Yes or no, and why, in one line."""
    if not about.definite:
        return f"no: '{' '.join(about.definite.word)}' repeated keeps states distinct"
    order, sampled = about.definite.order, "" if about.machine_definite else " of a sampled word"
    return (
        f"yes: the last symbol{sampled} determines the state"
        if order == 1
        else f"yes: the last {order} symbols{sampled} determine the state"
    )


def _show(task: Task, about: Description) -> None:
    from rich.text import Text

    from exactstate.automata import Properties

    machine = [sentence for sentence in Properties.of(task.machine).sentences()[1:] if sentence != about.why]
    rows = {
        "states": _some(task.machine.states), "symbols": _some(task.machine.symbols), "words": about.words,
        "definite": about.why, "machine": "\n".join(machine), "heads": f"{_heads(about)}\n{about.factoring}",
    }  # fmt: skip
    show(Text.assemble((about.name, "bold"), f": {about.about}"), facts(rows.items()))


def _some(names: tuple[str, ...], most: int = 8) -> str:
    shown = "; ".join(map(one_line, names[:most]))
    return f"{len(names)}: {shown}{'; ...' if len(names) > most else ''}"
