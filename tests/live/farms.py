"""Farms for the live tests: small trees, what a task does there, and how to wait for something."""

import pickle
import time
from pathlib import Path

from crosswind.platform import Platform
from crosswind.run.agents import Task
from crosswind.run.this_machine import point_of

PATIENCE_S = 60.0


def tree(*nodes, rate=1.0):
    """A platform from "name" (the root) and "name<parent"; the root computes nothing."""
    described = []
    for node in nodes:
        name, _, parent = node.partition("<")
        row = {"name": name, "compute_per_s": rate if parent else 0.0}
        if parent:
            row |= {"parent": parent, "receive_limit_mb_per_s": 1000.0}
        described.append(row)
    return Platform.from_dict({"schema_version": 1, "name": "test", "node": described})


def point(**policy):
    described = point_of("test", 100, 0.01, "arrival", policy.pop("buffer_tasks", 2))
    described["policy"] |= policy
    return described


def wait_until(condition, what="it", patience_s=PATIENCE_S):
    until = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < until, f"{what} did not happen in {patience_s} s"
        time.sleep(0.005)


def value(result):
    assert result.ok, result.data.decode()
    return pickle.loads(result.data)


def take(farm, count):
    """So many results, by task; a second one of a task fails."""
    taken = {}
    until = time.monotonic() + PATIENCE_S
    while len(taken) < count:
        assert time.monotonic() < until, f"{len(taken)} of {count} results in {PATIENCE_S} s"
        for result in farm.results(1.0):
            assert result.task not in taken, f"task {result.task} was delivered twice"
            taken[result.task] = result
    return taken


class Flow:
    """Tasks that are handed over as results come, so that a farm is busy until something has been seen.

    `inputs` makes a task of its number; what comes back of it must be what `expected` makes of that number.
    """

    def __init__(self, farm, inputs=lambda number: Task(pickle.dumps(number)), expected=lambda number: number * number):
        self.farm, self.inputs, self.expected = farm, inputs, expected
        self.taken, self.handed = {}, 0

    def until(self, seen, what, ahead=60):
        """Take results until one of them is what is looked for; those from here on."""
        until, since = time.monotonic() + PATIENCE_S, []
        while True:
            assert time.monotonic() < until, f"{what} did not happen in {PATIENCE_S} s"
            while self.handed - len(self.taken) < ahead:
                self.farm.submit(self.inputs(self.handed))
                self.handed += 1
            for result in self.farm.results(0.1):
                self._take(result)
                since.append(result)
            if any(map(seen, since)):
                return since

    def end(self):
        """Take the rest; every task has come back once. The summary."""
        self.farm.end_of_tasks()
        for result in take(self.farm, self.handed - len(self.taken)).values():
            self._take(result)
        assert self.taken.keys() == set(range(self.handed))
        summary, _ = self.farm.close()
        assert summary["tasks"] == self.handed
        return summary

    def _take(self, result):
        assert result.task not in self.taken, f"task {result.task} was delivered twice"
        assert value(result) == self.expected(result.task)
        self.taken[result.task] = result


def slowly(number):
    """A task that takes a while, so that a fault finds it under way."""
    time.sleep(0.01)
    return number * number


def agents_of(parent):
    """Process ids of the agents that a process started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
                about = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if b"crosswind.run.agent" in words and int(about[1]) == parent and about[0] != "Z":
                found.append(int(entry.name))
    return found
