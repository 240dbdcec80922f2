"""Claim: the interval for the next measurement's headline holds it in at least 18 of 20 repeats over an hour.

Measures this host against itself again and again with default settings, all minutes apart, and holds each headline
(the loss at the highest of the rates that do not depend on the top) against the interval of the measurement before:
as `crosswind fit --earlier` has it, which knows all measurements before it, and as one measurement knows by itself.
The measurements stay in the directory: a run that was stopped goes on, and a later fit can be held against them.

    python benchmarks/next_measurement.py [DIRECTORY [REPEATS [SECONDS_FROM_START_TO_START]]]
"""

from __future__ import annotations

import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import record

from crosswind.measure import measure
from crosswind.measurement import Measurement
from crosswind.model.curve import LossAt, with_earlier
from crosswind.model.fit import fit

REPEATS = 21
APART_S = 180.0


def measured(directory: Path, repeats: int, apart_s: float) -> list[Measurement]:
    """Measure what is missing, one repeat each `apart_s`."""
    directory.mkdir(parents=True, exist_ok=True)
    for repeat in range(repeats):
        path = directory / f"{repeat:02}.parquet"
        if path.exists():
            continue
        began = time.monotonic()
        measure(direction="each", placement="same-core", seed=repeat, max_seconds=60).save(path)
        print(f"{path.name}: {time.monotonic() - began:.0f} s", flush=True)
        if repeat + 1 < repeats:
            time.sleep(max(0.0, apart_s - (time.monotonic() - began)))
    return [Measurement.load(directory / f"{repeat:02}.parquet") for repeat in range(repeats)]


def told(measurement: Measurement) -> list[dict[str, Any]]:
    """Return each direction's losses with their intervals, and the slope beside them."""
    fitted = fit(measurement)
    return [
        {
            "direction": channel.direction,
            "started": measurement.header["started"],
            "losses": {str(one.mb_per_s): [one.loss, *one.ci95, *one.next95] for one in channel.losses},
            "ir_s_per_mb": channel.ir_s_per_mb,
            "ir_ci95": channel.ir_ci95,
            "top_mb_per_s": channel.top_mb_per_s,
            "unpaced_mb_per_s": channel.transfer_max_mb_per_s,
            "foreign_share": channel.foreign_share,
            "settled": channel.settled,
        }
        for channel in fitted.channels
    ]


def cases_of(runs: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return for each direction how often the next headline, and the next slope, lies in the interval before it."""
    cases = []
    for direction in ("receive", "send"):
        own = [one for run in runs for one in run if one["direction"] == direction]
        common = set.intersection(*(set(one["losses"]) for one in own))
        rate = max(common, key=float)
        pairs = list(pairwise(own))
        of_headline = sum(
            one["losses"][rate][3] <= other["losses"][rate][0] <= one["losses"][rate][4] for one, other in pairs
        )
        history = [one["losses"][rate][0] for one in own]
        known = [_next(one["losses"][rate], history[:at]) for at, one in enumerate(own)]
        with_history = sum(low <= value <= high for (low, high), value in zip(known, history[1:], strict=False))
        of_slope = sum(one["ir_ci95"][0] <= other["ir_s_per_mb"] <= one["ir_ci95"][1] for one, other in pairs)
        cases.append(
            {
                "direction": direction,
                "mb_per_s": float(rate),
                "loss": record.spread([one["losses"][rate][0] for one in own]),
                "half_width_of_next": record.spread(
                    [(one["losses"][rate][4] - one["losses"][rate][3]) / 2 for one in own]
                ),
                "pairs": len(pairs),
                "next_headline_in_interval": with_history,
                "half_width_of_next_with_earlier": record.spread([(high - low) / 2 for low, high in known]),
                "next_headline_in_interval_of_one": of_headline,
                "next_slope_in_confidence_interval": of_slope,
                "reached": with_history >= 0.9 * len(pairs),
                "runs": own,
            }
        )
        said = f"{with_history} of {len(pairs)}, by one measurement alone {of_headline}"
        print(f"{direction}: at {rate} MB/s {said}; slopes in intervals: {of_slope}", flush=True)
    return cases


def _next(found: list[float], earlier: list[float]) -> tuple[float, float]:
    loss, low, high, next_low, next_high = found
    return with_earlier(LossAt(0.0, loss, (low, high), (next_low, next_high)), earlier).next95


def main() -> None:
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="crosswind-next-"))
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else REPEATS
    apart_s = float(sys.argv[3]) if len(sys.argv) > 3 else APART_S
    cases = cases_of([told(measurement) for measurement in measured(directory, repeats, apart_s)])
    record.write("next_measurement", ["numpy", "scipy", "pyarrow"], seconds_apart=apart_s, cases=cases)


if __name__ == "__main__":
    main()
