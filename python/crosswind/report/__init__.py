"""Report: anything measured or planned -> one HTML file that needs no network, and its figures."""

from crosswind.report.drawn import draw
from crosswind.report.page import kind_of, report, written
from crosswind.report.plotted import plot

__all__ = ["draw", "kind_of", "plot", "report", "written"]
