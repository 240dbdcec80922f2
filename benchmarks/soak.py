"""Claim: whatever happens to nodes and links every few seconds, every task is accounted for, exactly once.

A farm of seven nodes in three levels does small tasks, of which some raise and a few kill their agent, while at random
an agent is killed or stopped, a host's cable is pulled, the way to the parent is lost, a link or a node becomes slow.
Nodes are network namespaces (the testbed, which needs root); without one, processes on loopback, to which only what
concerns processes can happen. The seed says what happens when, so that a run that fails can be had again.

    python benchmarks/soak.py [--seconds 600] [--seed 1]

Writes records/soak.json; ends with 1, and prints what happened when, where a task is missing or came twice.
"""

from __future__ import annotations

import argparse
import contextlib
import pickle
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import record
from testbed_farms.nodes import Testbed, missing

from crosswind import Platform
from crosswind.run.local import Launch, Limits, LiveFarm, Result, Task, Work

NAME = "soak"
PARENT = {"a": "root", "b": "root", "a1": "a", "a2": "a", "b1": "b", "b2": "b"}
LINK_MBPS, SLOW_MBPS = 20.0, 0.3
CPU, SLOW_CPU = 1.0, 0.05
SPEC = {
    "prefix": "xwsoak",
    "subnet": "10.79.8.0/24",
    "nodes": {name: {"cpu": CPU} for name in ("root", *PARENT)},
    "links": [{"from": above, "to": below, "MBps": LINK_MBPS} for below, above in PARENT.items()],
}
SILENCE_S = 1.0
EVERY_S = 2.0
"""Mean time between faults."""
LASTS_S = (0.2, 4.0)
"""From much less than the silence after which somebody is given up to much more."""
TASK_S = 0.03
LARGEST_BYTES = 200_000
RAISES, KILLS = 0.05, 0.0005
"""Parts of the tasks that raise, and that end their agent."""
PATIENCE_S = 120.0
"""For what is left when the faults are over."""


@dataclass(frozen=True)
class Fault:
    """Something that happens to a node, and for how long."""

    at_s: float
    kind: str
    node: str
    lasts_s: float


OF_PROCESSES = ("killed", "stopped")
OF_HOSTS = ("cable pulled", "way to the parent lost", "slow link", "slow node")


def schedule(seed: int, seconds: float, kinds: tuple[str, ...]) -> list[Fault]:
    """Return what happens when; one thing at a time to each node."""
    draw = random.Random(seed)
    free = dict.fromkeys(PARENT, 0.0)
    faults, at_s = [], draw.expovariate(1 / EVERY_S)
    while at_s < seconds:
        kind, node, lasts_s = draw.choice(kinds), draw.choice(list(PARENT)), draw.uniform(*LASTS_S)
        if at_s >= free[node]:
            faults.append(Fault(at_s, kind, node, lasts_s))
            free[node] = at_s + lasts_s
        at_s += draw.expovariate(1 / EVERY_S)
    return faults


class Weather:
    """Makes faults happen to a farm while it is entered, and undoes them all in the end."""

    def __init__(self, farm: LiveFarm, bed: Testbed | None, faults: list[Fault]) -> None:
        self._farm, self._bed = farm, bed
        self._over = threading.Event()
        self._moments = sorted(
            [(fault.at_s, True, fault) for fault in faults]
            + [(fault.at_s + fault.lasts_s, False, fault) for fault in faults],
            key=lambda moment: moment[:2],
        )
        self.happened: Counter[str] = Counter()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="weather")

    def _run(self) -> None:
        begun = time.monotonic()
        under_way: set[Fault] = set()
        try:
            for at_s, begins, fault in self._moments:
                if self._over.wait(max(begun + at_s - time.monotonic(), 0.0)):
                    break
                self._do(fault, begins)
                (under_way.add if begins else under_way.discard)(fault)
                self.happened[fault.kind] += begins
            for fault in under_way:
                self._do(fault, begins=False)
        except BaseException as error:  # it fails the run, in the thread that waits
            self.error = error

    def _do(self, fault: Fault, begins: bool) -> None:
        node = fault.node
        if fault.kind == "killed":
            if begins:
                self._farm.processes.signal(node, signal.SIGKILL)
        elif fault.kind == "stopped":
            self._farm.processes.signal(node, signal.SIGSTOP if begins else signal.SIGCONT)
        elif self._bed is not None:
            change: dict[str, Callable[[Testbed], None]] = {
                "cable pulled": lambda bed: bed.cable(node, plugged=not begins),
                "way to the parent lost": lambda bed: bed.way(node, PARENT[node], there=not begins),
                "slow link": lambda bed: bed.change(f"{PARENT[node]}:{node}", MBps=SLOW_MBPS if begins else LINK_MBPS),
                "slow node": lambda bed: bed.change(node, cpu=SLOW_CPU if begins else CPU),
            }
            change[fault.kind](self._bed)

    def __enter__(self) -> Weather:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def fate(seed: int, number: int) -> str:
    """Say what becomes of a task: it is done, it raises, or it ends its agent."""
    drawn = random.Random(f"{seed} {number}").random()
    return "ends its agent" if drawn < KILLS else "raises" if drawn < KILLS + RAISES else "is done"


