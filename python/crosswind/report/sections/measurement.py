"""The section about one measurement: what its template needs, with figures and tables made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from crosswind.errors import DescriptionError, Notice
from crosswind.measurement import Measurement
from crosswind.model.channel import ChannelFit
from crosswind.model.fit import Fit, fit
from crosswind.report.figures.both_directions import both_directions
from crosswind.report.figures.figure import Figure, identifier
from crosswind.report.figures.losses import losses
from crosswind.report.figures.residuals import residuals
from crosswind.report.figures.scatter import MOST_POINTS, scatter
from crosswind.report.figures.trend import trend
from crosswind.report.findings import Finding, finding, trust
from crosswind.report.provenance import provenance
from crosswind.report.sections.runtime import RUNTIME, RuntimePart, runtime_part
from crosswind.report.sections.section import Answer, Kind, Section, Term, of_type
from crosswind.report.tables import as_in_table_2, together, vector
from crosswind.report.timelines import timelines
from crosswind.report.words import number, number_range, percent, percent_range, rate, with_half
from crosswind.tables import Table

if TYPE_CHECKING:
    from crosswind.documents.measurement import MeasurementHeader

MOST_ANSWERS = 4
BENT = 4.0  # |t| of the square beyond which the text says that the line bends


QUESTION = "How much does traffic slow computation on {host}?"
TERMS = (
    Term(
        "ir",
        "interference rate (IR)",
        "The part of the compute rate that is lost per MB/s (or GB/s) of traffic: minus the slope of the "
        "fitted line. 0.15 s/GB means that 1 GB/s takes 15 % of the computation.",
    ),
    Term(
        "interval",
        "95 % interval",
        "Where the figure would lie in 95 of 100 such measurements. From a bootstrap over whole cycles, "
        "because neighbouring samples resemble each other and a naive interval would be too narrow.",
    ),
    Term(
        "upper-bound",
        "upper bound",
        "Where the interval holds 0, the rate itself says nothing; it is at most this.",
    ),
    Term(
        "time-base",
        "time base: available and wall",
        "`wall` divides work and MB by time, as a user feels it; other processes on the CPU move it. "
        "`available` divides both by the CPU seconds that were left to the measurement's own threads, so "
        "other processes drop out; it is used where threads are pinned and no quota throttles.",
    ),
    Term(
        "intercept",
        "const (intercept)",
        "Where the line meets 0 MB/s, in parts of the idle rate. Far from 1, the line does not fit, or "
        "traffic costs something before the first byte.",
    ),
    Term(
        "bare",
        "idle against bare",
        "The compute rate with connections open and nothing moving, over the rate before any socket existed. "
        "A receiver that spins takes half a core while its interference rate is 0; only this shows it.",
    ),
    Term(
        "std-dev",
        "StDev",
        "Standard deviation of what the line leaves over, in parts of the full rate.",
    ),
    Term(
        "max-error",
        "MaxErr",
        "The largest distance of a point from the line, in parts of the full rate.",
    ),
    Term(
        "r-squared",
        "R²",
        "The part of the variation that the fit explains. It is low where there is little to explain: on an "
        "IR of about 0 it says nothing.",
    ),
    Term(
        "quadratic",
        "quadratic",
        "A parabola through the same points. Where the t of its square is beyond about 3 to 5, the cost per "
        "MB changes with the rate, mostly because data arrives in larger batches.",
    ),
    Term(
        "lack-of-fit",
        "lack of fit",
        "Blocks at 1/4 and 3/4 of the top rate are measured only to check the line, which does not see them.",
    ),
    Term(
        "theil-sen",
        "Theil-Sen",
        "The median of the slopes between all pairs of points of a cycle. A few disturbed points cannot move "
        "it; far from least squares, distrust both.",
    ),
    Term(
        "chord",
        "chord",
        "The loss at the top over the top rate: the slope from idle straight to the top.",
    ),
    Term(
        "loss",
        "loss",
        "1 minus the compute rate at a transfer rate, in parts of the idle rate.",
    ),
    Term(
        "displacement",
        "displacement and slow-down",
        "Displacement: the traffic's threads had the CPU instead. Slow-down: the computation did less per CPU "
        "second (interrupt work charged to it, caches, memory, clock). Together they are the loss.",
    ),
    Term(
        "cost",
        "cost per call, GB and wake-up",
        "The CPU time of the traffic's threads explained by what they did. Where calls and bytes rise "
        "together their sum is well known and the parts are not, which their intervals show.",
    ),
    Term(
        "range",
        "range",
        "The transfer rates that the figures stand on. Slopes over different ranges do not compare; losses at "
        "one rate do.",
    ),
    Term(
        "foreign",
        "foreign load",
        "CPU time on the computing CPU that went to neither the computation nor the traffic. Intervals with "
        "much of it are dropped.",
    ),
)
TOGETHER = (
    Term(
        "additive",
        "bias",
        "Measured minus predicted, mean over the blocks with several peers; below 0, together costs more than "
        "the sum. Beside it the same against one peer alone at the same total rate, which a curved cost "
        "cannot mislead.",
    ),
    Term(
        "plane",
        "plane",
        "compute rate = const − IR' received − IR' sent, by least squares over all blocks.",
    ),
    Term(
        "three-point",
        "three-point law",
        "1 − IR received − IR sent through three measured points: alone, receiving at most, both at most. It "
        "needs few measurements, and is exact only at those points.",
    ),
    Term(
        "hull",
        "hull",
        "The smallest convex region that holds the measured rates. A prediction inside it interpolates; one "
        "outside is a guess.",
    ),
)


@dataclass(frozen=True)
class Unfitted:
    """A measurement that ended too early for a fit, and why."""

    measurement: Measurement
    reason: str


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
    finding: Finding
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
    large: list[Answer]
    answer_note: str
    losses: Figure | None
    findings: list[Finding]
    trust: tuple[str, str]
    cards: list[Card]
    channels: list[ChannelPart]
    tables: list[Table]
    runtime: RuntimePart | None
    together_tables: list[Table]
    hull: Figure | None
    course: Figure | None
    timelines: list[tuple[Figure, str]]
    facts: list[tuple[str, str]]
    settings: list[tuple[str, str]]
    warnings: list[Notice]

    @property
    def figures(self) -> list[Figure]:
        """Every figure of the section."""
        parts = [figure for part in self.channels for figure in (part.scatter, part.residuals)]
        first = [self.losses] if self.losses else []
        several = [figure for figure in (self.hull, self.course) if figure]
        return [*first, *parts, *several, *(figure for figure, _ in self.timelines)]

    @property
    def terms(self) -> Sequence[Term]:
        """The terms that it links to."""
        return (*TERMS, *(RUNTIME if self.runtime else ()), *(TOGETHER if self.together_tables else ()))


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
        title=QUESTION.format(host=header["host"]["name"]),
        where=_where(header),
        large=[_answer(channel, several) for channel in channels[:MOST_ANSWERS]],
        answer_note="Share of what one CPU computes without traffic. ±: 95 % confidence interval.",
        losses=_losses(channels, id_),
        findings=[finding(channel, several) for channel in channels],
        trust=trust(header, settled, bool(fitted and fitted.trustworthy), len(warnings)),
        cards=_cards(fitted) if fitted else [],
        channels=[_channel(channel, id_, several) for channel in channels],
        tables=[as_in_table_2(channels), vector(channels)] if channels else [],
        runtime=runtime_part(measurement, fitted) if "runtime" in header else None,
        together_tables=together(fitted) if fitted else [],
        hull=_hull(fitted, id_) if fitted else None,
        course=None,
        timelines=timelines(measurement, id_),
        facts=provenance(header),
        settings=sorted(header["host"]["settings"].items()),
        warnings=warnings,
    )


def _unfitted_warnings(item: Any) -> list[Notice]:
    own = {"code": "no-fit", "message": f"no fit was possible: {item.reason}", "hint": "measure longer"}
    return [own, *item.measurement.warnings]


def _where(header: MeasurementHeader) -> str:
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
        to_peer = f" {channel.peer}" if several else ""
        low, high = (1000 * end for end in channel.ir_ci95)
        detail = f"s/GB ({number_range(low, high)})"
        if channel.upper_bound is None:
            cards.append(Card(f"IR, {channel.direction}{to_peer}", number(channel.ir_s_per_gb), detail, "ir"))
        else:
            bound = f"< {number(1000 * channel.upper_bound)}"
            cards.append(Card(f"IR, {channel.direction}{to_peer}", bound, detail, "upper-bound"))
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


def _answer(channel: ChannelFit, several: bool) -> Answer:
    """Return what is lost at the highest of the rates that every measurement reports."""
    found = channel.headline
    moving, preposition = ("receiving", "from") if channel.direction == "receive" else ("sending", "to")
    of = f" {preposition} {channel.peer}" if several else ""
    if found is None:
        return Answer("–", f"of the computation while {moving}{of}: not measured.", tone=channel.direction)
    low, high = found.ci95
    text = f"of the computation is lost while {moving} {rate(found.mb_per_s)}{of}."
    if low <= 0.0:
        return Answer(
            f"< {percent(max(high, 0.0))}", f"{text[:-1]}: not distinguishable from 0.", tone=channel.direction
        )
    value, half = with_half(100.0 * found.loss, 50.0 * (high - low), " %")
    return Answer(value, text, half, channel.direction)


def _losses(channels: Sequence[ChannelFit], id_: str) -> Figure | None:
    """Return the losses of one peer's directions; of several peers each has its own figures only."""
    if len({channel.peer for channel in channels}) != 1:
        return None
    points, lines, words = [], [], []
    for channel in channels:
        of = "Receiving" if channel.direction == "receive" else "Sending"
        for at in channel.losses:
            low, high = at.ci95
            points.append({"of": of, "rate": at.mb_per_s, "loss": at.loss, "low": low, "high": high})
        if channel.losses:
            words.append(f"{of}: " + ", ".join(f"{percent(at.loss)} at {rate(at.mb_per_s)}" for at in channel.losses))
            for end in (0.0, channel.losses[-1].mb_per_s):
                lost = 1.0 - channel.line.intercept + channel.ir_s_per_mb * end
                lines.append({"of": of, "rate": end, "loss": lost})
    if not points:
        return None
    alt = f"Computation lost against traffic. {'. '.join(words)}."
    return Figure(identifier(id_, "losses"), "Computation lost, by traffic", alt, losses(points, lines))


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
        finding=finding(channel, several),
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


