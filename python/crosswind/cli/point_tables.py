"""`--points`, `--ranks` and `--by`: the points of runs and the ranks of a swept field as tables in files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosswind.cli.outputs import OUTPUT, writable, written
from crosswind.errors import DescriptionError
from crosswind.files.output import distinct
from crosswind.run.ranking import ORDER, ranking

if TYPE_CHECKING:
    from crosswind.run.results import Runs


@dataclass(frozen=True)
class PointTables:
    """What is written of the points, beside the runs themselves."""

    points: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv|.tex",
            help="Write each point as a row: mean, interval and quartiles over its runs.",
            rich_help_panel=OUTPUT,
        ),
    ] = None
    ranks: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv|.tex",
            help="Write the ranks of the orders, and how far each is behind the best.",
            rich_help_panel=OUTPUT,
        ),
    ] = None
    by: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help=f"Rank the values of this swept field. [default: {ORDER}]", rich_help_panel=OUTPUT
        ),
    ] = None

    def check(self, read: Sequence[Path | None], *, force: bool) -> None:
        """Refuse files that cannot be written, before the work begins.

        Raises
        ------
        DescriptionError
            When a suffix is neither .csv nor .tex, or as of `crosswind.cli.outputs.writable`.
        """
        distinct({"--points": self.points, "--ranks": self.ranks})
        for option, path in (("--points", self.points), ("--ranks", self.ranks)):
            if path is not None:
                from crosswind.run.point_table import check_table

                check_table(path)
                writable(path, "table", option, inputs=read, force=force)

    def check_path(self, swept: Sequence[str]) -> None:
        """Refuse a field to rank that the experiment does not sweep.

        Raises
        ------
        DescriptionError
            That names those it sweeps.
        """
        path = self.by or ORDER
        if path not in swept and (self.by or self.ranks):
            message = (
                f"--by is {path!r}, which the experiment does not sweep"
                if self.by
                else f"--ranks: {ORDER} is not swept"
            )
            hint = f"it sweeps {', '.join(swept)}" if swept else f"--sweep {path}=A,B"
            raise DescriptionError(message, "argument", hint)

    def write(self, done: Runs[Any]) -> list[str]:
        """Write the tables, and return the files."""
        if self.points is not None:
            from crosswind.run.point_table import write_points

            write_points(done, self.points)
        wrote = written(self.points)
        found = ranking(done, self.by or ORDER) if self.ranks is not None else None
        if self.ranks is not None and found is not None:
            from crosswind.run.point_table import write_ranks

            write_ranks(found, self.ranks)
            wrote += written(self.ranks)
        return wrote
