"""Claims about the message filter.

1. Bytes go through two filters (application, filter, filter, application, all on this machine) at no less than 80 % of
   the rate of plain TCP over loopback, with frames of 64 KB. Each round measures all, in shuffled order; one sender
   and one receiver, the same programs with the same writes of 64 KB.
2. A message of 64 bytes and its answer take at most 50 us longer one way through two idle filters than over plain TCP
   (medians of round trips, half of the difference).

   Relays that only hand on what comes (`filter_ends/relay.py`), one and two in a row, stand beside both: what a second
   and a third TCP connection cost on this machine's processors, whatever forwards.
3. Stream A (64 bytes) beside a local stream of 16 KB messages: two queues lower its slowdown at least 3 times against
   one queue, and leave the local stream within 2 times of what it takes alone; on loopback over emulated links
   (`run --on local`), and on the testbed (three namespaces, a shaped card) where there is one.

    python benchmarks/filter.py [rounds]
"""

from __future__ import annotations

import json
import operator
import random
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import record
from filter_ends import testbed
from filter_ends.ends import received

from crosswind import _core

FRAME_BYTES = 65_536
SECONDS = 2.0
WARM_UP_SECONDS = 0.5
ROUND_TRIPS = 3_000
ENDS = Path(__file__).parent / "filter_ends" / "ends.py"
RELAY = ENDS.with_name("relay.py")
STREAMS = {
    "schema_version": 1,
    "name": "A beside local",
    "network": {"link_mb_per_s": 19.375, "frame_bytes": 1024, "pad": True},
    "workload": {
        "kind": "streams",
        "hosts": 3,
        "stream": [
            {"name": "A", "class": "parallel", "from": 0, "to": 1, "message_bytes": 64, "messages": 200},
            {
                "name": "local",
                "class": "local",
                "from": 0,
                "to": 2,
                "message_bytes": 16384,
                "arrivals": "backlogged",
                "messages": 200,
            },
        ],
    },
}

DRAIN = """
import socket, sys
server = socket.create_server(("127.0.0.1", 0)); print(server.getsockname()[1], flush=True)
while True:
    connection, _ = server.accept()
    buffer = bytearray(1 << 18)
    while connection.recv_into(buffer): pass
"""
FLOOD = """
import socket, sys, time
(host, port, size), (warm, seconds) = sys.argv[1:4], map(float, sys.argv[4:])
port, size = int(port), int(size)
connection = socket.create_connection((host, port)); block = bytes(size)
end = time.monotonic() + warm
while time.monotonic() < end: connection.sendall(block)
begin, sent = time.monotonic(), 0
while (now := time.monotonic()) < begin + seconds:
    connection.sendall(block); sent += size
print(sent / (now - begin) / 1e6)
"""


class Between:
    """Two filters as processes, one port of class parallel to a target."""

    def __init__(self, stack: ExitStack, target: int) -> None:
        crosswind = [sys.executable, "-m", "crosswind.cli", "filter", "--frame-bytes", str(FRAME_BYTES)]
        _, lines = self._start(stack, [*crosswind, "--listen", "127.0.0.1:0"], "connect to")
        peer = lines[-1].split()[-1]
        forward = f"0=127.0.0.1:{target}"
        _, lines = self._start(stack, [*crosswind, "--peer", peer, "--parallel", forward], "peers are there")
        port = next(line for line in lines if line.startswith("parallel:")).split()[1]
        self.port = int(port.rpartition(":")[2])

    @staticmethod
    def _start(stack: ExitStack, command: list[str], until: str) -> tuple[subprocess.Popen[str], list[str]]:
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        stack.callback(process.wait, 20)
        stack.callback(process.terminate)
        lines: list[str] = []
        assert process.stderr is not None
        while not lines or until not in lines[-1]:
            lines.append(process.stderr.readline().strip())
            if process.poll() is not None:
                raise RuntimeError("\n".join(lines))
        return process, lines


