"""Claims about the message filter in the kernel (issue 25), between namespaces around a switch.

1. Bulk through it has at least 95 % of what the same link carries without, at 100 Mbit, 1 Gbit and the fastest
   rate that this machine's links hold, by 1 and by 8 connections.
2. Messages of 64 bytes (and requests of 16 KB) of class parallel beside that bulk: at 100 Mbit the median is at least
   10 times shorter than through the one queue of the link. What class local gets beside bulk of class parallel is
   within the promise.
3. Incast of 2, 4 and 8 senders: what messages and bulk get without, with the two classes at the receiver (IFB), and
   with the credits of the filter in user space.
4. Processor seconds of the whole machine per GB of bulk: without, in the kernel, in user space. On a quiet host only.

Each round measures all contestants, in shuffled order.

    python benchmarks/filter_in_kernel.py [rounds] [seconds]
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import record
from filter_ends.star import BUFFER_S, Star, missing

from crosswind.filter.kernel import KernelFilter
from crosswind.filter.kernel.apply import link
from crosswind.filter.kernel.netlink import Kernel, in_namespace
from crosswind.filter.kernel.promise import promise
from crosswind.filter.kernel.rate import SHARE, SHARE_IN
from crosswind.filter.kernel.traffic import Job, Mark, Sender

RATES_MBIT = {"100 Mbit": 100.0, "1 Gbit": 1000.0, "fastest": 4000.0}
CONNECTIONS = (1, 8)
SENDERS = (2, 4, 8)
INCAST_MBIT = 1000.0
SIZES = (64, 16_384)
PORT, TOKEN = 7300, "a token for namespaces only"
PARALLEL = Mark(dscp=34)
WARM_S = 0.7
USER_PORTS = {"parallel": 8001, "local": 8002}

Found = dict[str, Any]


@contextmanager
def far_end(star: Star, host: int) -> Iterator[Path]:
    """Run the far end of a check on a host; the file of the token."""
    token = Path(tempfile.mkdtemp(prefix="filter-token-")) / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    listen = f"{star.address(host)}:{PORT}"
    words = [sys.executable, "-m", "crosswind.cli", "filter", "check", "--listen", listen, "--token-file", str(token)]
    with running([*star.on(host), *words], "checks connect to"):
        yield token


@contextmanager
def running(command: list[str], until: str) -> Iterator[None]:
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    try:
        while until not in (line := process.stderr.readline()):
            if not line:
                raise RuntimeError(f"{' '.join(command)} ended")
        yield
    finally:
        process.terminate()
        process.communicate()


def sender(star: Star, host: int, job: Job, stack: ExitStack) -> Sender:
    return in_namespace(star.path(host), lambda: stack.enter_context(Sender(job)))


def counted(star: Star, host: int) -> int:
    """Bytes that have arrived at a host."""

    def read() -> int:
        with Kernel() as kernel:
            found = link(kernel, star.device)
            assert found is not None
            return found[1]["rx_bytes"]

    return in_namespace(star.path(host), read)


def busy_s() -> float:
    """Processor time that this machine has spent on anything."""
    user, nice, system, _, _, irq, softirq = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def together(
    star: Star,
    bulk: dict[int, Job],
    messages: tuple[int, Job] | None,
    seconds: float,
) -> Found:
    """Run senders of bulk, one per host, and one of messages; rates by what has arrived at the last host."""
    receiver = star.hosts[-1]
    with ExitStack() as stack:
        senders = [sender(star, host, job, stack) for host, job in bulk.items()]
        asking = sender(star, messages[0], messages[1], stack) if messages else None
        every = [*senders, *([asking] if asking else [])]
        for one in every:
            one.ready()
        for one in every:
            one.go()
        time.sleep(WARM_S)
        begin, bytes_before, cpu_before = time.monotonic(), counted(star, receiver), busy_s()
        time.sleep(seconds)
        elapsed, arrived = time.monotonic() - begin, counted(star, receiver) - bytes_before
        found: Found = {"arrived_mb_per_s": arrived / elapsed / 1e6}
        found["cpu_s_per_gb"] = (busy_s() - cpu_before) / (arrived / 1e9) if arrived else None
        found["bulk_mb_per_s"] = sum(sum(one.found()["mb_per_s"]) for one in senders)
        if asking and messages:
            times = asking.found()["times_s"][str(messages[1].sizes[0])]
            cuts = statistics.quantiles(times, n=100) if len(times) > 2 else [None] * 99
            found |= {"count": len(times), "p50_s": cuts[49], "p99_s": cuts[98]}
    return found


def job(star: Star, what: Any, mark: Mark, seconds: float, connections: int = 1, size: int = 64) -> Job:
    address = star.address(star.hosts[-1])
    length = seconds + 0.3 if what == "take" else seconds
    return Job(what, address, PORT, TOKEN, mark, connections, WARM_S, length, (size,))


@contextmanager
def set_on(star: Star, host: int, **rates: float) -> Iterator[KernelFilter]:
    """Set the kernel filter on a host."""
    made = in_namespace(star.path(host), lambda: KernelFilter(star.device, ["dscp:34"], **rates))
    in_namespace(star.path(host), made.start)
    try:
        yield made
    finally:
        in_namespace(star.path(host), made.stop)


@contextmanager
def nothing() -> Iterator[None]:
    yield None


def sending(star: Star, connections: int, seconds: float) -> Found:
    """Bulk alone; messages of each size beside it."""
    local = {0: job(star, "take", Mark(), seconds, connections)}
    found = {"bulk": together(star, local, None, seconds)}
    for size in SIZES:
        asked = (0, job(star, "answer", PARALLEL, seconds, size=size))
        found[str(size)] = together(star, local, asked, seconds)
    return found


def egress(rounds: int, order: random.Random, seconds: float) -> Found:
    """Claims 1 and 2."""
    samples: dict[str, Found] = {}
    for _ in range(rounds):
        turns = [(name, n, kind) for name in RATES_MBIT for n in CONNECTIONS for kind in ("plain", "kernel")]
        order.shuffle(turns)
        for name, connections, kind in turns:
            mbit = RATES_MBIT[name]
            with Star(2, mbit) as star, far_end(star, 1):
                rate = mbit / 8 * SHARE
                with set_on(star, 0, rate_mb_per_s=rate) if kind == "kernel" else nothing() as made:
                    found = sending(star, connections, seconds)
                    if made is not None and connections == 1:
                        found["promise"] = promised(star, made, seconds)
            samples.setdefault(f"{name}, {connections}", {}).setdefault(kind, []).append(found)
            told = {which: one.get("p50_s", one.get("bulk_mb_per_s")) for which, one in found.items()}
            print(name, connections, kind, told, flush=True)
    return {place: {"rounds": both, **judged(both)} for place, both in samples.items()}


def promised(star: Star, made: KernelFilter, seconds: float) -> Found:
    """Return what class local gets beside class parallel, and the closed form of it."""
    both = {0: job(star, "take", PARALLEL, seconds, 4)}
    beside = together(star, both, (0, job(star, "answer", Mark(), seconds)), seconds)
    with ExitStack() as stack:
        senders = [sender(star, 0, job(star, "take", mark, seconds, 4), stack) for mark in (PARALLEL, Mark())]
        for one in senders:
            one.ready()
        for one in senders:
            one.go()
        rates = [sum(one.found()["mb_per_s"]) for one in senders]
    told = promise(made.plan)
    return {
        "longest_wait_s": told["longest_wait_s"],
        "least_share": told["least_share"],
        "local_64_p50_s": beside["p50_s"],
        "local_64_p99_s": beside["p99_s"],
        "local_share": rates[1] / sum(rates),
    }


def judged(both: dict[str, list[Found]]) -> Found:
    """Return what the kernel's rounds come to, of the plain ones of the same round."""
    pairs = list(zip(both["plain"], both["kernel"], strict=True))
    share = record.spread([k["bulk"]["bulk_mb_per_s"] / p["bulk"]["bulk_mb_per_s"] for p, k in pairs])
    found: Found = {"bulk_of_plain": share, "bulk_reached": share["median"] >= 0.95}
    for size in map(str, SIZES):
        for which in ("p50_s", "p99_s"):
            found[f"{size}_{which}_lowered"] = record.spread([p[size][which] / k[size][which] for p, k in pairs])
    return found


