"""From a model that is right to its certificate, with what is proved of rounding in coarser and coarser formats."""

from __future__ import annotations

from detent.certification import Certificate, Verdict
from detent.extraction import Extracted, rounding_errors
from detent.models import Backbone

FORMATS = ("float32", "float16", "bfloat16")
"""From fine to coarse."""


def certificate_of(model: Backbone, found: Extracted, verdict: Verdict, *, title: str) -> Certificate:
    """What is proved of this network, with the rounding of every format down to the first that is too coarse."""
    errors = {}
    for name in FORMATS:
        errors[name] = rounding_errors(model, found, name)
        certificate = Certificate.of(found, verdict, name=title, rounding=errors)
        if name not in certificate.proved:
            break
    return certificate
