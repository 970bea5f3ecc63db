"""What a certificate proves, in sentences for people who have never seen one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from detent.certify.certify import Verdict


class Weakest(NamedTuple):
    """The column in use that is closest to another choice."""

    margin: float
    layer: int
    head: int
    symbol: str
    column: int


def weakest(content: dict[str, Any]) -> Weakest | None:
    """None when no column has anything to choose."""
    found = [
        Weakest(float(margin), layer, head, symbol, column)
        for layer, heads in enumerate(content["margins"]["logits"])
        for head, rows in enumerate(heads)
        for symbol, row in zip(content["symbols"], rows, strict=True)
        for column, margin in enumerate(row)
        if margin is not None
    ]
    return min(found, default=None, key=lambda one: one.margin)


def claim(content: dict[str, Any]) -> str:
    """The whole of it in one sentence."""
    words = "every word" if content["grammar"] is None else "every word of the grammar"
    parts = [f"correct on {words} of every length"]
    closest = weakest(content)
    if closest is not None:
        place = f"column {closest.column} ({_head(content, closest)})"
        parts.append(f"weakest margin {closest.margin:.3g} at symbol {closest.symbol}, {place}")
    parts.append(f"proved for {listed(content['proved'])}" if content["proved"] else "rounding not proved harmless")
    return "; ".join(parts) + "."


def _head(content: dict[str, Any], column: Weakest) -> str:
    layer = f"layer {column.layer}, " if len(content["layers"]) > 1 else ""
    return f"{layer}head {column.head}"


def unproved(content: dict[str, Any]) -> list[str]:
    """Formats that were tried without success."""
    return [name for name in content["rounding"] if name not in content["proved"]]


def sentences(content: dict[str, Any]) -> list[str]:
    """The same at length."""
    counts = content["counts"]
    told = [
        f"The heads, of {heads_of(content)} indices, can stand in {counts['joint_indices']:,} ways; words lead to "
        f"{counts['reached']:,} of them, which stand for the {counts['task_states']:,} states of the target.",
        "Every step from every one of them was followed for every symbol. The network always goes where the target "
        "goes and says what the target says, so by induction it does so on every word, however long.",
    ]
    closest = weakest(content)
    if closest is not None:
        told.append(
            f"A step is the largest entry of a column of logits. The closest call is {_head(content, closest)} reading "
            f"{closest.symbol} at index {closest.column}: its first choice leads by {closest.margin:.4g}."
        )
    told += [_slack(content, name) for name in content["proved"]]
    if tried := unproved(content):
        told.append(f"For {listed(tried)} the bound on rounding is larger than some margin: nothing is claimed there.")
    return told


def _slack(content: dict[str, Any], name: str) -> str:
    """How much room rounding leaves in a format."""
    margins, errors = (
        [bounds[kind] for kind in ("logits", "labels", "answers")]
        for bounds in (content["margins"], content["rounding"][name])
    )
    pairs = zip(_numbers(margins), _numbers(errors), strict=True)
    ratio = min((margin / (2 * error) for margin, error in pairs if error > 0), default=np.inf)
    return f"In {name} no logit can be off by half its margin: the tightest has {ratio:.3g} times the room it needs."


def _numbers(value: Any) -> Iterator[float]:
    """All numbers in nested lists, in order."""
    if isinstance(value, list):
        for one in value:
            yield from _numbers(one)
    elif value is not None:
        yield float(value)


def refusal(verdict: Verdict | None) -> str:
    """What is said of a run without a certificate."""
    if verdict is None:
        return "There is no certificate, and nothing to compare the machine with."
    said = verdict.explain()
    return f"{said[:1].upper()}{said[1:]}"


def heads_of(content: dict[str, Any]) -> str:
    """Sizes of heads, layer by layer: 3 and 2, or 4, 4 and 4 below 4 and 4."""
    return " below ".join(listed([str(size) for size in layer["heads"]]) for layer in content["layers"])


def listed(names: list[str]) -> str:
    """a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
