"""What a run saw of its platform beside what the platform's file says, and whether that file is stale."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosswind.errors import Notice, warning
from crosswind.statistics.digits import with_half
from crosswind.tables import Column, Table

RATES: dict[str, tuple[str, str, float]] = {
    "compute_per_s": ("compute rate", "work units/s", 0.10),
    "receive_limit_mb_per_s": ("link", "MB/s", 0.10),
    "ir_receive_s_per_mb": ("interference of receiving", "s/MB", 0.25),
    "ir_send_s_per_mb": ("interference of sending to it", "s/MB", 0.25),
}
"""Field -> what it is, its unit, and by which part of itself it may be off before the file is stale: a plan made with
rates within a tenth is within a tenth; interference is known no better from a run."""

STALE = "platform-stale"
"""Code of the warning."""
_LEAST_OBSERVATIONS = 8
_CERTAIN = 3.0  # standard deviations
_NAMED = 4


@dataclass(frozen=True)
class ObservedRate:
    """A rate as the platform's file says and as it was seen.

    Attributes
    ----------
    node : str
        Whose.
    field : str
        Field of the platform's file; its unit stands in the name.
    planned : float or None
        As the file says; None where it does not.
    seen, sd : float
        As it was seen at the end of the run, and its standard deviation.
    observations : int
        Tasks that it was seen by, since it last changed.
    """

    node: str
    field: str
    planned: float | None
    seen: float
    sd: float
    observations: int

    @property
    def off(self) -> float | None:
        """By which part of the planned rate it is off, such as -0.67; None where none is planned."""
        return self.seen / self.planned - 1.0 if self.planned else None

    @property
    def stale(self) -> bool:
        """Whether the file is certainly wrong by more than matters."""
        if self.planned is None or self.off is None or self.observations < _LEAST_OBSERVATIONS:
            return False
        return abs(self.off) > RATES[self.field][2] and abs(self.seen - self.planned) > _CERTAIN * self.sd

    def __str__(self) -> str:
        what, unit, _ = RATES[self.field]
        off = f" ({self.off:+.0%})" if self.off is not None else ""
        planned = f", planned {self.planned:.4g}{off}" if self.planned is not None else ""
        return f"{self.node}: {what} {self.seen:.4g} {unit}{planned}"


def observed_rates(nodes: Iterable[Mapping[str, Any]]) -> Iterator[ObservedRate]:
    """Yield every rate that a run's nodes were seen by, node by node.

    >>> link = {"planned": 9.0, "seen": 3.0, "sd": 0.1, "observations": 20}
    >>> [rate] = observed_rates([{"name": "a", "seen": {"receive_limit_mb_per_s": link}}])
    >>> print(rate, rate.stale)
    a: link 3 MB/s, planned 9 (-67%) True
    """
    for node in nodes:
        for field, rate in (node.get("seen") or {}).items():
            yield ObservedRate(node["name"], field, **rate)


def rate_tables(rates: Sequence[ObservedRate]) -> list[Table]:
    """Return rates as planned and as seen."""
    columns = [
        Column("node", numeric=False),
        Column("rate", numeric=False),
        *map(Column, ("planned", "seen", "off", "tasks")),
        Column("", numeric=False),
    ]
    rows = [
        [
            rate.node,
            rate.field,
            "" if rate.planned is None else f"{rate.planned:.4g}",
            with_half(rate.seen, 1.96 * rate.sd),
            "" if rate.off is None else f"{rate.off:+.0%}",
            str(rate.observations),
            "stale" if rate.stale else "",
        ]
        for rate in rates
    ]
    return [Table("Planned and seen", columns, rows)]


def stale_warnings(nodes: Sequence[Mapping[str, Any]]) -> list[Notice]:
    """Return the warning that the platform's file is stale, where it is: the rates that are furthest off by name."""
    stale = sorted((rate for rate in observed_rates(nodes) if rate.stale), key=lambda rate: -abs(rate.off or 0.0))
    if not stale:
        return []
    named = "; ".join(map(str, stale[:_NAMED]))
    more = f"; and {len(stale) - _NAMED} more" if len(stale) > _NAMED else ""
    hint = "`crosswind measure` these nodes and `crosswind fit` again; until then --set policy.adapt=true follows"
    return [warning(STALE, f"the platform is not what its file says: {named}{more}", hint)]
