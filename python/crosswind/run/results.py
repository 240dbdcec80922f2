"""Runs: the results of an experiment (`runs.json`), of a farm, of a parallel program or of streams of messages."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, TypeVar, overload

from crosswind.documents import Params, Row
from crosswind.files.atomic import write_json
from crosswind.files.tabular import Tabular
from crosswind.files.wrong_kind import read_result
from crosswind.platform import as_html_table
from crosswind.tables import Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from crosswind.documents import program_runs, shared, streams_runs
    from crosswind.errors import Notice
    from crosswind.run.trace import Trace

SCHEMA_VERSION = 1
MOST_NODES = 50
_FIELDS: tuple[str, ...] = (
    "params",
    "seed",
    "platform",
    "order",
    "ports",
    "compute",
    "tasks",
    "makespan_s",
    "throughput_tasks_per_s",
)
_FIELDS += ("bound_tasks_per_s", "root_only_tasks_per_s", "nodes", "events", "warnings", "flow", "fairness", "resumed")
_NODE_FIELDS = ("name", "tasks", "busy_s", "received_mb", "failures", "seen")


_PROGRAM_FIELDS: tuple[str, ...] = ("params", "seed", "program", "ranks", "disturbance", "compute", "makespan_s")
_PROGRAM_FIELDS += ("dedicated_s",)
_PROGRAM_FIELDS += ("coscheduled_s", "slowdown", "slowdown_dedicated", "messages", "packets", "stalled_s", "bounds")
_PROGRAM_FIELDS += ("busy_s", "away_s", "recorded", "switches", "warnings")
_STREAMS_FIELDS: tuple[str, ...] = ("params", "seed", "hosts", "queue", "makespan_s", "streams", "jobs", "bounds")
_STREAMS_FIELDS += ("frames", "dropped", "warnings")


@dataclass(frozen=True)
class AnyRun(ABC):
    """What every kind of run has.

    Attributes
    ----------
    data : mapping
        An entry of `runs` in `runs.json` (docs/reference/files.md).
    trace : Trace or None
        What each node did when, where it was recorded.
    """

    data: Mapping[str, Any]
    trace: Trace | None = None

    @property
    def params(self) -> Params:
        """What the sweep set: dotted path -> value."""
        return dict(self.data["params"])

    @property
    def seed(self) -> int:
        """Seed of everything drawn at random."""
        return int(self.data["seed"])

    @property
    def makespan_s(self) -> float:
        """From the start to the end of the last task, or of the last rank, s."""
        return float(self.data["makespan_s"])

    @property
    def events(self) -> list[shared.RunEvent]:
        """What happened: agents lost, tasks run again."""
        return list(self.data.get("events", []))

    @property
    def warnings(self) -> list[Notice]:
        """Warnings of these runs."""
        return list(self.data.get("warnings", []))

    @abstractmethod
    def summary(self) -> dict[str, object]:
        """Return the run's entry in `runs.json`, fields in the order of docs/reference/files.md."""

    @abstractmethod
    def row(self) -> Row:
        """Return the run as one flat row: what the sweep set, and the results."""

    def rows(self) -> list[Row]:
        """Return the run as the rows of a table: one, where a kind says nothing else."""
        return [self.row()]

    def _swept(self) -> Row:
        return {path: v if isinstance(v, (int, float, str)) else json.dumps(v) for path, v in self.params.items()}


