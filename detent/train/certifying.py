"""From a model that is right to its certificate, with what is proved of rounding in coarser and coarser formats."""

from __future__ import annotations

from dataclasses import replace

from detent.certify import Certificate, Verdict
from detent.extract import Extracted, RoundingErrors, rounding_errors
from detent.formats import NETWORK_FORMATS
from detent.nn import Backbone

SAMPLE = 256
"""Read-outs that are looked at before all of them are bounded in a coarser format."""


def certificate_of(model: Backbone, found: Extracted, verdict: Verdict, *, title: str) -> Certificate:
    """What is proved of this network, with the rounding of every format down to the first that is too coarse.

    Where there are many read-outs, a format that fails on a sample of them is not tried, and the certificate says
    nothing of it: bounds for all 31,680 of M11 take most of a minute.
    """
    errors: dict[str, RoundingErrors] = {}
    for name in NETWORK_FORMATS:
        if errors and len(found.readout_inputs) > 8 * SAMPLE and not clears(model, found, name):
            break
        errors[name] = rounding_errors(model, found, name)
        certificate = Certificate.of(found, verdict, name=title, rounding=errors)
        if name not in certificate.proved:
            break
    return certificate


def clears(model: Backbone, found: Extracted, format: str = "float32") -> bool:
    """Whether margins exceed the rounding of a format: of every column in use, and of a sample of the read-outs."""
    some = slice(None, None, max(1, len(found.readout_inputs) // SAMPLE))
    part = replace(
        found, readout_inputs=found.readout_inputs[some], label_ids=found.label_ids[some],
        label_margins=found.label_margins[some],
        answer_ids=None if found.answer_ids is None else found.answer_ids[some],
        answer_margins=None if found.answer_margins is None else found.answer_margins[some],
    )  # fmt: skip
    errors = rounding_errors(model, part, format)
    columns = zip(found.layers, errors.columns, strict=True)
    return bool((0.5 * part.label_margins > errors.labels).all()) and all(
        bool((0.5 * layer.margins > off)[layer.used].all()) for layer, off in columns
    )
