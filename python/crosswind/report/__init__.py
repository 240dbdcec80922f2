"""Report: anything measured or planned -> one HTML file that needs no network, and its figures."""

from crosswind.report.page import report

__all__ = ["report"]
