"""Sessions of `crosswind cost` and of `crosswind compare` that never took place, as their files would hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosswind.compare.result import Comparison
from crosswind.compare.several import Several
from crosswind.cost.blocks import FIELDS, contrasts
from crosswind.cost.result import Cost
from crosswind.statistics.interim import Looks

HOST = {"name": "here", "cpu": "a CPU", "cpus": 2, "kernel": "6.1", "settings": {"huge_pages": "madvise"}}


def several(*means: float, rounds: int = 40, noise: float = 0.01, seed: int = 1) -> Several:
    """Return commands that take these seconds, with a share of noise in each run."""
    draw = np.random.default_rng(seed)
    rows = (np.array(means) * 2 * (1 + noise * draw.standard_normal((rounds, len(means))))).tolist()
    how = {"shell": False, "prepare": None, "ignore_failure": False, "seed": 1, "warm_up": 1, "host": HOST}
    return Several([f"./job {k}" for k in range(len(means))], "wall", 0.02, rows, rows, how=how)


def session(
    duties: tuple[float, ...] = (0.02,),
    *,
    quads: int = 300,
    slower: float = 0.0,
    catching_up: float = 1.0,
    margin: float = 0.01,
    noise: float = 0.005,
    seed: int = 1,
    names: tuple[str, ...] = ("exporter", "agent", "third"),
    intervals: bool = False,
    **changed: Any,
) -> Cost:
    """Return a session beside a job on CPU 1; each target takes its duty there, and what it slows comes on top."""
    draw = np.random.default_rng(seed)
    columns: dict[str, list[Any]] = {name: [] for name in ("contrast", "at_s", *FIELDS)}
    which = contrasts(len(duties))
    for number in range(quads):
        contrast = number % len(which)
        duty = catching_up * sum(duties[one] for one in which[contrast])
        wall = np.array([0.04, 0.04])
        x = np.array([0.0, 0.04 * duty * draw.uniform(0.8, 1.2)])
        job = wall - x
        work = job * 1000 * (1 + noise * draw.standard_normal(2)) * np.array([1.0, 1.0 - slower])
        for name, value in zip(
            ("contrast", "at_s", *FIELDS), (contrast, 3.0 + 0.08 * number, work, wall, job, x), strict=True
        ):
            columns[name].append(value.tolist() if isinstance(value, np.ndarray) else value)
    looks = Looks(planned_s=0.08 * quads)
    if quads:
        looks.look(0.08 * quads)
    windows = 60
    job_fields = {"name": "solver", "command": ["./solver"], "progress": "file:log", "unit": "bytes"}
    document = {
        "schema_version": 1,
        "kind": "cost",
        "crosswind": "0.0.0",
        "margin": margin,
        "of": [
            {"text": f"pid:{100 + k}", "name": name, "how": "signals", "cpus": [1]}
            for k, name in zip(range(len(duties)), names, strict=False)
        ],
        "job": {**job_fields, "cpus": [1], "wants_cpus": 0.99, "block_s": 0.02},
        "host": HOST,
        "steal_share": 0.0,
        "looks": looks.to_dict(),
        "undisturbed": {
            "wall_s": [0.1] * windows,
            "cpu_s": [[0.1 * duty * draw.uniform(0.9, 1.1) for duty in duties] for _ in range(windows)],
        },
        "quads": columns,
        "warnings": [],
    }
    if intervals:
        every = [[[0.1 * k, 0.1 * duty] for k in range(50)] for duty in duties]
        document["intervals"] = {"length_s": 5.0, "of": every}
    job = {**document["job"], **changed.pop("job", {})}
    return Cost(document | changed | {"job": job})


def comparison(
    ratio: float = 1.0, *, quads: int = 40, noise: float = 0.01, seed: int = 1, **changed: Any
) -> Comparison:
    """Return a comparison in which B takes `ratio` times as long."""
    draw = np.random.default_rng(seed)
    times = (np.array([2.0, 2.0 * ratio]) * (1 + noise * draw.standard_normal((quads, 2)))).tolist()
    looks = Looks(planned_s=60.0)
    if quads:
        looks.look(60.0)
    document = {
        "schema_version": 1,
        "kind": "comparison",
        "crosswind": "0.0.0",
        "commands": ["./before", "./after"],
        "margin": 0.02,
        "by": "wall",
        "host": HOST,
        "looks": looks.to_dict(),
        "interrupted": False,
        "wall_s": times,
        "cpu_s": times,
        "warnings": [],
    }
    return Comparison(document | changed)
