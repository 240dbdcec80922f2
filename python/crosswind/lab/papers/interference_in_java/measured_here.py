"""Java beside C as this project measured it: benchmark `runtimes` (JDK 17, one core, loopback, five runs of 3 min)."""

from __future__ import annotations

from dataclasses import dataclass

from crosswind.lab.papers.published import rows

RECORD = "benchmarks/records/runtimes.json"


@dataclass(frozen=True)
class Ratio:
    """Interference rate of Java over that of native code.

    Attributes
    ----------
    lowest, median, highest : float
        Over the runs.
    """

    lowest: float
    median: float
    highest: float

    def __str__(self) -> str:
        return f"{self.lowest:.2f} to {self.highest:.2f}"


def load() -> dict[tuple[str, str], Ratio]:
    """Return each ratio by I/O of Java (stream, direct) and direction (receive, send).

    Examples
    --------
    >>> str(load()["stream", "send"])
    '1.27 to 1.43'
    """
    return {
        (row["io"], row["direction"]): Ratio(float(row["lowest"]), float(row["median"]), float(row["highest"]))
        for row in rows("interference_in_java/measured_here")
    }
