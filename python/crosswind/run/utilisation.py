"""Utilisation over time: which part of each interval of a run each node computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from crosswind.errors import DescriptionError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from crosswind.run.trace import Trace

MOST = 100_000


def utilisation(trace: Trace, intervals: int = 50) -> pa.Table:
    """Return which part of each of equal intervals each node computed, from the start to the makespan.

    Parameters
    ----------
    trace : Trace
        Of a farm.
    intervals : int
        How many, 1 to 100,000.

    Returns
    -------
    pyarrow.Table
        `from_s`, `to_s`, `all`, and `node[NAME]` for each node: parts from 0 to 1. `all` is the mean of the
        nodes weighted by their compute rates. A node computes from the start of a task to its end, however slowly.

    Raises
    ------
    DescriptionError
        When `intervals` is out of range.

    Examples
    --------
    >>> import crosswind
    >>> root = {"name": "r", "compute_per_s": 2.0}
    >>> alone = {"schema_version": 1, "name": "alone", "node": [root]}
    >>> farm = {"kind": "farm", "tasks": 2, "task_size_mb": 1.0, "task_work": 2.0, "arrival_gap_s": 3.0}
    >>> experiment = crosswind.Experiment.from_dict(
    ...     {"schema_version": 1, "name": "e", "platform": alone, "workload": farm}
    ... )
    >>> (run,) = crosswind.run(experiment, trace=True)
    >>> utilisation(run.trace, 4)["all"].to_pylist()
    [1.0, 0.0, 0.0, 1.0]
    """
    if not 1 <= intervals <= MOST:
        raise DescriptionError(f"intervals is {intervals}; it must be 1 to {MOST:,}", "argument")
    end = float(trace.run["makespan_s"])
    ends = np.linspace(0.0, end, intervals + 1)
    computed = trace.of_kind("compute")
    which = np.array(computed["node"].to_pylist(), dtype=object)
    start_s, end_s = (computed[name].to_numpy() for name in ("start_s", "end_s"))
    columns: dict[str, NDArray[np.float64]] = {"from_s": ends[:-1], "to_s": ends[1:], "all": np.zeros(intervals)}
    total = sum(float(node["compute_per_s"]) for node in trace.nodes) or 1.0
    for node in trace.nodes:
        mine = which == node["name"]
        part = _parts(start_s[mine], end_s[mine], ends)
        columns[f"node[{node['name']}]"] = part
        columns["all"] = columns["all"] + part * (float(node["compute_per_s"]) / total)
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def _parts(start_s: NDArray[np.float64], end_s: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return which part of each interval is covered by spans that do not overlap.

    Examples
    --------
    >>> _parts(np.array([1.0, 3.0]), np.array([2.5, 4.0]), np.array([0.0, 2.0, 4.0])).tolist()
    [0.5, 0.75]
    """
    # Covered until t: the whole spans that have ended, and the begun part of the last one that has not.
    order = np.argsort(start_s)
    starts, stops = start_s[order], end_s[order]
    lengths = np.concatenate([[0.0], np.cumsum(stops - starts)])
    begun = np.searchsorted(starts, ends, side="right")
    over = np.where(begun > 0, np.maximum(stops[np.maximum(begun, 1) - 1] - ends, 0.0) if starts.size else 0.0, 0.0)
    covered = lengths[begun] - over
    return np.clip(np.diff(covered) / np.maximum(np.diff(ends), 1e-300), 0.0, 1.0)
