"""How fast a live farm hands out tasks and moves bytes, through one root and one child, beside its peers.

- Zero-work tasks of 100 bytes on loopback: at least 50,000 a second with a Rust executor, 10,000 with a callable;
  Dask distributed (one scheduler, one worker process, its defaults) beside it.
- One link: tasks of 10 MB whose bytes the child stores, in MB/s, beside iperf3 over the same link: at least 98 %. On
  loopback, and (as root) over a link limited to 11 MB/s between two network namespaces.
- The small tasks and the link on loopback with certificates (TLS 1.3): what sealing costs.

Rounds in shuffled order; writes records/farm_throughput.json. Run on a quiet host:
    python benchmarks/farm_throughput.py [rounds]
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import record

from crosswind.certificates import Node, make_certificates
from crosswind.platform import Platform
from crosswind.run.local import Launch, LiveFarm, Task, Work

SMALL_BYTES = 100
LARGE_BYTES = 10_000_000
RUST_TASKS = 400_000
CALLS = 40_000
DASK_CALLS = 3_000
LOOPBACK_TASKS = 600
LINK_MBPS = 11.0
LINK_TASKS = 10
TESTBED = os.environ.get("CROSSWIND_TESTBED", str(Path(__file__).parents[2] / "shared" / "testbed" / "testbed.py"))


def pair() -> Platform:
    link = {"parent": "r", "compute_per_s": 1.0, "receive_limit_mb_per_s": 1000.0}
    nodes = [{"name": "r", "compute_per_s": 0.0}, {"name": "a", **link}]
    return Platform.from_dict({"schema_version": 1, "name": "pair", "node": nodes})


def point(tasks: int, size_bytes: int, buffer_tasks: int) -> dict[str, object]:
    workload = {"kind": "farm", "tasks": tasks, "task_size_mb": size_bytes / 1e6, "task_work": 1.0}
    policy = {"order": "arrival", "buffer_tasks": buffer_tasks}
    return {"schema_version": 1, "name": "throughput", "platform": "", "workload": workload, "policy": policy}


def rust(tasks: int, size_bytes: int, buffer_tasks: int, launch: Launch | None = None) -> float:
    """Tasks per second whose work is nothing."""
    described = point(tasks, size_bytes, buffer_tasks)
    with LiveFarm(pair(), described, Work("noop"), own_tasks=True, discard=True, launch=launch) as farm:
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


def dask() -> float:
    """Return calls per second of Dask distributed with one worker process of one thread."""
    script = f"""
import time
from distributed import Client, LocalCluster, as_completed
def nothing(data, number):
    return None
if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            client.submit(nothing, b"", -1).result()
            data = bytes({SMALL_BYTES})
            begun = time.perf_counter()
            client.gather(client.map(nothing, [data] * {DASK_CALLS}, range({DASK_CALLS}), pure=False))
            print({DASK_CALLS} / (time.perf_counter() - begun))
"""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "calls.py"
        path.write_text(script)
        done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True, cwd=directory)
    return float(done.stdout)


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
        command = [sys.executable, TESTBED, "--prefix", "thru", *words]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=True).stdout

    def on(self, node: str) -> list[str]:
        """Return the words before a command that is to run on a node."""
        return [sys.executable, TESTBED, "--prefix", "thru", "exec", node, "--"]


def over_a_link() -> dict[str, Callable[[], float]]:
    """Return the rates of Crosswind and iperf3 over a limited link; nothing where there is no testbed."""
    if os.geteuid() != 0 or not Path(TESTBED).exists():
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


def main(rounds: int = 5) -> None:
    measures: dict[str, Callable[[], float]] = {
        "rust_tasks_per_s": lambda: rust(RUST_TASKS, SMALL_BYTES, 1000),
        "callable_tasks_per_s": callable_,
        "dask_tasks_per_s": dask,
        "loopback_mb_per_s": lambda: rust(LOOPBACK_TASKS, LARGE_BYTES, 4) * LARGE_BYTES / 1e6,
        "loopback_iperf3_mb_per_s": lambda: iperf3("127.0.0.1"),
        "tls_rust_tasks_per_s": lambda: sealed(RUST_TASKS, SMALL_BYTES, 1000),
        "tls_loopback_mb_per_s": lambda: sealed(LOOPBACK_TASKS, LARGE_BYTES, 4) * LARGE_BYTES / 1e6,
        **over_a_link(),
    }
    samples: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(rounds):
        for name in random.sample(list(measures), len(measures)):
            samples[name].append(measures[name]())
            print(f"{name}: {samples[name][-1]:.1f}", flush=True)
    spreads = {name: record.spread(values) for name, values in samples.items()}
    of_iperf3 = {
        place: spreads[f"{place}_mb_per_s"]["median"] / spreads[f"{place}_iperf3_mb_per_s"]["median"]
        for place in ("loopback", "link")
        if f"{place}_mb_per_s" in spreads
    }
    record.write("farm_throughput", ["distributed"], samples=spreads, of_iperf3=of_iperf3, link_mbps=LINK_MBPS)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--link-root"]:
        link_root(sys.argv[2:])
    else:
        main(*map(int, sys.argv[1:2]))