@dataclass(frozen=True)
class Run(AnyRun):
    """The result of one run of a farm."""

    data: shared.Run

    @property
    def throughput_tasks_per_s(self) -> float:
        """Tasks per second, over the whole run."""
        return float(self.data["throughput_tasks_per_s"])

    @property
    def bound_tasks_per_s(self) -> float | None:
        """Tasks per second that no steady state along the tree exceeds; None where a task's work is unknown."""
        return self.data.get("bound_tasks_per_s")

    @property
    def of_root_only(self) -> float | None:
        """Makespan as a part of what the root alone would need; below 1 the other nodes helped."""
        alone = self.data.get("root_only_tasks_per_s")
        return self.makespan_s * alone / self.data["tasks"] if alone and self.data["tasks"] else None

    @property
    def bound_of_root_only(self) -> float | None:
        """The least that `of_root_only` can be, in the steady state."""
        alone, bound = self.data.get("root_only_tasks_per_s"), self.bound_tasks_per_s
        return alone / bound if alone and bound else None

    @property
    def of_bound(self) -> float | None:
        """Throughput as a part of the bound, 0..1; of several runs the mean of theirs counts (`mean_of_bound`)."""
        return self.throughput_tasks_per_s / self.bound_tasks_per_s if self.bound_tasks_per_s else None

    @property
    def fairness(self) -> list[dict[str, Any]]:
        """Jain's index over time, of users and of classes (docs/reference/files.md); empty where there is one only."""
        found: Any = self.data.get("fairness", [])
        return list(found)

    @property
    def flow(self) -> shared.Flow | None:
        """Times between arrival and end of tasks; None where all tasks were there at the start."""
        return self.data.get("flow")

    @property
    def nodes(self) -> list[shared.RunNode]:
        """What each node did, in the platform's order."""
        return list(self.data["nodes"])

    @property
    def failures(self) -> shared.NodeFailures | None:
        """Drawn failures of all nodes together; None in an experiment without any."""
        found = [one for node in self.data.get("nodes", ()) if (one := node.get("failures"))]
        if not found:
            return None
        return {
            "count": sum(one["count"] for one in found),
            "failed_s": fsum(one["failed_s"] for one in found),
            "tasks_again": sum(one["tasks_again"] for one in found),
        }

    def tables(self, most: int = MOST_NODES) -> list[Table]:
        """Return what each node did; of more than `most`, those that computed most."""
        columns = [
            Column("node", numeric=False),
            Column("tasks"),
            Column("busy", "s", "busy"),
            Column("busy", term="busy"),
            Column("received", "MB"),
        ]
        if self.failures:
            columns += [Column("failures"), Column("failed", "s"), Column("done again")]
        left = len(self.nodes) - most
        rows = [
            [
                node["name"],
                str(node["tasks"]),
                f"{node['busy_s']:.4g}",
                f"{node['busy_s'] / self.makespan_s:.1%}" if self.makespan_s else "",
                f"{node['received_mb']:.6g}",
                *_failures_of(node),
            ]
            for node in (sorted(self.nodes, key=lambda node: -node["tasks"])[:most] if left > 0 else self.nodes)
        ]
        note = f"{left} nodes that computed less: --rows, --json" if left > 0 else ""
        return [Table("What each node did", columns, rows, note)]

    def summary(self) -> dict[str, object]:
        """Return the run's entry in `runs.json`, fields in the order of docs/reference/files.md."""
        entry = _in_order(self.data, _FIELDS)
        return entry | {"nodes": [_in_order(node, _NODE_FIELDS) for node in self.data["nodes"]]}

    def row(self) -> Row:
        """Return the run as one flat row: what the sweep set, and the results."""
        d: Mapping[str, Any] = self.data
        return {
            **self._swept(),
            **{name: d[name] for name in ("seed", "platform", "order", "ports", "compute", "tasks")},
            **{name: d[name] for name in ("makespan_s", "throughput_tasks_per_s")},
            "bound_tasks_per_s": self.bound_tasks_per_s,
            "of_bound": self.of_bound,
            "of_root_only": self.of_root_only,
            "bound_of_root_only": self.bound_of_root_only,
            "events": len(self.events),
            **{f"flow.{name}": value for name, value in (self.flow or {}).items() if name != "users"},
            **{f"fairness.{one['of']}.{name}": one[name] for one in self.fairness for name in ("mean", "least")},
            **{f"failures.{name}": value for name, value in (self.failures or {}).items()},
        }

    def __repr__(self) -> str:
        bound = f", {100 * self.of_bound:.1f} % of the bound" if self.of_bound else ""
        return f"Run({self.params}, {self.makespan_s:.6g} s, {self.throughput_tasks_per_s:.6g} tasks/s{bound})"


