"""Tolerance: which quantum, skew, daemon, share, number of ranks keeps a program's slowdown below a stated one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from crosswind import _core
from crosswind.disturbance import Disturbance
from crosswind.documents import Document
from crosswind.errors import DescriptionError, Notice, warning
from crosswind.files.tabular import Tabular
from crosswind.platform import as_html_table

if TYPE_CHECKING:
    import pyarrow as pa

    from crosswind.documents.tolerance import Limit
    from crosswind.experiment import ProgramPoint


@dataclass(frozen=True)
class Tolerance(Tabular):
    """Limits of a disturbance's fields, and what to expect of it as it is.

    Attributes
    ----------
    data : dict
        What `crosswind plan tolerance ... --json` prints (docs/reference/files.md).
    """

    data: Mapping[str, Any]

    @property
    def expected(self) -> dict[str, float]:
        """Slowdowns over coscheduled time, by closed form; each of one kind of source alone."""
        return dict(self.data["expected"])

    @property
    def limits(self) -> list[Limit]:
        """One entry per field: `source` (its place), `cause`, `field`, `given`, `relation`, `limit`, `unit`, `kept`.

        A recorded source has one entry for each of its causes, as if that cause were alone, with its own `expected`.

        `relation` is `at most` or `at least`. Where they were simulated also `simulated` (null: nowhere near),
        `simulated_low`, `simulated_high` and `at_limit` (`crosswind.plan.tolerance.simulation`).
        """
        return list(self.data["limits"])

    def to_dict(self) -> dict[str, object]:
        """Return the content as a dictionary."""
        return dict(self.data)

    def to_arrow(self) -> pa.Table:
        """Return one row per limit."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.limits)

    def __repr__(self) -> str:
        kept = sum(limit["kept"] for limit in self.limits)
        return f"Tolerance({self.data['disturbance']!r}, {kept} of {len(self.limits)} limits kept)"

    def _repr_html_(self) -> str:
        d = self.data
        caption = f"{d['disturbance']}: {d['ranks']} ranks, slowdown at most {d['slowdown']:g}"
        return as_html_table(caption, self.limits)


def plan_tolerance(
    disturbance: Disturbance | str | Path,
    *,
    ranks: int,
    work_per_barrier_s: float,
    slowdown: float = 1.05,
    simulate: bool = False,
    seeds: int = 5,
    progress: Callable[[float, str], None] | None = None,
) -> Tolerance:
    """Find what a disturbance may be, so that each of its sources alone keeps a stated slowdown.

    Parameters
    ----------
    disturbance : Disturbance or path
        What takes the processors away.
    ranks : int
        Ranks of the program, at least 1.
    work_per_barrier_s : float
        What each rank computes between two barriers, on an undisturbed processor, s, greater than 0.
    slowdown : float
        Over coscheduled time (dedicated time times the jobs that share the machine), greater than 1.
    simulate : bool
        Seek each limit in the simulator too, by bisection to 2 %. Limits by closed form are safe, and may be far from
        sharp; the simulated one is how far a program of barriers may really go.
    seeds : int
        Simulated limits per field, each with everything drawn anew, 1 to 100.
    progress : callable, optional
        Called as `progress(fraction, message)` while limits are simulated.

    Returns
    -------
    Tolerance
        Each limit supposes that all other fields stay as they are, and that there are no other sources.

    Raises
    ------
    DescriptionError
        When an argument is out of range, or the disturbance is wrong or names a rank that does not exist.

    Notes
    -----
    The closed forms of docs/papers/scheduling-and-communication.md; messages cost nothing in them.

    Examples
    --------
    >>> local = {"kind": "local", "quantum_s": 0.1}
    >>> two_jobs = Disturbance.from_dict({"schema_version": 1, "name": "two jobs", "source": [local]})
    >>> found = plan_tolerance(two_jobs, ranks=64, work_per_barrier_s=0.0071, slowdown=2.0)
    >>> round(found.expected["local"], 2), [(lim["field"], round(lim["limit"], 4)) for lim in found.limits]
    (7.54, [('source[0].quantum_s', 0.0213), ('work_per_barrier_s', 0.0333)])
    """
    if not isinstance(disturbance, Disturbance):
        disturbance = Disturbance.load(disturbance)
    if not 0 < ranks < 2**32:
        raise DescriptionError(f"ranks is {ranks}; it must be 1 to {2**32 - 1}", "argument")
    if not 1 <= seeds <= 100:
        raise DescriptionError(f"seeds is {seeds}; it must be 1 to 100", "argument")
    if simulate and work_per_barrier_s > 1.0:
        message = f"work_per_barrier_s is {work_per_barrier_s:g}; simulated it must be at most 1 s"
        raise DescriptionError(message, "argument", "the closed forms hold for more")
    data = json.loads(_core.tolerance(disturbance._checked, ranks, work_per_barrier_s, slowdown))
    asked = _by_cause(disturbance, data["limits"], ranks, work_per_barrier_s, slowdown)
    limits = [limit for limit, _, _ in asked]
    if simulate:
        from crosswind.plan.tolerance.simulation import simulated_limits

        data["seeds"] = seeds
        limits = simulated_limits(
            asked,
            ranks=ranks,
            work_per_barrier_s=work_per_barrier_s,
            slowdown=slowdown,
            seeds=seeds,
            progress=progress,
        )
    return Tolerance({**data, "limits": limits})