def worker(seed: int) -> Callable[[tuple[int, bytes]], int]:
    """Return what agents do."""
    kills, raises, task_s = KILLS, RAISES, TASK_S

    def work(task: tuple[int, bytes]) -> int:
        import os
        import random
        import time

        number, data = task
        drawn = random.Random(f"{seed} {number}").random()
        if drawn < kills:
            os._exit(9)
        time.sleep(task_s)
        if drawn < kills + raises:
            raise ValueError(number)
        return len(data)

    return work


class Accounts:
    """What was handed over, and what came back."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.handed: dict[int, int] = {}
        self.answers: Counter[int] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.wrong: list[str] = []

    def tasks(self, until: float) -> Iterator[Task]:
        """Yield tasks until the time is over."""
        draw = random.Random(self._seed)
        noise = draw.randbytes(LARGEST_BYTES)
        while time.monotonic() < until:
            number, size = len(self.handed), draw.randrange(LARGEST_BYTES)
            self.handed[number] = size
            yield Task(pickle.dumps((number, noise[:size])))

    def take(self, result: Result) -> None:
        """Note what came back of a task."""
        assert isinstance(result.data, bytes)
        self.answers[result.task] += 1
        expected = fate(self._seed, result.task)
        if result.ok:
            right = expected == "is done" and pickle.loads(result.data) == self.handed[result.task]
            self.outcomes["done"] += 1
        else:
            said = result.data.decode()
            given_up = "and is given up" in said
            right = expected == ("ends its agent" if given_up else "raises")
            self.outcomes["given up" if given_up else "raised"] += 1
        if not right:
            self.wrong.append(f"task {result.task} {expected}; its answer is {result.data[:200]!r}")


def soak(seconds: float, seed: int) -> dict[str, Any]:
    """Run once; what happened, and what became of the tasks."""
    without = missing()
    nodes: list[dict[str, Any]] = [{"name": "root", "compute_per_s": 0.0}]
    link = {"compute_per_s": 1.0, "receive_limit_mb_per_s": LINK_MBPS}
    nodes += [{"name": below, "parent": above, **link} for below, above in PARENT.items()]
    platform = Platform.from_dict({"schema_version": 1, "name": NAME, "node": nodes})
    workload = {"kind": "farm", "tasks": 1000, "task_size_mb": LARGEST_BYTES / 2e6, "task_work": 1.0}
    point = {"schema_version": 1, "name": NAME, "platform": "", "workload": workload, "policy": {"order": "arrival"}}
    faults = schedule(seed, seconds, OF_PROCESSES if without else OF_PROCESSES + OF_HOSTS)
    accounts = Accounts(seed)
    with contextlib.ExitStack() as stack:
        bed = None if without else stack.enter_context(Testbed(SPEC))
        launch = Launch()
        if bed is not None:
            within = bed
            launch = Launch(
                prefix=lambda node: within.on(node, shared=True), address=lambda node: within.addresses[node]
            )
        limits = Limits(silence_s=SILENCE_S)
        farm = LiveFarm(platform, point, Work("callable", function=worker(seed)), launch=launch, limits=limits)
        stack.callback(farm.__exit__, None, None, None)
        with bed.entered("root") if bed is not None else contextlib.nullcontext():
            farm.start()
        begun = time.monotonic()

        def feed() -> None:
            for task in accounts.tasks(begun + seconds):
                farm.submit(task)
            farm.end_of_tasks()

        feeder = threading.Thread(target=feed, name="feeder", daemon=True)
        with Weather(farm, bed, faults) as weather:
            feeder.start()
            longest_s, last = 0.0, begun
            while feeder.is_alive() or len(accounts.answers) < len(accounts.handed):
                results = farm.results(0.2)
                now = time.monotonic()
                longest_s, last = (max(longest_s, now - last), now) if results else (longest_s, last)
                for result in results:
                    accounts.take(result)
                if now > begun + seconds + PATIENCE_S or weather.error is not None:
                    break
        if weather.error is not None:
            raise weather.error
        lost = sorted(accounts.handed.keys() - accounts.answers.keys())
        events: Counter[str] = Counter()
        if not lost:
            summary, _ = farm.close()
            events.update(event["code"] for event in summary["events"])
    return {
        "seed": seed,
        "seconds": seconds,
        "on": "loopback" if without else "testbed",
        "tasks": len(accounts.handed),
        "outcomes": dict(sorted(accounts.outcomes.items())),
        "missing": lost,
        "came_twice": sorted(task for task, answers in accounts.answers.items() if answers > 1),
        "wrong": accounts.wrong,
        "faults": dict(sorted(weather.happened.items())),
        "events": dict(sorted(events.items())),
        "longest_without_a_result_s": round(longest_s, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    found = soak(options.seconds, options.seed)
    for name, value in found.items():
        print(f"{name}: {value}")
    if found["missing"] or found["came_twice"] or found["wrong"]:
        kinds = OF_PROCESSES if found["on"] == "loopback" else OF_PROCESSES + OF_HOSTS
        for fault in schedule(options.seed, options.seconds, kinds):
            print(f"{fault.at_s:8.2f} s  {fault.kind} for {fault.lasts_s:.2f} s: {fault.node}")
        sys.exit(1)
    print(record.write(NAME, ["cloudpickle"], **found))


if __name__ == "__main__":
    main()
