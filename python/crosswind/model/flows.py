"""Measured flows -> Contention: which part of a link n flows use while they share it (delta), and in which form.

Flows come from a table (`FLOWS.csv`), or from runs of kind streams, all of whose streams are taken to share one link.
"""

from __future__ import annotations

import csv
import functools
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from scipy import interpolate, optimize

from crosswind import _core
from crosswind.errors import DescriptionError, Notice, warning
from crosswind.files.atomic import read_json, write_json
from crosswind.files.reading import read_bytes
from crosswind.files.tabular import Tabular
from crosswind.files.wrong_kind import read_as
from crosswind.model.contention import effective_ratio
from crosswind.platform import as_html_table
from crosswind.statistics.interval import pooled_freedom, reach

if TYPE_CHECKING:
    import pyarrow as pa

    from crosswind.documents import Document
    from crosswind.documents.contention import ContentionDocument, Flows, Form

By = Literal["latency", "throughput"]

SCHEMA_VERSION = 1
MOST_FLOWS = 100_000
MOST_POINTS = 1000
"""Ratios that are fitted together: numbers of flows, times kinds."""
LEAST, MOST = 1e-12, 1e12
"""Latencies, s, and rates, MB/s, that are read: their ratios stay within what a float can hold."""
RESAMPLES = 1000
_MEASURES: dict[str, By] = {"latency_s": "latency", "mb_per_s": "throughput"}
_HINT = "a table has the columns flows, and latency_s or mb_per_s (of all flows together), and may have kind"
# Where the one parameter of each form is looked for, and how the form is written.
_SEARCHED = {"linear-latency": ("per_flow", 0.0, 100.0), "reconstructed": ("window_messages", 1.0, 1e9)}
_LEAST_SEARCHED = 1e-6  # of a parameter that may be 0
_COARSE, _FINE = 300, 1500  # values of the parameter at which a form is computed, and between them interpolated
_PRINTED_UP_TO = 1e5  # messages/s that a link may carry, for the printed form


@dataclass(frozen=True)
class Samples:
    """Logarithms of what was measured with `flows` flows of a kind; `base` of one flow, empty where it is exact.

    Samples of equal `draw` were measured together, sample by sample, and bases of equal `base_draw` are the same.
    """

    flows: int
    kind: str
    logs: np.ndarray
    base: np.ndarray
    draw: str
    base_draw: str


@dataclass(frozen=True)
class Contention(Tabular):
    """Which part of a link n flows use, measured and fitted.

    Attributes
    ----------
    data : dict
        What `crosswind fit contention --json` prints (docs/reference/files.md).
    """

    data: ContentionDocument

    @classmethod
    def load(cls, path: str | Path) -> Contention:
        """Read a `contention.json`.

        Raises
        ------
        DescriptionError
            When it is none.
        """
        data = read_json(path, "contention", SCHEMA_VERSION, "`crosswind fit contention -o` writes one")
        try:
            effective_ratio(data["effective"], 1)
        except (KeyError, TypeError) as error:
            raise DescriptionError(f"{path}: has no form in `effective`", "no-contention") from error
        return cls(cast("ContentionDocument", data))

    def save(self, path: str | Path) -> None:
        """Write a `contention.json`."""
        write_json(self.data, path)

    @property
    def effective(self) -> Document:
        """The fitted form: what was measured, and between and beyond it the form that fits best."""
        return dict(self.data["effective"])

    @property
    def points(self) -> list[Flows]:
        """One entry per number of flows and kind: `flows`, `kind`, `ratio`, `ratio_ci95`, `samples`, `forms`."""
        return list(self.data["points"])

    @property
    def forms(self) -> list[Form]:
        """One entry per form: `form`, `parameter`, `value`, `value_ci95`, `rms`, `max_error`."""
        return list(self.data["forms"])

    @property
    def warnings(self) -> list[Notice]:
        """Warnings of the fit."""
        return list(self.data["warnings"])

    def ratio(self, flows: int) -> float:
        """Return the part of a link that `flows` flows use."""
        return effective_ratio(self.effective, flows)

    def to_dict(self) -> ContentionDocument:
        """Return the content as a dictionary."""
        return {**self.data}

    def to_arrow(self) -> pa.Table:
        """Return one row per number of flows and kind."""
        import pyarrow as pa

        return pa.Table.from_pylist(
            [{name: value for name, value in p.items() if name != "forms"} for p in self.points]
        )

    def __repr__(self) -> str:
        form = self.effective["elsewhere"]
        return f"Contention({', '.join(f'{key}={value!r}' for key, value in form.items())}, {len(self.points)} points)"

    def _repr_html_(self) -> str:
        return as_html_table(f"effective ratio, by {self.data['by']}", self.to_arrow().to_pylist())