def _failures_of(node: shared.RunNode) -> list[str]:
    """Return a node's drawn failures as cells: how many, for how many seconds, and how many tasks were done again."""
    found = node.get("failures")
    return [str(found["count"]), f"{found['failed_s']:.4g}", str(found["tasks_again"])] if found else []


def shown_value(value: Any) -> str:
    """Return the value of a swept field; of a table, its name."""
    return str(value.get("name", "inline")) if isinstance(value, dict) else str(value)


def mean_of_bound(runs: Iterable[Run]) -> float | None:
    """Return the share of the upper bound that runs reach: the mean of each run's share; None where none has a bound.

    Examples
    --------
    >>> fast, slow = ({"throughput_tasks_per_s": t, "bound_tasks_per_s": 4.0} for t in (4.0, 2.0))
    >>> mean_of_bound([Run(fast), Run(slow)])
    0.75
    """
    shares = [run.of_bound for run in runs if run.of_bound is not None]
    return fmean(shares) if shares else None


@dataclass(frozen=True)
class ProgramRun(AnyRun):
    """The result of one run of a parallel program."""

    data: program_runs.ProgramRun

    @property
    def dedicated_s(self) -> float:
        """Makespan with nothing that disturbs, s."""
        return float(self.data["dedicated_s"])

    @property
    def slowdown(self) -> float:
        """Makespan over what it would be if all ranks were always away together (the paper's caption; E2-5)."""
        return float(self.data["slowdown"])

    @property
    def slowdown_dedicated(self) -> float:
        """Makespan over what it is with nothing that disturbs (the paper's text; E2-5)."""
        return float(self.data["slowdown_dedicated"])

    @property
    def bounds(self) -> dict[str, float]:
        """Closed forms of `slowdown` that apply, by name."""
        return dict(self.data.get("bounds", {}))

    def summary(self) -> dict[str, object]:
        """Return the run's entry in `runs.json`, fields in the order of docs/reference/files.md."""
        return _in_order(self.data, _PROGRAM_FIELDS)

    def row(self) -> Row:
        """Return the run as one flat row: what the sweep set, and the results; bounds as `bound.NAME`."""
        d: Mapping[str, Any] = self.data
        numbers = ("makespan_s", "dedicated_s", "coscheduled_s", "slowdown", "slowdown_dedicated")
        return {
            **self._swept(),
            **{name: d[name] for name in ("seed", "program", "ranks", "disturbance")},
            "compute": d.get("compute", "simulated"),
            **{name: d[name] for name in numbers},
            **{name: d[name] for name in ("messages", "packets", "stalled_s")},
            **{f"{name}.mean": d[name]["mean"] for name in ("busy_s", "away_s")},
            **{f"bound.{name}": value for name, value in self.bounds.items()},
        }

    def __repr__(self) -> str:
        return f"ProgramRun({self.params}, {self.makespan_s:.6g} s, slowdown {self.slowdown:.4g})"


