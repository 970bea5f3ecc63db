"""Is a certificate about these weights? Extract them again and compare: tables, margins and error bounds.

A certificate by itself shows that the machine inside computes the target inside. This module shows that the machine is
the one that the weights compute, and that margins and bounds are no better than those that are computed again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from exactstate.certify import certify
from exactstate.certify.certificate import content_of
from exactstate.certify.target import grammar_machine, question_machine, target_machine
from exactstate.certify.weights_file import digest_of_file
from exactstate.errors import BrokenFile, ExactstateError
from exactstate.extract import extract, rounding_errors
from exactstate.nn import Backbone
from exactstate.train.build import load_backbone
from exactstate.train.run_dir import RunDir

TOLERANCE = 1e-9
"""Relative; another machine may round the float64 in which margins and bounds are computed differently."""
FROM_WEIGHTS = ("weights", "symbols", "reach", "layers", "configurations", "readout")
"""Entries of a certificate that the weights determine, number by number."""


def weights_of(place: str | os.PathLike[str], content: dict[str, Any]) -> Path:
    """The weights that a certificate should be about: a file, or that file of a run which has its digest."""
    path = Path(place)
    if not path.is_dir():
        return path
    run = RunDir(path)
    run.config()  # the sentence for a folder without a run
    files = [file for file in (run.weights_path, run.stage_path("compressed")) if file.exists()]
    if not files:
        raise BrokenFile(path, "this run has no trained weights yet; repeat `exactstate train` to resume it.")
    return next((file for file in files if digest_of_file(file) == content["weights"]), files[0])


def difference_from_weights(content: dict[str, Any], path: Path) -> str | None:
    """Why a certificate that was checked is not about the weights in a safetensors file; None if it is."""
    if (digest := digest_of_file(path)) != content["weights"]:
        return f"it names the SHA-256 {content['weights'][:16]}..., and they have {digest[:16]}..."
    return difference_from_model(content, load_backbone(path))


def difference_from_model(
    content: dict[str, Any], model: Backbone, labels: Sequence[str] | None = None, *, rounding: bool = True
) -> str | None:
    """The same for a model; without `rounding`, error bounds are not computed again."""
    target = target_machine(content["target"], content["symbols"])
    question = None if content["question"] is None else question_machine(content["question"])
    grammar = None if content["grammar"] is None else grammar_machine(content["grammar"], content["symbols"])
    try:
        extracted = extract(
            model.eval(), symbols=content["symbols"], labels=labels or target.outputs, grammar=grammar,
            answers=None if question is None else question.answers, format=content["evaluated"],
        )  # fmt: skip
        verdict = certify(extracted, target, labels="outputs", question=question)
    except ExactstateError as error:
        return str(error).rstrip(".")
    if not verdict:
        return f"the machine of these weights is {verdict.explain().rstrip('.')}"
    computed = content_of(extracted, verdict, "", {})
    for entry in FROM_WEIGHTS:
        if computed[entry] != content[entry]:
            return f"these weights give other {entry}"
    if (better := _better(content["margins"], computed["margins"], bound=False)) is not None:
        return f"its margins of {better}"
    for format in content["proved"] if rounding else ():
        # quick bounds are no smaller than sharp ones; a certificate may state either
        for quick in (True, False):
            errors = rounding_errors(model, extracted, format, quick=quick)
            again = content_of(extracted, verdict, "", {format: errors})["rounding"][format]
            better = _better(content["rounding"][format], again, bound=True)
            if better is None:
                break
        if better is not None:
            return f"its bounds in {format} of {better}"
        if lacking := [
            sentence for sentence in errors.assumes if sentence not in content["rounding"][format]["assumes"]
        ]:
            return f"its bounds in {format} hold under assumptions that it does not state: {lacking[0]}"
    return None


def _better(stated: dict[str, Any], again: dict[str, Any], *, bound: bool) -> str | None:
    """The first number that is better than the one computed again, as the end of a sentence; None if none is."""
    for kind in ("logits", "labels", "answers"):
        for one, other in zip(numbers(stated[kind]), numbers(again[kind]), strict=True):
            if one < other * (1 - TOLERANCE) if bound else one > other * (1 + TOLERANCE):
                return f"{kind} are better than these weights give: {one:.6g}, not {other:.6g}"
    return None


def numbers(value: Any) -> Iterator[float]:
    """All numbers in nested lists, in order; null is left out."""
    if isinstance(value, list):
        for one in value:
            yield from numbers(one)
    elif value is not None:
        yield float(value)
