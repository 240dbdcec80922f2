"""A farm of seven nodes in three levels to whose nodes, links and disk something happens every few seconds.

Nodes are network namespaces (the testbed, which needs root); without one, processes on loopback, to which only what
concerns processes can happen.
"""

from __future__ import annotations

import contextlib
import pickle
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from testbed_farms.nodes import Testbed

from crosswind import Platform
from crosswind.errors import CrosswindError
from crosswind.run.agents import Launch, Limits, LiveFarm, Result, Task, Work
from crosswind.run.processes import AgentProcesses
from soak_parts.left import Ground

NAME = "soak-tree"
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
"""From much less than the silence after which an agent is given up to much more."""
TASK_S = 0.03
LARGEST_BYTES = 200_000
SPOOL_OVER_BYTES = 100_000
"""Half of the inputs go by the disk."""
RAISES, KILLS, LEAVES = 0.05, 0.0005, 0.001
"""Parts of the tasks that raise, that end their agent, and that leave a process behind."""
ENDS = ("status 0", "status 1", "status 9", "SIGKILL")
STARTS = 5
"""Of a farm to which faults happen while it starts."""
PATIENCE_S = 120.0
"""For what is left when the faults are over."""


@dataclass(frozen=True)
class Fault:
    """Something that happens to a node, and for how long."""

    at_s: float
    kind: str
    node: str
    lasts_s: float


OF_PROCESSES = ("killed", "stopped", "subtree killed", "all agents killed")
OF_HOSTS = ("cable pulled", "way to the parent lost", "slow link", "slow node", "disk full")
OF_ALL = ("all agents killed", "disk full")


def below(node: str) -> list[str]:
    """Return a node and all below it.

    >>> below("a")
    ['a', 'a1', 'a2']
    """
    return [node, *(deeper for child, parent in PARENT.items() if parent == node for deeper in below(child))]


def schedule(seed: int, seconds: float, kinds: tuple[str, ...]) -> list[Fault]:
    """Return what happens when; one thing at a time to each node."""
    draw = random.Random(seed)
    free = dict.fromkeys(("root", *PARENT), 0.0)
    faults, at_s = [], draw.expovariate(1 / EVERY_S)
    while at_s < seconds:
        kind, node, lasts_s = draw.choice(kinds), draw.choice(list(PARENT)), draw.uniform(*LASTS_S)
        if kind == "subtree killed":
            node = draw.choice([name for name in PARENT if len(below(name)) > 1])
        elif kind in OF_ALL:
            node = "root"
        if at_s >= free[node]:
            faults.append(Fault(at_s, kind, node, lasts_s))
            free[node] = at_s + lasts_s
        at_s += draw.expovariate(1 / EVERY_S)
    return faults


def processes_of(farm: LiveFarm) -> AgentProcesses:
    """Return a farm's agents, which are processes of this machine."""
    assert isinstance(farm.processes, AgentProcesses)
    return farm.processes


class Weather:
    """Makes faults happen to a farm while it is entered, and undoes them all in the end."""

    def __init__(self, farm: LiveFarm, bed: Testbed | None, ground: Ground, faults: list[Fault]) -> None:
        self.farm, self._bed, self._ground = farm, bed, ground
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

    def _signal(self, node: str, number: signal.Signals) -> None:
        with contextlib.suppress(KeyError):  # a farm has just ended, and the next one has not begun
            processes_of(self.farm).signal(node, number)

    def _do(self, fault: Fault, begins: bool) -> None:
        node = fault.node
        if fault.kind in {"killed", "subtree killed", "all agents killed"}:
            for lost in [node] if fault.kind == "killed" else below(node):
                if begins and lost != "root":
                    self._signal(lost, signal.SIGKILL)
        elif fault.kind == "disk full":
            if begins:
                self._ground.fill()
            else:
                self._ground.free()
        elif fault.kind == "stopped":
            self._signal(node, signal.SIGSTOP if begins else signal.SIGCONT)
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


def leaves_a_process(seed: int, number: int) -> bool:
    """Say whether a task leaves a process behind; it is done."""
    drawn = random.Random(f"{seed} {number}").random()
    return KILLS + RAISES <= drawn < KILLS + RAISES + LEAVES


def worker(seed: int) -> Callable[[tuple[int, bytes]], int]:
    """Return what agents do."""
    kills, raises, leaves, task_s, ends = KILLS, RAISES, LEAVES, TASK_S, ENDS

    def work(task: tuple[int, bytes]) -> int:
        import os
        import random
        import signal
        import subprocess
        import time

        number, data = task
        drawn = random.Random(f"{seed} {number}").random()
        if drawn < kills:
            end = ends[number % len(ends)]
            if end == "SIGKILL":
                os.kill(os.getpid(), signal.SIGKILL)
            os._exit(int(end.split()[1]))
        time.sleep(task_s)
        if drawn < kills + raises:
            raise ValueError(number)
        if drawn < kills + raises + leaves:
            subprocess.Popen(["sleep", "601"])
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

    def tasks(self, until: float) -> Iterator[tuple[Task, int]]:
        """Yield what was handed to an earlier farm and is not answered, then new tasks until the time is over."""
        noise = random.Random(self._seed).randbytes(LARGEST_BYTES)
        for number in sorted(self.handed.keys() - self.answers.keys()):
            yield Task(pickle.dumps((number, noise[: self.handed[number]]))), number
        while time.monotonic() < until:
            number = len(self.handed)
            self.handed[number] = size = random.Random(f"size {self._seed} {number}").randrange(LARGEST_BYTES)
            yield Task(pickle.dumps((number, noise[:size]))), number

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


