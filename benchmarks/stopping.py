"""Claim: ctrl-C ends a program within 2 s, whatever its calls do; commands that ignore SIGTERM get their grace period.

Each case is a program of its own. Once its calls run, it gets SIGINT, or stops by itself: `break`, `cancel`,
`shutdown`, a deleted iterator. Timed until the process has ended. Then none of its agents may be left. What calls do:

- sleeps for an hour, in Python;
- holds Python's lock for an hour, in C (`ctypes.PyDLL`);
- never returns, in a loop of Python's.

A program that stops by itself waits for calls that run, as an executor does: those take 0.3 s.

    python benchmarks/stopping.py [--turns 6]

Takes under 3 min with 6 turns. Writes records/stopping.json; ends with 1 where an agent is left. On a quiet host, with
a release build.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import record

NAME = "stopping"
WITHIN_S = 2.0
NODES = 2
GRACE_S = 1.0
"""Of commands; the default is 5 s."""
RUNNING_S = 0.3
START_S = 60.0

DOES = {
    "sleeps": "time.sleep(3600)",
    "holds the lock": "ctypes.PyDLL(None).sleep(3600)",
    "never returns": "while True: pass",
    "returns": f"time.sleep({RUNNING_S})",
}
MAP = f"for _ in crosswind.map(call, range(200), max_workers={NODES}): pass"
FARM = f"""
with crosswind.Farm(max_workers={NODES}) as farm:
    calls = [farm.submit(call, number) for number in range(200)]
    calls[-1].result()
"""
OUT = f"""
results = crosswind.map(lambda n: n if n < 40 else call(n), range(200), max_workers={NODES}, out="kept")
for number, _ in enumerate(results): pass
"""
BY_ITSELF = {
    "map, break": f"for _ in crosswind.map(call, range(200), max_workers={NODES}):\n    stops()\n    break",
    "map, deleted": f"""
results = crosswind.map(call, range(200), max_workers={NODES})
next(results)
stops()
del results
""",
    "farm, break": f"""
with crosswind.Farm(max_workers={NODES}) as farm:
    for _ in farm.map(call, range(200)):
        stops()
        break
""",
    "farm, cancel": f"""
with crosswind.Farm(max_workers={NODES}) as farm:
    calls = [farm.submit(call, number) for number in range(200)]
    calls[0].result()
    stops()
    for one in calls: one.cancel()
""",
    "farm, shutdown": f"""
farm = crosswind.Farm(max_workers={NODES})
calls = [farm.submit(call, number) for number in range(200)]
calls[0].result()
stops()
farm.shutdown(cancel_futures=True)
""",
}
PROGRAM = """
import ctypes, time
import crosswind

def call(number):
    open(f"begun/{number}", "w").close()
    DOES

def stops():
    open("stops", "w").close()

BODY
"""
"""In a directory of its own. Calls leave a file when they begin, and so does the program when it stops by itself."""
COMMANDS = {
    "commands": "touch begun/$(basename {}); exec sleep 3600",
    "commands that ignore SIGTERM": "touch begun/$(basename {}); trap '' TERM; while :; do sleep 1; done",
}


def cases() -> dict[str, tuple[list[str], bool]]:
    """Return each case's program, and whether it stops by itself."""

    def python(does: str, body: str) -> list[str]:
        return [sys.executable, "-c", PROGRAM.replace("DOES", DOES[does]).replace("BODY", body)]

    ways = {"map": MAP, "farm": FARM}
    endless = [does for does in DOES if does != "returns"]
    found = {f"{way}, ctrl-C, a call {does}": (python(does, ways[way]), False) for way in ways for does in endless}
    found["map into files, ctrl-C, a call sleeps"] = (python("sleeps", OUT), False)
    found |= {f"{name}, a call returns": (python("returns", body), True) for name, body in BY_ITSELF.items()}
    for name, command in COMMANDS.items():
        words = ["map", command, "--inputs", "in/*", "--grace", str(GRACE_S), "-j", str(NODES)]
        found[f"{name}, ctrl-C"] = ([sys.executable, "-m", "crosswind.cli", *words], False)
    return found


def agents_of(pid: int) -> list[int]:
    """Return the processes that a program has started."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # it has ended
            found += map(int, (thread / "children").read_text().split())
    return found


def is_there(pid: int) -> bool:
    """Whether a process runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def stopped(words: list[str], *, by_itself: bool) -> tuple[float, int]:
    """Run a case once. Returns the seconds from the stop to the end of the program, and how many agents are left."""
    with tempfile.TemporaryDirectory(prefix="stopping-") as name:
        directory = Path(name)
        for folder in ("begun", "in"):
            (directory / folder).mkdir()
        for number in range(20):
            (directory / "in" / f"{number:02}").write_text(f"{number}\n")
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(words, cwd=directory, stdout=quiet, stderr=quiet, start_new_session=True)
        until = time.monotonic() + START_S
        while not (directory / "stops").exists() if by_itself else len(list((directory / "begun").iterdir())) < NODES:
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"error: no call began: {words}")
            time.sleep(0.001)
        agents = agents_of(process.pid)
        begun = time.perf_counter()
        if not by_itself:
            process.send_signal(signal.SIGINT)
        process.wait(START_S)
        took = time.perf_counter() - begun
        left = [pid for pid in agents if is_there(pid)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return took, len(left)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=6)
    turns = parser.parse_args().turns
    found: dict[str, dict[str, Any]] = {}
    for name, (words, by_itself) in cases().items():
        times, left = zip(*(stopped(words, by_itself=by_itself) for _ in range(turns)), strict=True)
        waits = GRACE_S if name.startswith("commands") else RUNNING_S if by_itself else 0.0
        is_within = max(times) <= WITHIN_S + waits
        found[name] = {
            **record.spread(list(times)),
            "waits_s": waits,
            "within_2_s": is_within,
            "agents_left": sum(left),
        }
        print(f"{name}: {found[name]['median']:.2f} s, at most {max(times):.2f}; {sum(left)} agents left", flush=True)
    slow = [name for name, said in found.items() if not said["within_2_s"]]
    print("not within 2 s:", *slow or ["none"])
    print(record.write(NAME, ["cloudpickle"], turns=turns, **found))
    sys.exit(any(said["agents_left"] for said in found.values()))


if __name__ == "__main__":
    main()
