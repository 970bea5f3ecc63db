"""The margins and rounding errors of a certificate: by layer, head, symbol and index, and by symbol for read-outs.

    A  symbols     d  indices of a head     R  windows     S  indices of all heads of a layer     F  read-outs

If every logit of a column is off by less than half the column's margin, the arg max of the column is the same. If that
holds for every column in use, the computed machine is the exact one, on every word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exactstate._types import Floats, Ints
from exactstate.certify.certify import Verdict
from exactstate.errors import InvalidInput
from exactstate.extract.result import Extracted, LayerTables, RoundingErrors


@dataclass(frozen=True, eq=False)
class Bounds:
    """The smallest margins, or the largest errors, over the columns and read-outs in use.

    A margin is infinite where a column is never used or a head has one index; errors do not matter there.
    """

    logits: tuple[tuple[Floats, ...], ...]
    """For every layer and head A d: of the columns of this index when this symbol is read."""
    labels: Floats
    """A: of the labels' logits when this symbol is read."""
    answers: Floats | None
    """A: of the answers' logits, at steps where an answer is asked for."""

    @classmethod
    def margins(cls, extracted: Extracted, verdict: Verdict) -> Bounds:
        """The smallest margins."""
        columns = [layer.margins for layer in extracted.layers]
        return cls._of(extracted, verdict, columns, extracted.label_margins, extracted.answer_margins, largest=False)

    @classmethod
    def errors(cls, extracted: Extracted, verdict: Verdict, errors: RoundingErrors) -> Bounds:
        """The largest errors, relative to their margins where that is sharper (see `_combined`)."""
        shapes = [layer.tables.shape for layer in extracted.layers] + [extracted.label_ids.shape]
        got = [np.shape(columns) for columns in errors.columns] + [np.shape(errors.labels)]
        if shapes != got:
            raise InvalidInput(f"wanted errors of the same windows and read-outs, of shapes {shapes}; got {got}.")
        largest = cls._of(extracted, verdict, errors.columns, errors.labels, errors.answers, largest=True)
        shares = cls._of(
            extracted, verdict,
            [_share(off, layer.margins) for off, layer in zip(errors.columns, extracted.layers, strict=True)],
            _share(errors.labels, extracted.label_margins),
            None if errors.answers is None else _share(errors.answers, extracted.answer_margins),
            largest=True,
        )  # fmt: skip
        margins = cls.margins(extracted, verdict)
        logits = zip(largest.logits, margins.logits, shares.logits, strict=True)
        return cls(
            logits=tuple(tuple(map(_combined, *heads)) for heads in logits),
            labels=_combined(largest.labels, margins.labels, shares.labels),
            answers=None
            if largest.answers is None or margins.answers is None or shares.answers is None
            else _combined(largest.answers, margins.answers, shares.answers),
        )

    @classmethod
    def _of(
        cls, extracted: Extracted, verdict: Verdict, columns: Sequence[Floats], labels: Floats, answers: Floats | None,
        *, largest: bool,
    ) -> Bounds:  # fmt: skip
        A, asked = len(extracted.symbols), None
        if verdict.question is not None and answers is not None:
            at, _, asking = verdict.matching.T
            counts = (verdict.question.queries[:, asking] >= 0) & (extracted.tables[:, at] >= 0)
            asked = _by_symbol(answers, np.where(counts, extracted.readout_ids[:, at], -1), largest=largest)
        layers = zip(extracted.layers, columns, strict=True)
        return cls(
            logits=tuple(_by_column(layer, values, A, largest=largest) for layer, values in layers),
            labels=_by_symbol(labels, extracted.readout_ids, largest=largest), answers=asked,
        )  # fmt: skip

    def exceed(self, errors: Bounds) -> bool:
        """Whether every margin is more than twice the error, so that rounding changes nothing."""
        parts = zip(self._parts(), errors._parts(), strict=True)
        return all(bool((0.5 * margins > off)[np.isfinite(margins)].all()) for margins, off in parts)

    def _parts(self) -> list[Floats]:
        parts = [head for layer in self.logits for head in layer] + [self.labels]
        return parts if self.answers is None else [*parts, self.answers]


def _share(errors: Floats, margins: Floats | None) -> Floats:
    """The error as a fraction of half the margin; from 1 on it decides nothing."""
    assert margins is not None
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(2.0 * errors / margins, nan=np.inf, posinf=np.inf) * (1.0 + 2.0**-50)


def _combined(errors: Floats, margins: Floats, shares: Floats) -> Floats:
    """One error for many, to be compared with the smallest margin: the largest error, if it is below half of that.

    Otherwise the largest error may belong to a larger margin, and half the smallest margin times the largest fraction
    is used instead.
    """
    with np.errstate(invalid="ignore"):
        return np.where(errors < 0.5 * margins, errors, np.minimum(errors, 0.5 * margins * shares))


def _by_column(layer: LayerTables, values: Floats, symbols: int, *, largest: bool) -> tuple[Floats, ...]:
    """R S -> for every head A d: the extreme over the windows in which this symbol is read and this index used."""
    neutral, take = (-np.inf, np.maximum) if largest else (np.inf, np.minimum)
    extreme = np.full((symbols, values.shape[1]), neutral)
    take.at(extreme, layer.symbols, np.where(layer.used, values, neutral))
    return tuple(extreme[:, layer.columns(head)] for head in range(len(layer.heads)))


def _by_symbol(values: Floats, readout_ids: Ints, *, largest: bool) -> Floats:
    """F -> A: the extreme over the read-outs at this symbol."""
    neutral = -np.inf if largest else np.inf
    by_step = np.where(readout_ids >= 0, values[readout_ids], neutral)
    return by_step.max(axis=1) if largest else by_step.min(axis=1)
