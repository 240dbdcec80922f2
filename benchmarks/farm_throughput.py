"""How fast a live farm hands out tasks and moves bytes, beside its peers.

- Zero-work tasks of 100 bytes on loopback through one root and one child: at least 50,000 a second with a Rust
  executor, 10,000 with a callable; Dask distributed (one scheduler, one worker process, its defaults) beside it.
- The same with two process agents: Rust executor, calls of a `Farm` with no settings, Dask with two workers. And with a
  process for each task (`true`), as HyperQueue has it: its server and one worker of two cores, its defaults, beside
  agents whose work is a command. HyperQueue is left out where its wheel is not installed (dependency group `bench`).
- As a new user types it: 60 tasks of 50 ms on a Dask LocalCluster of two workers, plain Dask and
  `crosswind.map(on=client)`, seconds with the start and the end of the agents in it.
- One link: tasks of 10 MB whose bytes the child stores, in MB/s, beside iperf3 over the same link: at least 98 %. On
  loopback, and (as root) over a link limited to 11 MB/s between two network namespaces.
- The small tasks and the link on loopback with certificates (TLS 1.3): what sealing costs.

Rounds in shuffled order; writes records/farm_throughput.json. Run on a quiet host:
    python benchmarks/farm_throughput.py [rounds [NAME...]]
with names of measures: only those, and nothing is written.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import pickle
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import record
from testbed_farms.nodes import TESTBED, missing

import crosswind
from crosswind.certificates import Node, make_certificates
from crosswind.platform import Platform
from crosswind.run.agents import Launch, LiveFarm, Task, Work
from crosswind.run.this_machine import here

SMALL_BYTES = 100
LARGE_BYTES = 10_000_000
RUST_TASKS = 400_000
CALLS = 40_000
DASK_CALLS = 3_000
PROCESSES = 10_000  # the client of HyperQueue looks once a second
NEW_USER_TASKS = 60
PEERS = Path(__file__).parent / "throughput_peers"
LOOPBACK_TASKS = 600
LINK_MBPS = 11.0
LINK_TASKS = 10


def pair() -> Platform:
    link = {"parent": "r", "compute_per_s": 1.0, "receive_limit_mb_per_s": 1000.0}
    nodes = [{"name": "r", "compute_per_s": 0.0}, {"name": "a", **link}]
    return Platform.from_dict({"schema_version": 1, "name": "pair", "node": nodes})


def point(tasks: int, size_bytes: int, buffer_tasks: int) -> dict[str, object]:
    workload = {"kind": "farm", "tasks": tasks, "task_size_mb": size_bytes / 1e6, "task_work": 1.0}
    policy = {"order": "arrival", "buffer_tasks": buffer_tasks}
    return {"schema_version": 1, "name": "throughput", "platform": "", "workload": workload, "policy": policy}


def rust(
    tasks: int,
    size_bytes: int,
    buffer_tasks: int,
    launch: Launch | None = None,
    work: Work | None = None,
    platform: Platform | None = None,
) -> float:
    """Tasks per second whose work is nothing, or what `work` says."""
    described = point(tasks, size_bytes, buffer_tasks)
    work, platform = work or Work("noop"), platform or pair()
    with LiveFarm(platform, described, work, own_tasks=True, discard=True, launch=launch) as farm:
        while not farm.ended(0.5):
            pass
        summary, _ = farm.close()
    return float(summary["throughput_tasks_per_s"])


def sealed(tasks: int, size_bytes: int, buffer_tasks: int) -> float:
    """Tasks per second between ends that show each other certificates."""
    with tempfile.TemporaryDirectory() as directory:
        make_certificates(Path(directory), [Node("r", parent=True), Node("a")])
        return rust(tasks, size_bytes, buffer_tasks, Launch(tls=lambda node: f"{directory}/{node}"))


def nothing(data: bytes) -> None:
    return None


def callable_() -> float:
    """Tasks per second whose work is a Python function that does nothing, handed over and taken in Python."""
    data = pickle.dumps(bytes(SMALL_BYTES))
    with LiveFarm(pair(), point(CALLS, SMALL_BYTES, 1000), Work("callable", function=nothing)) as farm:

        def feed() -> None:
            for _ in range(CALLS):
                farm.submit(Task(data))
            farm.end_of_tasks()

        threading.Thread(target=feed, daemon=True).start()
        taken = 0
        while taken < CALLS:
            taken += len(farm.results(1.0))
        summary, _ = farm.close()
    return float(summary["throughput_tasks_per_s"])


def calls() -> float:
    """Return calls per second of a farm of two process agents that are up."""
    with crosswind.Farm(here(2)) as farm:
        for future in [farm.submit(nothing, b"") for _ in range(100)]:
            future.result()
        data = bytes(SMALL_BYTES)
        begun = time.perf_counter()
        for future in [farm.submit(nothing, data) for _ in range(CALLS)]:
            future.result()
        return CALLS / (time.perf_counter() - begun)


def peer(script: str, *arguments: int) -> str:
    """Return what a script of `throughput_peers` prints."""
    command = [sys.executable, str(PEERS / script), *map(str, arguments)]
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=directory)
    return done.stdout.splitlines()[-1]


def dask(workers: int) -> float:
    """Return calls per second of Dask distributed with worker processes of one thread each."""
    return float(peer("dask_calls.py", workers, DASK_CALLS, SMALL_BYTES))


def new_user(way: str) -> float:
    """Return the seconds that one way takes; both are run."""
    return float(json.loads(peer("new_user.py", NEW_USER_TASKS))[way])


def iperf3(address: str, here: Sequence[str] = (), there: Sequence[str] = (), seconds: int = 3) -> float:
    """MB/s of iperf3 from here to there."""
    server = subprocess.Popen(
        [*there, "iperf3", "-s", "-1", "-B", address, "--forceflush"], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    while "listening" not in server.stdout.readline():
        pass
    command = [*here, "iperf3", "-c", address, "-t", str(seconds), "-O", "1", "-J"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    server.communicate()
    return float(json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"]) / 8e6


class Link:
    """Two network namespaces and a link of LINK_MBPS between them."""

    def __init__(self) -> None:
        nodes = {"r": {}, "a": {}}
        spec = {"prefix": "thru", "subnet": "10.79.0.0/24", "nodes": nodes, "links": []}
        spec["links"] = [{"from": "r", "to": "a", "MBps": LINK_MBPS}]
        self.run("up", "-", stdin=json.dumps(spec))

    def run(self, *words: str, stdin: str | None = None) -> str:
        """Return what the testbed prints."""
        command = [sys.executable, str(TESTBED), "--prefix", "thru", *words]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=True).stdout

    def on(self, node: str) -> list[str]:
        """Return the words before a command that is to run on a node."""
        return [sys.executable, str(TESTBED), "--prefix", "thru", "exec", node, "--"]


def over_a_link() -> dict[str, Callable[[], float]]:
    """Return the rates of Crosswind and iperf3 over a limited link; nothing where there is no testbed."""
    if why := missing():
        print(f"nothing over a link: {why}", file=sys.stderr)
        return {}
    link = Link()

    def crosswind() -> float:
        # The root runs in its namespace: this very script, asked for one figure.
        command = [*link.on("r"), sys.executable, str(Path(__file__).resolve()), "--link-root", *link.on("a")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return float(done.stdout)

    atexit.register(link.run, "down")
    return {
        "link_mb_per_s": crosswind,
        "link_iperf3_mb_per_s": lambda: iperf3("10.79.0.2", link.on("r"), link.on("a"), seconds=9),
    }


def link_root(prefix: Sequence[str]) -> None:
    launch = Launch(prefix=lambda node: prefix, address=lambda node: "10.79.0.1")
    print(rust(LINK_TASKS, LARGE_BYTES, 2, launch) * LARGE_BYTES / 1e6)


def processes_of_hyperqueue() -> dict[str, Callable[[], float]]:
    if importlib.util.find_spec("hyperqueue") is None:
        return {}
    return {"two_hyperqueue_processes_per_s": lambda: float(peer("hyperqueue_processes.py", 2, PROCESSES))}


def main(rounds: int = 5, names: Sequence[str] = ()) -> None:
    measures: dict[str, Callable[[], float]] = {
        "rust_tasks_per_s": lambda: rust(RUST_TASKS, SMALL_BYTES, 1000),
        "callable_tasks_per_s": callable_,
        "dask_tasks_per_s": lambda: dask(1),
        "two_rust_tasks_per_s": lambda: rust(RUST_TASKS, SMALL_BYTES, 1000, platform=here(2)),
        "two_calls_per_s": calls,
        "two_dask_calls_per_s": lambda: dask(2),
        "two_processes_per_s": lambda: rust(
            PROCESSES, SMALL_BYTES, 100, work=Work("command", "true {input}"), platform=here(2)
        ),
        **processes_of_hyperqueue(),
        "new_user_dask_s": lambda: new_user("dask"),
        "new_user_crosswind_s": lambda: new_user("crosswind"),
        "loopback_mb_per_s": lambda: rust(LOOPBACK_TASKS, LARGE_BYTES, 4) * LARGE_BYTES / 1e6,
        "loopback_iperf3_mb_per_s": lambda: iperf3("127.0.0.1"),
        "tls_rust_tasks_per_s": lambda: sealed(RUST_TASKS, SMALL_BYTES, 1000),
        "tls_loopback_mb_per_s": lambda: sealed(LOOPBACK_TASKS, LARGE_BYTES, 4) * LARGE_BYTES / 1e6,
        **over_a_link(),
    }
    measures = {name: measures[name] for name in names or measures}
    samples: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(rounds):
        for name in random.sample(list(measures), len(measures)):
            samples[name].append(measures[name]())
            print(f"{name}: {samples[name][-1]:.1f}", flush=True)
    if names:
        return
    spreads = {name: record.spread(values) for name, values in samples.items()}
    of_iperf3 = {
        place: spreads[f"{place}_mb_per_s"]["median"] / spreads[f"{place}_iperf3_mb_per_s"]["median"]
        for place in ("loopback", "link")
        if f"{place}_mb_per_s" in spreads
    }
    packages = ["distributed", *(["hyperqueue"] if processes_of_hyperqueue() else [])]
    record.write("farm_throughput", packages, samples=spreads, of_iperf3=of_iperf3, link_mbps=LINK_MBPS)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--link-root"]:
        link_root(sys.argv[2:])
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 5, sys.argv[2:])
