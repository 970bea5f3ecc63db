"""What stands in a certificate, entry by entry; `FORMAT.md` beside this file describes it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import numpy as np

from detent.automata import Moore
from detent.certification.bounds import Bounds
from detent.certification.names import label_numbers
from detent.certification.subject import Errors, Extraction, Floats, Layer
from detent.certification.target import Question, Target
from detent.certification.verdict import Verdict

FORMAT, VERSION = "detent-certificate", 1


def content_of(found: Extraction, verdict: Verdict, name: str, rounding: Mapping[str, Errors]) -> dict[str, Any]:
    """Everything but the seal."""
    margins = Bounds.margins(found, verdict)
    errors = {format: Bounds.errors(found, verdict, off) for format, off in rounding.items()}
    target, question = verdict.target, verdict.question
    matching = verdict.matching if question is not None else verdict.matching[:, :2]
    steps = found.tables.T >= 0
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "made": _made(),
        "weights": found.weights,
        "evaluated": found.format,
        "symbols": list(target.symbols),
        "target": _target(target),
        "grammar": None if found.grammar is None else _grammar(found.grammar),
        "question": None if question is None else _question(question),
        "reach": found.reach,
        "layers": [_layer(layer) for layer in found.layers],
        "configurations": _configurations(found),
        "readout": _by_step(label_numbers(found, target)[found.labels][found.finals.T], steps),
        "replies": None if question is None else _replies(found, verdict, question),
        "matching": matching.tolist(),
        "counts": {
            "joint_indices": found.joint_indices,
            "reached": _reached(found),
            "configurations": verdict.configurations,
            "task_states": verdict.task_states,
        },
        "margins": _bounds(margins, margins),
        "rounding": {
            format: {"assumes": list(rounding[format].assumes), **_bounds(bounds, margins)}
            for format, bounds in errors.items()
        },
        "proved": [format for format, bounds in errors.items() if margins.exceed(bounds)],
    }


def _made() -> dict[str, str]:
    try:
        detent = metadata.version("detent")
    except metadata.PackageNotFoundError:
        detent = "unknown"
    return {"detent": detent, "python": platform.python_version(), "numpy": np.__version__}


def _target(target: Target) -> dict[str, Any]:
    told = {"says": target.says, "states": list(target.states), "start": target.start, "tables": target.tables.tolist()}
    if target.says == "outputs":
        told |= {"outputs": list(target.labels), "readout": target.wanted.tolist()}
    return told


def _grammar(grammar: Moore) -> dict[str, Any]:
    refused = [int(grammar.outputs[says] == "refused") for says in grammar.readout.tolist()]
    return {
        "places": list(grammar.states), "start": grammar.start, "tables": grammar.tables.tolist(), "refused": refused,
    }  # fmt: skip


def _question(question: Question) -> dict[str, Any]:
    return {
        "answers": list(question.answers), "start": question.start, "tables": question.tables.tolist(),
        "asked": question.asked.tolist(), "right": question.right.tolist(),
    }  # fmt: skip


def _layer(layer: Layer) -> dict[str, Any]:
    tables = np.where(layer.used, layer.tables, -1)
    return {
        "heads": list(layer.heads), "start": list(layer.start), "inputs": layer.inputs.tolist(),
        "windows": layer.windows.tolist(),
        "tables": [tables[:, layer.columns(head)].tolist() for head in range(len(layer.heads))],
    }  # fmt: skip


def _configurations(found: Extraction) -> list[list[int]]:
    rows = found.configurations
    if found.grammar is not None:
        rows = np.concatenate([rows, found.places[:, None]], axis=1)
    return rows.tolist()


def _reached(found: Extraction) -> int:
    heads = sum(len(layer.heads) for layer in found.layers)
    return len(np.unique(found.configurations[:, :heads], axis=0))


def _by_step(said: Any, steps: Any) -> list[list[int]]:
    """Row by row what is said at the symbols where something is."""
    return [row[may].tolist() for row, may in zip(said, steps, strict=True)]


def _replies(found: Extraction, verdict: Verdict, question: Question) -> list[list[int]]:
    """For every entry of the matching the answers to what is asked there."""
    assert found.answers is not None
    at, _, asking = verdict.matching.T
    asked = (question.asked[:, asking] >= 0) & (found.tables[:, at] >= 0)
    return _by_step(found.answers[found.finals[:, at]].T, asked.T)


def _bounds(bounds: Bounds, margins: Bounds) -> dict[str, Any]:
    """Numbers, and null where a margin is infinite."""
    answers = None
    if bounds.answers is not None and margins.answers is not None:
        answers = _numbers(bounds.answers, margins.answers)
    return {
        "logits": [
            [_numbers(head, of) for head, of in zip(layer, layer_of, strict=True)]
            for layer, layer_of in zip(bounds.logits, margins.logits, strict=True)
        ],
        "labels": _numbers(bounds.labels, margins.labels),
        "answers": answers,
    }


def _numbers(values: Floats, margins: Floats) -> Any:
    # what could not be bounded is written as the largest number there is
    held = np.nan_to_num(np.asarray(values, np.float64), nan=np.finfo(np.float64).max).astype(object)
    held[np.isinf(margins)] = None
    return held.tolist()
