"""The contents of a certificate as sentences for readers who have never seen one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from exactstate.certify.certify import Verdict
from exactstate.certify.check import answers_alone, region_sentences


class SmallestMargin(NamedTuple):
    """The column of logits, among those in use, whose arg max leads by the least."""

    margin: float
    layer: int
    head: int
    symbol: str
    column: int


def smallest_margin(content: dict[str, Any]) -> SmallestMargin | None:
    """None when no column has a runner-up."""
    margins = [
        SmallestMargin(float(margin), layer, head, symbol, column)
        for layer, heads in enumerate(content["margins"]["logits"])
        for head, rows in enumerate(heads)
        for symbol, row in zip(content["symbols"], rows, strict=True)
        for column, margin in enumerate(row)
        if margin is not None
    ]
    return min(margins, default=None, key=lambda one: one.margin)


def claim(content: dict[str, Any]) -> str:
    """What is proved, in one sentence."""
    words = "every word" if content["grammar"] is None else "every word of the grammar"
    parts = [
        f"every answer correct in {words} of every length"
        if answers_alone(content)
        else f"correct on {words} of every length"
    ]
    smallest = smallest_margin(content)
    if smallest is not None:
        place = f"column {smallest.column} ({_head(content, smallest)})"
        parts.append(f"smallest margin {smallest.margin:.3g} at symbol {smallest.symbol}, {place}")
    proved = content["proved"]
    parts.append(f"proved for {enumeration(proved)}" if proved else "no rounding error is bounded")
    return "; ".join(parts) + "."


def sentences(content: dict[str, Any]) -> list[str]:
    """What is proved, and how."""
    counts = content["counts"]
    lines = [
        f"The heads, of {head_sizes(content)} indices, have {counts['joint_indices']:,} joint indices. "
        f"{counts['reached']:,} configurations can be reached; they represent the {counts['task_states']:,} states of "
        "the target.",
        "From every reachable configuration every symbol was followed. The next configuration and the "
        f"{'answer' if answers_alone(content) else 'output'} always match the target, so by induction they match on "
        "every word of any length.",
    ]
    smallest = smallest_margin(content)
    if smallest is not None:
        lines.append(
            f"A transition is the arg max of a column of logits. The smallest margin is that of "
            f"{_head(content, smallest)} at symbol {smallest.symbol}, index {smallest.column}: the arg max leads the "
            f"runner-up by {smallest.margin:.4g}."
        )
    lines += [_rounding(content, name) for name in content["proved"]]
    lines += [f"{sentence[0].upper()}{sentence[1:]}." for sentence in region_sentences(content)]
    if unproved := [name for name in content["rounding"] if name not in content["proved"]]:
        lines.append(
            f"For {enumeration(unproved)} the bound on the rounding error exceeds half of some margin: nothing is "
            "proved there."
        )
    return lines


def failure(verdict: Verdict | None) -> str:
    """Why a run has no certificate."""
    if verdict is None:
        return "There is no certificate, and no target to compare the machine with."
    explained = verdict.explain()
    return f"{explained[:1].upper()}{explained[1:]}"


def head_sizes(content: dict[str, Any]) -> str:
    """Sizes of heads, layer by layer from the bottom: 3 and 2, or 4, 4 and 4 below 4 and 4."""
    return " below ".join(enumeration([str(size) for size in layer["heads"]]) for layer in content["layers"])


def enumeration(names: Sequence[str]) -> str:
    """a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _head(content: dict[str, Any], column: SmallestMargin) -> str:
    layer = f"layer {column.layer}, " if len(content["layers"]) > 1 else ""
    return f"{layer}head {column.head}"


def _rounding(content: dict[str, Any], name: str) -> str:
    """How far the rounding error of a format stays below the margins."""
    margins, errors = (
        [bounds[kind] for kind in ("logits", "labels", "answers")]
        for bounds in (content["margins"], content["rounding"][name])
    )
    pairs = zip(_numbers(margins), _numbers(errors), strict=True)
    ratio = min((margin / (2 * error) for margin, error in pairs if error > 0), default=np.inf)
    return (
        f"In {name} the rounding error of every logit is below half its margin; half the margin is at least "
        f"{ratio:.3g} times the bound on the error."
    )


def _numbers(value: Any) -> Iterator[float]:
    """All numbers in nested lists, in order."""
    if isinstance(value, list):
        for one in value:
            yield from _numbers(one)
    elif value is not None:
        yield float(value)
