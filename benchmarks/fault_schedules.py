"""Claim: schedules of drawn faults find faults of the agent.

Each mutant of `agent_mutants.py` is put into a scratch copy of the sources, one at a time; then schedules run from seed
0 until one fails. Without any mutant the same schedules hold.

    python benchmarks/fault_schedules.py [--schedules 20000]

Writes records/fault_schedules.json.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import record
from agent_mutants import MUTANTS

ROOT = Path(__file__).parent.parent


def search(copy: Path, schedules: int) -> dict[str, Any]:
    """Run schedules in a copy of the sources: the first seed that fails and why, or none."""
    subprocess.run(["cargo", "build", "--quiet", "-p", "crosswind-faults"], cwd=copy, check=True)
    command = [str(copy / "target/debug/crosswind-faults"), "--schedules", str(schedules), "--no-shrink"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = re.search(r"seed (\d+) fails, after (\d+) schedules:\n  (.*)", said)
    if not found:
        return {"seed": None, "schedules": schedules, "why": None}
    return {"seed": int(found[1]), "schedules": int(found[2]), "why": found[3][:120]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=20_000)
    schedules = parser.parse_args().schedules
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "crosswind"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "target", "python", "docs", "tests"))
        shutil.copytree(ROOT / "crates", copy / "crates", dirs_exist_ok=True)
        unchanged = search(copy, min(schedules, 2_000))
        for name, file, was, now in MUTANTS:
            path = copy / file
            text = path.read_text(encoding="utf-8")
            if text.count(was) != 1:
                raise ValueError(f"{name}: {was!r} stands {text.count(was)} times in {file}")
            path.write_text(text.replace(was, now), encoding="utf-8")
            results.append({"mutant": name, **search(copy, schedules)})
            path.write_text(text, encoding="utf-8")
            print(results[-1], flush=True)
    print(record.write("fault_schedules", [], schedules=schedules, unchanged=unchanged, mutants=results))


if __name__ == "__main__":
    main()
