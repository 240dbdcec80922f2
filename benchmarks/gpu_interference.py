"""Claim: what copies cost a GPU's kernels is known per pair with an interval, repeats, and predicts steps.

From recorded measurements of one NVIDIA H100: `examples/gpu/h100.parquet` (340 s, all 54 pairs of 6 kernels and 9
kinds of traffic), `gpu/h100_again.parquet` (100 s, another seed, the same minutes) and `gpu/h100_steps.parquet` (95 s,
18 pairs). On a machine with a GPU `--measure` makes them anew, in 9 minutes.

    python benchmarks/gpu_interference.py [--measure]
"""

from __future__ import annotations

import sys
from typing import Any

import record

from crosswind.gpu import KERNELS, TRAFFICS, measure_gpu
from crosswind.gpu.fit import GpuFit, fit_gpu
from crosswind.gpu.overlap import recorded_steps

FIRST = record.HERE.parent / "examples/gpu/h100.parquet"
AGAIN, STEPS = record.HERE / "gpu/h100_again.parquet", record.HERE / "gpu/h100_steps.parquet"
ALL: dict[str, Any] = {
    "kernels": [one for one in KERNELS if one != "step"],
    "traffics": [one for one in TRAFFICS if one != "loader"],
}
"""What `gpu_workloads.py` does not measure."""
OF_STEPS: dict[str, Any] = {
    "kernels": ("tensor", "triad", "chase"),
    "traffics": ("h2d", "d2h", "both", "d2d", "d2d-sm", "d2h-sm"),
}


def measure() -> None:
    """Make the three files anew."""
    measure_gpu(max_seconds=340.0, seed=1, **ALL).save(FIRST)
    measure_gpu(max_seconds=100.0, seed=2, **ALL).save(AGAIN)
    measure_gpu(max_seconds=95.0, seed=3, **OF_STEPS).save(STEPS)


def meet(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two intervals have a value in common."""
    return max(one[0], other[0]) <= min(one[1], other[1])


def repeats(first: GpuFit, again: GpuFit) -> dict[str, int]:
    """Of how many pairs the intervals of two measurements overlap."""
    both = [(first.pair(one.kernel, one.traffic), one) for one in again.pairs]
    known = [(a, b) for a, b in both if a is not None]
    return {
        "pairs": len(known),
        "loss_overlaps": sum(meet(a.unpaced.ci95, b.unpaced.ci95) for a, b in known),
        "ir_overlaps": sum(meet(a.ir_ci95, b.ir_ci95) for a, b in known),
        "traffic_loss_overlaps": sum(meet(a.traffic_ci95, b.traffic_ci95) for a, b in known),
    }


def pacing(fit: GpuFit) -> list[float]:
    """Rate reached over rate asked of every pair and level."""
    columns = fit.measurement.columns()
    found = []
    for pair in fit.pairs:
        rows = (columns["kernel"] == pair.kernel) & (columns["traffic"] == pair.traffic) & (columns["phase"] == "level")
        for level in (0.25, 0.5, 0.75, 1.0):
            these = rows & (columns["level"] == level)
            moved = sum(columns[name][these].sum() for name in ("to_device_mb", "to_host_mb", "within_mb"))
            asked = columns["asked_mb_per_s"][these].mean() * (2 if pair.traffic == "both" else 1)
            found.append(float(moved / columns["dt_s"][these].sum() / asked))
    return found


def steps(fit: GpuFit) -> list[dict[str, Any]]:
    """Each step, predicted and as it was; steps are in no fit."""
    return [vars(step) | {"predicted": vars(step.predicted), "agree": step.agrees} for step in recorded_steps(fit)]


def main() -> None:
    """Write the record."""
    if "--measure" in sys.argv[1:]:
        measure()
    first, again, stepped = fit_gpu(FIRST), fit_gpu(AGAIN), fit_gpu(STEPS)
    of_steps = steps(stepped)
    reached = pacing(first)
    content = {
        "fit": first.to_dict(),
        "repeats": repeats(first, again),
        "rate_reached_of_asked": record.spread(reached),
        "additive_off": record.spread([abs(one.measured - one.added) for one in first.additive]),
        "steps": of_steps,
        "steps_agree": [sum(one["agree"] for one in of_steps), len(of_steps)],
    }
    print(record.write("gpu_interference", ["numpy", "scipy", "pyarrow"], **content))
    print({name: content[name] for name in ("repeats", "steps_agree")})


if __name__ == "__main__":
    main()
