"""What a certificate tells, taken apart and found to be in form.

A  symbols     n  states of the target     c  configurations
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from detent.certification.checking.form import Refused, distinct, entries, listed, names, ranged, row, text, whole
from detent.certification.checking.parts import Layer, grammar_of, layers_of, question_of, target_of

KEYS = (
    "format", "version", "name", "made", "weights", "evaluated", "symbols", "target", "grammar", "question", "reach",
    "layers", "configurations", "readout", "replies", "matching", "counts", "margins", "rounding", "proved", "sha256",
)  # fmt: skip
REACH = 1024
"""More than any convolution spans."""


@dataclass(frozen=True)
class Told:
    """A certificate in form: every number is in range, and whether they agree is another matter."""

    symbols: list[str]
    states: list[str]
    start: int
    tables: list[list[int]]
    """A n"""
    wanted: list[list[int]]
    """A n: the label that is right when a symbol is read in a state."""
    labels: list[str]
    place: int
    rules: list[list[int]]
    """A g: the moves of the grammar."""
    refused: list[int]
    """g"""
    question: dict[str, Any] | None
    reach: int
    layers: list[Layer]
    configurations: list[list[int]]
    """Indices of all heads, the last inputs of the top layer, the place in the grammar."""
    readout: list[list[int]]
    replies: list[list[int]]
    """For every entry of the matching."""
    matching: list[list[int]]
    """Configuration, state of the target, state of the question."""


def told(content: dict[str, Any]) -> Told:
    """Take a certificate apart; the first entry that is not in form is the reason to refuse it."""
    entries(content, "the certificate", *KEYS)
    _origin(content)
    symbols = names(content["symbols"], "symbols")
    A = len(symbols)
    states, start, tables, labels, wanted = target_of(content["target"], A)
    place, rules, refused = grammar_of(content["grammar"], A)
    question = question_of(content["question"], A, len(states))
    reach = whole(content["reach"], "reach", 1, REACH)
    layers = layers_of(content["layers"], A, reach)
    shown = content["grammar"] is not None
    low_ends = [(0, d) for layer in layers for d in layer.heads] + [(-1, len(layers[-1].inputs))] * (reach - 1)
    configurations = _configurations(
        content["configurations"], [*low_ends, (0, len(refused))] if shown else low_ends, shown
    )
    moves = [sum(not refused[rule[one[-1]]] for rule in rules) for one in configurations]
    matching = _matching(content["matching"], len(configurations), len(states), question)
    replies = _replies(content["replies"], len(matching), question)
    readout = _by_step(content["readout"], "readout", moves, len(labels))
    return Told(
        symbols=symbols, states=states, start=start, tables=tables, wanted=wanted, labels=labels, place=place,
        rules=rules, refused=refused, question=question, reach=reach, layers=layers, configurations=configurations,
        readout=readout, replies=replies, matching=matching,
    )  # fmt: skip


def _origin(content: dict[str, Any]) -> None:
    text(content["name"], "name")
    for key, version in entries(content["made"], "made", "detent", "python", "numpy").items():
        text(version, f"made.{key}")
    for key in ("weights", "sha256"):
        if not re.fullmatch("[0-9a-f]{64}", text(content[key], key)):
            raise Refused(f"{key} is not a SHA-256 in 64 hexadecimal digits.")
    if content["evaluated"] not in ("float64", "float32"):
        raise Refused(f"evaluated is {content['evaluated']!r:.40}; wanted 'float64' or 'float32'.")


def _configurations(value: Any, ranges: list[tuple[int, int]], shown: bool) -> list[list[int]]:
    """With the place in the grammar last, also where there is no grammar."""
    found = ranged(value, "configurations", ranges)
    if not found:
        raise Refused("configurations is empty.")
    distinct(found, "configurations")
    return found if shown else [[*entry, 0] for entry in found]


def _by_step(value: Any, where: str, moves: list[int], below: int) -> list[list[int]]:
    """For every configuration one number for every symbol that may follow."""
    found = listed(value, where, len(moves))
    return [
        row(entry, f"{where}[{i}]", count, 0, below) for i, (entry, count) in enumerate(zip(found, moves, strict=True))
    ]


def _replies(value: Any, pairs: int, question: dict[str, Any] | None) -> list[list[int]]:
    """For every entry of the matching the answers that are given; without a question there are none."""
    if question is None:
        if value is not None:
            raise Refused("replies are given, but there is no question.")
        return [[] for _ in range(pairs)]
    found = listed(value, "replies", pairs)
    return [row(entry, f"replies[{i}]", None, 0, len(question["answers"])) for i, entry in enumerate(found)]


def _matching(value: Any, c: int, n: int, question: dict[str, Any] | None) -> list[list[int]]:
    """With the state of the question last, also where there is none."""
    ranges = [(0, c), (0, n)]
    if question is not None:
        ranges.append((0, len(question["tables"][0])))
    found = ranged(value, "matching", ranges)
    if not found:
        raise Refused("matching is empty.")
    distinct(found, "matching")
    return found if question is not None else [[*entry, 0] for entry in found]
