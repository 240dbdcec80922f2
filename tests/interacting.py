"""What tests of the study of communication-interactions grade: runs of streams in a world as the paper prints it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from crosswind.lab.papers.communication_interactions import printed, study
from crosswind.lab.papers.communication_interactions.calibration import (
    PROGRAMS,
    QUICK,
    Calibration,
    FlowReading,
)
from crosswind.lab.papers.communication_interactions.figures import LOCAL_STREAMS, SIDES, all_figures
from crosswind.lab.papers.figure import Figure
from crosswind.lab.papers.tabled_study import TabledStudy
from crosswind.run.results import Runs

# Nothing is computed, so that the time of communication is that of the run.
CALIBRATION = replace(
    QUICK, repetitions=2, stream_repetitions=2, programs=tuple((name, {"operation_s": 0.0}) for name in PROGRAMS)
)
ALONE_S = 500e-6
DELTA = {1: 1.0, 5: 0.7, 6: 0.66, **printed.DELTA_SLOWDOWN}
SENDING_16_KB = {"A": (15.0, 1.4), "B": (8.0, 1.5)}
LOCAL = {"sending": {"A": (1.2, 1.4), "B": (1.8, 2.5)}, "receiving": {"A": (1.2, 1.3), "B": (1.5, 1.6)}}
LOCAL["one-to-all"] = {tested: (value, 1.5) for tested, value in printed.LOCAL_ONE_TO_ALL.items()}


def eta(params: dict[str, Any]) -> float:
    """Return η of a program as printed, between the printed points and where nothing is printed as the words say."""
    program, hosts, alpha = params["program"], params["hosts"], params["alpha"]
    if program in ("ep", "is"):
        return {"ep": 0.01, "is": 0.2}[program] * alpha / 2000
    known = printed.ETA.get((program, hosts), {})
    if alpha in known:
        return known[alpha]
    steep = 0.19 if hosts == 4 else 0.095
    return steep + 0.001 * alpha * (1.0 if hosts == 4 else 0.5) if program == "ft" else 0.0016 * alpha * 4 / hosts


def stream(name: str, *, fifo: float, queued: float = 1.0) -> dict[str, Any]:
    """Return what a stream came to that was so much slower with one queue, with two."""
    latency = {when: {"mean": ALONE_S * slow} for when, slow in (("alone", 1.0), ("fifo", fifo), ("queued", queued))}
    times = {"alone_s": 1.0, "fifo_s": fifo, "queued_s": queued}
    return {"name": name, **times, "slowdown_fifo": fifo, "slowdown_queued": queued, "latency_s": latency}


def _on_the_network(kept: float, hosts_s: float) -> float:
    """Return how much slower the network is where a flow keeps this of δ, hosts' time included."""
    return ((hosts_s + ALONE_S) / kept - hosts_s) / ALONE_S


def as_printed(figure: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return `streams` and `jobs` of a point in a world where every claim of the paper holds."""
    if figure in ("figure-2", "table-2"):
        mixed = figure == "table-2"
        kept = (
            printed.TABLE_2[params["flows_a"], params["flows_b"]] if mixed else {params["type"]: DELTA[params["flows"]]}
        )
        reading = FlowReading(params["arrivals"], 1e-6 * params["b_alone_us"])
        return {
            "streams": [
                stream(f"{name} of host 1", fifo=_on_the_network(value, reading.hosts_s(name)))
                for name, value in kept.items()
            ]
        }
    if figure == "figures-3-4":
        return {"streams": [], "jobs": [{"alone_s": 2.0, "fifo_s": 2.0 * (1.0 + eta(params)), "queued_s": 2.1}]}
    side = next(side for side, name in SIDES.items() if name == figure)
    tested, part = params["stream"], params["local_kib"] / 16
    one, two = printed.SLOWDOWNS_16_KB.get(side, SENDING_16_KB)[tested]
    local_one, local_two = LOCAL[side][tested]
    both_ways = side == "one-to-all"
    local = [stream(name, fifo=local_one, queued=local_two) for name in LOCAL_STREAMS[: 1 + both_ways]]
    return {"streams": [stream(tested, fifo=1.0 + (one - 1.0) * part, queued=two * (0.9 + 0.1 * part)), *local]}


def figure_runs(figure: Figure) -> Runs[Any]:
    """Return the runs of a figure as `as_printed` says."""
    entry = {"makespan_s": 1.0, "bounds": {}, "warnings": []}
    runs = [
        Runs.KINDS["streams"]({"params": params, "seed": 1 + turn, **entry, **as_printed(figure.id, params)})
        for params, _ in figure.settings
        for turn in range(figure.repetitions)
    ]
    return Runs(f"{figure.id}: {figure.title}", "sim", runs, "digest", "streams")


def study_runs(calibration: Calibration = CALIBRATION) -> dict[str, Runs[Any]]:
    """Return the runs of all figures in a world where every claim holds."""
    return {figure.id: figure_runs(figure) for figure in all_figures(calibration)}


def studied(calibration: Calibration = CALIBRATION, runs: dict[str, Runs[Any]] | None = None) -> TabledStudy:
    """Return the study of such runs."""
    return study.studied(runs or study_runs(calibration), calibration)
