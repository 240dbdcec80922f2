"""Report: anything measured or planned -> one HTML file that needs no network, and its figures."""

from crosswind.report.figures.notebook import plot
from crosswind.report.figures.paper import draw
from crosswind.report.page.document import kind_of, report, written

__all__ = ["draw", "kind_of", "plot", "report", "written"]