def _sections(items: Sequence[Fit | Unfitted], _: object) -> list[Section]:
    """Prepare all sections; the last of several of one host and kernel has their course."""
    sections = [measured_section(item, place) for place, item in enumerate(items, 1)]
    titles = [section.title for section in sections]
    for place, (section, item) in enumerate(zip(sections, items, strict=True)):
        if titles.count(section.title) > 1:
            own = f"{section.title} ({item.measurement.header['name']})"
            sections[place] = replace(section, title=own)
    alike: dict[tuple[str, ...], list[int]] = {}
    for place, item in enumerate(items):
        header = item.measurement.header
        key = (header["host"]["name"], header["kernel"]["name"], *(peer["address"] for peer in header["peers"]))
        if isinstance(item, Fit):
            alike.setdefault(key, []).append(place)
    for places in alike.values():
        fits = sorted((items[place] for place in places), key=lambda one: str(one.measurement.header["started"]))
        figure = _course([one for one in fits if isinstance(one, Fit)], sections[places[-1]].id)
        sections[places[-1]] = replace(sections[places[-1]], course=figure)
    return list(sections)


def _course(fits: Sequence[Fit], id_: str) -> Figure | None:
    """Return the loss at the highest rate that all have, from measurement to measurement; None for one time only."""
    if len({one.measurement.header["started"] for one in fits}) < 2:
        return None
    rows = []
    for direction in ("receive", "send"):
        found = [(one, channel) for one in fits if (channel := one.alone(direction))]
        rates = [{loss.mb_per_s for loss in channel.losses} for _, channel in found]
        common = set.intersection(*rates) if len(found) > 1 else set()
        for one, channel in found if common else ():
            loss = next(loss for loss in channel.losses if loss.mb_per_s == max(common))
            ends = {"low": 100 * loss.ci95[0], "high": 100 * loss.ci95[1]}
            of = f"{direction} at {rate(loss.mb_per_s)}"
            rows.append({"of": of, "at": one.measurement.header["started"], "value": 100 * loss.loss, **ends})
    if not rows:
        return None
    words = f"Dots with 95 % intervals of the loss in {len(fits)} measurements of this host."
    return Figure(identifier(id_, "course"), "From measurement to measurement", words, trend(rows, "loss, %"))


def _fitted(item: Measurement | Fit) -> Fit | Unfitted:
    if isinstance(item, Fit):
        return item
    try:
        return fit(item)
    except DescriptionError as error:
        return Unfitted(item, str(error))


MEASUREMENTS = Kind(
    "measurement",
    "measurements",
    "measurement.html.j2",
    of_type(Measurement, Fit),
    _sections,
    {"measurement": Measurement.load},
    made=_fitted,
)
