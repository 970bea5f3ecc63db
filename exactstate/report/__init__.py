"""A run as one HTML page that needs nothing else: read from its folder, no torch."""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.report.page import page_of as page_of
    from exactstate.report.page import write_report as write_report

__all__ = lazy(__name__)
