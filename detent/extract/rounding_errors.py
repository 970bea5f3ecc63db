"""Rounding errors at exactly the places that an extraction has seen: whether a format changes anything there.

R  windows     S  indices of all heads of a layer     F  read-outs
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detent._types import Floats, Ints
from detent.extract.result import Extracted
from detent.extract.rounding.formats import Assumptions
from detent.extract.rounding.tracing import Decided, Traced
from detent.nn import Backbone


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundingErrors:
    """How far what a format computes may be from what the margins of an extraction are of.

    Where a margin is more than twice the error, every machine that keeps to the assumptions chooses the same. Infinite
    where nothing is known, or where the extraction itself chose otherwise than the real network does.
    """

    format: str
    columns: tuple[Floats, ...]
    """For every layer R S."""
    labels: Floats
    """F; where single logits do not decide, of the leads between them (see `rounding.leads`)."""
    answers: Floats | None
    """F, likewise."""
    assumes: tuple[str, ...]
    """What the machine has to keep to, in words."""


def rounding_errors(
    model: Backbone, found: Extracted, format: str, *, assumptions: Assumptions | None = None
) -> RoundingErrors:
    """Bounds for the logits of every window and every read-out of an extraction, in a format by name."""
    traced = Traced(model, format, symbols=len(found.symbols), assumptions=assumptions)
    columns = []
    for number, layer in enumerate(found.layers):
        if number:
            traced.enter(number, layer.inputs)
        columns.append(_off(traced.tables(number, layer.windows), layer.tables, layer.margins))
    labels, answers = traced.labels(found.read_outs)
    return RoundingErrors(
        format=format, columns=tuple(columns), labels=_off(labels, found.labels, found.label_margins),
        answers=None if answers is None else _off(answers, found.answers, found.answer_margins),
        assumes=traced.assumptions.sentences(format),
    )  # fmt: skip


def _off(decided: Decided, best: Ints | None, margins: Floats | None) -> Floats:
    """The errors, with half of what the margins of the extraction have too much on top."""
    assert best is not None
    assert margins is not None
    with np.errstate(invalid="ignore"):
        excess = np.where(np.isfinite(margins), np.maximum(margins - decided.margins, 0.0), 0.0)
    errors = np.nextafter(decided.errors + 0.5 * excess, np.inf)
    return np.where(decided.best == best, errors, np.inf)
