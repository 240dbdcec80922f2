"""Claims about jobs that share this machine's processors, live beside simulated (`crosswind run --beside`).

1. Under gang scheduling each job takes about as many times as long as there are jobs, live and simulated.
2. Quanta of each processor by itself (local) cost barriers more than a gang does, live and simulated.
3. Ranks that poll before they block (implicit) take no longer than ranks that block at once.
4. Switches of a gang are done within a hundredth of a quantum, and ranks continue within as much of each other.

Two programs of two ranks, EM3D and barriers, `repetitions` times each. About four minutes; the machine has to be quiet.

    python benchmarks/gang_live.py [repetitions]
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import fmean
from typing import Any

import record

from crosswind.experiment import Experiment
from crosswind.run.jobs import QUANTUM_S, round_trip_s, run_jobs
from crosswind.run.results import ProgramRun, Runs

EXAMPLES = Path(__file__).parent.parent / "examples"
FILES = ("em3d_of_two.toml", "barriers_of_two.toml")
NEAR = 0.15


def slowdowns(done: Runs[ProgramRun]) -> dict[str, dict[str, Any]]:
    """Return by schedule and job the time over that of the job alone: live samples, and the simulated mean."""
    found: dict[str, dict[str, Any]] = {}
    for runs in done.by_point():
        schedule, on, job = (str(runs[0].params[name]) for name in ("schedule", "on", "job"))
        cell = found.setdefault(f"{schedule}, {job}", {})
        cell |= {on: record.spread([run.slowdown_dedicated for run in runs])}
        if on == "local":
            cell |= {"makespan_s": record.spread([run.makespan_s for run in runs])}
            cell |= {"switches": [run.data["switches"] for run in runs if run.data.get("switches")]}
    return found


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    spin_s = round_trip_s()
    jobs = [Experiment.load(EXAMPLES / file).fixed({"repetitions": repetitions}) for file in FILES]
    done = run_jobs(jobs, spin_s=spin_s)
    cells = slowdowns(done)
    names = [job.name for job in jobs]

    def median(schedule: str, job: str, on: str = "local") -> float:
        return float(cells[f"{schedule}, {job}"][on]["median"])

    switches = [one for name in names for one in cells[f"gang, {name}"]["switches"]]
    allowed_s = QUANTUM_S / 100
    claims = {
        "gang costs each job its share, live": all(abs(median("gang", name) / 2 - 1) <= NEAR for name in names),
        "gang costs each job its share, simulated": all(
            abs(median("gang", name, "sim") / 2 - 1) <= NEAR for name in names
        ),
        "local costs barriers more than gang, live": median("local", names[1]) > median("gang", names[1]),
        "local costs barriers more than gang, simulated": median("local", names[1], "sim")
        > median("gang", names[1], "sim"),
        "implicit takes no longer than block": all(
            median("implicit", name) <= (1 + NEAR) * median("block", name) for name in names
        ),
        "switches are done in time": fmean(one["late_mean_s"] for one in switches) <= allowed_s,
        "ranks continue together": fmean(one["skew_mean_s"] for one in switches) <= allowed_s,
    }
    for name, cell in cells.items():
        simulated = f", simulated {cell['sim']['median']:.2f}" if "sim" in cell else ""
        print(f"{name}: {cell['local']['median']:.2f} times alone{simulated}")
    for claim, holds in claims.items():
        print(f"{claim}: {'holds' if holds else 'DOES NOT HOLD'}")
    path = record.write("gang_live", [], quantum_s=QUANTUM_S, spin_s=spin_s, cells=cells, claims=claims)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
