"""Which threshold and credits hold the local class's slowdown below a limit and make the parallel class's lowest."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from crosswind import _core
from crosswind.errors import DescriptionError, InfeasibleError
from crosswind.experiment import Experiment
from crosswind.files.atomic import write_json
from crosswind.files.tabular import Tabular
from crosswind.platform import as_html_table
from crosswind.terminal.waiting import mapped, threads

if TYPE_CHECKING:
    import pyarrow as pa

    from crosswind.documents.queues_plan import QueuesPlanDocument, Setting, Tried
    from crosswind.terminal.progress import Advance

SCHEMA_VERSION = 1
THRESHOLDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Parallel frames, or their bytes, to one of local: what is tried."""
RECEIVE_THRESHOLDS = (1, 2, 4, 8)
"""Local frames under way while parallel ones come: what is tried, where a receiver holds more."""
ALIKE = 0.01
"""Slowdowns of the parallel class that differ by less than this part count as equal."""
_QUEUES = ("fifo", "queued")


@dataclass(frozen=True)
class QueuesPlan(Tabular):
    """The queues that serve the parallel class best and hold the local class's slowdown.

    Attributes
    ----------
    data : dict
        What `crosswind plan queues --json` prints (docs/reference/files.md).
    """

    data: QueuesPlanDocument

    @property
    def policy(self) -> dict[str, str | int]:
        """The `[policy]` to take: `queue`, `threshold`, `credits`, and with credits `receive_threshold`."""
        return dict(self.data["policy"])

    @property
    def tried(self) -> list[Tried]:
        """One entry per setting: its policy, `parallel_slowdown`, `local_slowdown`, `holds`; means over seeds."""
        return list(self.data["tried"])

    @property
    def frontier(self) -> list[Tried]:
        """Those tried beside which none is better for one class and not worse for the other."""
        best, found = math.inf, []
        for one in sorted(self.tried, key=lambda one: (one["local_slowdown"], one["parallel_slowdown"])):
            if one["parallel_slowdown"] < best:
                best = one["parallel_slowdown"]
                found.append(one)
        return found

    def save(self, path: str | Path) -> None:
        """Write the plan as JSON."""
        write_json(self.data, path)

    def to_dict(self) -> QueuesPlanDocument:
        """Return the content as a dictionary."""
        return {**self.data}

    def to_arrow(self) -> pa.Table:
        """Return one row per setting that was tried."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.tried)

    def __repr__(self) -> str:
        return f"QueuesPlan({self.data['experiment']!r}, {self.policy})"

    def _repr_html_(self) -> str:
        d = self.data
        return as_html_table(f"{d['experiment']}: local slowdown at most {d['local_slowdown_limit']:g}", self.tried)


def plan_queues(
    experiment: Experiment | str | Path,
    *,
    local_slowdown: float,
    workers: int | None = None,
    progress: Advance | None = None,
) -> QueuesPlan:
    """Find the threshold and credits that hold the local class's slowdown and make the parallel class's lowest.

    Every setting is simulated with every seed of the experiment. A class's slowdown is that of its slowest stream (of a
    job: 1 + eta), averaged over seeds. Of settings whose parallel slowdown is the lowest within 1 %, the one without
    credits and with the smallest threshold is taken: more would give the parallel class nothing, and the local class a
    weaker promise.

    Parameters
    ----------
    experiment : Experiment or path
        Of kind streams, without a sweep, with both classes. Its `policy.queue` says whether thresholds count frames
        (`threshold`) or bytes (`drr`, also taken for `fifo` and `strict`).
    local_slowdown : float
        The most that the slowest local stream may take over its time alone, greater than 1.
    workers : int, optional
        Simulations side by side; default: one per CPU.
    progress : callable, optional
        Called with the part that is done, and with words.

    Returns
    -------
    QueuesPlan
        `promise` in it is the starvation bound, in closed form, whatever the parallel class sends.

    Raises
    ------
    DescriptionError
        When something is wrong with the experiment, or it has one class only.
    InfeasibleError
        When no setting holds the limit; the hint names the lowest slowdown that there is.

    Examples
    --------
    >>> a = {"name": "A", "class": "parallel", "from": 0, "to": 1, "message_bytes": 64}
    >>> local = {"name": "l", "class": "local", "from": 0, "to": 2, "message_bytes": 16384, "arrivals": "backlogged"}
    >>> streams = {"kind": "streams", "hosts": 3, "stream": [a, local]}
    >>> both = Experiment.from_dict({"schema_version": 1, "name": "both", "workload": streams})
    >>> plan = plan_queues(both, local_slowdown=3.0)
    >>> plan.policy["credits"], plan.data["parallel_slowdown"] < 3 < 10 < plan.data["fifo"]["parallel_slowdown"]
    ('none', True)
    """
    if not 1 < local_slowdown < math.inf:
        raise DescriptionError(f"local_slowdown is {local_slowdown}; it must be finite and greater than 1", "argument")
    if not isinstance(experiment, Experiment):
        experiment = Experiment.load(experiment)
    _plannable(experiment)
    settings = list(_settings(experiment.to_dict().get("policy", {})))
    points = [point.json for setting in settings for point in _with(experiment, setting).points()]
    seeds = len(points) // len(settings)
    runs = []
    with threads(workers or os.cpu_count()) as pool:
        for run in mapped(pool, _slowdowns, points):
            runs.append(run)
            if progress:
                progress(len(runs) / len(points), f"{len(runs)} of {len(points)} simulations")
    means = [
        {name: sum(run[name] for run in runs[k * seeds : (k + 1) * seeds]) / seeds for name in runs[0]}
        for k in range(len(settings))
    ]
    tried: list[Tried] = [
        {
            **setting,
            "parallel_slowdown": mean["parallel_queued"],
            "local_slowdown": mean["local_queued"],
            "holds": mean["local_queued"] <= local_slowdown,
        }
        for setting, mean in zip(settings, means, strict=True)
    ]
    chosen = _best(tried, local_slowdown)
    setting = settings[tried.index(chosen)]
    promise = json.loads(_core.streams_promise(next(_with(experiment, setting).points()).json, local_slowdown))
    return QueuesPlan(
        {
            "schema_version": SCHEMA_VERSION,
            "kind": "queues-plan",
            "experiment": experiment.name,
            "local_slowdown_limit": local_slowdown,
            "seeds": seeds,
            "policy": {name: value for name, value in setting.items() if isinstance(value, str | int)},
            "parallel_slowdown": chosen["parallel_slowdown"],
            "local_slowdown": chosen["local_slowdown"],
            "fifo": {"parallel_slowdown": means[0]["parallel_fifo"], "local_slowdown": means[0]["local_fifo"]},
            "promise": promise,
            "tried": tried,
        }
    )


def _plannable(experiment: Experiment) -> None:
    """Refuse what cannot be planned."""
    description = experiment.to_dict()
    if experiment.kind != "streams":
        message = f"{experiment.name!r} is of kind {experiment.kind}; thresholds are planned for streams"
        raise DescriptionError(message, "argument", 'name an experiment with workload.kind = "streams"')
    if description.get("sweep"):
        swept = ", ".join(description["sweep"])
        hint = "a plan is of one point: give each of these one value (--set PATH=VALUE)"
        raise DescriptionError(f"{experiment.name!r} sweeps {swept}", "argument", hint)
    classes = {stream["class"] for stream in description["workload"].get("stream", [])}
    classes |= {"parallel"} if description["workload"].get("job") else set()
    missing = sorted({"local", "parallel"} - classes)
    if missing:
        message = f"{experiment.name!r} has nothing of class {missing[0]}"
        raise DescriptionError(message, "argument", "a threshold is between two classes")


def _settings(policy: Mapping[str, Any]) -> Iterator[Setting]:
    """Yield what is tried: every threshold, without credits and with each credit that a receiver can give."""
    queue: Literal["threshold", "drr"] = "threshold" if policy.get("queue") == "threshold" else "drr"
    windows: list[int | None] = [None]
    windows += [frames for frames in RECEIVE_THRESHOLDS if frames < policy.get("receive_frames", 16)]
    for frames in windows:
        for threshold in THRESHOLDS:
            yield {
                "queue": queue,
                "threshold": threshold,
                "credits": "none" if frames is None else "receiver",
                "receive_threshold": frames,
            }


def _with(experiment: Experiment, setting: Mapping[str, Any]) -> Experiment:
    # The printed forms may have a receive_threshold of 0, which nothing else may.
    fields = {f"policy.{name}": 1 if value is None else value for name, value in setting.items()}
    return experiment.fixed({"policy.receive_threshold": 1, "policy.literal": False, **fields})


def _slowdowns(point: str) -> dict[str, float]:
    """Return each class's slowdown in one run, with one queue and with two."""
    run = json.loads(_core.simulate_streams(point))
    found = {f"{whose}_{queues}": 1.0 for whose in ("parallel", "local") for queues in _QUEUES}
    of = [(stream["class"], queues, stream[f"slowdown_{queues}"]) for stream in run["streams"] for queues in _QUEUES]
    of += [("parallel", queues, 1.0 + job[f"eta_{queues}"]) for job in run["jobs"] for queues in _QUEUES]
    for whose, queues, slowdown in of:
        found[f"{whose}_{queues}"] = max(found[f"{whose}_{queues}"], slowdown)
    return found


def _best(tried: list[Tried], limit: float) -> Tried:
    holding = [one for one in tried if one["holds"]]
    if not holding:
        lowest = min(tried, key=lambda one: one["local_slowdown"])
        of = f"threshold {lowest['threshold']}"
        of += "" if lowest["receive_threshold"] is None else f" and receive_threshold {lowest['receive_threshold']}"
        hint = f"the lowest is {lowest['local_slowdown']:.4g}, with {of}: allow that much, or send less"
        raise InfeasibleError(f"no threshold holds the local class's slowdown at {limit:g}", "infeasible", hint)
    lowest_slowdown = min(one["parallel_slowdown"] for one in holding)
    alike = [one for one in holding if one["parallel_slowdown"] <= lowest_slowdown * (1.0 + ALIKE)]
    # Without credits first, then the smallest threshold, then the largest credit.
    return min(alike, key=lambda one: (one["credits"] != "none", one["threshold"], -(one["receive_threshold"] or 0)))
