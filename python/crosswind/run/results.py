"""Runs: what an experiment's runs came to, beside what no schedule could beat (`runs.json`)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import pyarrow as pa

from crosswind import _core
from crosswind.platform import as_html_table, read_bytes
from crosswind.run.trace import Trace
from crosswind.tabular import Tabular

SCHEMA_VERSION = 1
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
_FIELDS += ("bound_tasks_per_s", "root_only_tasks_per_s", "nodes", "events", "warnings")
_NODE_FIELDS = ("name", "tasks", "busy_s", "received_mb")


@dataclass(frozen=True)
class Run:
    """What one run came to.

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
    def params(self) -> dict[str, Any]:
        """What the sweep set: dotted path -> value."""
        return dict(self.data["params"])

    @property
    def seed(self) -> int:
        """Seed of everything drawn at random."""
        return int(self.data["seed"])

    @property
    def makespan_s(self) -> float:
        """From the start to the end of the last task, s."""
        return float(self.data["makespan_s"])

    @property
    def throughput_tasks_per_s(self) -> float:
        """Tasks per second, over the whole run."""
        return float(self.data["throughput_tasks_per_s"])

    @property
    def bound_tasks_per_s(self) -> float | None:
        """Tasks per second that no schedule's steady state exceeds; None where a task's work is unknown."""
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
        """Throughput as a part of the bound, 0..1."""
        return self.throughput_tasks_per_s / self.bound_tasks_per_s if self.bound_tasks_per_s else None

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """What each node did, in the platform's order."""
        return list(self.data["nodes"])

    @property
    def events(self) -> list[dict[str, Any]]:
        """What happened: agents lost, tasks run again."""
        return list(self.data.get("events", []))

    @property
    def warnings(self) -> list[dict[str, str]]:
        """What to keep in mind when trusting the figures."""
        return list(self.data.get("warnings", []))

    def summary(self) -> dict[str, Any]:
        """Return the run's entry in `runs.json`, fields in the order of docs/reference/files.md."""
        entry = _in_order(self.data, _FIELDS)
        return entry | {"nodes": [_in_order(node, _NODE_FIELDS) for node in self.data["nodes"]]}

    def row(self) -> dict[str, Any]:
        """Return the run as one flat row: what the sweep set, and what came of it."""
        plain = {path: v if isinstance(v, (int, float, str)) else json.dumps(v) for path, v in self.params.items()}
        d = self.data
        return {
            **plain,
            **{name: d[name] for name in ("seed", "platform", "order", "ports", "compute", "tasks")},
            **{name: d[name] for name in ("makespan_s", "throughput_tasks_per_s")},
            "bound_tasks_per_s": self.bound_tasks_per_s,
            "of_bound": self.of_bound,
            "of_root_only": self.of_root_only,
            "bound_of_root_only": self.bound_of_root_only,
            "events": len(self.events),
        }

    def __repr__(self) -> str:
        bound = f", {100 * self.of_bound:.1f} % of the bound" if self.of_bound else ""
        return f"Run({self.params}, {self.makespan_s:.6g} s, {self.throughput_tasks_per_s:.6g} tasks/s{bound})"


def _in_order(entry: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    known = {name: entry[name] for name in fields if name in entry}
    return known | {name: value for name, value in entry.items() if name not in known}


@dataclass(frozen=True)
class Runs(Tabular, Sequence[Run]):
    """The runs of an experiment, in the order of the grid.

    Attributes
    ----------
    experiment : str
        Its name.
    on : str
        Where they ran: sim, or local.
    runs : list of Run
        Those that are done.
    digest : str or None
        What tells the experiment, with its files, from every other.
    """

    experiment: str
    on: str
    runs: list[Run] = field(default_factory=list)
    digest: str | None = None

    @classmethod
    def load(cls, path: str | Path) -> Runs:
        """Read a `runs.json`.

        Raises
        ------
        DescriptionError
            When it holds no runs, or is one of another schema version.
        """
        return cls.from_dict(json.loads(_core.read_runs(read_bytes(path), str(path))))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Runs:
        """Make runs of the content of a `runs.json`."""
        runs = [Run(entry) for entry in document["runs"]]
        return cls(document["experiment"], document["on"], runs, document.get("digest"))

    def save(self, path: str | Path) -> None:
        """Write a `runs.json`; an existing file is replaced only once the new one is complete."""
        text = json.dumps(self.summary(), indent=1)
        part = Path(f"{path}.part")
        part.write_text(text + "\n", encoding="utf-8")
        part.replace(path)

    def summary(self) -> dict[str, Any]:
        """Return the content of `runs.json`: what `crosswind run --json` prints."""
        digest = {"digest": self.digest} if self.digest else {}
        return {
            "schema_version": SCHEMA_VERSION,
            "experiment": self.experiment,
            "on": self.on,
            **digest,
            "runs": [run.summary() for run in self.runs],
        }

    @property
    def trace(self) -> Trace | None:
        """The trace of the only run, or of the first that has one."""
        return next((run.trace for run in self.runs if run.trace is not None), None)

    @property
    def warnings(self) -> list[dict[str, str]]:
        """The warnings of all runs, each text once."""
        return list({warning["message"]: warning for run in self.runs for warning in run.warnings}.values())

    def to_arrow(self) -> pa.Table:
        """Return one row per run."""
        return pa.Table.from_pylist([run.row() for run in self.runs])

    @overload
    def __getitem__(self, place: int) -> Run: ...
    @overload
    def __getitem__(self, place: slice) -> list[Run]: ...
    def __getitem__(self, place: int | slice) -> Run | list[Run]:
        return self.runs[place]

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __repr__(self) -> str:
        return f"Runs({self.experiment!r}, on {self.on}, {len(self)} runs)"

    def _repr_html_(self) -> str:
        return as_html_table(f"{self.experiment}, on {self.on}", [run.row() for run in self.runs])
