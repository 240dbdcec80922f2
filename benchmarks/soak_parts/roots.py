"""A root that is killed with -9 again and again, and resumes, while a command goes over some hundreds of files."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from typing import Any

from soak_parts.left import PATIENCE_S, Ground

FILES = 200
COMMAND_S = 0.02
MOST_BEFORE_A_KILL = 60
"""Commands that have begun since the start, at most, when a root is killed: drawn."""
DELETES = 0.3
"""Part of the kills after which a result is removed: it is to be made again."""
END_S = 120.0
"""For the run that is not killed."""


class Round:
    """One directory of inputs, from the first run to the one that ends."""

    def __init__(self, ground: Ground, number: int, draw: random.Random) -> None:
        self._ground, self._draw = ground, draw
        self.folder = ground.path / f"roots-{number}"
        (self.folder / "in").mkdir(parents=True)
        for file in range(FILES):
            (self.folder / "in" / f"{file:04}").write_text(f"input-{file:04}\n")
        self.log = self.folder / "log"
        self.log.touch()
        self.kills, self.gone_s = 0, 0.0
        self.removed: Counter[str] = Counter()
        self.wrong: list[str] = []

    def _start(self) -> subprocess.Popen[str]:
        command = f"cat {{input}} >> {self.log}; sleep {COMMAND_S}; tr a-z A-Z < {{input}}"
        words = [sys.executable, "-m", "crosswind.cli", "map", command, "--resume"]
        words += ["--inputs", f"{self.folder / 'in'}/*", "--out", str(self.folder / "out")]
        with (self.folder / "said").open("a") as said:
            return subprocess.Popen(words, stdout=said, stderr=said, text=True, start_new_session=True)

    def begun(self) -> Counter[str]:
        """Count the commands that have begun, by input."""
        return Counter(self.log.read_text().splitlines())

    def until(self, until: float) -> None:
        """Kill roots until the time is over, or one ends before it is killed; then let one end."""
        while time.monotonic() < until:
            before, wait_for = self.begun().total(), self._draw.randint(0, MOST_BEFORE_A_KILL)
            root = self._start()
            while root.poll() is None and time.monotonic() < until:
                if self.begun().total() >= before + wait_for:
                    break
                time.sleep(0.02)
            if root.poll() is not None:
                self._ended(root.returncode)
                break
            root.kill()
            root.wait()
            self.kills += 1
            took_s, left = self._ground.gone()
            self.gone_s = max(self.gone_s, took_s)
            if left:
                self.wrong.append(f"{PATIENCE_S:.0f} s after kill {self.kills} of {self.folder} there is: {left}")
            results = [path for path in (self.folder / "out").glob("[0-9]*") if path.stat().st_size]
            if results and self._draw.random() < DELETES:
                result = self._draw.choice(sorted(results))
                self.removed[f"input-{result.name}"] += 1
                result.unlink()
        root = self._start()
        try:
            self._ended(root.wait(END_S))
        except subprocess.TimeoutExpired:
            root.kill()
            root.wait()
            self.wrong.append(f"the last run into {self.folder} did not end within {END_S:.0f} s")

    def _ended(self, status: int) -> None:
        if status:
            said = (self.folder / "said").read_text()[-500:]
            self.wrong.append(f"a run into {self.folder} ended with status {status}: {said}")

    def found(self) -> dict[str, Any]:
        """Compare the results with what they should be."""
        begun, results = self.begun(), {}
        for file in range(FILES):
            path = self.folder / "out" / f"{file:04}"
            results[file] = path.read_text() if path.exists() else None
        missing = [file for file, text in results.items() if text is None]
        for file, text in results.items():
            if text not in (None, f"INPUT-{file:04}\n"):
                self.wrong.append(f"the result of {file} is {text!r}")
        for name, times in begun.items():
            if times > 1 + self.kills + self.removed[name]:
                self.wrong.append(f"{name} ran {times} times in {self.kills} kills")
        again = begun.total() - FILES - self.removed.total()
        return {"missing": missing, "again": max(again, 0)}


def soak(seconds: float, seed: int, ground: Ground) -> dict[str, Any]:
    """Run once; what was killed, and what became of the files."""
    draw, begun = random.Random(f"roots {seed}"), time.monotonic()
    until = begun + seconds
    found: dict[str, Any] = {"tasks": 0, "kills": 0, "results_removed": 0, "ran_again": 0, "missing": [], "wrong": []}
    longest_s, number = 0.0, 0
    while time.monotonic() < until:
        one = Round(ground, number, draw)
        one.until(until)
        account = one.found()
        found["tasks"] += FILES
        found["kills"] += one.kills
        found["results_removed"] += one.removed.total()
        found["ran_again"] += account["again"]
        found["missing"] += [f"{number}/{file}" for file in account["missing"]]
        found["wrong"] += one.wrong
        longest_s, number = max(longest_s, one.gone_s), number + 1
        if not one.wrong:
            shutil.rmtree(one.folder)
    return {**found, "rounds": number, "longest_until_all_processes_are_gone_s": round(longest_s, 3)}
