"""Streams A and local from one host of the testbed to two others, through `crosswind filter` on each: T1, T2, T3."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testbed_farms.nodes import Testbed, missing

ENDS = Path(__file__).parent / "ends.py"
SPEC = {
    "prefix": "xwf",
    "subnet": "10.78.0.0/24",
    "nodes": {"a": {"egress": 4.0}, "b": {}, "c": {}},
    "links": [{"from": "a", "to": "b", "MBps": None}, {"from": "a", "to": "c", "MBps": None}],
}
RATE_MB_PER_S = 3.5
"""The filter of host a shapes to this, a little below its card's 4 MB/s."""
PORTS = {"A": (8001, 9001, "b", "parallel"), "local": (8002, 9002, "c", "local")}

__all__ = ["missing", "slowdowns", "up"]


def up() -> Testbed:
    """Three hosts, not yet there."""
    return Testbed(SPEC)


def slowdowns(testbed: Testbed, sizes: dict[str, int], count: int) -> dict[str, Any]:
    """Return what the first `count` messages of each stream took: alone, together by one queue, by two."""
    token = Path(tempfile.mkdtemp(prefix="filter-token-")) / "token"
    token.write_text("a token for the testbed only")
    token.chmod(0o600)
    alone = {name: _times(testbed, token, "fifo", {name: size}, count)[name] for name, size in sizes.items()}
    fifo = _times(testbed, token, "fifo", sizes, count)
    queued = _times(testbed, token, "drr", sizes, count)
    return {
        name: {
            "alone_s": alone[name],
            "fifo_s": fifo[name],
            "queued_s": queued[name],
            "slowdown_fifo": fifo[name] / alone[name],
            "slowdown_queued": queued[name] / alone[name],
        }
        for name in sizes
    }


def _times(testbed: Testbed, token: Path, policy: str, sizes: dict[str, int], count: int) -> dict[str, float]:
    crosswind = [sys.executable, "-m", "crosswind.cli", "filter", "--token-file", str(token), "--frame-bytes", "1024"]
    peers: dict[str, str] = {}
    words: list[str] = []
    try:
        for name, size in sizes.items():
            port, target, node, message_class = PORTS[name]
            address = testbed.addresses[node]
            testbed.start(node, [sys.executable, str(ENDS), "sink", "127.0.0.1", str(target), str(size)], until=b"\n")
            testbed.start(node, [*crosswind, "--listen", f"{address}:7200"], until=b"connect to")
            peers[name] = f"{address}:7200"
            words += ["--peer", peers[name], f"--{message_class}", f"{port}=127.0.0.1:{target}@{peers[name]}"]
        rate = ["--rate", str(RATE_MB_PER_S), "--policy", policy]
        testbed.start("a", [*crosswind, *rate, *words], until=b"peers are there")
        return _sources(testbed, sizes, count)
    finally:
        testbed.end_processes()


def _sources(testbed: Testbed, sizes: dict[str, int], count: int) -> dict[str, float]:
    running: dict[str, subprocess.Popen[str]] = {}
    try:
        for name, size in sizes.items():
            command = [*testbed.on("a"), *_source(PORTS[name][0], size, count)]
            running[name] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for process in running.values():
            _line(process)
        for process in running.values():
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        return {name: float(_line(process).split()[0]) for name, process in running.items()}
    finally:
        for process in running.values():
            if process.stdin is not None:
                process.stdin.close()
        for process in running.values():
            process.wait(20)
            if process.stdout is not None:
                process.stdout.close()


def _source(port: int, size: int, count: int) -> Sequence[str]:
    return [sys.executable, str(ENDS), "source", f"127.0.0.1:{port}", str(size), str(count)]


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("a source ended early")
    return line
