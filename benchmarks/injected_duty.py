"""Claim: a CPU-bound program that is away half of the time takes 2.0 times as long, within 5 %.

The program does a fixed amount of work. It runs alone (an injection of nothing) and disturbed by turns, so that what
this machine does over minutes meets both; each ratio is that of two neighbouring runs. Beside the claim: the same by
the freezer where there is one, and a daemon of 10 ms every 50 ms on the program's CPU, which must cost it
1 / (1 - 10/50) = 1.25.

    python benchmarks/injected_duty.py [pairs]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import record

from crosswind.inject import inject, means

WORK = "n = 30_000_000\nwhile n: n -= 1"
HEAD = 'schema_version = 1\nname = "{name}"\n'
SLICES = HEAD.format(name="half") + '[[source]]\nkind = "coscheduled"\nquantum_s = 0.02\njobs = 2\n'
DAEMON = HEAD.format(name="daemon") + '[[source]]\nkind = "daemon"\ninterval_s = 0.05\nduration_s = 0.01\n'
ASKED, TOLERANCE = 2.0, 0.05


def seconds(file: Path, how: str, pin: bool) -> tuple[float, dict]:
    injected = inject(file, [sys.executable, "-S", "-c", WORK], how=how, pin=pin)
    if not injected.succeeded:
        raise SystemExit(f"the program failed: {injected.summary}")
    return injected.elapsed_s, injected.summary["ranks"][0]


def measure(directory: Path, text: str, how: str, pin: bool, pairs: int) -> dict:
    nothing, file = directory / "nothing.toml", directory / "disturbance.toml"
    nothing.write_text(HEAD.format(name="nothing"))
    file.write_text(text)
    alone, disturbed, ranks = [], [], []
    seconds(nothing, how, pin)  # warm
    for _ in range(pairs):
        alone.append(seconds(nothing, how, pin)[0])
        took, rank = seconds(file, how, pin)
        disturbed.append(took)
        ranks.append(rank)
    ratios = [d / a for d, a in zip(disturbed, alone, strict=True)]
    return {
        "ratio": record.spread(ratios),
        "alone_s": record.spread(alone),
        "disturbed_s": record.spread(disturbed),
        "share": record.spread([rank["share"] for rank in ranks]),
        "late_mean_s": record.spread([rank["late_mean_s"] for rank in ranks]),
        "late_max_s": record.spread([rank["late_max_s"] for rank in ranks]),
        "how": sorted({way for rank in ranks for cause in rank["causes"] for way in cause["how"]}),
    }


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    cases = {"stop": (SLICES, "stop", False)}
    if means()["no_freezer"] is None:
        cases["freeze"] = (SLICES, "freeze", False)
    cases["daemon"] = (DAEMON, "auto", True)
    with tempfile.TemporaryDirectory() as directory:
        found = {name: measure(Path(directory), *case, pairs) for name, case in cases.items()}
    for name, case in found.items():
        low, high = case["ratio"]["low"], case["ratio"]["high"]
        late = 1e6 * case["late_mean_s"]["median"]
        print(f"{name}: {case['ratio']['median']:.4f} times as long ({low:.4f} .. {high:.4f}), late by {late:.0f} us")
    duty = [found[name]["ratio"]["median"] for name in ("stop", "freeze") if name in found]
    record.write(
        "injected_duty",
        [],
        pairs=pairs,
        asked={"slices": ASKED, "daemon": 1.25, "within": TOLERANCE},
        cases=found,
        reached=all(abs(ratio / ASKED - 1) < TOLERANCE for ratio in duty)
        and abs(found["daemon"]["ratio"]["median"] / 1.25 - 1) < TOLERANCE,
    )


if __name__ == "__main__":
    main()
