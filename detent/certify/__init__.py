"""Certification: compare a machine with its target, certify it, and check certificates again. NumPy, no torch."""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.certify.bounds import Bounds as Bounds
    from detent.certify.certificate import Certificate as Certificate
    from detent.certify.certify import Failure as Failure
    from detent.certify.certify import Verdict as Verdict
    from detent.certify.certify import certify as certify
    from detent.certify.check import Report as Report
    from detent.certify.subject import Extraction as Extraction
    from detent.certify.subject import Subject as Subject
    from detent.certify.target import Question as Question

__all__ = lazy(__name__, call=True)
