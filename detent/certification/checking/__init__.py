"""The check of certificates: NumPy and the standard library, and not a line of what wrote them."""

from detent.certification.checking.check import Report as Report
from detent.certification.checking.check import check as check
