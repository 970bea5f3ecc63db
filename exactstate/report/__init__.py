"""A run as one HTML page that needs nothing else: read from its folder, no torch."""

from exactstate.report.page import page_of, write_report

__all__ = ["page_of", "write_report"]
