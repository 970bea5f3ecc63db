"""Certification: compare a machine with its target, certify it, and check certificates again. NumPy, no torch."""

from detent.certification.bounds import Bounds as Bounds
from detent.certification.certificate import Certificate as Certificate
from detent.certification.checking import Report as Report
from detent.certification.checking import check as check
from detent.certification.subject import Extraction as Extraction
from detent.certification.subject import Subject as Subject
from detent.certification.target import Question as Question
from detent.certification.verdict import Failure as Failure
from detent.certification.verdict import Verdict as Verdict
from detent.certification.walk import certify as certify
