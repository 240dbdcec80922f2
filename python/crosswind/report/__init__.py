"""Report: anything measured or planned -> one HTML file that needs no network, and its figures.

Names are imported when they are first used: which order was fastest is asked for without drawing anything.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crosswind.report.figures.notebook import plot
    from crosswind.report.figures.paper import draw
    from crosswind.report.page.document import kind_of, report, written

__all__ = ["draw", "kind_of", "plot", "report", "written"]

_HOMES = {"plot": "figures.notebook", "draw": "figures.paper"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"crosswind.report.{_HOMES.get(name, 'page.document')}"), name)
