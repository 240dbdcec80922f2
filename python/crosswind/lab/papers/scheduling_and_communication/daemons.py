"""Table 1: the daemons of a DECstation 5000 under Ultrix 4.2a, over three hours without a user."""

from __future__ import annotations

from dataclasses import dataclass

from crosswind.documents import Document
from crosswind.lab.papers.published import rows


@dataclass(frozen=True)
class Daemon:
    """One row of the table: how long a daemon runs, ms, and how often, s between invocations."""

    daemon: str
    run_least_ms: float
    run_most_ms: float
    interval_s: float

    @property
    def run_ms(self) -> float:
        """The middle of its run times, ms."""
        return (self.run_least_ms + self.run_most_ms) / 2


@dataclass(frozen=True)
class Together:
    """All daemons of a node as if they were one: s between invocations, ms each, part of the processor."""

    interval_s: float
    run_ms: float
    part: float


def load() -> list[Daemon]:
    """Return the five rows.

    Examples
    --------
    >>> [one.daemon for one in load()]
    ['cron', 'update', 'routed', 'Xdec', 'init']
    """
    return [
        Daemon(row["daemon"], *(float(row[name]) for name in ("run_least_ms", "run_most_ms", "interval_s")))
        for row in rows("scheduling_and_communication/daemons")
    ]


def together(daemons: list[Daemon] | None = None) -> Together:
    """Return what the table's rows sum to; the paper says "once every 10 seconds for about 5 milliseconds" (E2-3).

    Examples
    --------
    >>> sum_ = together()
    >>> round(sum_.interval_s, 1), round(sum_.run_ms, 1), round(100 * sum_.part, 3)
    (7.4, 2.3, 0.031)
    """
    found = load() if daemons is None else daemons
    per_s = sum(1.0 / one.interval_s for one in found)
    part = sum(one.run_ms / 1000.0 / one.interval_s for one in found)
    return Together(1.0 / per_s, 1000.0 * part / per_s, part)


def disturbance() -> Document:
    """Return the table as a description with the fields of `disturbance.toml`: each daemon by itself on every rank.

    The text gives intervals and ranges of run times, no distributions: intervals are taken as exponential (nothing
    says that daemons of different nodes keep step), run times as uniform.
    """
    sources = []
    for one in load():
        low, high = one.run_least_ms / 1000.0, one.run_most_ms / 1000.0
        spread = {"distribution": "uniform", "low": low, "high": high}
        sources.append(
            {
                "kind": "daemon",
                "cause": one.daemon,
                "interval_s": {"distribution": "exponential", "mean": one.interval_s},
                "duration_s": low if low == high else spread,
            }
        )
    return {"schema_version": 1, "name": "daemons of table 1", "source": sources}
