"""Claim: a farm is simulated as fast as events can be handled, with the same makespan as by other simulators.

The same farms by Crosswind from Python, by Crosswind without Python, by the crate simcore and by SimPy, each in a fresh
process on one CPU, in shuffled order, interference on and off. The peers know one port and arrival order only: that is
what is compared with them. The default order and the levelled end are compared with arrival order, both of Crosswind.
Building a platform and drawing tasks is not timed, for any simulator. Ratios are of processor time, which is nearly the
same on a busy host.

    python benchmarks/simulate_farm.py [repetitions [tasks]]

With a number of tasks every case has so many, and no record is written: a trial of the script.

An order decides how many tasks are sent, and so how many events there are to simulate: of the fork's 100,000 tasks the
root computes 69,000 in arrival order and 18,000 in the default order. Ratios are given per run and per event.

SimGrid is not run here. Seen on a machine like this one, interference off: fork 0.18 s, tree 10.6 s (18 s with
interference), star 9,000 tasks/s.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

import record

HERE = Path(__file__).parent
PACKAGE = HERE / "simcore_farm"
BINARY = PACKAGE / "target" / "release" / "simcore-farm"
PLACES = 2

# Case -> tasks, task size and work, ports; and below, which simulators can run it.
CASES = {
    "fork": (100_000, 2.0, 5.0),
    "fork-off": (100_000, 2.0, 5.0),
    "tree": (1_000_000, 2.0, 5.0),
    "tree-off": (1_000_000, 2.0, 5.0),
}
SHORT = 9
ORDERED = ["fork-ordered", "fork-levelled", "tree-ordered", "tree-levelled"]
ONLY_OURS = ["star", "million", *ORDERED]
CLAIMS = {"fork": 0.010, "tree": 0.9, "star": 0.2, "million": 3.0}
TIMES_SIMCORE = 2.0
OF_ARRIVAL = 1.25


def platform_toml(case: str) -> bytes:
    """Build the platform of a case, as the Rust package does."""
    return subprocess.run([BINARY, "platform", case, "1"], check=True, capture_output=True).stdout


def by_simpy(case: str, tasks: int | None) -> tuple[float, float, list[int]]:
    """Seconds, makespan and tasks per node of a farm written for SimPy: a process per processor and per port."""
    import simpy

    from crosswind import _core

    usual, size, work = CASES[case]
    tasks = tasks or usual
    described = json.loads(_core.Platform.from_toml(platform_toml(case), "platform.toml").to_json())["node"]
    number = {node["name"]: n for n, node in enumerate(described)}
    parent = [number.get(node.get("parent", ""), -1) for node in described]
    interferes = not case.endswith("-off")
    start = time.perf_counter()
    env = simpy.Environment()
    nodes = [Node(node["compute_per_s"]) for node in described]
    inner = set(parent)

    def message(n: int, kind: str, child: int, count: int) -> None:
        inbox.append((n, kind, child, count))

    inbox: deque[tuple[int, str, int, int]] = deque()
    dirty: list[int] = []

    def settle(n: int) -> None:
        node = nodes[n]
        node.remaining -= node.rate * (env.now - node.since)
        node.since = env.now
        dirty.append(n)

    def losses(n: int, child: int, rate: float) -> None:
        settle(n)
        settle(child)
        nodes[n].send_loss = described[child]["ir_send_s_per_mb"] * rate
        nodes[child].receive_loss = described[child]["ir_receive_s_per_mb"] * rate

    def sent(n: int, child: int) -> None:
        nodes[n].sending = -1
        if interferes:
            losses(n, child, 0.0)
        go_on(n)
        message(child, "arrived", child, 1)
        instant()

    def computed(n: int, generation: int) -> None:
        node = nodes[n]
        if node.generation != generation:
            return  # its rate has changed since
        settle(n)
        node.computing = False
        node.done += 1
        go_on(n)
        instant()

    def later(delay: float, call, *arguments) -> None:
        env.timeout(delay).callbacks.append(lambda _: call(*arguments))

    def go_on(n: int) -> None:
        node = nodes[n]
        if not node.computing and node.ready:
            node.ready -= 1
            node.computing = True
            settle(n)
            node.remaining = work
            node.fresh = True
        if n in inner and node.sending < 0 and node.ready and node.line:
            child = node.line.popleft()
            node.ready -= 1
            node.sending = child
            link = described[child]["receive_limit_mb_per_s"]
            if interferes:
                losses(n, child, link)
            later(size / link, sent, n, child)
        held = node.asked + node.ready + (node.sending >= 0)
        if parent[n] >= 0 and held < PLACES:
            node.asked += PLACES - held
            message(parent[n], "asked", n, PLACES - held)

    def instant() -> None:
        while inbox:
            n, kind, child, count = inbox.popleft()
            if kind == "asked":
                nodes[n].line.extend([child] * count)
            else:
                nodes[n].asked -= 1
                nodes[n].ready += 1
            go_on(n)
        while dirty:
            n = dirty.pop()
            node = nodes[n]
            rate = described[n]["compute_per_s"] * max(0.0, 1.0 - node.send_loss - node.receive_loss)
            if node.computing and (rate != node.rate or node.fresh):
                node.fresh = False
                node.generation += 1
                if rate > 0.0:
                    later(max(0.0, node.remaining / rate), computed, n, node.generation)
            node.rate = rate

    for n in range(len(nodes)):
        go_on(n)
    instant()
    nodes[number[described[0]["name"]]].ready = tasks
    go_on(0)
    instant()
    env.run()
    last = max(node.since for node in nodes if node.done)
    return time.perf_counter() - start, last, [node.done for node in nodes[:7]]


class Node:
    """What the farm for SimPy keeps of a node."""

    __slots__ = (
        "asked",
        "computing",
        "done",
        "fresh",
        "generation",
        "line",
        "rate",
        "ready",
        "receive_loss",
        "remaining",
        "send_loss",
        "sending",
        "since",
    )

    def __init__(self, rate: float) -> None:
        self.asked = self.ready = self.done = self.generation = 0
        self.computing = self.fresh = False
        self.sending = -1
        self.line: deque[int] = deque()
        self.rate = rate
        self.remaining = self.since = self.send_loss = self.receive_loss = 0.0


def from_python(case: str, tasks: int | None) -> tuple[float, float, list[int]]:
    """Seconds, makespan and tasks per node of the same farm through the binding."""
    from crosswind import _core

    usual, size, work = CASES[case]
    tasks = tasks or usual
    platform = _core.Platform.from_toml(platform_toml(case), "platform.toml")
    point = {
        "schema_version": 1,
        "name": case,
        "platform": "platform.toml",
        "workload": {"kind": "farm", "tasks": tasks, "task_size_mb": size, "task_work": work},
        "policy": {"order": "arrival", "ports": "single", "buffer_tasks": PLACES},
    }
    text = json.dumps(point)
    start = time.perf_counter()
    summary, _ = _core.simulate(platform, text)
    taken = time.perf_counter() - start
    run = json.loads(summary)
    return taken, run["makespan_s"], [node["tasks"] for node in run["nodes"][:7]]


def one(simulator: str, case: str, tasks: int | None) -> None:
    """Run once and print what it took."""
    record.pin_to_one_core()
    taken, makespan, done = {"simpy": by_simpy, "python": from_python}[simulator](case, tasks)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(json.dumps({"time_s": taken, "makespan_s": makespan, "tasks": done, "peak_mb": peak}))


def measured(simulator: str, case: str, tasks: int | None) -> dict:
    command = [sys.executable, __file__, "--one", simulator, case]
    if simulator in ("crosswind", "simcore"):
        command = [str(BINARY), simulator, case]
    command += [str(tasks)] if tasks else []
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    tasks = int(sys.argv[2]) if len(sys.argv) > 2 else None
    build = ["cargo", "build", "--release", "--quiet", "--manifest-path", str(PACKAGE / "Cargo.toml")]
    subprocess.run(build, check=True)
    # The forks take 10 ms each, and this machine's speed changes by half from second to second: many, and the median.
    turns = {case: repetitions * (SHORT if case.startswith("fork") else 1) for case in CASES}
    runs = [
        (simulator, case)
        for case in CASES
        for simulator in ("crosswind", "python", "simcore")
        for _ in range(turns[case])
    ]
    runs += [("crosswind", "star")] * repetitions + [("crosswind", "million")]
    runs += [("crosswind", case) for case in ORDERED for _ in range(turns[case.split("-")[0]])]
    runs += [("simpy", case) for case in CASES for _ in range(repetitions if case.startswith("fork") else 1)]
    random.Random(0).shuffle(runs)
    found: dict[tuple[str, str], list[dict]] = {}
    for simulator, case in runs:
        found.setdefault((case, simulator), []).append(measured(simulator, case, tasks))
    cases = []
    for case in [*CASES, *ONLY_OURS]:
        ours = found[case, "crosswind"][0]
        for simulator in ("crosswind", "python", "simcore", "simpy"):
            samples = found.get((case, simulator))
            if not samples:
                continue
            timed = "processor_s" in samples[0]
            off = abs(samples[0]["makespan_s"] / ours["makespan_s"] - 1)
            cases.append(
                {
                    "case": case,
                    "who": simulator,
                    "time_s": record.spread([sample["time_s"] for sample in samples]),
                    **({"processor_s": record.spread([sample["processor_s"] for sample in samples])} if timed else {}),
                    **({"events": events} if (events := samples[0].get("events")) else {}),
                    "makespan_s": samples[0]["makespan_s"],
                    "makespan_off": off,
                    "same_tasks_per_node": samples[0]["tasks"] == ours["tasks"],
                    "peak_mb": max(sample["peak_mb"] for sample in samples),
                }
            )
            times = cases[-1]["time_s"]
            print(
                f"{case:>13} {simulator:>9}: {times['median']:.4f} s ({times['low']:.4f} to {times['high']:.4f}), "
                f"makespan {samples[0]['makespan_s']:.9f} s (off by {off:.1e}), {cases[-1]['peak_mb']:.0f} MB"
            )
    median = {(row["case"], row["who"]): row["time_s"]["median"] for row in cases}
    holds = {case: median[case, "crosswind"] < limit for case, limit in CLAIMS.items()}
    holds["python within 1.2 times of Rust"] = median["tree", "python"] < 1.2 * median["tree", "crosswind"]
    worked = {(row["case"], row["who"]): row["processor_s"]["median"] for row in cases if "processor_s" in row}
    ratios = {f"simcore / crosswind, {case}": worked[case, "simcore"] / worked[case, "crosswind"] for case in CASES}
    holds |= {f"{what} at least {TIMES_SIMCORE:g}": ratio >= TIMES_SIMCORE for what, ratio in ratios.items()}
    events = {row["case"]: row["events"] for row in cases if row["who"] == "crosswind"}
    for case in ORDERED:
        shape = case.split("-")[0]
        arrival = worked[shape, "crosswind"]
        ratios[f"{case} / arrival"] = worked[case, "crosswind"] / arrival
        ratios[f"{case} / arrival, per event"] = worked[case, "crosswind"] / arrival * events[shape] / events[case]
        holds[f"{case} at most {OF_ARRIVAL:g} of arrival"] = worked[case, "crosswind"] <= OF_ARRIVAL * arrival
    for what, ratio in ratios.items():
        print(f"{what}: {ratio:.2f}")
    if tasks:
        return
    quoted = {"fork-off": 0.18, "tree-off": 10.6, "tree": 18.0, "star_tasks_per_s": 9000}
    path = record.write(
        "simulate_farm",
        ["simpy"],
        claim=CLAIMS,
        ratios=ratios,
        holds=holds,
        simgrid_4_1_quoted_s=quoted,
        simcore="0.1.0",
        cases=cases,
    )
    print(path)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else None)
    else:
        main()