def fit_contention(
    files: Iterable[str | Path], *, link_mb_per_s: float | None = None, by: By = "latency", seed: int = 0
) -> Contention:
    r"""Fit the effective ratio (delta) to measured flows.

    By latency it is that of one flow over that of n flows, as the paper measures it, which supposes that n flows
    together do not want more than the link carries. By throughput it is what n flows move together over what the link
    carries, as the paper defines it, which supposes that they want at least that.

    Parameters
    ----------
    files : paths
        Tables (`*.csv`) with the columns `flows`, and `latency_s` or `mb_per_s` (of all flows together), and where
        flows of several kinds were measured `kind`; or `runs.json` of kind streams, whose streams of a run share one
        link: T1 and T2 of each.
    link_mb_per_s : float, optional
        By throughput: what the link carries; else what one flow moves alone is taken for it.
    by : {"latency", "throughput"}
        Of runs; a table says it by its column.
    seed : int
        Of the intervals.

    Returns
    -------
    Contention

    Raises
    ------
    DescriptionError
        When a file is wrong, or says nothing of two flows or more.

    Notes
    -----
    Ratios are of geometric means; intervals are 95 %, by Student's t with Welch's degrees of freedom. Forms are fitted
    by least squares to the ratios of two flows and more, each point once; a parameter's interval is of means drawn once
    for all ratios, which share the samples of one flow; `literal` is the printed form over its own
    value for one flow, for comparison only. Source: communication-interactions, section 4.2; E4-1, E4-3.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "flows.csv"
    >>> _ = file.write_text("flows,latency_s\n1,500e-6\n2,550e-6\n3,600e-6\n4,650e-6\n")
    >>> found = fit_contention([file])
    >>> found.forms[0]["form"], round(found.forms[0]["value"], 4), round(found.ratio(6), 3)
    ('linear-latency', 0.1, 0.667)
    """
    if link_mb_per_s is not None and not 0 < link_mb_per_s < math.inf:
        raise DescriptionError(f"link_mb_per_s is {link_mb_per_s}; it must be finite and greater than 0", "argument")
    names, samples, measures = [str(file) for file in files], list[Samples](), set[By]()
    for name in names:
        with read_as(name, "flows", "runs"):
            content = read_bytes(name)
            if content.lstrip()[:1] == b"{":
                measures.add(by)
                samples += _of_runs(content, name, by, link_mb_per_s)
            else:
                measure, found = _of_table(content, name, link_mb_per_s)
                measures.add(measure)
                samples += found
    if len(measures) > 1:
        raise DescriptionError("the files mix latencies and throughputs", "argument", "fit each kind separately")
    several = [one for one in samples if one.flows > 1]
    if not several:
        raise DescriptionError("nothing was measured with 2 flows or more", "too-few-points", _HINT)
    if len(several) > MOST_POINTS:
        message = f"{len(several)} numbers of flows were measured, each kind counted; at most {MOST_POINTS} are fitted"
        raise DescriptionError(
            message, "too-many-points", "leave out some numbers of flows, or fit the files one by one"
        )
    return _fitted(several, names, next(iter(measures)), link_mb_per_s, seed)


