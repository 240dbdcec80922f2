"""Give every verb that reads a file mutants of it: no traceback, no exit code 70, no hang, under 1 GB.

    python benchmarks/file_mutants.py [--mutants 300] [--minutes M] [--seed 1] [--only TARGET ...] [--keep DIR]

A verb may use 20 s of processor time. `run` simulates what the file asks for, up to 10^9 tasks: after 20 s it gets a
ctrl-C, and is a fault unless it has printed the size of the experiment before and ends within 10 s more.

Exit code 1 where a fault was found. Each kind of fault is printed once, with the number of its first mutant.
About 2 hours of processor time for 300 mutants of each target; `tests/unit/files/test_mutants.py` tries a few each day.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import command_line
import mutants

ROUND = 20


def main() -> int:
    """Try `ROUND` mutants of each target in turn, until all are tried or the time is over."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=mutants.TARGETS, default=list(mutants.TARGETS))
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    command_line.import_all()
    ends = time.monotonic() + 60 * asked.minutes if asked.minutes else None
    tried, kinds = Counter[str](), dict[str, dict[str, list[int]]]()
    with tempfile.TemporaryDirectory() as place:
        folder = mutants.plant(Path(place) / "seeds")
        for name in asked.only:
            target = mutants.TARGETS[name]
            if wrong := mutants.fault(folder, target, (folder / target.file).read_bytes()):
                kinds[name] = {f"unchanged: {wrong}": [-1]}
        for first in range(0, asked.mutants, ROUND):
            for name in asked.only:
                for number in range(first, min(first + ROUND, asked.mutants)):
                    if ends is not None and time.monotonic() > ends:
                        break
                    _try(folder, name, number, asked, kinds.setdefault(name, {}))
                    tried[name] += 1
            print(f"{sum(tried.values())} mutants", flush=True)
    for name in asked.only:
        print(f"{name}: {tried[name]} mutants")
        for kind, numbers in kinds.get(name, {}).items():
            print(f"    {len(numbers)} times {kind} [{numbers[0]}]")
    faults = sum(map(len, kinds.values()))
    print(f"{sum(tried.values())} mutants, {faults} kinds of faults")
    return int(faults > 0)


def _try(folder: Path, name: str, number: int, asked: argparse.Namespace, kinds: dict[str, list[int]]) -> None:
    """Give a verb one mutant, and add its fault to `kinds`."""
    target = mutants.TARGETS[name]
    content = mutants.mutant(folder, target, f"{asked.seed} {name} {number}")
    if not (wrong := mutants.fault(folder, target, content)):
        return
    kind = re.sub(r"\d{4,}", "N", wrong)
    if kind not in kinds:
        print(f"{name} {number}: {wrong}", flush=True)
    kinds.setdefault(kind, []).append(number)
    if asked.keep:
        asked.keep.mkdir(parents=True, exist_ok=True)
        kept = re.sub(r"\W+", "-", name)
        (asked.keep / f"{kept}-{number}{Path(target.file).suffix}").write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
