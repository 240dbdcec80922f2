"""Claim: recursive-doubling and ring allreduce give the right sum at every number of ranks from 2 to 65,536.

Recursive doubling: every rank of every size sends, waits and adds. Ring: so up to 1,024 ranks; above, along the lines
that `crates/program/src/bsp/allreduce/tests.rs` tells of. Both are tests there that `cargo test` leaves out because
they take minutes; what drives them is the type that programs use. The first wrong size ends it.

    python benchmarks/allreduce_at_every_size.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import record

TESTS = ["recursive_doubling_at_every_size_to_65_536", "a_ring_at_every_size_to_65_536"]
CARGO = ["cargo", "test", "--release", "--quiet", "-p", "crosswind-program", "--lib"]
ROOT = Path(__file__).parent.parent


def started(test: str) -> tuple[subprocess.Popen[str], float]:
    """Start one of the tests."""
    command = [*CARGO, test, "--", "--ignored", "--nocapture"]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True), time.perf_counter()


def finished(test: str, process: subprocess.Popen[str], start: float) -> dict[str, Any]:
    """Wait for it; the line that it prints, with the seconds that it took."""
    printed, _ = process.communicate()
    seconds = time.perf_counter() - start
    if process.returncode != 0:
        sys.exit(f"{test}: {printed}")
    found: list[dict[str, Any]] = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    if len(found) != 1:
        sys.exit(f"{test} did not run: {printed}")
    sizes = found[0]["to"] - found[0]["from"] + 1
    print(f"{test}: {sizes} sizes in {seconds:.0f} s", file=sys.stderr)
    return {"test": test, **found[0], "sizes": sizes, "seconds": seconds}


def main() -> None:
    """Build, look at every size, write the record."""
    subprocess.run([*CARGO, "--no-run"], cwd=ROOT, check=True)
    # Side by side, the shorter first: nothing here is a timing.
    running = [(test, *started(test)) for test in reversed(TESTS)]
    results = [finished(*one) for one in running]
    print(record.write("allreduce_at_every_size", [], results=results, wrong_sizes=[]))


if __name__ == "__main__":
    main()
