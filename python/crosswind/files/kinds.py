"""Which kind of file lies at a path, by its first bytes: what a result may take the place of.

Nothing is checked here; reading a file as its kind does that. No more than `HEAD_BYTES` of a text are read.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosswind.documents import Document
from crosswind.files.reading import parquet_metadata

HEAD_BYTES = 1 << 18

WORDS = {
    "blame": "a blame",
    "bug-report": "a bug report",
    "check": "a check of a node",
    "cluster-check": "a check of a cluster",
    "command-blame": "a blame of a command's disturbance",
    "comparison": "a comparison of two commands",
    "comparison-of-several": "a comparison of several commands",
    "contention": "a fit of flows",
    "cost": "the cost of a process",
    "disturbance": "a disturbance",
    "experiment": "an experiment",
    "figure": "a figure or a printed page",
    "goal": "a GOAL schedule",
    "gpu-measurement": "a measurement of a GPU",
    "homework": "a sheet of homework",
    "hosts": "a list of hosts",
    "hwloc": "a topology for hwloc",
    "injection": "the report of an injection",
    "intervals": "a table of recorded intervals",
    "joblog": "a job log",
    "junit": "a test report for CI",
    "links": "links of a cluster",
    "measured-cluster": "the index of a measured cluster",
    "measurement": "a measurement",
    "metrics": "metrics of a check",
    "noise": "another tool's recording of noise",
    "overlap": "an overlap matrix",
    "perfetto": "a time line for Perfetto",
    "plan": "a plan",
    "platform": "a platform",
    "recorded-blame": "a verdict on recorded ranks",
    "recorded-program": "a recorded program",
    "recording": "a recorded disturbance",
    "report": "a report",
    "runs": "runs of an experiment",
    "schema": "a JSON Schema",
    "simgrid": "a platform for SimGrid",
    "slurm": "a topology for Slurm",
    "queues-plan": "a plan of queues",
    "study": "a study",
    "sweep": "the index of a sweep",
    "table": "a table of points or ranks",
    "tasks": "tasks of another tool's workload",
    "trace": "a trace",
    "watched-page": "the page of a watched run",
}
"""Each kind as messages call it."""
BINARY = frozenset({"figure", "gpu-measurement", "intervals", "measurement", "recorded-program", "trace"})
TABLE_COLUMN, TABLE_COMMENT = ".half95", "% Crosswind: "
"""What the first line of a table has (`crosswind.run.point_table`): of CSV and of LaTeX."""
UNKNOWN, EMPTY = "", "empty"
MISSING = object()
"""Where a file has no such field."""

_RESULTS: tuple[str, ...] = (
    "blame",
    "bug-report",
    "check",
    "cluster-check",
    "command-blame",
    "comparison",
    "comparison-of-several",
    "contention",
    "cost",
    "injection",
    "measured-cluster",
    "overlap",
)
_RESULTS += ("plan", "queues-plan", "recorded-blame", "study", "sweep")
_SPEAKING = {**dict.fromkeys(("farm", "program", "streams"), "runs"), **{kind: kind for kind in _RESULTS}}
"""What a result says that it is -> its kind."""
_BY_FIELD = (
    ("workload", "experiment"),
    ("node", "platform"),
    ("source", "disturbance"),
    ("values", "sweep"),
    ("link", "links"),
    ("host", "hosts"),
    ("runs", "runs"),
    ("throughput_tasks_per_s", "plan"),
    ("traceEvents", "perfetto"),
    ("$schema", "schema"),
    ("elapsed_s", "injection"),
)
"""A field at the top of a description, or of a result of version 0.1.0 -> its kind; the first that is there decides."""
_TABLE = re.compile(r'^[ \t]*\[\[?[ \t]*"?([\w-]+)', re.MULTILINE)
_FIELD = re.compile(r'^[ \t]*"?([\w-]+)"?(?:[ \t]*\.[^=\n]*)?[ \t]*=', re.MULTILINE)
_MARKS = {"report": '<meta name="generator" content="Crosswind ', "junit": '<testsuite name="crosswind '}
_MARKS["watched-page"] = '<meta name="application-name" content="Crosswind watch">'
_MARKS["simgrid"] = "<!-- Crosswind: "
_MARKS["hwloc"] = "<!-- Crosswind, for hwloc: "
_HEADS = {
    "metrics": "# HELP crosswind_check",
    "slurm": "# Crosswind: ",
    "tasks": "# Crosswind's tasks of ",
    "joblog": "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\tInput\t",
}
"""How `crosswind.check.formats.prometheus`, `crosswind.run.joblog` and `crosswind.exchange.workloads` begin."""
_GOAL = re.compile(r"(?:\s|//[^\n]*\n|/\*.*?\*/)*+num_ranks\s", re.DOTALL)
_NOISE = re.compile(
    r"(?:[ \t]*#[ \t]*tracer: (?:osnoise|hwlat)\b"
    r"|(?:[ \t]*(?:#[^\n]*)?\r?\n)*+(?:[ \t]*[\d.+eE-]++[ \t]++[\d.+eE-]++[ \t]*\r?$"
    r"|[^\n]{0,200}-\d+ ++\[\d+\] [^\n]{0,200}?\d\.\d+: ))",
    re.MULTILINE,
)
"""What netgauge, LogGOPSim, `osnoise` and `hwlat` write (`crates/schema/src/disturbance/foreign`)."""
_RECORDED = re.compile(r'^[ \t]*kind[ \t]*=[ \t]*"recorded"', re.MULTILINE)


@dataclass(frozen=True)
class Found:
    """What lies at a path.

    Attributes
    ----------
    kind : str
        One of `WORDS`; "empty", or "" where it is none of Crosswind's.
    fields : dict
        Fields at its top that say of what it is, such as `experiment`, as far as the head of the file holds them.
    """

    kind: str
    fields: Document = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The kind as messages call it."""
        return WORDS.get(self.kind, "a file of another kind")

    def at(self, place: str) -> Any:
        """Return the value of a field such as `host.name`, of every row of a list, or `MISSING`.

        Examples
        --------
        >>> found = Found("measurement", {"host": {"name": "a1"}, "peers": [{"address": "b:7117"}]})
        >>> found.at("host.name"), found.at("peers.address"), found.at("device.uuid") is MISSING
        ('a1', ['b:7117'], True)
        """
        value: Any = self.fields
        for name in place.split("."):
            if isinstance(value, list):
                value = [row.get(name, MISSING) if isinstance(row, dict) else MISSING for row in value]
            else:
                value = value.get(name, MISSING) if isinstance(value, dict) else MISSING
        return value


