"""Claim: of recorded programs, the slow rank is named, and its cost is known, wherever it is at least 3 % of the run.

Programs of 3 to 64 ranks are drawn with their noise, clocks (up to 1 s apart, some drifting) and culprit. Each is run
with the excess of the culprit and without, and written in the form of PyTorch's profiler or as lines of JSON.
The difference between the two is the truth. The generator shares no code with what is tested.

Noise is independent, alike from step to step (`following`), partly the same for all ranks of a step (`common`), with
rare long times on any rank (`tails`), or beside ranks that differ by 0.5 % always (`uneven`).

    python benchmarks/court_synthetic.py [cases] [first seed]
"""

from __future__ import annotations

import json
import math
import random
import statistics
import sys
from dataclasses import dataclass, field
from typing import Any

from crosswind import _core

RANKS = [3, 4, 6, 8, 16, 32, 64]
STEPS = [12, 20, 30, 60, 120]
NOISES = [0.02, 0.05, 0.15]
KINDS = ["independent", "following", "common", "tails", "uneven"]
BASE_S = 0.04
TRANSFER_S = 0.002
LATE_S = 5e-5
MATERIAL = 0.03


@dataclass
class Job:
    """A program: what is drawn once and used with and without the excess."""

    seed: int
    form: str
    ranks: int
    steps: int
    noise: float
    places: int
    kind: str
    excess: dict[tuple[int, int, int], float] = field(default_factory=dict)  # (rank, step, place) -> s
    factor: dict[tuple[int, int], float] = field(default_factory=dict)  # (rank, place) -> times as long

    def work(self, draw: random.Random) -> list[list[list[float]]]:
        """Draw the time of each step, rank and place without any excess, s."""
        own = [[draw.gauss(0, 0.005) for _ in range(self.places)] for _ in range(self.ranks)]
        last = [[draw.gauss(0, self.noise) for _ in range(self.places)] for _ in range(self.ranks)]
        found = []
        for _ in range(self.steps):
            common = [draw.gauss(0, 2 * self.noise) for _ in range(self.places)]
            row = []
            for rank in range(self.ranks):
                times = []
                for place in range(self.places):
                    log, long = draw.gauss(0, self.noise), 0.0
                    if self.kind == "following":
                        log = last[rank][place] = 0.6 * last[rank][place] + 0.8 * log
                    elif self.kind == "common":
                        log += common[place]
                    elif self.kind == "uneven":
                        log += own[rank][place]
                    elif self.kind == "tails" and draw.random() < 0.01:
                        long = BASE_S * draw.expovariate(4)
                    times.append(BASE_S * math.exp(log) + long)
                row.append(times)
            found.append(row)
        return found

    def run(self, disturbed: bool) -> tuple[list[list[dict[str, Any]]], float]:
        """Return for each rank its steps, and when the last rank ends."""
        draw = random.Random(self.seed)
        whole = self.work(draw)
        now = [0.0] * self.ranks
        steps: list[list[dict[str, Any]]] = [[] for _ in now]
        for step in range(self.steps):
            issue = [[0.0] * self.places for _ in now]
            done = [[0.0] * self.places for _ in now]
            begun = list(now)
            took = [TRANSFER_S * draw.lognormvariate(0, self.noise) for _ in range(self.places)]
            work = whole[step]
            late = [[LATE_S * draw.random() for _ in range(self.places)] for _ in now]
            tail = [0.01 * draw.lognormvariate(0, self.noise) for _ in now]
            over = 0.0
            for place in range(self.places):
                for rank in range(self.ranks):
                    seconds = work[rank][place]
                    if disturbed:
                        seconds *= self.factor.get((rank, place), 1.0)
                        seconds += self.excess.get((rank, step, place), 0.0)
                    now[rank] += seconds
                    issue[rank][place] = now[rank]
                over = max(over, *(issue[rank][place] for rank in range(self.ranks))) + took[place]
                for rank in range(self.ranks):
                    done[rank][place] = over + late[rank][place]
                    if self.form == "lines":
                        now[rank] = done[rank][place]
            for rank in range(self.ranks):
                waited = now[rank] if self.form == "lines" else max(now[rank], done[rank][-1])
                now[rank] = waited + tail[rank]
                steps[rank].append(
                    {"begin": begun[rank], "issue": issue[rank], "done": done[rank], "waited": waited, "end": now[rank]}
                )
        return steps, max(now)


def drawn(seed: int) -> tuple[Job, list[int]]:
    """Draw a program and its culprits."""
    draw = random.Random(seed * 7919 + 13)
    form, ranks, steps = draw.choice(["profile", "lines"]), draw.choice(RANKS), draw.choice(STEPS)
    job = Job(seed, form, ranks, steps, draw.choice(NOISES), 3, draw.choice(KINDS))
    kind = draw.choice(["even", "constant", "often", "third", "factor", "once"])
    if kind == "even":
        return job, []
    culprit, place = draw.randrange(job.ranks), draw.randrange(job.places)
    size = draw.choice([0.01, 0.02, 0.04, 0.08])
    for step in range(job.steps):
        hit = {"constant": True, "often": draw.random() < 0.3, "third": step % 3 == 0}.get(kind, False)
        if hit:
            job.excess[culprit, step, place] = size
    if kind == "once":
        job.excess[culprit, draw.randrange(job.steps), place] = size * job.steps
    if kind == "factor":
        for at in range(job.places):
            job.factor[culprit, at] = draw.choice([1.2, 1.5, 2.0])
    return job, [culprit]


