"""What tests of streams report on: runs known beforehand."""

from __future__ import annotations

from typing import Any

from reported import BREAKS_ATTRIBUTE, BREAKS_SCRIPT

from crosswind.run.results import Runs, StreamsRun

LENGTH = "workload.stream[1].message_bytes"


def stream(name: str, class_: str, fifo: float, queued: float) -> dict[str, Any]:
    """Return what a stream came to that takes 0.01 s alone."""
    latency = {how: {"mean": x * 1e-4, "p50": x * 1e-4, "p99": x * 2e-4} for how, x in _hows(fifo, queued)}
    return {
        "name": name,
        "class": class_,
        "messages": 100,
        "bytes": 6400,
        "alone_s": 0.01,
        "fifo_s": 0.01 * fifo,
        "queued_s": 0.01 * queued,
        "slowdown_fifo": fifo,
        "slowdown_queued": queued,
        "latency_s": latency,
    }


def _hows(fifo: float, queued: float) -> tuple[tuple[str, float], ...]:
    return ("alone", 1.0), ("fifo", fifo), ("queued", queued)


def job(fifo: float, queued: float) -> dict[str, Any]:
    """Return what a job came to that takes 2 s alone."""
    return {
        "name": "MG",
        "program": "mg",
        "hosts": 4,
        "messages": 816,
        "bytes": 24_500_000,
        "alone_s": 2.0,
        "fifo_s": 2.0 * (1.0 + fifo),
        "queued_s": 2.0 * (1.0 + queued),
        "eta_fifo": fifo,
        "eta_queued": queued,
    }


def streams_run(
    params: dict[str, Any], *, seed: int = 1, fifo: float = 14.0, names: tuple[str, str] = ("A", "local"), **other: Any
) -> dict[str, Any]:
    """Return an entry of the `runs.json` of streams."""
    return {
        "params": params,
        "seed": seed,
        "hosts": 3,
        "queue": "drr",
        "makespan_s": 0.02,
        "streams": [stream(names[0], "parallel", fifo, 2.0), stream(names[1], "local", 1.1, 1.2)],
        "jobs": [],
        "bounds": {f"fifo {names[0]}": 1.05 * fifo},
        "frames": 1800,
        "dropped": 0,
        "warnings": [],
    } | other


def streams_runs(on: str = "sim", *, slower: float = 1.0, seeds: int = 2, hostile: bool = False) -> Runs[StreamsRun]:
    """Return runs over four lengths of the local stream; in one queue A takes 1 + length / 1024 times as long."""
    names = (BREAKS_SCRIPT, BREAKS_ATTRIBUTE) if hostile else ("A", "local")
    warnings = [{"code": "odd", "message": BREAKS_SCRIPT, "hint": BREAKS_ATTRIBUTE}] if hostile else []
    runs = [
        StreamsRun(
            streams_run(
                {LENGTH: length},
                seed=seed + 1,
                fifo=slower * (1 + length / 1024) * (1 + 0.01 * seed),
                names=names,
                warnings=warnings,
            )
        )
        for length in (2048, 4096, 8192, 16384)
        for seed in range(seeds)
    ]
    return Runs(BREAKS_SCRIPT if hostile else "sending side", on, runs, "digest", "streams")
