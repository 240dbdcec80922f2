"""The order of a check: two looks at kernels and noise, with the network between them, so that they lie apart."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from crosswind import _core
from crosswind.check import rates, surroundings
from crosswind.check.decision import LOOKS, Reading
from crosswind.check.network import interference, path_name
from crosswind.check.result import KIND, SCHEMA_VERSION, Check
from crosswind.errors import Told
from crosswind.host.processor import allowed_cpus
from crosswind.noise import record
from crosswind.terminal.progress import Advance

_NOISE_BATCHES = 4
KERNELS_SHARE, NOISE_SHARE = 0.35, 0.25
"""Parts of the time for kernels and noise, both looks together; the paths share the rest."""


def performed(
    base: Check | None,
    tolerance: float,
    seconds: float,
    peer: str | None,
    token: str | None,
    tls: str | Path | None,
    progress: Advance | None,
) -> dict[str, Any]:
    """Measure, and return the document of a check; after ctrl-C with what was complete."""
    cpus, batches, told = allowed_cpus(), dict[str, list[float]](), list[Told]()
    described, watch, began = surroundings.settings(), surroundings.Watch.begin(), time.monotonic()
    paths: dict[str, Reading] = {}
    tops: dict[str, float] = {}
    known = base.document["tops_mb_per_s"] if base is not None else {}

    def look() -> None:
        for name, values in rates.measured(cpus, KERNELS_SHARE * seconds / LOOKS).items():
            batches.setdefault(name, []).extend(values)
        for _ in range(_NOISE_BATCHES):
            found = record(NOISE_SHARE * seconds / LOOKS / _NOISE_BATCHES, how="loop")
            if found.summary["interrupted"]:
                raise KeyboardInterrupt
            batches.setdefault("noise", []).append(found.share)

    def along(path: str | None) -> None:
        time_s = (1 - KERNELS_SHARE - NOISE_SHARE) * seconds / len(asked_paths)
        found, top, warnings = interference(path, known.get(path_name(path)), time_s, token, tls)
        paths.update(found)
        told.extend(warnings)
        if top is not None:
            tops[path_name(path)] = top

    asked_paths = [None, peer] if peer else [None]
    steps = [look, *(lambda path=path: along(path) for path in asked_paths), look]
    interrupted = False
    try:
        for number, step in enumerate(steps):
            if progress:
                progress(number / len(steps), f"{time.monotonic() - began:.0f} s of about {seconds:.0f} s")
            step()
    except KeyboardInterrupt:  # what was complete is kept
        interrupted = True
    readings = {name: _reading(name, values) for name, values in batches.items()} | paths
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "crosswind": _core.__version__,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "host": described,
        "tolerance": tolerance,
        "readings": {name: reading.to_dict() for name, reading in readings.items()},
        "tops_mb_per_s": tops,
        "load": watch.load(),
        "hidden": surroundings.hidden(),
        "took_s": round(time.monotonic() - began, 2),
        "interrupted": interrupted,
        "warnings": told,
    }


def _reading(name: str, values: list[float]) -> Reading:
    if name == "noise" or name.startswith(rates.LOST):
        return Reading(tuple(values), "share", excusable=True, part=0.5)
    # A virtual machine's neighbours share the memory: its rate varies between sessions ten times as much as the other.
    return Reading(tuple(values), part=2.0 if name.startswith("memory") else 1.0)
