"""Claim: `crosswind --help` and `crosswind plan` of a small file end within 0.25 s.

Each is timed from its start to its end, in shuffled order, beside a Python that does nothing; files are in the page
cache, as a round before has read them. Also the processor time, which says the same on a host that is not quiet. What
is imported is a test's (tests/unit/cli/test_imports.py). Writes records/command_line_start.json:
    python benchmarks/command_line_start.py [rounds]
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import time
from pathlib import Path

import record

ROOT = Path(__file__).parents[1]
TASK = ["--task-size-mb", "2", "--task-work", "5"]
VERB = ["-m", "crosswind.cli"]
COMMANDS = {
    "python": ["-c", "pass"],
    "help": [*VERB, "--help"],
    "plan": [*VERB, "plan", "examples/fork_of_table_4.toml", *TASK],
    "plan_help": [*VERB, "plan", "--help"],
    "run": [*VERB, "run", "examples/fork_graph.toml"],
}


def timed(words: list[str]) -> tuple[float, float]:
    """Return the seconds from start to end of a command, and those of a processor."""

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before, begun = used(), time.perf_counter()
    subprocess.run([sys.executable, *words], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun, used() - before


def main(rounds: int = 21) -> None:
    samples: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in COMMANDS}
    for number in range(rounds + 1):
        for name in random.sample(list(COMMANDS), len(COMMANDS)):
            found = timed(COMMANDS[name])
            if number > 0:
                for values, value in zip(samples[name], found, strict=True):
                    values.append(value)
    spreads = {
        name: {"wall_s": record.spread(wall), "processor_s": record.spread(processor)}
        for name, (wall, processor) in samples.items()
    }
    for name, spread in spreads.items():
        print(f"{name}: {spread['wall_s']['median']:.3f} s, processor {spread['processor_s']['median']:.3f} s")
    record.write("command_line_start", ["typer", "rich"], commands=COMMANDS, samples=spreads)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
