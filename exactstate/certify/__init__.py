"""Certification: compare a machine with its target, write a certificate, and check certificates. NumPy, no torch."""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.certify.bounds import Bounds as Bounds
    from exactstate.certify.certificate import Certificate as Certificate
    from exactstate.certify.certify import Failure as Failure
    from exactstate.certify.certify import Verdict as Verdict
    from exactstate.certify.certify import certify as certify
    from exactstate.certify.certify import counterexamples as counterexamples
    from exactstate.certify.check import Report as Report
    from exactstate.certify.target import QuestionMachine as QuestionMachine

__all__ = lazy(__name__, {
    "bounds": ["Bounds"],
    "certificate": ["Certificate"],
    "certify": ["Failure", "Verdict", "certify", "counterexamples"],
    "check": ["Report"],
    "target": ["QuestionMachine"],
}, call=True)  # fmt: skip