USUAL: Document = {
    "schema_version": 1,
    "name": "1 ms each second on every rank",
    "source": [
        {
            "kind": "daemon",
            "cause": "daemon",
            "interval_s": {"distribution": "exponential", "mean": 1.0},
            "duration_s": 0.001,
        }
    ],
}
"""What a recorded program is asked to tolerate where nothing else is named."""
FEW = 50
"""Strikes of a source in all replays below which its simulated limits are rough."""


def plan_tolerance_of_recording(
    recording: str | Path,
    disturbance: Disturbance | str | Path | None = None,
    *,
    slowdown: float = 1.05,
    seeds: int = 5,
    progress: Callable[[float, str], None] | None = None,
) -> Tolerance:
    """Find what a disturbance may be, so that each of its sources alone keeps a stated slowdown of a recorded program.

    Parameters
    ----------
    recording : path
        What `crosswind record -- mpirun ...` wrote, another trace that `crosswind blame` reads, or a directory of them.
    disturbance : Disturbance or path, optional
        What takes the processors away; default: a daemon of 1 ms each second on every rank (`USUAL`).
    slowdown : float
        Over coscheduled time (dedicated time times the jobs that share the machine), greater than 1.
    seeds : int
        Simulated limits per field, each with everything drawn anew, 1 to 100.
    progress : callable, optional
        Called as `progress(fraction, message)`.

    Returns
    -------
    Tolerance
        Simulated limits of the sources' own fields; `data["recorded"]` has `file`, `recorded_s`, `replayed_s`. The
        closed forms beside them hold for programs of barriers: as many as the recorded program has operations for
        which all ranks wait.

    Raises
    ------
    DescriptionError
        When the recording cannot be run again, an argument is out of range, or the disturbance is wrong.
    """
    from crosswind.experiment import Experiment
    from crosswind.plan.tolerance.simulation import simulated_limits

    path = Path(recording).absolute()
    workload = {"kind": "program", "program": "recorded", "parameters": {"file": path.name}}
    described = {"schema_version": 1, "name": path.stem, "workload": workload}
    point = cast("ProgramPoint", Experiment.from_dict(described, path.parent).point(0))
    assert point.recording is not None, "the program is a recorded one"
    ranks, recorded_s, replayed_s, meetings = point.recording.facts()
    if disturbance is None:
        disturbance = Disturbance.from_dict(USUAL)
    elif not isinstance(disturbance, Disturbance):
        disturbance = Disturbance.load(disturbance)
    if not 1 <= seeds <= 100:
        raise DescriptionError(f"seeds is {seeds}; it must be 1 to 100", "argument")
    work_s = float(f"{replayed_s / max(meetings, 1):.4g}")
    data = json.loads(_core.tolerance(disturbance._checked, ranks, work_s, slowdown))
    asked = [
        one
        for one in _by_cause(disturbance, data["limits"], ranks, work_s, slowdown)
        if one[0]["field"] not in ("ranks", "work_per_barrier_s")  # a recording has its own
    ]
    limits = simulated_limits(
        asked,
        ranks=ranks,
        work_per_barrier_s=work_s,
        slowdown=slowdown,
        seeds=seeds,
        recorded=point,
        progress=progress,
    )
    for limit in limits:
        if (found := limit["simulated"]) is not None and limit["given"]:
            limit["kept"] = limit["given"] >= found if limit["relation"] == "at least" else limit["given"] <= found
    about = {"file": str(recording), "recorded_s": recorded_s, "replayed_s": replayed_s}
    warnings = _seldom(disturbance, point, replayed_s)
    return Tolerance({**data, "limits": limits, "seeds": seeds, "recorded": about, "warnings": warnings})


