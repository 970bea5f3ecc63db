"""Certificates: files that state and prove what the machine of a model computes, to be checked without the model.

`FORMAT.md` beside this file describes every entry, and `check.py` checks them.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np

from exactstate._types import Floats
from exactstate.automata import Moore, Semiautomaton, definite, group
from exactstate.certify.bounds import Bounds
from exactstate.certify.certify import Verdict
from exactstate.certify.check import FORMAT, MAX_COORDINATES, MAX_REGIONS, VERSION, Unreadable, read, summary
from exactstate.certify.target import QuestionMachine, Target, target_labels
from exactstate.errors import BrokenFile, InvalidInput
from exactstate.extract.result import REFUSED, Extracted, InputRegions, LayerTables, RoundingErrors
from exactstate.records import write_atomically


@dataclass(frozen=True, eq=False)
class Certificate:
    """The content of a certificate file."""

    content: dict[str, Any]

    @classmethod
    def of(
        cls, extracted: Extracted, verdict: Verdict, *, name: str = "",
        rounding: Mapping[str, RoundingErrors] | None = None,
    ) -> Certificate:  # fmt: skip
        """The certificate of a model that was certified.

        - `name`: a name for the model, for people.
        - `rounding`: errors by the name of a format, see `exactstate.extract.rounding_errors`.
        """
        if not verdict:
            raise InvalidInput(f"only a certified machine gets a certificate; {verdict.explain()}")
        return cls(sealed(content_of(extracted, verdict, name, rounding or {})))

    @property
    def name(self) -> str:
        return self.content["name"]

    @property
    def sha256(self) -> str:
        """The SHA-256 of the content, which identifies the certificate."""
        return self.content["sha256"]

    @property
    def proved(self) -> tuple[str, ...]:
        """Formats in which rounding is proved to change nothing."""
        return tuple(self.content["proved"])

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file atomically."""
        write_atomically(path, formatted(self.content))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Certificate:
        """The certificate in a file, not yet checked (see `exactstate.certify.check`)."""
        return cls(read_content(path))

    def summary(self) -> str:
        """What it states: the lines of `exactstate check`, margins by symbol, properties of the target."""
        return "\n".join(_summary(self.content))