def _use(
    farm: LiveFarm, accounts: Accounts, until: float, weather: Weather
) -> tuple[str | None, float, dict[str, Any]]:
    """Hand tasks to a farm until the time is over, or an agent is gone for good since its disk was full.

    Returns what ended it early, the longest time without a result, s, and the farm's summary.
    """
    over = threading.Event()

    def feed() -> None:
        # The run is over, or was ended below: the other thread says why.
        with contextlib.suppress(CrosswindError, KeyboardInterrupt):
            for task, number in accounts.tasks(until):
                if over.is_set():
                    return
                farm.submit(task, number)
            farm.end_of_tasks()

    feeder = threading.Thread(target=feed, name="feeder", daemon=True)
    feeder.start()
    longest_s, last, why = 0.0, time.monotonic(), None
    try:
        while feeder.is_alive() or len(accounts.answers) < len(accounts.handed):
            results = farm.results(0.2)
            now = time.monotonic()
            longest_s, last = (max(longest_s, now - last), now) if results else (longest_s, last)
            for result in results:
                accounts.take(result)
            if now > until + PATIENCE_S or weather.error is not None:
                why = f"{len(accounts.handed) - len(accounts.answers)} tasks hang"
                break
            if any(processes_of(farm).is_down(name) for name in PARENT):
                why = "no space left for an agent, which is not started again"
                break
        if why is None:
            return None, longest_s, farm.close()[0]
    except CrosswindError as error:
        why = str(error)
    over.set()
    farm.__exit__(RuntimeError, None, None)
    feeder.join()
    return why, longest_s, {}


def kinds_of(on_testbed: bool) -> tuple[str, ...]:
    """Return what can happen: on the testbed to hosts, too."""
    return OF_PROCESSES + OF_HOSTS if on_testbed else OF_PROCESSES


def soak(seconds: float, seed: int, ground: Ground, *, on_testbed: bool) -> dict[str, Any]:
    """Run once; what happened, and what became of the tasks."""
    nodes: list[dict[str, Any]] = [{"name": "root", "compute_per_s": 0.0}]
    link = {"compute_per_s": 1.0, "receive_limit_mb_per_s": LINK_MBPS}
    nodes += [{"name": below, "parent": above, **link} for below, above in PARENT.items()]
    platform = Platform.from_dict({"schema_version": 1, "name": NAME, "node": nodes})
    workload = {"kind": "farm", "tasks": 1000, "task_size_mb": LARGEST_BYTES / 2e6, "task_work": 1.0}
    point = {"schema_version": 1, "name": NAME, "platform": "", "workload": workload, "policy": {"order": "arrival"}}
    faults = schedule(seed, seconds, kinds_of(on_testbed))
    accounts, ended = Accounts(seed), []
    events: Counter[str] = Counter()
    over: str | None = None
    longest_s = 0.0
    with contextlib.ExitStack() as stack:
        bed = stack.enter_context(Testbed(SPEC)) if on_testbed else None
        launch = Launch(logs=ground.path / "logs")
        if bed is not None:
            launch = replace(launch, prefix=partial(bed.on, shared=True), address=bed.addresses.__getitem__)

        def begin() -> LiveFarm:
            work, limits = Work("callable", function=worker(seed)), Limits(silence_s=SILENCE_S)
            farm = LiveFarm(platform, point, work, launch=launch, limits=limits)
            farm._settings["sizes"]["spool_over_bytes"] = SPOOL_OVER_BYTES
            with bed.entered("root") if bed is not None else contextlib.nullcontext():
                return farm.start()

        farm, begun = begin(), time.monotonic()
        with Weather(farm, bed, ground, faults) as weather:
            while True:
                why, waited_s, summary = _use(farm, accounts, begun + seconds, weather)
                longest_s = max(longest_s, waited_s)
                events.update(event["code"] for event in summary.get("events", []))
                if why is None or "no space left" not in why or weather.error is not None:
                    over = why
                    break
                ended.append(f"{time.monotonic() - begun:.1f} s: {why}")
                for left in reversed(range(STARTS)):
                    ground.free()  # what an operator does before going on
                    try:
                        weather.farm = farm = begin()
                        break
                    except (CrosswindError, OSError):  # it was filled again meanwhile
                        if not left:
                            raise
        if weather.error is not None:
            raise weather.error
        _, processes = ground.gone()  # before the testbed goes, which ends all that is on it
    lost = sorted(accounts.handed.keys() - accounts.answers.keys())
    return {
        "on": "testbed" if on_testbed else "loopback",
        "tasks": len(accounts.handed),
        "outcomes": dict(sorted(accounts.outcomes.items())),
        "missing": lost,
        "left_on_the_nodes": processes,
        "came_twice": sorted(task for task, answers in accounts.answers.items() if answers > 1),
        "wrong": accounts.wrong,
        "ended_early": over,
        "farms_ended_by_a_full_disk": ended,
        "left_a_process": sum(leaves_a_process(seed, number) for number in accounts.handed),
        "faults": dict(sorted(weather.happened.items())),
        "events": dict(sorted(events.items())),
        "longest_without_a_result_s": round(longest_s, 3),
    }
