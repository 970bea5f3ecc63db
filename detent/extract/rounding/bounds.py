"""Bounds for one layer without a convolution, whose tables depend on the symbol alone.

    A  symbols     r  heads     d  indices of a head     R  rows     n  labels

>>> found = bounds(model, "bfloat16")
>>> found.holds() and bool(found.readout(rows).proved.all())

The answer is yes when every machine that keeps to `found.assumptions`, computing in that format, has these tables and
says these labels; `coarsest` looks for the coarsest format with that answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from detent._types import Bools, Floats, Ints
from detent.errors import InvalidInput
from detent.extract.rounding.formats import Assumptions
from detent.extract.rounding.tracing import Bounded, Decided, Traced, columns
from detent.nn import Backbone

COARSEST_FIRST = ("bfloat16", "float16", "float32")


@dataclass(frozen=True, eq=False)
class RoundingBounds:
    """How far the logits of a model in a format may be from those of the real network with the same weights."""

    traced: Traced
    moves: tuple[Bounded, ...]

    @property
    def format(self) -> str:
        return self.traced.format

    @property
    def assumptions(self) -> Assumptions:
        """What a machine has to keep to for the bounds to be true of it."""
        return self.traced.assumptions

    @property
    def theta(self) -> tuple[Floats, ...]:
        """For every head A d d: the real logits, to float64; [j, k] scores the move from index k to index j."""
        return tuple(head.theta for head in self.moves)

    @property
    def logits(self) -> tuple[Floats, ...]:
        """For every head A d d: no computed logit is further from the real one; infinite where nothing is known."""
        return tuple(head.errors for head in self.moves)

    @cached_property
    def columns(self) -> tuple[Decided, ...]:
        """For every head A d: where each symbol sends each index, with the margin and error of that column."""
        return tuple(Decided.by(Bounded(*(array.copy() for array in columns(head)))) for head in self.moves)

    def holds(self, used: Sequence[Bools] | None = None) -> bool:
        """Whether no machine has other tables, in the columns that are used (for every head A d; all by default)."""
        uses = used if used is not None else [np.ones_like(head.best, bool) for head in self.columns]
        return all(bool(head.proved[use].all()) for head, use in zip(self.columns, uses, strict=True))

    def readout(self, rows: Ints) -> Decided:
        """R: the label said at each row of (symbol, index of every head after it), with its margin and error."""
        return self.traced.labels(self._checked(rows))[0]

    def _checked(self, rows: Ints) -> Ints:
        rows, sizes = np.asarray(rows), (len(self.theta[0]), *self.traced.heads[0])
        whole = np.issubdtype(rows.dtype, np.integer)
        if rows.shape[1:] != (len(sizes),) or not (whole and ((rows >= 0) & (rows < sizes)).all()):
            raise InvalidInput(
                f"a row is a symbol and an index of every head, below {sizes}; got {rows.dtype} of shape {rows.shape}."
            )
        return rows


def bounds(
    model: Backbone, format: str, *, symbols: int | None = None, assumptions: Assumptions | None = None
) -> RoundingBounds:
    """Bounds for every logit of the first `symbols` tokens (all by default), in a format of `FORMATS`.

    `float32` means that everything is computed in float32. `bfloat16` and `float16` mean `model.to(dtype)`: parameters
    and the results of operations are rounded to the format, operations are computed inside in float32 (or, with
    `Assumptions(inside="same")`, in the format itself), and the logits of the NFSM stay in the inner format.
    """
    if len(model.layers) != 1 or model.kernel_size != 1:
        raise InvalidInput(
            f"the tables of {len(model.layers)} layers with a reach of {model.kernel_size} depend on more than "
            "the symbol; use `Traced`, which is asked window by window."
        )
    traced = Traced(model, format, symbols=symbols, assumptions=assumptions)
    tokens = np.arange(len(traced.real.streams[0]))[:, None]
    return RoundingBounds(traced, traced.logits(0, tokens))


def coarsest(
    model: Backbone, rows: Ints, *, symbols: int | None = None, used: Sequence[Bools] | None = None
) -> str | None:
    """The coarsest of bfloat16, float16 and float32 in which tables and the labels of these rows are proved."""
    for format in COARSEST_FIRST:
        found = bounds(model, format, symbols=symbols)
        if found.holds(used) and bool(found.readout(rows).proved.all()):
            return format
    return None
