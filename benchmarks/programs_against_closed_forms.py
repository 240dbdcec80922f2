"""Claim: simulated slowdowns of programs with barriers are what closed forms give, in seven settings.

A barrier every 7.1 ms on 64 ranks of a CM-5, five seeds each: another program on every node, scheduled locally, against
(Q + w) / (2 w); coscheduled with skew, at most 1 / (1 - s/Q); daemons, between the union 1 / (1 - d/I)^P (less what
daemons hide while ranks wait) and the sum 1 / (1 - P d/I); one shared node, 1/p. Nothing is timed: a simulation says
the same on any machine.

    python benchmarks/programs_against_closed_forms.py
"""

from __future__ import annotations

from statistics import fmean
from typing import Any

import record

import crosswind

RANKS, WORK_S, SEEDS = 64, 0.0071, 5


def slowdowns(iterations: int, **source: Any) -> list[float]:
    """Slowdown over coscheduling (where jobs share the nodes) of each seed."""
    barriers = {"iterations": iterations, "work_s": WORK_S, "dimensions": 0, "allreduce": "none", "barrier": True}
    description = {
        "schema_version": 1,
        "name": "barriers",
        "repetitions": SEEDS,
        "network": "cm5",
        "disturbance": {"schema_version": 1, "name": str(source["kind"]), "source": [source]},
        "workload": {"kind": "program", "program": "bsp", "ranks": RANKS, "parameters": barriers},
    }
    return [run.slowdown for run in crosswind.run(crosswind.Experiment.from_dict(description))]


def main() -> None:
    rows = []
    for quantum_s in (0.1, 0.5):
        found = slowdowns(2000, kind="local", quantum_s=quantum_s, jobs=2, phases="spread")
        form = (quantum_s + WORK_S) / (2 * WORK_S)
        rows.append({"setting": f"local, {quantum_s:g} s", "form": [form, form], "slowdown": record.spread(found)})
    found = slowdowns(5000, kind="coscheduled", quantum_s=0.1, jobs=2, skew_s=0.01)
    rows.append({"setting": "skew 10 % of 0.1 s", "form": [1.0, 1 / (1 - 0.1)], "slowdown": record.spread(found)})
    for duration_s, interval_s in ((0.005, 10.0), (0.010, 5.0), (0.050, 5.0)):
        found = slowdowns(20_000, kind="daemon", duration_s=duration_s, interval_s=interval_s)
        part = duration_s / interval_s
        form = [1 / (1 - part) ** RANKS, 1 / (1 - RANKS * part)]
        name = f"daemons, {1000 * duration_s:g} ms every {interval_s:g} s"
        rows.append({"setting": name, "form": form, "slowdown": record.spread(found)})
    found = slowdowns(2000, kind="job", ranks=[17], share=0.5, slice_s=0.1)
    rows.append({"setting": "one shared node, share 0.5", "form": [2.0, 2.0], "slowdown": record.spread(found)})
    for row in rows:
        low, high = row["form"]
        mean = fmean(row["slowdown"]["samples"])
        row["outside"] = max(low / mean - 1.0, mean / high - 1.0, 0.0)
        print(f"{row['setting']:28} {mean:8.4f}   closed form {low:.4f} .. {high:.4f}   outside {row['outside']:.2%}")
    print(record.write("programs_against_closed_forms", [], ranks=RANKS, work_per_barrier_s=WORK_S, rows=rows))


if __name__ == "__main__":
    main()
