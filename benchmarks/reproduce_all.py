"""Claim: `crosswind reproduce all --quick` takes less than 5 minutes on two CPUs.

All five papers from nothing, each with its report, in an empty directory. Writes records/reproduce_all.json. Run on a
quiet host, with a release build:
    python benchmarks/reproduce_all.py
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import record

ASKED_S = 300.0


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        begun = time.perf_counter()
        command = [sys.executable, "-m", "crosswind.cli", "reproduce", "all", "--quick"]
        subprocess.run(command, cwd=directory, stdout=subprocess.DEVNULL, check=True)
        wall_s = time.perf_counter() - begun
        reports = sorted(path.parent.name for path in Path(directory).glob("papers/*/report.html"))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = {"wall_s": wall_s, "processor_s": used.ru_utime + used.ru_stime, "papers": reports}
    print(found)
    assert len(reports) == 5, reports
    record.write("reproduce_all", ["numpy"], asked_s=ASKED_S, passed=wall_s < ASKED_S, **found)


if __name__ == "__main__":
    main()