def incast(rounds: int, order: random.Random, seconds: float) -> Found:
    """Claim 3: host 0 asks, hosts 1 to n send bulk, all to the last."""
    samples: dict[int, dict[str, list[Found]]] = {}
    for _ in range(rounds):
        turns = [(n, kind) for n in SENDERS for kind in ("plain", "kernel", "credits")]
        order.shuffle(turns)
        for count, kind in turns:
            with Star(count + 2, INCAST_MBIT) as star, far_end(star, count + 1) as token:
                found = arriving(star, kind, count, token, seconds)
            samples.setdefault(count, {}).setdefault(kind, []).append(found)
            told = {size: round(1e6 * found[size]["p50_s"]) for size in map(str, SIZES)}
            print(f"{count} senders, {kind}: {found['bulk']['arrived_mb_per_s']:.1f} MB/s, us {told}", flush=True)
    return {str(count): kinds for count, kinds in samples.items()}


def arriving(star: Star, kind: str, count: int, token: Path, seconds: float) -> Found:
    receiver, local, parallel = star.hosts[-1], Mark(), PARALLEL
    address = star.address(receiver)
    with ExitStack() as stack:
        if kind == "kernel":
            stack.enter_context(set_on(star, receiver, rate_in_mb_per_s=INCAST_MBIT / 8 * SHARE_IN))
        if kind == "credits":
            user_space(star, stack, token, INCAST_MBIT / 8 * SHARE_IN, range(count + 1))
            address, local, parallel = "127.0.0.1", Mark(port=USER_PORTS["local"]), Mark(port=USER_PORTS["parallel"])
        bulk = {
            host: Job("take", address, PORT, TOKEN, local, 1, WARM_S, seconds + 0.3) for host in range(1, count + 1)
        }
        found = {"bulk": together(star, bulk, None, seconds)}
        for size in SIZES:
            asked = Job("answer", address, PORT, TOKEN, parallel, 1, WARM_S, seconds, (size,))
            found[str(size)] = together(star, bulk, (0, asked), seconds)
    return found


