"""Claim: a CPU-bound program that is away half of the time takes 2.0 times as long, within 5 %.

The program does a fixed amount of work on a CPU that it is bound to. It runs alone (an injection of nothing) and
disturbed by turns, in the order ABBA and shortly, so that what this machine's speed does meets both; each ratio is that
of two neighbouring runs, by the clock, and the median counts; its interval stands beside it. Slices begin at another
moment in each run, so that where its end falls evens out. Cases: slices by SIGSTOP and by the freezer; the same with a
processor that idles meanwhile (`--idle`; no claim is made of it); a daemon of 10 ms every 50 ms on the program's CPU,
which must cost it 1 / (1 - 10/50) = 1.25. Beside each ratio stand time per CPU second that the program used, disturbed
against alone, and the CPU time itself.

What was tried before this design, on the same virtual machine:

1. 34 pairs, a loop of Python's interpreter at real-time priority, not bound, the processor idle while it was away: 2.24
   stopped, 2.01 frozen (single pairs 1.5 to 2.9), daemon 1.28; stopped programs used 15 % more CPU time.
2. 10 pairs of each of seven variants of it (as it was; ordinary priority; bound; bound or not, with something else
   computing at the lowest priority; frozen with and without that), with the program's own clock inside: it was away
   for 50.0 to 50.8 % of its time (medians), and each interval lasted 20.1 to 20.2 ms for 20 asked. Yet the medians of
   the ratio were 1.67 to 1.83, for now the disturbed programs used less CPU time. The same steps took 79 us in some
   processes, 100 or 160 us in others, as long as the process lived, disturbed or not, with randomized addresses or
   without. In compiled code a chain of multiplications took the same time to within 3 % in 32 s of 32, whether the
   processor slept, waited or computed in between; independent additions within 3 % in 24, 15 % in the worst.
3. 12 pairs of each of six variants with compiled work (half as much as here): processor idle 2.02 (real-time, not
   bound), 2.08 (not bound), 2.10 (bound), 2.03 (bound, frozen); busy 1.96 (bound), 1.94 (bound, frozen).

So the loop's own speed was much of what was measured, and a processor that falls asleep may be some of the rest. Hence
compiled work, and a processor that stays busy, which `crosswind inject` sees to by itself now. Ordinary priority,
because a bound program of real-time priority may keep the injector itself from starting in time (in the first record
one daemon's interval began 0.38 s late; why was not traced).

    python benchmarks/injected_duty.py [pairs [case ...]]

Cases that are not named stay in the record as they are, each with its own date and commit.
"""

from __future__ import annotations

import json
import sys
import tempfile
from datetime import UTC, datetime
from math import comb
from pathlib import Path
from typing import Any

import record

from crosswind.inject import inject, means

WORK = "import hashlib; hashlib.pbkdf2_hmac('sha256', b'a program', b'that computes', 3_000_000)"
HEAD = 'schema_version = 1\nname = "{name}"\n'
SLICES = HEAD.format(name="half") + '[[source]]\nkind = "local"\nquantum_s = 0.02\njobs = 2\n'
DAEMON = HEAD.format(name="daemon") + '[[source]]\nkind = "daemon"\ninterval_s = 0.05\nduration_s = 0.01\n'
TOLERANCE = 0.05
CASES: dict[str, dict[str, Any]] = {
    "stop": {"asked": 2.0, "text": SLICES, "how": "stop", "busy": True},
    "freeze": {"asked": 2.0, "text": SLICES, "how": "freeze", "busy": True},
    "daemon": {"asked": 1.25, "text": DAEMON, "how": "auto", "busy": True},
    "stop, processor idle": {"asked": None, "text": SLICES, "how": "stop", "busy": False},
}


def run(file: Path, how: str, busy: bool, seed: int) -> dict:
    injected = inject(file, [sys.executable, "-S", "-c", WORK], how=how, pin=True, busy=busy, seed=seed)
    if not injected.succeeded:
        raise SystemExit(f"the program failed: {injected.summary}")
    return injected.summary


