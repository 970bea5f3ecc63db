"""A certificate in words: what was compared, what was found, where the model is closest to another machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detent.automata import Semiautomaton, definite, group

COARSEST = ("bfloat16", "float16", "float32", "float64")
"""Formats from the one with the fewest digits on."""


def summary(content: dict[str, Any]) -> str:
    """What a certificate says, line by line. That it is valid is for `check` to say."""
    return "\n".join(_lines(content))


def _lines(content: dict[str, Any]) -> Iterator[str]:
    counts, target = content["counts"], content["target"]
    name = content["name"] or "a model"
    labels = "its states are the labels" if target["says"] == "states" else "its outputs are the labels"
    yield f"{name}: compared with a target of {len(target['states']):,} states, {labels}"
    yield f"weights: SHA-256 {content['weights']}"
    yield f"heads: {' | '.join(' '.join(map(str, layer['heads'])) for layer in content['layers'])}" + _stack(content)
    words = "every word" if content["grammar"] is None else "every word of the grammar"
    yield (
        f"{counts['reached']:,} of {counts['joint_indices']:,} joint indices reached"
        + (f" in {counts['configurations']:,} configurations" if counts["configurations"] > counts["reached"] else "")
        + f", for {counts['task_states']:,} states of the target: {_fit(content)}"
    )
    asked = "" if content["question"] is None else ", and so is every answer"
    yield f"what is said after {words} is right, at every length{asked}"
    machine = Semiautomaton(symbols=tuple(content["symbols"]), tables=target["tables"], states=tuple(target["states"]))
    yield f"the target is {definite(machine).explain()}"
    yield f"the target is {group(machine).explain()}"
    yield from _margins(content)
    yield _formats(content)


def _stack(content: dict[str, Any]) -> str:
    return f", convolutions over {content['reach']} symbols" if content["reach"] > 1 else ""


def _fit(content: dict[str, Any]) -> str:
    counts, pairs = content["counts"], len(content["matching"])
    if counts["configurations"] == counts["task_states"] == pairs:
        return "one for each"
    return "with redundancy" if pairs == counts["configurations"] else "some stand for several that go on alike"


def _margins(content: dict[str, Any]) -> Iterator[str]:
    """The weakest column of every symbol, and the weakest read-outs."""
    symbols, found = content["symbols"], []
    for depth, heads in enumerate(content["margins"]["logits"]):
        for head, margins in enumerate(heads):
            held = _array(margins)
            for symbol, row in enumerate(held):
                k = int(row.argmin())
                found.append((float(row[k]), symbol, depth, head, k))
    if found and min(found)[0] < np.inf:
        margin, symbol, depth, head, k = min(found)
        layer = f"layer {depth}, " if len(content["layers"]) > 1 else ""
        yield f"weakest column: {layer}head {head} reading {symbols[symbol]!r} at index {k}, ahead by {margin:.4g}"
        least = [(name, min(one[0] for one in found if one[1] == a)) for a, name in enumerate(symbols)]
        yield f"smallest margin of the logits by symbol: {_some(least)}"
    for kind in ("labels", "answers"):
        if content["margins"][kind] is not None:
            least = list(zip(symbols, _array(content["margins"][kind]).tolist(), strict=True))
            yield f"smallest margin of the {kind} by symbol: {_some(least)}"


def _some(least: list[tuple[str, float]]) -> str:
    known = sorted((margin, name) for name, margin in least if margin < np.inf)
    shown = ", ".join(f"{name} {margin:.4g}" for margin, name in known[:8])
    return (shown or "none") + (f", and {len(known) - 8} larger" if len(known) > 8 else "")


def _formats(content: dict[str, Any]) -> str:
    """For which arithmetic rounding is proved to change nothing."""
    if not content["rounding"]:
        return f"rounding: nothing is proved; logits were evaluated in {content['evaluated']}"
    if not content["proved"]:
        return f"rounding: for none of {', '.join(content['rounding'])} is it proved to change nothing"
    ranked = sorted(content["proved"], key=lambda name: COARSEST.index(name) if name in COARSEST else len(COARSEST))
    others = [name for name in content["rounding"] if name not in content["proved"]]
    not_for = f"; not for {', '.join(others)}" if others else ""
    return f"rounding: proved to change nothing in {', '.join(ranked)}; coarsest {ranked[0]}{not_for}"


def _array(margins: Any) -> NDArray[np.float64]:
    """Numbers, infinite where there are none."""
    held = np.array(margins, object)
    held[held == None] = np.inf  # noqa: E711
    return held.astype(np.float64)
