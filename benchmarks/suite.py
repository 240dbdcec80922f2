"""Claim: `make test` takes at most 15 minutes on a clean clone with 2 cores, at most 9 once built, and passes.

It passes each time, also beside two busy loops.

    python benchmarks/suite.py RUNS [BUSY]

Runs the stages RUNS times, beside BUSY loops that compute (0). Each run is added to the record with its time and
commit, so it can be made in parts; a run that was interrupted is left out. `--clean` in the place of RUNS: once, in
a clone of this commit without anything built. About ten minutes a run; without arguments, nothing.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PATH = ROOT / "benchmarks" / "records" / "suite.json"
STAGES = ("test-code", "test-live")
MOST_S = {"clean": 15 * 60, "built": 9 * 60}
SLOWEST = 30


def stage(name: str, where: Path) -> tuple[float, bool, list[str], dict[str, float]]:
    """Return seconds, whether it passed, what failed, and how long each test took that took a second."""
    options = "--durations=0 --durations-min=1 -rf"
    began = time.monotonic()
    done = subprocess.run(
        ["make", "--no-print-directory", name],
        cwd=where,
        env={**os.environ, "PYTEST_ADDOPTS": options},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+::.*?)(?: - .*)?$|^ {4}(\S+::\S+)$", done.stdout, re.MULTILINE)
    took = {test: float(seconds) for seconds, test in re.findall(r"^([\d.]+)s call +(.+)$", done.stdout, re.MULTILINE)}
    if done.returncode:
        print(done.stdout[-4000:])
    return time.monotonic() - began, done.returncode == 0, ["".join(one) for one in failed], took


def suite(where: Path, busy: int, stages: tuple[str, ...] = STAGES) -> tuple[dict[str, Any], dict[str, float]]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
    run: dict[str, Any] = {"busy_loops": busy, "load_1_min": os.getloadavg()[0], "stages_s": {}, "failed": []}
    tests: dict[str, float] = {}
    try:
        for name in stages:
            seconds, passed, failed, took = stage(name, where)
            run["stages_s"][name] = round(seconds, 1)
            run["failed"] += failed or ([] if passed else [name])
            tests |= took
            print(f"{name}: {seconds:.0f} s, {'passed' if passed else failed}", flush=True)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    return {**run, "seconds": round(sum(run["stages_s"].values()), 1), "passed": not run["failed"]}, tests


def keep(run: dict[str, Any], tests: dict[str, float]) -> None:
    import record

    before = json.loads(PATH.read_text())["runs"] if PATH.exists() else []
    code = record.state_of_the_code()
    at = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    runs = [*before, {"at": at, **code, **run}]
    slowest = sorted(tests.items(), key=lambda one: -one[1])[:SLOWEST]
    took: dict[str, list[float]] = {how: [] for how in MOST_S}
    for one in runs:
        if not one["busy_loops"]:
            took["clean" if one.get("clean") else "built"].append(one["seconds"])
    print(
        record.write(
            "suite",
            [],
            passed=sum(one["passed"] for one in runs),
            of=len(runs),
            reached=all(one["passed"] for one in runs)
            and all(took[how] and max(took[how]) <= most for how, most in MOST_S.items()),
            slowest_s=dict(slowest),
            runs=runs,
        )
    )


def main() -> None:
    if len(sys.argv) < 2:
        print(__doc__)
        return
    busy = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if sys.argv[1] == "--clean":
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)  # tests run as another user, too
            clone = Path(folder) / "crosswind"
            subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
            run, tests = suite(clone, busy, ("test",))
        keep({"clean": True, **run}, tests)
        return
    for _ in range(int(sys.argv[1])):
        keep(*suite(ROOT, busy))


if __name__ == "__main__":
    main()
