"""Turn the labels of edges into steps: one line one transition, `in / out` for Mealy machines, `a | b` two inputs.

A label of two lines whose first has no slash is read as inputs above and output below, as in published TLS models:
`Finished<br/>Alert / Closed` says on input Finished the output `Alert / Closed`.
"""

from __future__ import annotations

from collections.abc import Sequence

from detent.automata.files.assembly import Step
from detent.automata.files.dot.graph import Edge
from detent.automata.files.dot.labels import in_and_out, merged
from detent.automata.files.reading import Reading, shown


def is_slashed(lines: list[str]) -> bool:
    """Whether every line says `in / out`."""
    return all("/" in line for line in lines)


def is_two_lined(lines: list[str]) -> bool:
    """Whether the first line may be inputs and the second their output."""
    return len(lines) == 2 and "/" not in lines[0]


def steps_of(
    reading: Reading, edges: Sequence[Edge], labels: list[list[str]], number: dict[str, int], *, mealy: bool
) -> list[Step]:
    """The steps of all edges, in order."""
    steps: list[Step] = []
    doubts: dict[str, tuple[Edge, int]] = {}
    for edge, lines in zip(edges, labels, strict=True):
        source, target = number[edge.source], number[edge.target]
        pairs: list[tuple[str, str | None]] = [(line, None) for line in lines]
        stacked = mealy and not is_slashed(lines) and is_two_lined(lines)
        if stacked:
            pairs = [(lines[0], lines[1])]
        elif mealy:
            pairs = [_in_and_out(reading, line, edge) for line in lines]
        for inputs, output in pairs:
            symbols = merged(inputs) if " | " in inputs else [inputs]
            if not all(symbols):
                raise reading.error(f"the label {shown(inputs)} lacks an input.", edge.line)
            steps += [Step(source, symbol, target, edge.line, output) for symbol in symbols]
            if len(symbols) > 1:
                _count(doubts, "was read as several inputs, parted by ' | '", edge)
        if stacked:
            _count(doubts, "was read as input above, output below", edge)
        elif len(lines) > 1:
            _count(doubts, "was read as several transitions, one per line", edge)
    for sentence, (edge, times) in doubts.items():
        more = f" ({times - 1} more like it)" if times > 1 else ""
        reading.doubt(f"the label {shown(edge.attributes['label'])} {sentence}{more}.", edge.line)
    return steps


def _in_and_out(reading: Reading, line: str, edge: Edge) -> tuple[str, str]:
    both = in_and_out(line)
    if both is None:
        raise reading.error(f"the label {shown(line)} has no output; wanted in / out.", edge.line)
    if not both[0]:
        raise reading.error(f"the label {shown(line)} lacks an input; wanted in / out.", edge.line)
    return both


def _count(doubts: dict[str, tuple[Edge, int]], sentence: str, edge: Edge) -> None:
    first, times = doubts.get(sentence, (edge, 0))
    doubts[sentence] = (first, times + 1)
