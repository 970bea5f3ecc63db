"""Check a certificate again: its seal, its machine step by step, its counts, its margins against rounding.

What is proved when nothing is found: a machine with these tables, started there and run on any word of any length that
the grammar permits, goes through the configurations listed and says what the target wants. And in a format that is
listed as proved, computed tables and read-outs are the exact ones, if the margins and errors are those of the weights:
those two come from the weights, which are not in the file, and only whoever has the weights can compute them again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detent.certification.checking.form import Refused, amounts, entries, listed, names
from detent.certification.checking.matched import matched
from detent.certification.checking.reading import read
from detent.certification.checking.replay import Bools, Replay
from detent.certification.checking.telling import Told, told


@dataclass(frozen=True)
class Report:
    """What the check of a certificate found. True when nothing is wrong."""

    findings: tuple[str, ...]
    """Reasons to refuse it."""

    def __bool__(self) -> bool:
        return not self.findings


def check(certificate: str | os.PathLike[str] | Mapping[str, Any]) -> Report:
    """Check a certificate, given as a file or as its content; a file that is no certificate raises an error."""
    content = dict(certificate) if isinstance(certificate, Mapping) else read(certificate)
    return Report((*_reasons(_seal, content), *_reasons(_machine, content)))


def _reasons(look: Callable[[dict[str, Any]], None], content: dict[str, Any]) -> tuple[str, ...]:
    try:
        look(content)
    except Refused as reason:
        return (str(reason),)
    except RecursionError:
        return ("lists are nested too deep.",)
    return ()


def _seal(content: dict[str, Any]) -> None:
    bare = {key: value for key, value in content.items() if key != "sha256"}
    canonical = json.dumps(bare, sort_keys=True, separators=(",", ":"))
    if hashlib.sha256(canonical.encode()).hexdigest() != content.get("sha256"):
        raise Refused("the content was changed after it was sealed: its SHA-256 is not the one given.")


def _machine(content: dict[str, Any]) -> None:
    found = told(content)
    replay = Replay(found)
    replay.run()
    asked = matched(replay)
    _counts(content["counts"], found)
    _rounding(content, _chosen(replay, asked), found)


def _counts(value: Any, found: Told) -> None:
    heads = sum(len(layer.heads) for layer in found.layers)
    right = {
        "joint_indices": prod(d for layer in found.layers for d in layer.heads),
        "reached": len({tuple(one[:heads]) for one in found.configurations}),
        "configurations": len(found.configurations),
        "task_states": len({task for _, task, _ in found.matching}),
    }
    entries(value, "counts", *right)
    for key, count in right.items():
        if type(value[key]) is not int or value[key] != count:
            raise Refused(f"counts.{key} is {value[key]!r:.40}; there are {count}.")


def _chosen(replay: Replay, asked: Bools) -> list[tuple[str, Bools]]:
    """Where something is chosen among several, so that there is a margin."""
    found = replay.told
    columns = [
        (f"logits[{depth}][{head}]", replay.columns[depth][head] & (d > 1))
        for depth, layer in enumerate(found.layers)
        for head, d in enumerate(layer.heads)
    ]
    labels = ("labels", replay.steps & (len(found.labels) > 1))
    if found.question is None:
        return [*columns, labels]
    return [*columns, labels, ("answers", asked & (len(found.question["answers"]) > 1))]


def _rounding(content: dict[str, Any], chosen: list[tuple[str, Bools]], found: Told) -> None:
    """Margins and errors are in form, and those formats are proved in which every margin exceeds twice the error."""
    margins = _amounts(content["margins"], "margins", chosen, found)
    formats = content["rounding"]
    if not isinstance(formats, dict):
        raise Refused("rounding is not an object.")
    proved = []
    for format, bounds in formats.items():
        where = f"rounding.{format}"
        bare = {key: value for key, value in bounds.items() if key != "assumes"} if isinstance(bounds, dict) else bounds
        errors = _amounts(bare, where, chosen, found)
        names(bounds.get("assumes"), f"{where}.assumes", least=0)
        known = np.isfinite(margins)
        if (0.5 * margins[known] > errors[known]).all():
            proved.append(format)
    if content["proved"] != proved:
        raise Refused(f"proved is {content['proved']!r:.80}; by margins and errors it is {proved}.")


def _amounts(value: Any, where: str, chosen: list[tuple[str, Bools]], found: Told) -> NDArray[np.float64]:
    """All numbers in a row."""
    entries(value, where, "logits", "labels", "answers")
    layers = listed(value["logits"], f"{where}.logits", len(found.layers))
    for depth, (layer, heads) in enumerate(zip(found.layers, layers, strict=True)):
        listed(heads, f"{where}.logits[{depth}]", len(layer.heads))
    if found.question is None and value["answers"] is not None:
        raise Refused(f"{where}.answers are given, but there is no question.")
    parts = [head for heads in layers for head in heads] + [value["labels"], value["answers"]]
    held = [
        amounts(part, f"{where}.{name}", known).ravel()
        for part, (name, known) in zip(parts[: len(chosen)], chosen, strict=True)
    ]
    return np.concatenate(held)
