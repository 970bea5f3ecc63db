"""Bounds for one layer without a convolution, whose tables depend on the symbol alone.

    A  symbols     r  heads     d  indices of a head     R  rows     n  labels

>>> bounded = bounds(model, "bfloat16")
>>> bounded.holds() and bool(bounded.readout(rows).proved.all())

True if every machine that satisfies `bounded.assumptions` has these tables and labels in that format; `coarsest` finds
the coarsest such format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from torch import nn

from exactstate._types import Bools, Floats, Ints
from exactstate.errors import InvalidInput
from exactstate.extract.network import as_built
from exactstate.extract.result import Extracted, RoundingErrors
from exactstate.extract.rounding.arithmetic import Assumptions
from exactstate.extract.rounding.quick import quick_bounds_apply, quick_label_errors
from exactstate.extract.rounding.tracing import BoundedArgmax, BoundedLogits, Traced, columns
from exactstate.nn import Backbone
from exactstate.number_formats import NETWORK_FORMATS


@dataclass(frozen=True, eq=False)
class RoundingBounds:
    """How far the logits of a model in a format may be from those of the real network with the same weights."""

    traced: Traced
    moves: tuple[BoundedLogits, ...]

    @property
    def format(self) -> str:
        return self.traced.format

    @property
    def assumptions(self) -> Assumptions:
        """What is assumed of the machine."""
        return self.traced.assumptions

    @property
    def theta(self) -> tuple[Floats, ...]:
        """For every head A d d: the real logits, to float64; [j, k] scores the move from index k to index j."""
        return tuple(head.theta for head in self.moves)

    @property
    def logits(self) -> tuple[Floats, ...]:
        """For every head A d d: how far a computed logit may be from the real one; infinite where no bound is known."""
        return tuple(head.errors for head in self.moves)

    @cached_property
    def columns(self) -> tuple[BoundedArgmax, ...]:
        """For every head A d: the successor of each index under each symbol, with its margin and error."""
        return tuple(BoundedArgmax.of(BoundedLogits(*(array.copy() for array in columns(head)))) for head in self.moves)

    def holds(self, used: Sequence[Bools] | None = None) -> bool:
        """Whether rounding changes no table entry in the columns that are used (for every head A d; all by default)."""
        uses = used if used is not None else [np.ones_like(head.best, bool) for head in self.columns]
        return all(bool(head.proved[use].all()) for head, use in zip(self.columns, uses, strict=True))

    def readout(self, rows: Ints) -> BoundedArgmax:
        """R: the label at each row of (symbol, index of every head after it), with its margin and error."""
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
            f"the tables of {len(model.layers)} layers with a kernel size of {model.kernel_size} depend on more than "
            "the symbol; use `rounding_errors`, which bounds every window of an extraction."
        )
    traced = Traced(model, format, symbols=symbols, assumptions=assumptions)
    tokens = np.arange(len(traced.real.streams[0]))[:, None]
    return RoundingBounds(traced, traced.logits(0, tokens))


def coarsest(
    model: Backbone, rows: Ints, *, symbols: int | None = None, used: Sequence[Bools] | None = None
) -> str | None:
    """The coarsest of bfloat16, float16 and float32 in which tables and the labels of these rows are proved."""
    for format in reversed(NETWORK_FORMATS):
        bounded = bounds(model, format, symbols=symbols)
        if bounded.holds(used) and bool(bounded.readout(rows).proved.all()):
            return format
    return None


def rounding_errors(
    model: nn.Module, extracted: Extracted, format: str, *, assumptions: Assumptions | None = None, quick: bool = True,
    verify: bool = True,
) -> RoundingErrors:  # fmt: skip
    """Error bounds, in a format of `FORMATS`, for the logits of every window and read-out of an extraction.

    Where there are thousands of read-outs, a quick bound comes first, and a sharp one only where that does not
    decide; with `quick=False` all are sharp. Where everything is proved, the model is run in the format, as `extract`
    runs it, unless `verify` is False.
    """
    from exactstate.extract.graph.trace import unwrapped

    errors = _rounding_errors(unwrapped(model), extracted, format, assumptions, quick=quick)
    if verify and errors.decide(extracted):
        from exactstate.extract.verify import verify_format

        verify_format(model, extracted, format)
    return errors


def _rounding_errors(
    model: nn.Module, extracted: Extracted, format: str, assumptions: Assumptions | None, *, quick: bool
) -> RoundingErrors:
    if not isinstance(model, Backbone) or not as_built(model):
        return _of_graph(model, extracted, format, assumptions)
    traced = Traced(model, format, symbols=len(extracted.symbols), assumptions=assumptions)
    columns = []
    for number, layer in enumerate(extracted.layers):
        if number:
            traced.add_inputs(number, layer.inputs)
        columns.append(_errors(traced.tables(number, layer.windows), layer.tables, layer.margins))
    quick = quick and quick_bounds_apply(model, extracted, format)
    labels, answers = _readout_errors(traced, model, extracted, quick=quick)
    return RoundingErrors(
        format=format, columns=tuple(columns), labels=labels, answers=answers,
        assumes=traced.assumptions.sentences(format),
    )  # fmt: skip


def _readout_errors(
    traced: Traced, model: Backbone, extracted: Extracted, *, quick: bool
) -> tuple[Floats, Floats | None]:
    """Of labels, and of answers if there are any."""
    inputs, best, margins = extracted.readout_inputs, extracted.label_ids, extracted.label_margins
    errors: Floats = quick_label_errors(model, traced, inputs) if quick else np.full(len(inputs), np.inf)
    left = np.flatnonzero(~(margins > 2.0 * errors)) if quick else np.arange(len(inputs))
    if quick and not len(left):
        return errors, None
    labels, answers = traced.labels(inputs[left])
    errors[left] = _errors(labels, best[left], margins[left])
    return errors, None if answers is None else _errors(answers, extracted.answer_ids, extracted.answer_margins)


def _of_graph(model: nn.Module, extracted: Extracted, format: str, assumptions: Assumptions | None) -> RoundingErrors:
    """The same for a model written elsewhere, on the graph that it was traced to."""
    from exactstate.extract.extract import digest_graph
    from exactstate.extract.graph.leads import graph_rounding_errors
    from exactstate.extract.graph.network import TracedNetwork
    from exactstate.extract.graph.trace import unwrapped

    network = extracted.source
    if not isinstance(network, TracedNetwork):
        raise InvalidInput("rounding is bounded for models that were traced; this machine comes from an adapter.")
    if digest_graph(unwrapped(model), network.traced) != extracted.weights:
        raise InvalidInput("this machine was extracted from other weights; extract the model again.")
    return graph_rounding_errors(network, extracted, format, assumptions=assumptions)


def _errors(decided: BoundedArgmax, best: Ints | None, margins: Floats | None) -> Floats:
    """The errors, plus half of what the margins of the extraction exceed the real ones by."""
    assert best is not None
    assert margins is not None
    with np.errstate(invalid="ignore"):
        excess = np.where(np.isfinite(margins), np.maximum(margins - decided.margins, 0.0), 0.0)
    errors = np.nextafter(decided.errors + 0.5 * excess, np.inf)
    return np.where(decided.best == best, errors, np.inf)