def serving(stack: ExitStack, command: list[str]) -> int:
    """Start what prints its port first; the port."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    stack.callback(process.wait, 20)
    stack.callback(process.terminate)
    assert process.stdout is not None
    return int(process.stdout.readline())


def relayed(stack: ExitStack, target: int, count: int) -> int:
    """Start so many relays in a row before a target; the port of the first."""
    for _ in range(count):
        target = serving(stack, [sys.executable, str(RELAY), f"127.0.0.1:{target}"])
    return target


def flood(port: int) -> float:
    """MB/s of one connection that writes without end."""
    words = [sys.executable, "-c", FLOOD, "127.0.0.1", str(port), str(FRAME_BYTES), str(WARM_UP_SECONDS), str(SECONDS)]
    return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def round_trip(port: int) -> float:
    """Median time of 64 bytes there and one back, s."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        message, times = bytes(64), []
        for _ in range(ROUND_TRIPS):
            begin = time.perf_counter()
            connection.sendall(message)
            received(connection, 1)
            times.append(time.perf_counter() - begin)
            time.sleep(0.0002)  # idle in between
    return statistics.median(times[ROUND_TRIPS // 10 :])


def in_turn(rounds: int, order: random.Random, contestants: dict[str, Any]) -> dict[str, list[float]]:
    """Every round all contestants once, in shuffled order."""
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        turns = list(contestants)
        order.shuffle(turns)
        for turn in turns:
            samples[turn].append(contestants[turn]())
    return samples


def through(rounds: int, order: random.Random) -> dict[str, Any]:
    with ExitStack() as stack:
        drain = serving(stack, [sys.executable, "-c", DRAIN])
        echo = serving(stack, [sys.executable, str(ENDS), "sink", "127.0.0.1", "0", "64"])

        def ports(target: int) -> dict[str, int]:
            return {
                "plain": target,
                "filter": Between(stack, target).port,
                "relay": relayed(stack, target, 1),
                "relays": relayed(stack, target, 2),
            }

        rate_ports, trip_ports = ports(drain), ports(echo)
        rates = in_turn(rounds, order, {name: partial(flood, port) for name, port in rate_ports.items()})
        trips = in_turn(rounds, order, {name: partial(round_trip, port) for name, port in trip_ports.items()})
    forwarders = [name for name in rates if name != "plain"]
    ratios = {name: within_rounds(rates[name], rates["plain"], operator.truediv) for name in forwarders}
    added = {
        name: within_rounds(trips[name], trips["plain"], lambda own, plain: (own - plain) / 2) for name in forwarders
    }
    for name, ratio in ratios.items():
        us = 1e6 * added[name]["median"]
        print(f"{name}: {ratio['median']:.3f} of plain TCP; {us:.1f} us more one way", flush=True)
    return {
        "rate_mb_per_s": {name: record.spread(values) for name, values in rates.items()},
        "rate_of_plain": ratios,
        "rate_reached": ratios["filter"]["median"] >= 0.8,
        "round_trip_s": {name: record.spread(values) for name, values in trips.items()},
        "added_one_way_s": added,
        "latency_reached": added["filter"]["median"] < 50e-6,
    }


def within_rounds(own: list[float], plain: list[float], of: Callable[[float, float], float]) -> dict[str, Any]:
    """Return what the pairs of each round come to."""
    return record.spread([of(*pair) for pair in zip(own, plain, strict=True)])


def verdict(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over runs, and whether they are what is claimed."""
    lowered = [run["A"]["slowdown_fifo"] / run["A"]["slowdown_queued"] for run in runs]
    local = [run["local"]["slowdown_queued"] for run in runs]
    return {
        "runs": runs,
        "slowdown_of_a_lowered": record.spread(lowered),
        "slowdown_of_local": record.spread(local),
        "reached": statistics.median(lowered) >= 3.0 and statistics.median(local) <= 2.0,
    }


def on_loopback(runs: int) -> dict[str, Any]:
    found = []
    for seed in range(1, runs + 1):
        run = json.loads(_core.run_streams(json.dumps({**STREAMS, "seed": seed})))
        found.append({stream["name"]: stream for stream in run["streams"]} | {"warnings": run["warnings"]})
    return verdict(found)


def on_testbed(runs: int) -> dict[str, Any] | None:
    why = testbed.missing()
    if why is not None:
        print(f"no testbed: {why}", flush=True)
        return None
    with testbed.up() as hosts:
        return verdict([testbed.slowdowns(hosts, {"A": 64, "local": 16384}, 200) for _ in range(runs)])


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    found = through(rounds, random.Random(1))
    queues = {"loopback": on_loopback(3), "testbed": on_testbed(3)}
    for place, result in queues.items():
        if result:
            lowered, local = result["slowdown_of_a_lowered"]["median"], result["slowdown_of_local"]["median"]
            print(f"{place}: A's slowdown lowered {lowered:.1f} times; local {local:.2f} times", flush=True)
    record.write(
        "filter", [], frame_bytes=FRAME_BYTES, rounds=rounds, two_filters=found, streams=STREAMS, two_queues=queues
    )


if __name__ == "__main__":
    main()
