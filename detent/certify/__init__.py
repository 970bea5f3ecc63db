"""Certification: compare a machine with its target, write a certificate, and check certificates. NumPy, no torch."""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.certify.bounds import Bounds as Bounds
    from detent.certify.certificate import Certificate as Certificate
    from detent.certify.certify import Failure as Failure
    from detent.certify.certify import Verdict as Verdict
    from detent.certify.certify import certify as certify
    from detent.certify.check import Report as Report
    from detent.certify.counterexamples import counterexamples as counterexamples
    from detent.certify.target import QuestionMachine as QuestionMachine

__all__ = lazy(__name__, call=True)
