"""Claim: a recorded program, run again, takes as long as it did, and under a disturbance as long as it really would.

Two ranks, each on a CPU of its own, compute for 2 ms of CPU time and communicate (ring, halo, allreduce; twice a step,
300 steps). In each round the program is recorded undisturbed; its replay must take as long as the recorded run, within
2 %. Then it runs without the recorder, in turn undisturbed and under `crosswind inject` (10 ms each 80 ms on average,
drawn from the round's seed, so each time the same), three times each. `crosswind run app.trace --disturbance` with the
same seed predicts its slowdown, which must be the measured one within 5 %: the median of the disturbed runs against
that of the undisturbed. One run says little: undisturbed runs differ by up to 13 % on a virtual machine that shares its
processors. The record holds all of them, and the host's load.

    python benchmarks/replay_against_recorded.py [rounds]
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import record

sys.path.insert(0, str(Path(__file__).parent / "recorded_jobs"))
from jobs import CROSSWIND, compiled, missing, mpirun, ran, recorded, seconds_of

OF_RUN, OF_SLOWDOWN = 0.02, 0.05
STEPS, WORK_US = 300, 2000
TIMES = 3
PATTERNS = ("ring", "halo", "allreduce")
COMPUTES = "0:0:compute:0+1:0:compute:0"
DISTURBANCE = """schema_version = 1
name = "10 ms each 80 ms"
[[source]]
kind = "daemon"
cause = "stopped"
duration_s = 0.01
interval_s = { distribution = "exponential", mean = 0.08 }
"""


def one_round(directory: Path, pattern: str, seed: int) -> dict[str, Any]:
    """Record, disturb and predict once."""
    (directory / "out").mkdir(exist_ok=True)
    cpus = ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2])
    job = mpirun(2, pattern, STEPS, WORK_US, "out", cpus, COMPUTES)
    began = os.getloadavg()[0]
    ran([*recorded(how="none"), *job], directory)
    again = json.loads(ran([*CROSSWIND, "run", "app.trace", "--json"], directory).stdout)["runs"][0]["recorded"]
    inject = [*CROSSWIND, "inject", "d.toml", "--ranks", "2", "--how", "stop", "--seed", str(seed)]
    undisturbed, disturbed = [], []
    for _ in range(TIMES):
        undisturbed.append(seconds_of(ran(job, directory)))
        (directory / "go").unlink(missing_ok=True)
        run = ran([*inject, "--start-file", "go", "--json", "--", *job, "go"], directory, codes=(0, 3))
        disturbed.append(seconds_of(run))
    predict = ["run", "app.trace", "--disturbance", "d.toml", "--set", "repetitions=1", "--set", f"seed={seed}"]
    predicted = json.loads(ran([*CROSSWIND, *predict, "--json"], directory).stdout)["runs"][0]["slowdown_dedicated"]
    return {
        "pattern": pattern,
        "seed": seed,
        "recorded_s": again["recorded_s"],
        "replayed_s": again["replayed_s"],
        "undisturbed_s": undisturbed,
        "disturbed_s": disturbed,
        "measured": statistics.median(disturbed) / statistics.median(undisturbed),
        "predicted": predicted,
        "load_1_min": [began, os.getloadavg()[0]],
    }


def main() -> None:
    """Measure, print and write the record."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    if why := missing():
        raise SystemExit(f"error: {why}")
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        compiled(directory)
        (directory / "d.toml").write_text(DISTURBANCE)
        for seed in range(1, rounds + 1):
            for pattern in PATTERNS:
                one = one_round(directory, pattern, seed)
                runs.append(one)
                print(
                    f"{pattern:9} {seed}: replayed {one['replayed_s']:.4f} s of {one['recorded_s']:.4f} s; "
                    f"{one['predicted']:.3f} times predicted, {one['measured']:.3f} measured "
                    f"(undisturbed {min(one['undisturbed_s']):.3f} to {max(one['undisturbed_s']):.3f} s, "
                    f"disturbed {min(one['disturbed_s']):.3f} to {max(one['disturbed_s']):.3f} s)",
                    flush=True,
                )
    of_run = [abs(one["replayed_s"] / one["recorded_s"] - 1.0) for one in runs]
    of_slowdown = [abs(one["predicted"] / one["measured"] - 1.0) for one in runs]
    passed = max(of_run) < OF_RUN and max(of_slowdown) < OF_SLOWDOWN
    path = record.write(
        "replay_against_recorded",
        ["openmpi"],
        claim={"of_run": OF_RUN, "of_slowdown": OF_SLOWDOWN},
        of_run=record.spread(of_run),
        of_slowdown=record.spread(of_slowdown),
        runs=runs,
        passed=passed,
    )
    print(f"replay off by {max(of_run):.2%} at most; slowdown by {statistics.median(of_slowdown):.2%} (median), "
          f"{max(of_slowdown):.2%} at most: {'passed' if passed else 'FAILED'}; wrote {path}")  # fmt: skip


if __name__ == "__main__":
    main()
