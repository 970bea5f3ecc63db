"""Margins and rounding errors as numbers: one for every layer, head, symbol and index, and one a symbol for read-outs.

    A  symbols     d  indices of a head     R  windows     S  indices of all heads of a layer     F  read-outs

If every logit of a column is off by less than half the column's margin, the column still chooses the same index, and if
that is so for every column in use, the computed machine is the exact one, on every word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from detent._types import Floats, Ints
from detent.certify.certify import Verdict
from detent.certify.subject import Errors, Extraction, Layer
from detent.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Bounds:
    """The smallest margins, or the largest errors, of what a model computes in the places that count.

    A margin is infinite where a column is never used or has nothing else to choose; errors do not matter there.
    """

    logits: tuple[tuple[Floats, ...], ...]
    """For every layer and head A d: of the columns of this index when this symbol is read."""
    labels: Floats
    """A: of the labels' logits when this symbol is read."""
    answers: Floats | None
    """A: of the answers' logits, where an answer is asked for."""

    @classmethod
    def margins(cls, found: Extraction, verdict: Verdict) -> Bounds:
        """The smallest margins."""
        columns = [layer.margins for layer in found.layers]
        return cls._of(found, verdict, columns, found.label_margins, found.answer_margins, largest=False)

    @classmethod
    def errors(cls, found: Extraction, verdict: Verdict, errors: Errors) -> Bounds:
        """The largest errors, or the largest as shares of their margins (see `_together`)."""
        shapes = [layer.tables.shape for layer in found.layers] + [found.labels.shape]
        got = [np.shape(columns) for columns in errors.columns] + [np.shape(errors.labels)]
        if shapes != got:
            raise InvalidInput(f"errors are those of the same windows and read-outs, shapes {shapes}; got {got}.")
        largest = cls._of(found, verdict, errors.columns, errors.labels, errors.answers, largest=True)
        shares = cls._of(
            found, verdict,
            [_share(off, layer.margins) for off, layer in zip(errors.columns, found.layers, strict=True)],
            _share(errors.labels, found.label_margins),
            None if errors.answers is None else _share(errors.answers, found.answer_margins),
            largest=True,
        )  # fmt: skip
        margins = cls.margins(found, verdict)
        logits = zip(largest.logits, margins.logits, shares.logits, strict=True)
        return cls(
            logits=tuple(tuple(map(_together, *heads)) for heads in logits),
            labels=_together(largest.labels, margins.labels, shares.labels),
            answers=None
            if largest.answers is None or margins.answers is None or shares.answers is None
            else _together(largest.answers, margins.answers, shares.answers),
        )

    @classmethod
    def _of(
        cls, found: Extraction, verdict: Verdict, columns: Sequence[Floats], labels: Floats, answers: Floats | None,
        *, largest: bool,
    ) -> Bounds:  # fmt: skip
        A, asked = len(found.symbols), None
        if verdict.question is not None and answers is not None:
            at, _, asking = verdict.matching.T
            counts = (verdict.question.asked[:, asking] >= 0) & (found.tables[:, at] >= 0)
            asked = _by_symbol(answers, np.where(counts, found.finals[:, at], -1), largest=largest)
        layers = zip(found.layers, columns, strict=True)
        return cls(
            logits=tuple(_by_column(layer, values, A, largest=largest) for layer, values in layers),
            labels=_by_symbol(labels, found.finals, largest=largest), answers=asked,
        )  # fmt: skip

    def exceed(self, errors: Bounds) -> bool:
        """Whether every margin is more than twice the error: whether rounding changes nothing."""
        parts = zip(self._parts(), errors._parts(), strict=True)
        return all(bool((0.5 * margins > off)[np.isfinite(margins)].all()) for margins, off in parts)

    def _parts(self) -> list[Floats]:
        parts = [head for layer in self.logits for head in layer] + [self.labels]
        return parts if self.answers is None else [*parts, self.answers]


def _share(errors: Floats, margins: Floats | None) -> Floats:
    """What part of half a margin an error is; 1 and more decides nothing."""
    assert margins is not None
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(2.0 * errors / margins, nan=np.inf, posinf=np.inf) * (1.0 + 2.0**-50)


def _together(errors: Floats, margins: Floats, shares: Floats) -> Floats:
    """One error beside one margin, for many of both: the largest beside the smallest, if that decides.

    The largest error may belong to a large margin. So otherwise it is what is to half the smallest margin as the worst
    of them is to half its own.
    """
    with np.errstate(invalid="ignore"):
        return np.where(errors < 0.5 * margins, errors, np.minimum(errors, 0.5 * margins * shares))


def _by_column(layer: Layer, values: Floats, symbols: int, *, largest: bool) -> tuple[Floats, ...]:
    """R S -> for every head A d: the extreme over the windows in which this symbol is read and this index used."""
    nothing, take = (-np.inf, np.maximum) if largest else (np.inf, np.minimum)
    extreme = np.full((symbols, values.shape[1]), nothing)
    take.at(extreme, layer.symbols, np.where(layer.used, values, nothing))
    return tuple(extreme[:, layer.columns(head)] for head in range(len(layer.heads)))


def _by_symbol(values: Floats, finals: Ints, *, largest: bool) -> Floats:
    """F -> A: the extreme over the read-outs that are made when this symbol is read."""
    nothing = -np.inf if largest else np.inf
    held = np.where(finals >= 0, values[finals], nothing)
    return held.max(axis=1) if largest else held.min(axis=1)