def _fitted(samples: Sequence[Samples], files: list[str], by: By, link_mb_per_s: float | None, seed: int) -> Contention:
    points: list[Flows] = []
    samples = sorted(samples, key=lambda one: (one.flows, one.kind))
    for one in samples:
        mean, half = _log_ratio(one)
        ends = None if half is None else [math.exp(mean - half), math.exp(mean + half)]
        points.append(
            {
                "flows": one.flows,
                "kind": one.kind,
                "ratio": math.exp(mean),
                "ratio_ci95": ends,
                "samples": int(one.logs.size),
                "forms": {},
            }
        )
    flows = [int(point["flows"]) for point in points]
    ratios = np.array([point["ratio"] for point in points])
    known = all(point["ratio_ci95"] is not None for point in points)
    errors = _Errors.of(samples, np.random.default_rng(seed)) if known else None
    forms = [_form(form, flows, ratios, errors) for form in _SEARCHED]
    for form in forms:
        fitted = {"form": form["form"], form["parameter"]: form["value"]}
        for point, n in zip(points, flows, strict=True):
            point["forms"][form["form"]] = effective_ratio(fitted, n)
    best = min(forms, key=lambda form: form["rms"])
    forms.append(_printed(flows, ratios))
    every = sorted(set(flows))
    measured = [[n, math.exp(float(np.mean(np.log(ratios[np.array(flows) == n]))))] for n in every]
    elsewhere = {"form": best["form"], best["parameter"]: best["value"]}
    return Contention(
        {
            "schema_version": SCHEMA_VERSION,
            "kind": "contention",
            "files": files,
            "by": by,
            "link_mb_per_s": link_mb_per_s,
            "points": points,
            "forms": forms,
            "effective": {"form": "fitted", "measured": measured, "elsewhere": elsewhere},
            "warnings": _warnings(points, by),
        }
    )


def _warnings(points: list[Flows], by: By) -> list[Notice]:
    found = []
    above = next((p for p in points if (p["ratio_ci95"] or [p["ratio"]])[0] > 1.0), None)
    if above:
        message = f"{above['flows']} flows use {above['ratio']:.3g} times as much of the link as one does"
        hint = "one flow does not fill the link: name its rate (--link-mb-per-s)"
        if by == "latency":
            hint = "are the flows' latencies those of loaded links, and of messages of one size?"
        found.append(warning("effective-above-1", message, hint))
    if len({point["flows"] for point in points}) < 2:
        message = f"only {points[0]['flows']} flows were measured: one number of flows cannot distinguish the forms"
        found.append(warning("one-number-of-flows", message, "measure other numbers of flows too"))
    return found


@dataclass(frozen=True)
class _Part:
    """Drawn errors of what was sampled together: rows are draws, columns the ratios at `places`."""

    places: np.ndarray
    errors: np.ndarray
    freedom: int