def read_content(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a certificate file; `BrokenFile` if it is not a certificate."""
    try:
        return read(path)
    except Unreadable as error:
        raise BrokenFile(path, error.reason, error.line) from None


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """The content with its SHA-256: of its JSON without white space, keys sorted, ASCII only."""
    bare = {key: value for key, value in content.items() if key != "sha256"}
    text = json.dumps(bare, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return {**bare, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def formatted(content: dict[str, Any]) -> str:
    """The content as JSON for files: nested lists and objects over several lines, a list of plain values on one."""
    return _formatted(content, "") + "\n"


def _formatted(value: Any, indent: str) -> str:
    inner = indent + " "
    if isinstance(value, dict) and value:
        rows = [f"{inner}{json.dumps(key)}: {_formatted(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, list | dict) for item in value):
        return "[\n" + ",\n".join(inner + _formatted(item, inner) for item in value) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False)


def _summary(content: dict[str, Any]) -> Iterator[str]:
    yield from summary(content)
    symbols, target = content["symbols"], content["target"]
    by_symbol: list[list[float]] = [[] for _ in symbols]
    for head in (head for layer in content["margins"]["logits"] for head in layer):
        for margins, row in zip(by_symbol, head, strict=True):
            margins += [margin for margin in row if margin is not None]
    yield f"smallest margins of the logits: {_smallest(symbols, [min(row, default=None) for row in by_symbol])}"
    for kind in ("labels", "answers"):
        if content["margins"][kind] is not None:
            yield f"smallest margins of the {kind}: {_smallest(symbols, content['margins'][kind])}"
    machine = Semiautomaton(symbols=tuple(symbols), tables=target["tables"], states=tuple(target["states"]))
    yield f"the target is {definite(machine).explain()}"
    yield f"the target is {group(machine).explain()}"


def _smallest(symbols: Sequence[str], margins: Sequence[float | None], most: int = 8) -> str:
    known = sorted((margin, symbol) for symbol, margin in zip(symbols, margins, strict=True) if margin is not None)
    shown = ", ".join(f"{symbol} {margin:.4g}" for margin, symbol in known[:most])
    return (shown or "none") + (f", and {len(known) - most} larger" if len(known) > most else "")


def content_of(
    extracted: Extracted, verdict: Verdict, name: str, rounding: Mapping[str, RoundingErrors]
) -> dict[str, Any]:
    """All entries but the seal, as `FORMAT.md` describes them."""
    margins = Bounds.margins(extracted, verdict)
    errors = {format: Bounds.errors(extracted, verdict, error) for format, error in rounding.items()}
    target, question = verdict.target, verdict.question
    matching = verdict.matching if question is not None else verdict.matching[:, :2]
    steps = extracted.tables.T >= 0
    regions = {} if extracted.regions is None else {"regions": _regions(extracted.regions, rounding)}
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "made": _made(),
        "weights": extracted.weights,
        "evaluated": extracted.format,
        "symbols": list(target.symbols),
        "target": _target(target),
        "grammar": None if extracted.grammar is None else _grammar(extracted.grammar),
        "question": None if question is None else _question(question),
        "reach": extracted.kernel_size,
        "layers": [_layer(layer) for layer in extracted.layers],
        "configurations": _configurations(extracted),
        "readout": _by_step(target_labels(extracted.label_names, target)[extracted.readout.T], steps),
        "replies": None if question is None else _replies(extracted, verdict, question),
        "matching": matching.tolist(),
        "counts": {
            "joint_indices": extracted.joint_indices,
            "reached": len(extracted.reached),
            "configurations": verdict.configurations,
            "task_states": verdict.task_states,
        },
        "margins": _bounds(margins, margins),
        "rounding": {
            format: {"assumes": list(rounding[format].assumes), **_bounds(bounds, margins)}
            for format, bounds in errors.items()
        },
        "proved": [format for format, bounds in errors.items() if margins.exceed(bounds)],
        **regions,
    }


def _regions(regions: InputRegions, rounding: Mapping[str, RoundingErrors]) -> dict[str, Any]:
    """The inputs that stand for each symbol; every bound must be about all of them."""
    for format, errors in rounding.items():
        if errors.regions is None or not errors.regions.cover(regions):
            raise InvalidInput(
                f"the rounding errors in {format} are about other inputs than the regions of this machine; compute "
                "them of the machine that `prove` returned: rounding_errors(model, proved, format)."
            )
    count, width = regions.centers.shape
    if count > MAX_REGIONS or count * width > MAX_COORDINATES:
        raise InvalidInput(
            f"a certificate holds at most {MAX_REGIONS:,} prototypes and {MAX_COORDINATES:,} coordinates in all; this "
            f"machine has {count:,} of {width:,}."
        )
    return {"norm": regions.norm, "centers": regions.centers.tolist(), "radii": regions.radii.tolist()}


def _made() -> dict[str, str]:
    try:
        exactstate = metadata.version("exactstate")
    except metadata.PackageNotFoundError:
        exactstate = "unknown"
    return {"exactstate": exactstate, "python": platform.python_version(), "numpy": np.__version__}


def _target(target: Target) -> dict[str, Any]:
    entries = {
        "says": target.label_kind,
        "states": list(target.states),
        "start": target.start,
        "tables": target.tables.tolist(),
    }
    if target.label_kind == "outputs":
        entries |= {"outputs": list(target.labels), "readout": target.wanted.tolist()}
    return entries


def _grammar(grammar: Moore) -> dict[str, Any]:
    refused = [int(grammar.outputs[output] == REFUSED) for output in grammar.readout.tolist()]
    return {
        "places": list(grammar.states), "start": grammar.start, "tables": grammar.tables.tolist(), "refused": refused,
    }  # fmt: skip


def _question(question: QuestionMachine) -> dict[str, Any]:
    return {
        "answers": list(question.answers), "start": question.start, "tables": question.tables.tolist(),
        "asked": question.queries.tolist(), "right": question.correct.tolist(),
    }  # fmt: skip


def _layer(layer: LayerTables) -> dict[str, Any]:
    tables = np.where(layer.used, layer.tables, -1)
    return {
        "heads": list(layer.heads), "start": list(layer.start), "inputs": layer.inputs.tolist(),
        "windows": layer.windows.tolist(),
        "tables": [tables[:, layer.columns(head)].tolist() for head in range(len(layer.heads))],
    }  # fmt: skip


def _configurations(extracted: Extracted) -> list[list[int]]:
    rows = extracted.configurations
    if extracted.grammar is not None:
        rows = np.concatenate([rows, extracted.grammar_states[:, None]], axis=1)
    return rows.tolist()


def _by_step(values: Any, steps: Any) -> list[list[int]]:
    """Row by row the values at the permitted symbols."""
    return [row[may].tolist() for row, may in zip(values, steps, strict=True)]


def _replies(extracted: Extracted, verdict: Verdict, question: QuestionMachine) -> list[list[int]]:
    """For every row of the matching the answers where one is asked for."""
    at, _, asking = verdict.matching.T
    asked = (question.queries[:, asking] >= 0) & (extracted.tables[:, at] >= 0)
    return _by_step(extracted.answers[:, at].T, asked.T)


def _bounds(bounds: Bounds, margins: Bounds) -> dict[str, Any]:
    """Numbers; null where a margin is infinite."""
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
    # an infinite bound is written as the largest number there is
    held = np.nan_to_num(np.asarray(values, np.float64), nan=np.finfo(np.float64).max).astype(object)
    held[np.isinf(margins)] = None
    return held.tolist()