def written(job: Job, steps: list[list[dict[str, Any]]]) -> list[bytes]:
    """Write each rank's trace, on its own clock."""
    draw = random.Random(job.seed + 1)
    return [
        _written(job, rank, of, draw.uniform(-1, 1), draw.choice([0.0, 0.0, 2e-5, -5e-5]))
        for rank, of in enumerate(steps)
    ]


def _written(job: Job, rank: int, steps: list[dict[str, Any]], offset: float, drift: float) -> bytes:
    def clock(time: float) -> float:
        return 1000.0 + offset + time * (1 + drift)

    if job.form == "lines":
        lines = [{"rank": rank, "world": job.ranks, "t0": clock(0.0)}]
        for step in steps:
            for issue, done in zip(step["issue"], step["done"], strict=True):
                lines.append({"op": "allreduce", "t0": clock(issue), "t1": clock(done), "bytes": 8})
            lines.append({"op": "step", "t0": clock(step["end"]), "t1": clock(step["end"])})
        return "\n".join(map(json.dumps, lines)).encode()
    events: list[dict[str, Any]] = []

    def add(category: str, name: str, thread: int, begin: float, end: float) -> None:
        begin, end = clock(begin), clock(end)
        events.append(
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": 1,
                "tid": thread,
                "ts": round(begin * 1e6, 3),
                "dur": round((end - begin) * 1e6, 3),
            }
        )

    for number, step in enumerate(steps):
        add("user_annotation", f"ProfilerStep#{number}", 1, step["begin"], step["end"])
        last = step["begin"]
        for place, issue in enumerate(step["issue"]):
            add("cpu_op", "aten::mm", 1, last, issue - 1e-6)
            add("user_annotation", "gloo:all_reduce", 10 + place, issue, step["done"][place])
            last = issue
        add("cpu_op", "aten::add_", 1, step["waited"], step["end"])
    about = {"rank": rank, "world_size": job.ranks, "backend": "gloo"}
    return json.dumps({"distributedInfo": about, "baseTimeNanoseconds": 10**18, "traceEvents": events}).encode()


def judged(traces: list[bytes]) -> dict[str, Any]:
    """Return the verdict on traces in memory."""
    files = []
    for number, trace in enumerate(traces):
        file = _core.RecordedFile(f"rank-{number}")
        file.feed(trace)
        file.finish()
        files.append(file)
    verdict: dict[str, Any] = json.loads(_core.judge_recorded(files))
    return verdict


def case(seed: int) -> dict[str, Any]:
    """Run one program and compare the verdict with the truth."""
    job, culprits = drawn(seed)
    steps, took = job.run(True)
    truth = took - job.run(False)[1]
    verdict = judged(written(job, steps))
    named = sorted(rank for culprit in verdict["culprits"] for rank in culprit["ranks"])
    row = {
        "seed": seed,
        "form": job.form,
        "ranks": job.ranks,
        "noise": job.noise,
        "kind": job.kind,
        "steps": job.steps,
        "truth_s": truth,
        "share": truth / took,
        "even": not culprits,
        "verdict": verdict["verdict"],
        "reason": verdict["reason"],
        "named": named,
        "right": named == culprits,
    }
    if named == culprits and culprits:
        found = verdict["culprits"][0]
        row |= {"seconds": found["seconds"], "ci95": found["ci95"]}
    return row


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of the claim."""
    even = [row for row in rows if row["even"]]
    material = [row for row in rows if not row["even"] and row["share"] > MATERIAL]
    known = [row for row in material if "seconds" in row]
    errors = sorted(abs(row["seconds"] / row["truth_s"] - 1) for row in known)
    inside = sum(row["ci95"][0] <= row["truth_s"] <= row["ci95"][1] for row in known)
    return {
        "even_runs": len(even),
        "false_names": sum(row["verdict"] == "straggler" for row in even),
        "material": len(material),
        "named": sum(row["right"] for row in material),
        "covered": inside,
        "known": len(known),
        "median_bias": statistics.median(row["seconds"] / row["truth_s"] - 1 for row in known) if known else None,
        "error_at_90": errors[int(0.9 * (len(errors) - 1))] if errors else None,
    }


def main() -> None:
    """Run the cases and write the record."""
    import record

    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    rows = [case(seed) for seed in range(first, first + cases)]
    found = summary(rows)
    found["by_kind"] = {kind: summary([row for row in rows if row["kind"] == kind]) for kind in KINDS}
    print(json.dumps(found, indent=1))
    wrong = [row for row in rows if not row["right"] and (row["even"] or row["share"] > MATERIAL)]
    record.write("court_synthetic", [], cases=cases, first_seed=first, **found, wrong=wrong)


if __name__ == "__main__":
    main()