@dataclass(frozen=True)
class _Errors:
    """Drawn errors of the logarithms of all ratios, by what was sampled together.

    Ratios share the samples of one flow, so their errors go together. Memory grows with the number of ratios, neither
    with its square nor with the number of samples.
    """

    parts: list[_Part]
    count: int

    @classmethod
    def of(cls, samples: Sequence[Samples], random: np.random.Generator) -> _Errors:
        """Draw the mean of everything that was sampled, once for all ratios that depend on it."""
        together: dict[str, list[tuple[int, np.ndarray]]] = {}
        bases: dict[str, list[int]] = {}
        for at, one in enumerate(samples):
            together.setdefault(one.draw, []).append((at, one.logs))
            if one.base.size:
                bases.setdefault(one.base_draw, []).append(at)
        parts = []
        for members in together.values():
            sizes = [logs.size for _, logs in members]
            deviations = np.zeros((max(sizes), len(members)))
            for column, (_, logs) in enumerate(members):
                deviations[: logs.size, column] = _deviations(logs)
            places = np.array([at for at, _ in members])
            parts.append(_Part(places, _drawn(deviations, random), min(sizes) - 1))
        for places_of in bases.values():
            base = samples[places_of[0]].base
            errors = np.repeat(-_drawn(_deviations(base)[:, None], random), len(places_of), axis=1)
            parts.append(_Part(np.array(places_of), errors, base.size - 1))
        return cls(parts, len(samples))

    @property
    def total(self) -> np.ndarray:
        """The errors of all ratios, one row for each draw."""
        found = np.zeros((RESAMPLES, self.count))
        for part in self.parts:
            found[:, part.places] += part.errors
        return found

    def ends(self, best: Callable[[np.ndarray], np.ndarray], ratios: np.ndarray) -> list[float]:
        """Return the 95 % interval of a parameter that `best` fits to ratios, one row for each draw.

        Few samples say little of their own spread: the errors are widened by Student's t with the degrees of freedom of
        Welch and Satterthwaite, each part weighted by what it does to the parameter's logarithm.
        """
        errors = self.total
        found = np.log(best(ratios * np.exp(errors)))
        slopes = np.linalg.lstsq(errors, found - found.mean(), rcond=None)[0]
        parts = [float(np.var(part.errors @ slopes[part.places])) for part in self.parts]
        total = sum(parts)
        if total > 0.0:
            freedom = pooled_freedom(zip(parts, (part.freedom for part in self.parts), strict=True))
            errors *= reach(freedom) / reach(math.inf)
            found = np.log(best(ratios * np.exp(errors)))
        return [float(end) for end in np.exp(np.quantile(found, [0.025, 0.975]))]


def _deviations(logs: np.ndarray) -> np.ndarray:
    """Return deviations from the mean whose sum of squares is the variance of the mean."""
    found: np.ndarray = (logs - logs.mean()) / math.sqrt(logs.size * (logs.size - 1))
    return found


