"""Anything that is a table at heart: through Arrow to pandas and polars, without copies where they allow it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class Plotted:
    """Gives `plot` to a class that a report shows."""

    def plot(self, which: str | None = None) -> alt.Chart | alt.LayerChart:
        """Return one of the figures that a report draws of this, as an Altair chart; errors as of `crosswind.plot`."""
        import crosswind

        return crosswind.plot(self, which)


class Tabular(Plotted, ABC):
    """Gives `plot`, `to_pandas` and `to_polars` to a class that has `to_arrow`."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """Return the table as Arrow."""

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return the table as a polars frame.

        Raises
        ------
        ModuleNotFoundError
            When polars is not installed: `pip install polars`.
        """
        import polars

        frame = polars.from_arrow(self.to_arrow())
        if not isinstance(frame, polars.DataFrame):
            raise TypeError("a table became a single column")
        return frame
