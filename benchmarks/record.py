"""What every record of a benchmark says about where and how it came about."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crosswind import _core

HERE = Path(__file__).parent
_main = Path(getattr(sys.modules["__main__"], "__file__", HERE)).resolve()
if _core.FOR_TESTS and _main.parent == HERE.resolve() and _main.name != "suite.py":  # which times the tests themselves
    raise SystemExit("error: the extension was built for tests, whose rates are no record's\n\nhint: `make build`")

RECORDS = HERE / "records"


def pin_to_one_core() -> int:
    """Keep this process on one CPU; its number."""
    cpu = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpu})
    return cpu


def spread(samples: list[float]) -> dict[str, Any]:
    """All samples with their median and range."""
    return {"median": statistics.median(samples), "low": min(samples), "high": max(samples), "samples": samples}


def machine() -> dict[str, Any]:
    """CPU, cores, kernel and load of this machine."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    cpu = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return {"cpu": cpu, "cores": os.cpu_count(), "kernel": platform.release(), "load_1_min": os.getloadavg()[0]}


def state_of_the_code() -> dict[str, Any]:
    """Say which commit runs, and whether files that it knows have been changed since."""

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = [line for line in git("status", "--porcelain", "-uno").splitlines() if "benchmarks/records/" not in line]
    return {"commit": git("rev-parse", "HEAD"), "uncommitted_changes": bool(changed)}


def write(name: str, packages: list[str], **content: Any) -> Path:
    """Write `records/NAME.json`: machine, versions and the content."""
    record = {
        "benchmark": name,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        **state_of_the_code(),
        "machine": machine(),
        "versions": {"python": platform.python_version(), **{p: importlib.metadata.version(p) for p in packages}},
        **content,
    }
    RECORDS.mkdir(exist_ok=True)
    path = RECORDS / f"{name}.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return path
