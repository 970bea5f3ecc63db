"""A short word read step by step: where every head stands after every symbol, and what is said there.

The steps are those of the tables in the certificate, as `detent/certification/FORMAT.md` tells them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from detent.report.markup import Html, element


class Step(NamedTuple):
    """What happens at one symbol."""

    symbol: str
    indices: tuple[tuple[int, ...], ...]
    """Of every head of every layer, after the step."""
    state: str
    """Of the target."""


def steps(content: dict[str, Any], word: Sequence[str]) -> list[Step]:
    """The word read by the tables of a certificate, from below to the top at every symbol."""
    layers, target = content["layers"], content["target"]
    number = [{tuple(row): k for k, row in enumerate(layer["inputs"])} for layer in layers]
    window = [{tuple(row): k for k, row in enumerate(layer["windows"])} for layer in layers]
    stand = [tuple(layer["start"]) for layer in layers]
    before: list[tuple[int, ...]] = [(-1,) * (content["reach"] - 1) for _ in layers]
    state, found = target["start"], []
    symbols = {name: a for a, name in enumerate(content["symbols"])}
    for symbol in word:
        a = symbols[symbol]
        seen: tuple[int, ...] = (a,)
        for depth, layer in enumerate(layers):
            here = number[depth][seen]
            read = (*before[depth], here)
            tables = [table[window[depth][read]] for table in layer["tables"]]
            stand[depth] = tuple(table[k] for table, k in zip(tables, stand[depth], strict=True))
            before[depth], seen = read[1:], (here, *stand[depth])
        state = target["tables"][a][state]
        found.append(Step(symbol, tuple(stand), target["states"][state]))
    return found


def walk(content: dict[str, Any], word: Sequence[str], said: Sequence[str]) -> Html:
    """The steps as a table; `said` is what the machine without the network says at each of them."""
    found = steps(content, word)
    with_states = any(step.state != one for step, one in zip(found, said, strict=True))
    body = []
    for step, one in zip(found, said, strict=True):
        cells = [one, *(str(k) for layer in step.indices for k in layer), *([step.state] if with_states else [])]
        body.append(element("tr", element("th", step.symbol, scope="row"), *(element("td", cell) for cell in cells)))
    top = _titles(content, ["state of the target"] if with_states else [])
    table = element("table", element("thead", *top), element("tbody", *body))
    return element("div", table, class_="scroll")


def _titles(content: dict[str, Any], ends: Sequence[str]) -> list[Html]:
    """Columns of heads; of a stack, under the names of its layers."""
    sizes = [len(layer["heads"]) for layer in content["layers"]]
    heads = [element("th", f"head {head}", scope="col") for size in sizes for head in range(size)]
    first, rest = ([element("th", title, scope="col") for title in titles] for titles in (("reads", "says"), ends))
    names = element("tr", *first, *heads, *rest)
    if len(sizes) == 1:
        return [names]
    layers = [
        element("th", f"layer {depth}", scope="colgroup", colspan=size, class_="group")
        for depth, size in enumerate(sizes)
    ]
    return [element("tr", element("td", "", colspan=2), *layers, *(element("td", "") for _ in ends)), names]