def user_space(star: Star, stack: ExitStack, token: Path, rate: float, senders: range) -> None:
    """Run the filter in user space on every host, with credits, its ports to the far end of the last."""
    receiver = star.hosts[-1]
    words = [sys.executable, "-m", "crosswind.cli", "filter", "--token-file", str(token), "--credits", "receiver"]
    words += ["--rate", str(rate), "--rate-in", str(rate)]
    listen = f"{star.address(receiver)}:7200"
    stack.enter_context(running([*star.on(receiver), *words, "--listen", listen], "connect to"))
    forwards = [
        word for name, port in USER_PORTS.items() for word in (f"--{name}", f"{port}={star.address(receiver)}:{PORT}")
    ]
    for host in senders:
        stack.enter_context(running([*star.on(host), *words, "--peer", listen, *forwards], "peers are there"))


def processors(rounds: int, order: random.Random, seconds: float) -> Found:
    """Claim 4, at 1 Gbit by 8 connections."""
    mbit = RATES_MBIT["1 Gbit"]
    samples: dict[str, list[float]] = {}
    for _ in range(rounds):
        kinds = ["plain", "kernel", "user space"]
        order.shuffle(kinds)
        for kind in kinds:
            with Star(2, mbit) as star, far_end(star, 1) as token, ExitStack() as stack:
                rate, one = mbit / 8 * SHARE, job(star, "take", Mark(), seconds, 8)
                if kind == "kernel":
                    stack.enter_context(set_on(star, 0, rate_mb_per_s=rate))
                if kind == "user space":
                    user_space(star, stack, token, rate, range(1))
                    mark = Mark(port=USER_PORTS["local"])
                    one = Job("take", "127.0.0.1", PORT, TOKEN, mark, 8, WARM_S, seconds + 0.3)
                found = together(star, {0: one}, None, seconds)
            samples.setdefault(kind, []).append(found["cpu_s_per_gb"])
            print(f"{kind}: {found['cpu_s_per_gb']:.3f} CPU s/GB at {found['arrived_mb_per_s']:.1f} MB/s", flush=True)
    return {kind: record.spread(values) for kind, values in samples.items()}


def main() -> None:
    if (why := missing()) is not None:
        print(f"not run: {why}", flush=True)
        return
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0
    parts: dict[str, Callable[[int, random.Random, float], Found]] = {
        "egress": egress,
        "incast": incast,
        "processors": processors,
    }
    wanted = sys.argv[3:] or list(parts)
    found = {name: parts[name](rounds, random.Random(1), seconds) for name in wanted}
    if wanted == list(parts):
        record.write(
            "filter_in_kernel",
            [],
            rounds=rounds,
            seconds=seconds,
            buffer_s=BUFFER_S,
            congestion=Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip(),
            rates_mbit=RATES_MBIT,
            shaped_to={"leaving": SHARE, "arriving": SHARE_IN},
            **found,
        )


if __name__ == "__main__":
    main()