def _seldom(disturbance: Disturbance, point: ProgramPoint, replayed_s: float) -> list[Notice]:
    """Return a warning where a source strikes a recorded program too seldom for its limits to be exact."""
    from crosswind.plan.tolerance.simulation import strikes

    sources = disturbance.to_dict()["source"]
    few = [place for place, one in enumerate(sources) if one["kind"] != "recorded" and strikes(one, point) < FEW]
    if not few:
        return []
    message = f"source[{few[0]}] strikes a program of {replayed_s:.3g} s seldom: its simulated limits are rough"
    return [warning("few-strikes", message, "record a longer run")]


def _by_cause(
    whole: Disturbance, limits: list[Limit], ranks: int, work_per_barrier_s: float, slowdown: float
) -> list[tuple[Limit, Disturbance, int]]:
    """Return limits, each with the disturbance that it is of and the source's place there.

    That of a recorded source stands once for each of its causes alone, the tightest first, with the source's place in
    the whole disturbance. A recording is gone through once, however many causes it has.
    """
    description = whole.to_dict()
    found: list[tuple[Limit, Disturbance, int]] = []
    by_cause: dict[int, list[tuple[Limit, Disturbance, int]]] = {}
    for limit in limits:
        place = limit["source"]
        source = description["source"][place]
        if source["kind"] != "recorded" or len(source["causes"]) < 2:
            found.append((limit, whole, place))
        elif place not in by_cause:
            own = by_cause[place] = []
            for cause, intervals in zip(source["causes"], _each_alone(source), strict=True):
                alone = Disturbance.from_dict({**description, "source": [{**source, "cpu": intervals}]})
                told = json.loads(_core.tolerance(alone._checked, ranks, work_per_barrier_s, slowdown))
                limits_alone: list[Limit] = told["limits"]
                for one in limits_alone:
                    field = one["field"].replace("source[0]", f"source[{place}]", 1)
                    of_cause: Limit = {
                        **one,
                        "cause": cause,
                        "source": place,
                        "field": field,
                        "expected": told["expected"],
                    }
                    own.append((of_cause, alone, 0))
            found += sorted(own, key=lambda entry: entry[0]["limit"])
    return found


def _each_alone(source: Mapping[str, Any]) -> list[list[Document]]:
    """Return for each cause of a recorded source its CPUs with the intervals of that cause alone."""
    found: list[list[Document]] = [[] for _ in source["causes"]]
    for cpu in source["cpu"]:
        own: dict[int, list[Any]] = {}
        for interval in cpu["intervals"]:
            own.setdefault(interval[2], []).append(interval)
        for cause, cpus in enumerate(found):
            cpus.append({**cpu, "intervals": own.get(cause, [])})
    return found
