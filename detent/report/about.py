"""What was trained, and how, as a list of names and values."""

from __future__ import annotations

from typing import Any

from detent.report.markup import Html, element, joined
from detent.report.reading import Told
from detent.report.words import heads_of, listed

SHOWN, MOST_LETTERS = 12, 160
"""Names listed, and letters in them, before the rest is counted."""


def trained(told: Told) -> Html:
    """What was trained, and how."""
    config = told.config
    rows: dict[str, str | Html] = {}
    if told.task is not None and told.task.about:
        rows["task"] = f"{told.name}: {told.task.about}"
    if (target := told.target) is not None:
        rows["states"] = named(target.states)
        rows["symbols"] = named(target.symbols)
    rows["network"] = _network(told)
    rows |= {
        name: str(config[key]) for key, name in {"arm": "recipe", "recipe": "recipe", "seed": "seed"}.items()
        if key in config
    }  # fmt: skip
    steps = told.history[-1] if told.history else {}
    if steps:
        rows["training"] = f"{_count(told.history):,} steps" + _again(steps.get("attempt", 0))
    if told.certificate is not None:
        rows["weights"] = f"SHA-256 {told.certificate['weights']}"
        made = told.certificate["made"]
        rows["certified by"] = listed([f"{name} {version}" for name, version in made.items()])
    return element("dl", *(part for name, said in rows.items() for part in (element("dt", name), element("dd", said))))


def named(names: tuple[str, ...]) -> Html:
    """How many, and the first of them."""
    shown = list(names[:SHOWN])
    while len(shown) > 1 and sum(map(len, shown)) > MOST_LETTERS:
        shown.pop()
    rest = ["..."] if len(names) > len(shown) else []
    return joined([f"{len(names):,}: ", *(element("code", name) for name in shown), *rest])


def cell_of(told: Told) -> str:
    """What the recurrence is called."""
    cell = str(told.config.get("cell", "nfsm"))
    return cell.upper() if cell == "nfsm" else cell


def _network(told: Told) -> str:
    """The cell and its size, as far as the files tell."""
    size = told.config.get("size", told.config)
    parts = [cell_of(told)]
    if told.certificate is not None:
        parts.append(f"heads of {heads_of(told.certificate)} indices")
    if "layers" in size:
        parts.append(f"{size['layers']} {'layer' if size['layers'] == 1 else 'layers'}")
    parts += [f"{name} {size[name]}" for name in ("width", "channels", "states") if name in size]
    return ", ".join(parts)


def _count(history: list[dict[str, Any]]) -> int:
    """Steps of all phases of all attempts."""
    last: dict[tuple[Any, Any], int] = {}
    for row in history:
        last[row.get("attempt"), row.get("phase")] = int(row.get("step", 0))
    return sum(last.values())


def _again(attempt: int) -> str:
    return f", after beginning again {attempt} times" if attempt > 1 else ", after beginning again once" * attempt
