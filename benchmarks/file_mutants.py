"""Give every verb that reads a file mutants of it: no traceback, no exit code 70, no hang, under 1 GB.

    python benchmarks/file_mutants.py [--mutants 300] [--seed 1] [--only TARGET ...] [--keep DIR]

Exit code 1 where a fault was found. Each kind of fault is printed once, with the number of its first mutant.
About 2 hours of processor time for 300 mutants of each target; `tests/unit/files/test_mutants.py` tries a few each day.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import command_line
import mutants


def main() -> int:
    """Try the mutants of each target in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=mutants.TARGETS, default=list(mutants.TARGETS))
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    command_line.import_all()
    faults = 0
    with tempfile.TemporaryDirectory() as place:
        folder = mutants.plant(Path(place) / "seeds")
        for name in asked.only:
            target, began, kinds = mutants.TARGETS[name], time.monotonic(), dict[str, list[int]]()
            if wrong := mutants.fault(folder, target, (folder / target.file).read_bytes()):
                kinds[f"unchanged: {wrong}"] = [-1]
            for number in range(asked.mutants):
                content = mutants.mutant(folder, target, f"{asked.seed} {name} {number}")
                if wrong := mutants.fault(folder, target, content):
                    kinds.setdefault(re.sub(r"\d{4,}", "N", wrong), []).append(number)
                    if asked.keep:
                        asked.keep.mkdir(parents=True, exist_ok=True)
                        kept = re.sub(r"\W+", "-", name)
                        (asked.keep / f"{kept}-{number}{Path(target.file).suffix}").write_bytes(content)
            print(f"{name}: {asked.mutants} mutants, {time.monotonic() - began:.0f} s", flush=True)
            for kind, numbers in kinds.items():
                faults += 1
                print(f"    {len(numbers)} times {kind} [{numbers[0]}]", flush=True)
    print(f"{faults} kinds of faults")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