@dataclass(frozen=True)
class StreamsRun(AnyRun):
    """The result of one run of streams: each alone (T1), all through one queue (T2), all through the policy's (T3)."""

    data: streams_runs.StreamsRun

    @property
    def streams(self) -> list[streams_runs.StreamOutcome]:
        """The result of each stream, in the order of the experiment."""
        return list(self.data.get("streams", []))

    @property
    def jobs(self) -> list[streams_runs.JobOutcome]:
        """The result of each parallel program, in the order of the experiment."""
        return list(self.data.get("jobs", []))

    @property
    def bounds(self) -> dict[str, float]:
        """Closed forms that apply, by name: `fifo NAME` is of the slowdown of stream NAME in one queue."""
        return dict(self.data.get("bounds", {}))

    def stream(self, name: str) -> streams_runs.StreamOutcome:
        """Return the result of the stream of a name.

        Raises
        ------
        KeyError
            When there is none.
        """
        return next((one for one in self.streams if one["name"] == name), None) or self._no(name, self.streams)

    def job(self, name: str) -> streams_runs.JobOutcome:
        """Return the result of the job of a name; errors as of `stream`."""
        return next((one for one in self.jobs if one["name"] == name), None) or self._no(name, self.jobs)

    @staticmethod
    def _no(name: str, there: Sequence[Mapping[str, Any]]) -> NoReturn:
        raise KeyError(f"{name!r}; there are {', '.join(repr(one['name']) for one in there) or 'none'}")

    def summary(self) -> dict[str, object]:
        """Return the run's entry in `runs.json`, fields in the order of docs/reference/files.md."""
        return _in_order(self.data, _STREAMS_FIELDS)

    def row(self) -> Row:
        """Return the run as one flat row: what the sweep set, and each slowdown as `NAME.slowdown_fifo` and so on."""
        streams: Sequence[Mapping[str, Any]] = self.streams
        jobs: Sequence[Mapping[str, Any]] = self.jobs
        flat = {f"{one['name']}.{which}": one[which] for one in streams for which in _SLOWDOWNS}
        flat |= {f"{one['name']}.{which}": one[which] for one in jobs for which in _ETAS}
        return {**self._swept(), **self._head(), **flat}

    def rows(self) -> list[Row]:
        """Return one row per stream and per job: what the sweep set, three times, slowdowns, latencies, closed form.

        A job's slowdowns are 1 + eta; it has no latencies.
        """
        found = []
        both: Sequence[Mapping[str, Any]] = [*self.streams, *self.jobs]
        for one in both:
            slowdowns = {
                which: one.get(which, 1.0 + one.get(eta, 0.0)) for which, eta in zip(_SLOWDOWNS, _ETAS, strict=True)
            }
            latencies = {
                f"latency_{which}_{part}_s": one.get("latency_s", {}).get(which, {}).get(part)
                for which in ("alone", "fifo", "queued")
                for part in ("mean", "p50", "p99")
            }
            found.append(
                {
                    **self._swept(),
                    **self._head(),
                    "name": one["name"],
                    "what": "job" if "program" in one else "stream",
                    "class": one.get("class", "parallel"),
                    **{name: one[name] for name in ("messages", "bytes", "alone_s", "fifo_s", "queued_s")},
                    **slowdowns,
                    "form_fifo": self.bounds.get(f"merged {one['name']}", self.bounds.get(f"fifo {one['name']}")),
                    **latencies,
                }
            )
        return found

    def _head(self) -> Row:
        d: Mapping[str, Any] = self.data
        return {name: d[name] for name in ("seed", "hosts", "queue", "makespan_s", "frames", "dropped")}

    def __repr__(self) -> str:
        slowdowns = ", ".join(
            f"{s['name']} {s['slowdown_fifo']:.3g} -> {s['slowdown_queued']:.3g}" for s in self.streams
        )
        return f"StreamsRun({self.params}, slowdown {slowdowns or 'of no stream'})"


_SLOWDOWNS = ("slowdown_fifo", "slowdown_queued")
_ETAS = ("eta_fifo", "eta_queued")


def _in_order(entry: Mapping[str, Any], fields: Sequence[str]) -> dict[str, object]:
    known = {name: entry[name] for name in fields if name in entry}
    return known | {name: value for name, value in entry.items() if name not in known}


R = TypeVar("R", bound=AnyRun)