def found_at(path: str | Path) -> Found:
    r"""Return which kind of file lies at a path.

    Raises
    ------
    OSError
        When it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "a.toml"
    >>> _ = file.write_text('name = "two"\n[[node]]\nname = "root"\n')
    >>> found_at(file).kind
    'platform'
    """
    with Path(path).open("rb") as file:
        head = file.read(HEAD_BYTES)
    if head.startswith(b"PAR1"):
        return _of_parquet(path)
    if head.startswith((b"%PDF-", b"\x89PNG\r\n", b"<svg")):
        return Found("figure")
    text = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if not text:
        return Found(EMPTY)
    if text.startswith("<"):
        return Found(next((kind for kind, mark in _MARKS.items() if mark in text), UNKNOWN))
    begins = next((kind for kind, head in _HEADS.items() if text.startswith(head)), "goal" if _GOAL.match(text) else "")
    begins = "noise" if not begins and _NOISE.match(text) else begins
    begins = "table" if TABLE_COLUMN in text.partition("\n")[0] or text.startswith(TABLE_COMMENT) else begins
    if begins:
        return Found(begins)
    return _of_json(text) if text.startswith("{") else _of_toml(text)


def _of_parquet(path: str | Path) -> Found:
    metadata = parquet_metadata(path)
    for key, kind in (
        (b"crosswind.trace", "trace"),
        (b"crosswind.intervals", "intervals"),
        (b"crosswind.gpu", "gpu-measurement"),
        (b"crosswind", "measurement"),
    ):
        if key in metadata:
            return Found(kind, _members(metadata[key].decode("utf-8", "replace")))
    return Found(UNKNOWN)


def _of_json(text: str) -> Found:
    fields = _members(text)
    if fields.get("format") == "crosswind-trace":
        return Found("recorded-program", fields)
    kind = fields.get("kind")
    if isinstance(kind, str) and kind in _SPEAKING:
        return Found(_SPEAKING[kind], fields)
    return Found(_by_field(fields), fields)


def _of_toml(text: str) -> Found:
    first = _TABLE.search(text)
    names = {*_TABLE.findall(text), *_FIELD.findall(text[: first.start()] if first else text)}
    kind = _by_field(names)
    import tomllib  # few commands need it

    try:
        fields = tomllib.loads(text[: first.start()] if first else text)
    except (ValueError, RecursionError):
        fields = {}
    return Found("recording" if kind == "disturbance" and _RECORDED.search(text) else kind, fields)


def _by_field(names: Any) -> str:
    return next((kind for name, kind in _BY_FIELD if name in names), UNKNOWN)


def _members(text: str) -> Document:
    """Return the members of a JSON object whose text may be cut short; None for the last one, if that is cut."""
    decoder, found, at = json.JSONDecoder(), Document(), 1
    space = re.compile(r"[\s,:]*")

    def value(start: int) -> tuple[Any, int]:
        told: tuple[Any, int] = decoder.raw_decode(text, space.match(text, start).end())  # type: ignore[union-attr]
        return told

    try:
        while True:
            name, at = value(at)
            found[str(name)] = None
            found[str(name)], at = value(at)
    except (ValueError, RecursionError):
        return found