def cpu_s(summary: dict) -> float:
    return summary["cpu_user_s"] + summary["cpu_system_s"]


def measure(directory: Path, text: str, how: str, busy: bool, pairs: int) -> dict:
    nothing, file = directory / "nothing.toml", directory / "disturbance.toml"
    nothing.write_text(HEAD.format(name="nothing"))
    file.write_text(text)
    run(nothing, how, busy, 0)  # warm
    alone, disturbed = [], []
    for pair in range(pairs):
        for which in (nothing, file) if pair % 2 else (file, nothing):
            (alone if which == nothing else disturbed).append(run(which, how, busy, pair))
    both = list(zip(disturbed, alone, strict=True))
    ranks = [summary["ranks"][0] for summary in disturbed]
    return {
        "ratio": record.spread([d["elapsed_s"] / a["elapsed_s"] for d, a in both]),
        "ratio_per_cpu_s": record.spread([d["elapsed_s"] / cpu_s(d) / (a["elapsed_s"] / cpu_s(a)) for d, a in both]),
        "alone_s": record.spread([summary["elapsed_s"] for summary in alone]),
        "alone_cpu_s": record.spread([cpu_s(summary) for summary in alone]),
        "disturbed_s": record.spread([summary["elapsed_s"] for summary in disturbed]),
        "disturbed_cpu_s": record.spread([cpu_s(summary) for summary in disturbed]),
        "share": record.spread([rank["share"] for rank in ranks]),
        "late_mean_s": record.spread([rank["late_mean_s"] for rank in ranks]),
        "late_max_s": record.spread([rank["late_max_s"] for rank in ranks]),
        "longer_mean_s": record.spread([rank["longer_mean_s"] for rank in ranks]),
        "how": sorted({way for rank in ranks for cause in rank["causes"] for way in cause["how"]}),
    }


def interval_of_median(samples: list[float]) -> list[float]:
    """Order statistics between which the median lies with 95 % or more."""
    ordered, below, count = sorted(samples), 0.0, len(samples)
    place = 0
    while 2 * (below := below + comb(count, place) / 2**count) <= 0.05:
        place += 1
    return [ordered[max(place - 1, 0)], ordered[count - max(place, 1)]]


def measured_before() -> dict[str, Any]:
    path = record.RECORDS / "injected_duty.json"
    cases = json.loads(path.read_text())["cases"] if path.exists() else {}
    return {name: case for name, case in cases.items() if name in CASES and "made_at" in case}


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 26
    found = measured_before()
    with tempfile.TemporaryDirectory() as directory:
        for name in sys.argv[2:] or CASES:
            case = CASES[name]
            if case["how"] == "freeze" and means()["no_freezer"] is not None:
                continue
            done = measure(Path(directory), case["text"], case["how"], case["busy"], pairs)
            where = {"made_at": datetime.now(UTC).isoformat(timespec="seconds"), **record.state_of_the_code()}
            found[name] = {"asked": case["asked"], "pairs": pairs, "busy": case["busy"], **where, **done}
            ratio, late = done["ratio"], 1e6 * done["late_mean_s"]["median"]
            print(f"{name}: {ratio['median']:.4f} times as long ({ratio['low']:.3f} .. {ratio['high']:.3f});", end=" ")
            print(f"per CPU second {done['ratio_per_cpu_s']['median']:.4f}; late by {late:.0f} us")

    for case in found.values():
        case["ratio"]["interval_of_median"] = interval_of_median(case["ratio"]["samples"])
    asked = [case for case in found.values() if case["asked"]]

    def within(which: str) -> bool:
        return all(abs(case[which]["median"] / case["asked"] - 1) < TOLERANCE for case in asked)

    reached = {"reached": within("ratio"), "reached_per_cpu_s": within("ratio_per_cpu_s")}
    record.write("injected_duty", [], within=TOLERANCE, cases=found, **reached)


if __name__ == "__main__":
    main()
