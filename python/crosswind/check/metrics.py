"""A check as metrics for the textfile collector of Prometheus' node exporter.

Each measure is one series, that of its worst CPU; on request each CPU is one, under the same names, so that expressions
with `max by (instance, measure)` are right for both.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from crosswind.files.atomic import write_text
from crosswind.terminal.printable import printable

if TYPE_CHECKING:
    from crosswind.check.decision import Judged, Reading
    from crosswind.check.result import Check

MODE = 0o644
"""Of the file: a node exporter mostly runs as another user."""
_STATES = ("healthy", "sick", "unknown")
_FORMS = (
    re.compile(r"(?P<measure>compute|memory|lost time) cpu (?P<cpu>[0-9]+)"),
    re.compile(r"(?P<measure>interference) (?P<path>.+)", re.DOTALL),
    re.compile(r"(?P<measure>rate) from (?P<path>.+)", re.DOTALL),
)
Labels = dict[str, str]
Row = tuple[Labels, float]
Value = TypeVar("Value")


def labels_of(name: str) -> Labels:
    """Return the labels of a measure: `measure`, and the `cpu` or the `path` that it is of.

    Examples
    --------
    >>> labels_of("lost time cpu 3")
    {'measure': 'lost_time', 'cpu': '3'}
    >>> labels_of("rate from 10.0.0.2:7117"), labels_of("noise")
    ({'measure': 'rate', 'path': '10.0.0.2:7117'}, {'measure': 'noise'})
    """
    for form in _FORMS:
        if found := form.fullmatch(name):
            labels = found.groupdict()
            return labels | {"measure": labels["measure"].replace(" ", "_")}
    return {"measure": name}


def metrics(found: Check, *, per_cpu: bool = False) -> str:
    """Return the metrics of a check; losses are parts, 0 to 1.

    Parameters
    ----------
    found : Check
    per_cpu : bool
        A series for each CPU, rather than one of the worst CPU.
    """
    judged = _worst([(labels_of(each.name), each, _badness(each)) for each in found.judged], per_cpu)
    lines = _state(found.outcome, _seconds(str(found.document["at"])))
    for name, words, of in (
        ("loss", "Loss against the baseline or the earlier checks, 0 to 1", "loss"),
        ("loss_low", "Lower end of the 95 % interval of the loss", "low"),
        ("loss_high", "Upper end of the 95 % interval of the loss", "high"),
        ("tolerance", "Permitted loss", "tolerance"),
    ):
        lines += _metric(name, f"{words}.", [(labels, getattr(each, of)) for labels, each in judged])
    known = [(labels_of(name), reading, _level(reading)) for name, reading in found.readings.items()]
    for unit, name, words in (
        ("1/s", "steps_per_second", "Steps of a kernel per second of CPU time, as measured"),
        ("share", "share", "Part of the time or of the compute rate that was lost, as measured, 0 to 1"),
        ("MB/s", "receive_bytes_per_second", "Rate from the peer without pacing, as measured"),
    ):
        worse = 1.0 if unit == "share" else -1.0
        rows = [(labels, level, worse * level) for labels, of, level in known if of.unit == unit]
        scale = 1e6 if unit == "MB/s" else 1.0
        lines += _metric(name, f"{words}.", [(labels, scale * level) for labels, level in _worst(rows, per_cpu)])
    lines += _history(found)
    load = found.document["load"]
    lines += _metric("others", "CPU time of other processes, part of all CPUs.", [({}, load["others"])])
    lines += _metric("steal", "CPU time that the hypervisor took, 0 to 1.", [({}, load["steal"])])
    lines += _metric("settings_changed", "Settings that changed.", [({}, float(len(found.changed)))])
    lines += _metric("seconds", "How long the check took.", [({}, found.document["took_s"])])
    return "\n".join(lines) + "\n"


def metrics_of_failure() -> str:
    """Return the metrics of a check that could not be made: unknown, now."""
    return "\n".join(_state("unknown", time.time())) + "\n"


def write_metrics(text: str, path: str | Path) -> None:
    """Write metrics, complete or not at all, so that a node exporter of another user may read them."""
    write_text(text, path, mode=MODE)


def _history(found: Check) -> list[str]:
    from crosswind.check.history import quiet

    lines = []
    since = found.base.document["at"] if found.base is not None else None
    if found.base is None and found.past is not None:
        usable = quiet(found.past)
        words = "Earlier checks on a quiet host that this one could be held against."
        lines += _metric("earlier_checks", words, [({}, float(len(usable)))])
        since = usable[0].document["at"] if usable else None
    if since is not None:
        age = _seconds(str(found.document["at"])) - _seconds(str(since))
        words = "Age of the baseline, or of the first of the earlier checks, when the check was made."
        lines += _metric("baseline_age_seconds", words, [({}, age)])
    return lines


def _state(outcome: str, at: float) -> list[str]:
    words = "Whether the node is healthy, sick or unknown: the one of them that is 1."
    rows: list[Row] = [({"state": state}, float(state == outcome)) for state in _STATES]
    return _metric("state", words, rows) + _metric("timestamp_seconds", "When the check was made.", [({}, at)])


def _seconds(at: str) -> float:
    """Return a time of a file as seconds since 1970; NaN where it is none."""
    try:
        return datetime.fromisoformat(at).astimezone(UTC).timestamp()
    except (ValueError, OverflowError, OSError):
        return math.nan


def _level(reading: Reading) -> float:
    if reading.mean is not None:
        return reading.mean
    return sum(reading.values) / len(reading.values) if reading.values else math.nan


def _badness(judged: Judged) -> float:
    """Return what sorts verdicts of one measure: the sick ones last, among them the largest loss."""
    rank = ("healthy", "unknown", "sick").index(judged.outcome)
    return 1e9 * rank + (judged.loss if math.isfinite(judged.loss) else -1e8)


def _worst(rows: Iterable[tuple[Labels, Value, float]], per_cpu: bool) -> list[tuple[Labels, Value]]:
    """Return the rows of the worst CPU of each measure, or all of them."""
    found: dict[tuple[tuple[str, str], ...], tuple[Labels, Value, float]] = {}
    for labels, value, badness in rows:
        kept = labels if per_cpu else {name: text for name, text in labels.items() if name != "cpu"}
        known = found.get(key := tuple(sorted(kept.items())))
        if known is None or badness > known[2]:
            found[key] = (kept, value, badness)
    return [(labels, value) for labels, value, _ in found.values()]


def _metric(name: str, words: str, rows: Iterable[tuple[Mapping[str, str], float]]) -> list[str]:
    name = f"crosswind_check_{name}"
    lines = []
    for labels, value in rows:
        named = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        lines.append(f"{name}{{{named}}} {_shown(value)}" if named else f"{name} {_shown(value)}")
    return [f"# HELP {name} {words}", f"# TYPE {name} gauge", *lines] if lines else []


def _escaped(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')


def _shown(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return f"{value:.10g}" if abs(value) >= 1e6 else f"{value:.6g}"
