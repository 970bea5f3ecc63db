"""A certificate: a file that says what a model does, with all that is needed to check it again without the model.

`FORMAT.md` beside this file describes every entry.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detent._types import Floats
from detent.automata import Moore, Semiautomaton, definite, group
from detent.certify.bounds import Bounds
from detent.certify.certify import Verdict
from detent.certify.subject import Errors, Extraction, Layer
from detent.certify.target import Question, Target, label_numbers
from detent.errors import BrokenFile, InvalidInput
from detent.records import write_atomically

# -- How a certificate is written: rows on lines of their own, and a SHA-256 of the content as its seal.


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """The content with its SHA-256: of its JSON without white space, keys sorted, only ASCII, in UTF-8."""
    without = {key: value for key, value in content.items() if key != "sha256"}
    text = json.dumps(without, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return {**without, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def laid_out(content: dict[str, Any]) -> str:
    """The content as JSON for files: what has lists in lists is spread over lines, a list of plain values is one."""
    return _spread(content, "") + "\n"


def _spread(value: Any, indent: str) -> str:
    inner = indent + " "
    if isinstance(value, dict) and value:
        rows = [f"{inner}{json.dumps(key)}: {_spread(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, list | dict) for item in value):
        return "[\n" + ",\n".join(inner + _spread(item, inner) for item in value) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False)


# -- A certificate in words: what was compared, what was found, where the model is closest to another machine.

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


# -- What stands in a certificate, entry by entry; `FORMAT.md` beside this file describes it.

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


def read_content(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a certificate file; `BrokenFile` when it is no certificate at all."""
    from detent.certify.check import Unreadable, read

    try:
        return read(path)
    except Unreadable as error:
        raise BrokenFile(path, error.reason, error.line) from None


@dataclass(frozen=True, eq=False)
class Certificate:
    """The content of a certificate, as it stands in the file."""

    content: dict[str, Any]

    @classmethod
    def of(
        cls, found: Extraction, verdict: Verdict, *, name: str = "", rounding: Mapping[str, Errors] | None = None
    ) -> Certificate:
        """The certificate of a model that was certified.

        - `name`: what the model is called, for people.
        - `rounding`: errors of formats by name, as `detent.extract.rounding_errors` finds them.
        """
        if not verdict:
            raise InvalidInput(f"only what is certified gets a certificate; {verdict.explain()}")
        return cls(sealed(content_of(found, verdict, name, rounding or {})))

    @property
    def name(self) -> str:
        return self.content["name"]

    @property
    def sha256(self) -> str:
        """Of the content: the name of this certificate among all others."""
        return self.content["sha256"]

    @property
    def proved(self) -> tuple[str, ...]:
        """Formats in which rounding changes nothing."""
        return tuple(self.content["proved"])

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file, whole or not at all."""
        write_atomically(path, laid_out(self.content))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Certificate:
        """The certificate in a file; whether it is valid is for `check` to say."""
        return cls(read_content(path))

    def summary(self) -> str:
        """What it says, for people."""

        return summary(self.content)