def _drawn(deviations: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Draw errors of means that have the covariance of their deviations, a column each."""
    root = np.asarray(np.linalg.qr(deviations, mode="r"))
    found: np.ndarray = random.normal(size=(RESAMPLES, root.shape[0])) @ root
    return found


def _log_ratio(one: Samples) -> tuple[float, float | None]:
    """Return the logarithm of the ratio, and half of its 95 % interval; None where unknown."""
    mean = float(one.logs.mean() - (one.base.mean() if one.base.size else 0.0))
    parts = [part for part in (one.logs, one.base) if part.size]
    if any(part.size < 2 for part in parts):
        return mean, None
    squares = [float(part.var(ddof=1)) / part.size for part in parts]
    total = sum(squares)
    if total == 0.0:
        return mean, 0.0
    freedom = pooled_freedom((square, part.size - 1) for square, part in zip(squares, parts, strict=True))
    return mean, reach(freedom) * math.sqrt(total)


def _form(form: str, flows: list[int], ratios: np.ndarray, errors: _Errors | None) -> Form:
    """Return a form's parameter that fits best, with how well."""
    parameter, low, high = _SEARCHED[form]
    low = max(low, max(flows) * (1.0 + 1e-9)) if form == "reconstructed" else low

    def curve(value: float) -> np.ndarray:
        return _curve(form, tuple(flows), value)

    # By its logarithm: both parameters range over many powers of ten.
    limits = (math.log(max(low, _LEAST_SEARCHED)), math.log(high))
    found = optimize.minimize_scalar(
        lambda log: float(np.sum((curve(math.exp(log)) - ratios) ** 2)), limits, method="bounded", bounds=limits
    )
    value = math.exp(float(found.x))
    ends: list[float | None] | None = None
    if errors is not None:
        fine, curves = _curves(form, tuple(flows), limits)
        ends = _bounded(errors.ends(lambda of: _nearest(fine, curves, of), ratios), value, low, high)
    rms, largest = _errors(curve(value), ratios)
    return {
        "form": form,
        "parameter": parameter,
        "value": value,
        "value_ci95": ends,
        "rms": rms,
        "max_error": largest,
    }


def _bounded(ends: Sequence[float], value: float, low: float, high: float) -> list[float | None]:
    """Return an interval that holds its value; None where the search, not the measurement, bounds it.

    The least that is searched is the least that the form permits, and a bound. The most is only as far as is searched.
    """
    step = (high / max(low, _LEAST_SEARCHED)) ** (1.0 / (_FINE - 1))
    least, most = min(ends[0], value), max(ends[1], value)
    return [low if least <= max(low, _LEAST_SEARCHED) * step else least, None if most >= high / step else most]


def _curve(form: str, flows: tuple[int, ...], value: float) -> np.ndarray:
    by_flows = {n: effective_ratio({"form": form, _SEARCHED[form][0]: value}, n) for n in set(flows)}
    return np.array([by_flows[n] for n in flows])


@functools.lru_cache(maxsize=4)
def _curves(form: str, flows: tuple[int, ...], limits: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Return logarithms of a form's parameter, and the form's ratios at each."""
    coarse, fine = np.linspace(*limits, _COARSE), np.linspace(*limits, _FINE)
    return fine, interpolate.CubicSpline(coarse, [_curve(form, flows, math.exp(at)) for at in coarse])(fine)


def _nearest(logs: np.ndarray, curves: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Return for each row of `of` the parameter of the nearest of the curves, by least squares."""
    squares = np.sum(curves**2, axis=1)[:, None] - 2.0 * curves @ of.T
    at, row = squares.argmin(axis=0), np.arange(of.shape[0])
    inner = np.clip(at, 1, logs.size - 2)
    before, here, behind = (squares[inner + step, row] for step in (-1, 0, 1))
    bend = before - 2.0 * here + behind
    step = np.where(bend > 0.0, 0.5 * (before - behind) / np.where(bend > 0.0, bend, 1.0), 0.0)
    found: np.ndarray = np.exp(
        np.where(at == inner, logs[inner] + np.clip(step, -1.0, 1.0) * (logs[1] - logs[0]), logs[at])
    )
    return found


def _printed(flows: list[int], ratios: np.ndarray) -> Form:
    """Return the printed form over its own value for one flow, for the messages per second that suit it best."""
    least = 2.0 * max(flows)
    tried = np.geomspace(least, max(_PRINTED_UP_TO, 10.0 * least), 400)

    def curve(rate: float) -> np.ndarray:
        form = {"form": "literal", "messages_per_s": rate}
        return np.array([effective_ratio(form, n) for n in flows]) / effective_ratio(form, 1)

    best = min((float(rate) for rate in tried), key=lambda rate: float(np.sum((curve(rate) - ratios) ** 2)))
    rms, largest = _errors(curve(best), ratios)
    return {
        "form": "literal",
        "parameter": "messages_per_s",
        "value": best,
        "value_ci95": None,
        "rms": rms,
        "max_error": largest,
    }


def _errors(curve: np.ndarray, ratios: np.ndarray) -> tuple[float, float]:
    """Return the root mean square of the errors, and the largest."""
    off = curve - ratios
    return float(np.sqrt(np.mean(off**2))), float(np.max(np.abs(off)))


def _of_table(content: bytes, name: str, link_mb_per_s: float | None) -> tuple[By, list[Samples]]:
    """Read a table of flows."""
    try:
        reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig")))
        columns = [column.strip() for column in reader.fieldnames or ()]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DescriptionError(f"{name}: is no table: {error}", "no-flows", _HINT) from None
    measured = [column for column in _MEASURES if column in columns]
    if "flows" not in columns or len(measured) != 1:
        raise DescriptionError(f"{name}: its columns are {', '.join(columns)[:80] or 'none'}", "no-flows", _HINT)
    unknown = [column for column in columns if column not in ("flows", "kind", *measured)]
    if unknown:
        raise DescriptionError(f"{name}: there is no column {unknown[0]!r}", "no-flows", _HINT)
    reader.fieldnames = columns
    by_kind: dict[str, dict[int, list[float]]] = {}
    try:
        for row in reader:
            place = f"{name}:{reader.line_num}"
            flows = _number(row["flows"], f"{place}: flows", whole=True)
            value = _number(row[measured[0]], f"{place}: {measured[0]}")
            by_kind.setdefault((row.get("kind") or "").strip(), {}).setdefault(int(flows), []).append(math.log(value))
    except csv.Error as error:
        raise DescriptionError(f"{name}:{reader.line_num}: {error}", "no-flows", _HINT) from None
    measure = _MEASURES[measured[0]]
    found = []
    for kind, values in by_kind.items():
        base = np.array(
            [math.log(link_mb_per_s)] * 2 if link_mb_per_s and measure == "throughput" else values.get(1, [])
        )
        if not base.size:
            whose = f" of kind {kind!r}" if kind else ""
            message = f"{name}: nothing was measured with 1 flow{whose}"
            raise DescriptionError(message, "too-few-points", "ratios are over one flow alone")
        sign = 1.0 if measure == "throughput" else -1.0
        base, of = sign * base, f"{name} {kind}"
        found += [Samples(n, kind, sign * np.array(logs), base, f"{of} {n}", of) for n, logs in values.items()]
    return measure, found


def _number(text: str | None, place: str, whole: bool = False) -> float:
    """Read a number greater than 0; a count is whole."""
    try:
        value = float(text or "")
    except ValueError:
        raise DescriptionError(f"{place} is {text!r}, which is no number", "no-flows", _HINT) from None
    if whole and not (value.is_integer() and 1 <= value <= MOST_FLOWS):
        raise DescriptionError(f"{place} is {text}; it must be a whole number from 1 to {MOST_FLOWS}", "no-flows")
    if not LEAST <= value <= MOST:
        raise DescriptionError(f"{place} is {str(text)[:40]}; it must be {LEAST:g} to {MOST:g}", "no-flows", _HINT)
    return value


def _within(value: float, place: str) -> float:
    """Return a number that a ratio may be made of."""
    if not LEAST <= value <= MOST:
        raise DescriptionError(f"{place} is {value:g}; it must be {LEAST:g} to {MOST:g}", "no-flows", _HINT)
    return value


def _rate(stream: Mapping[str, Any], field: str, name: str) -> float:
    """Return the MB/s of a stream over one of its times."""
    moved = _within(stream["bytes"], f"{name}: bytes")
    return _within(moved / _within(stream[field], f"{name}: {field}") / 1e6, f"{name}: bytes over {field}")


def _of_runs(content: bytes, name: str, by: By, link_mb_per_s: float | None) -> list[Samples]:
    """Take flows from runs of kind streams: T2 with all streams of a run beside T1 of each."""
    runs = json.loads(_core.read_result("runs", content, name))
    if runs.get("kind") != "streams":
        message = f"{name}: holds runs of another kind"
        raise DescriptionError(message, "no-flows", 'runs of experiments with workload.kind = "streams" tell of flows')
    logs: dict[tuple[int, str], list[float]] = {}
    for run in runs["runs"]:
        streams = run["streams"]
        if len(streams) < 2:
            continue
        if by == "latency":
            for stream in streams:
                latency = stream["latency_s"]
                alone, fifo = (_within(latency[how]["mean"], f"{name}: latency {how}") for how in ("alone", "fifo"))
                logs.setdefault((len(streams), stream["name"]), []).append(math.log(alone / fifo))
        else:
            together = sum(_rate(stream, "fifo_s", name) for stream in streams)
            link = link_mb_per_s or max(_rate(stream, "alone_s", name) for stream in streams)
            logs.setdefault((len(streams), ""), []).append(math.log(together / link))
    return [
        Samples(flows, kind, np.array(found), np.array([]), f"{name} {flows}", "")
        for (flows, kind), found in logs.items()
    ]