@dataclass(frozen=True)
class Runs(Tabular, Sequence[R], Generic[R]):
    """The runs of an experiment, in the order of the grid: of a farm, a program, or streams.

    Attributes
    ----------
    experiment : str
        Its name.
    on : str
        Where they ran: sim, or local.
    runs : list of Run, of ProgramRun or of StreamsRun
        Those that are done.
    digest : str or None
        Identity of the experiment with its files.
    kind : {"farm", "program", "streams"}
        What was run.
    provenance : mapping or None
        Versions, experiment and files that they were made from (`crosswind.run_again`); None of `map`.
    """

    experiment: str
    on: str
    runs: list[R] = field(default_factory=list)
    digest: str | None = None
    kind: str = "farm"
    provenance: Mapping[str, Any] | None = None

    KINDS: ClassVar[dict[str, type[AnyRun]]] = {"farm": Run, "program": ProgramRun, "streams": StreamsRun}

    @classmethod
    def load(cls, path: str | Path) -> Runs[Any]:
        """Read a `runs.json`.

        Raises
        ------
        DescriptionError
            When it holds no runs, or is one of another schema version.
        """
        return cls.from_dict(read_result(path, "runs", "crosswind run EXPERIMENT -o runs.json"))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Runs[Any]:
        """Make runs of the content of a `runs.json`."""
        kind = document.get("kind", "farm")
        runs = [cls.KINDS[kind](entry) for entry in document["runs"]]
        known = document["experiment"], document["on"], runs, document.get("digest"), kind
        return Runs(*known, document.get("provenance"))

    def save(self, path: str | Path) -> None:
        """Write a `runs.json`; an existing file is replaced only once the new one is complete."""
        write_json(self.summary(), path)

    def summary(self) -> dict[str, object]:
        """Return the content of `runs.json`: what `crosswind run --json` prints."""
        digest = {"digest": self.digest} if self.digest else {}
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": self.kind,
            "experiment": self.experiment,
            "on": self.on,
            **digest,
            "runs": [run.summary() for run in self.runs],
            **({"provenance": dict(self.provenance)} if self.provenance else {}),
        }

    def by_point(self) -> list[list[R]]:
        """Return the runs that differ in nothing but the seed, together, in the order of the grid."""
        points: dict[str, list[R]] = {}
        for run in self.runs:
            own = {path: value for path, value in run.params.items() if path != "seed"}
            points.setdefault(json.dumps(own, sort_keys=True), []).append(run)
        return list(points.values())

    @property
    def trace(self) -> Trace | None:
        """The trace of the only run, or of the first that has one."""
        return next((run.trace for run in self.runs if run.trace is not None), None)

    @property
    def warnings(self) -> list[Notice]:
        """The warnings of all runs, each text once."""
        return list({warning["message"]: warning for run in self.runs for warning in run.warnings}.values())

    def to_arrow(self) -> pa.Table:
        """Return one row per run; of streams one per stream and job of each run."""
        import pyarrow as pa

        rows = [row for run in self.runs for row in run.rows()]
        columns = dict.fromkeys(name for row in rows for name in row)  # a closed form may apply to some runs only
        return pa.table({name: _column([row.get(name) for row in rows]) for name in columns})

    @overload
    def __getitem__(self, place: int) -> R: ...
    @overload
    def __getitem__(self, place: slice) -> list[R]: ...
    def __getitem__(self, place: int | slice) -> R | list[R]:
        return self.runs[place]

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[R]:
        return iter(self.runs)

    def __repr__(self) -> str:
        return f"Runs({self.experiment!r}, on {self.on}, {len(self)} runs)"

    def _repr_html_(self) -> str:
        return as_html_table(f"{self.experiment}, on {self.on}", [row for run in self.runs for row in run.rows()])


def _column(values: Sequence[Any]) -> pa.Array[Any]:
    """Return one column; words and numbers together, or numbers beyond 64 bits, as text."""
    import pyarrow as pa

    found: pa.Array[Any]
    try:
        found = pa.array(values)
    except (pa.ArrowException, OverflowError):
        found = pa.array([each if each is None or isinstance(each, str) else json.dumps(each) for each in values])
    return found
