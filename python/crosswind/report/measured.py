"""The section about one measurement: what its template needs, with figures and tables made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from crosswind.model.channel import ChannelFit
from crosswind.model.fit import Fit
from crosswind.report.figure import Figure, identifier
from crosswind.report.figures.residuals import residuals
from crosswind.report.figures.scatter import MOST_POINTS, scatter
from crosswind.report.figures.together import both_directions
from crosswind.report.findings import Finding, finding, trust
from crosswind.report.inputs import Unfitted
from crosswind.report.provenance import provenance
from crosswind.report.tables import Table, as_in_table_2, together, vector
from crosswind.report.timelines import timelines
from crosswind.report.words import number, number_range, percent, percent_range, rate

BENT = 4.0  # |t| of the square beyond which the text says that the line bends


@dataclass(frozen=True)
class Card:
    """One figure in large type."""

    label: str
    value: str
    detail: str = ""
    term: str = ""


@dataclass(frozen=True)
class ChannelPart:
    """One direction of one peer."""

    name: str
    estimator: str
    scatter: Figure
    residuals: Figure
    bend: str
    thinned: str


@dataclass(frozen=True)
class MeasuredSection:
    """One measurement."""

    id: str
    title: str
    where: str
    findings: list[Finding]
    trust: tuple[str, str]
    cards: list[Card]
    channels: list[ChannelPart]
    tables: list[Table]
    together_tables: list[Table]
    hull: Figure | None
    timelines: list[tuple[Figure, str]]
    facts: list[tuple[str, str]]
    settings: list[tuple[str, str]]
    warnings: list[dict[str, str]]

    @property
    def figures(self) -> list[Figure]:
        """Every figure of the section."""
        parts = [figure for part in self.channels for figure in (part.scatter, part.residuals)]
        return [*parts, *([self.hull] if self.hull else []), *(figure for figure, _ in self.timelines)]


def measured_section(item: Fit | Unfitted, place: int) -> MeasuredSection:
    """Prepare the section of the measurement at `place` (from 1)."""
    measurement = item.measurement
    header = measurement.header
    id_ = f"measured-{place}"
    fitted = item if isinstance(item, Fit) else None
    warnings = fitted.warnings if fitted else _unfitted_warnings(item)
    several = len(header["peers"]) > 1
    channels = fitted.channels if fitted else ()
    settled = fitted is not None and not any(warning["code"] == "not-settled" for warning in warnings)
    return MeasuredSection(
        id=id_,
        title=header["name"],
        where=_where(header),
        findings=[finding(channel, several) for channel in channels],
        trust=trust(header, settled, bool(fitted and fitted.trustworthy), len(warnings)),
        cards=_cards(fitted) if fitted else [],
        channels=[_channel(channel, id_, several) for channel in channels],
        tables=[as_in_table_2(channels), vector(channels)] if channels else [],
        together_tables=together(fitted) if fitted else [],
        hull=_hull(fitted, id_) if fitted else None,
        timelines=timelines(measurement, id_),
        facts=provenance(header),
        settings=sorted(header["host"]["settings"].items()),
        warnings=warnings,
    )


def _unfitted_warnings(item: Any) -> list[dict[str, str]]:
    own = {"code": "no-fit", "message": f"no fit was possible: {item.reason}", "hint": "measure longer"}
    return [own, *item.measurement.warnings]


def _where(header: dict[str, Any]) -> str:
    kernel = header["kernel"]
    work = kernel["task"] or (
        f"{kernel['name']} of a {kernel['matrix']} matrix" if kernel["matrix"] else kernel["name"]
    )
    peers = ", ".join(peer["address"] for peer in header["peers"])
    placement = header["placement"]["mode"]
    return f"{header['host']['name']} computing {work} against traffic with {peers}; placement {placement}"


def _cards(fit: Fit) -> list[Card]:
    several = len(fit.measurement.header["peers"]) > 1
    cards = []
    for channel in fit.channels[:4]:
        whom = f" {channel.peer}" if several else ""
        low, high = (1000 * end for end in channel.ir_ci95)
        detail = f"s/GB ({number_range(low, high)})"
        if channel.upper_bound is None:
            cards.append(Card(f"IR, {channel.direction}{whom}", number(channel.ir_s_per_gb), detail, "ir"))
        else:
            bound = f"< {number(1000 * channel.upper_bound)}"
            cards.append(Card(f"IR, {channel.direction}{whom}", bound, detail, "upper-bound"))
        if not several:
            loss = percent(channel.loss_at_top)
            detail = f"({percent_range(*channel.loss_ci95)}) at {rate(channel.top_mb_per_s)}"
            cards.append(Card(f"loss at the top, {channel.direction}", loss, detail, "loss"))
    base = fit.baseline
    if base.intercept_against_bare == base.intercept_against_bare:
        detail = "of the rate before any socket"
        cards.append(Card("idle against bare", percent(base.intercept_against_bare), detail, "bare"))
    if base.foreign_share == base.foreign_share:
        cards.append(Card("foreign load", percent(base.foreign_share), "of the computing CPU", "foreign"))
    return cards


def _channel(channel: ChannelFit, id_: str, several: bool) -> ChannelPart:
    name = channel.direction.capitalize()
    preposition = "from" if channel.direction == "receive" else "to"
    name = f"{name} {preposition} {channel.peer}" if several else name
    what = f"{channel.direction}-{channel.channel}"
    loss = f"{percent(channel.loss_at_top)} lost at {rate(channel.top_mb_per_s)}"
    count = len(channel.points[channel.estimator])
    spread = f"standard deviation {percent(channel.std_dev)}, largest {percent(channel.max_error)}"
    return ChannelPart(
        name=name,
        estimator=channel.estimator,
        scatter=Figure(
            identifier(id_, what, "scatter"),
            "Compute rate against transfer rate",
            f"{name}: scatter of {count} points with a falling line: {number(channel.ir_s_per_gb)} s/GB, {loss}.",
            scatter(channel),
        ),
        residuals=Figure(
            identifier(id_, what, "residuals"),
            "What the line leaves over",
            f"{name}: residuals of the line, {spread}.",
            residuals(channel),
        ),
        bend=_bend(channel),
        thinned=f"{MOST_POINTS:,} of {count:,} points are drawn, all are fitted" if count > MOST_POINTS else "",
    )


def _bend(channel: ChannelFit) -> str:
    square = channel.quadratic
    if square is None or not abs(square.t_square) > BENT:
        return "The dashed quadratic is not clearly better than the line."
    way = "falls" if square.square > 0 else "rises"
    return (
        f"The dashed quadratic is better: the cost per MB {way} with the rate, so that "
        "one slope depends on the range measured."
    )


def _hull(fit: Fit, id_: str) -> Figure | None:
    if not (fit.plane or fit.three_point):
        return None
    title = "Receiving and sending at once"
    words = "Blocks by received and sent rate, coloured by compute rate, with the hull of the three-point law."
    return Figure(identifier(id_, "both-directions"), title, words, both_directions(fit))
