"""One sender of a check, a process of its own: bulk by several connections, or messages one after the other.

    python -m crosswind.filter.kernel.traffic

It reads its job as one line of JSON, prints "ready" once it is connected, waits for a line, and prints what it found.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, NotRequired, TypedDict

from crosswind.errors import AgentLost, CrosswindError
from crosswind.filter.kernel.far_end import BLOCK, dial, received

SIZES = (64, 16_384)
"""Bytes of the messages: a barrier, a request."""
ANSWER_BYTES = 64
_GAP_S = 0.0005
_PATIENCE_S = 30.0


class Found(TypedDict):
    """What a sender found: one of the two."""

    times_s: NotRequired[dict[str, list[float]]]
    """Times of messages there and back, by their size."""
    mb_per_s: NotRequired[list[float]]
    """Rate of each connection."""


@dataclass(frozen=True)
class Mark:
    """What puts a connection's packets into a class; nothing where nothing does.

    Parameters
    ----------
    dscp, socket_mark, port : int
        Code point, mark of the socket, port of the far end; 0: none.
    cgroup : str
        Directory of a control group that the sender joins.
    """

    dscp: int = 0
    socket_mark: int = 0
    port: int = 0
    cgroup: str = ""


@dataclass(frozen=True)
class Job:
    """What one sender does.

    Parameters
    ----------
    what : str
        "take" (the far end takes bulk), "give" (it sends bulk) or "answer" (messages there and back).
    host, port : str, int
        The far end.
    token : str or None
        What both ends share.
    mark : Mark
        Its class.
    connections : int
        Of bulk.
    warm_s, seconds : float
        What is left out at the beginning, and what is measured.
    sizes : tuple of int
        Bytes of the messages, one after the other.
    """

    what: Literal["take", "give", "answer"]
    host: str
    port: int
    token: str | None
    mark: Mark
    connections: int = 1
    warm_s: float = 0.5
    seconds: float = 2.0
    sizes: tuple[int, ...] = SIZES

    def connect(self) -> socket.socket:
        """Return a connection on which the far end does its part."""

        def prepare(connection: socket.socket) -> None:
            if self.mark.socket_mark:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, self.mark.socket_mark)
            if self.mark.dscp and connection.family == socket.AF_INET:
                connection.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, self.mark.dscp << 2)
            elif self.mark.dscp:
                connection.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, self.mark.dscp << 2)

        request = {
            "do": self.what,
            "tos": self.mark.dscp << 2,
            "bytes": ANSWER_BYTES,
            "warm_s": self.warm_s,
            "seconds": self.seconds,
        }
        return dial((self.host, self.mark.port or self.port), self.token, request, prepare)


def answered(job: Job, connection: socket.socket) -> Found:
    """Return the times of messages there and back, s, by their size."""
    times: dict[str, list[float]] = {str(size): [] for size in job.sizes}
    messages = [(str(size), struct.pack("!I", size) + bytes(size)) for size in job.sizes]
    begin = time.perf_counter() + job.warm_s
    while (now := time.perf_counter()) < begin + job.seconds:
        for name, message in messages:
            start = time.perf_counter()
            connection.sendall(message)
            received(connection, ANSWER_BYTES)
            if now >= begin:
                times[name].append(time.perf_counter() - start)
            time.sleep(_GAP_S)
    return {"times_s": times}


def taken(connection: socket.socket) -> float:
    """Send until the far end says that it has enough; the rate at which bytes came there, MB/s."""
    block, enough = bytes(BLOCK), threading.Event()

    def send() -> None:
        with contextlib.suppress(OSError):
            while not enough.is_set():
                connection.sendall(block)

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    text = b""
    try:
        while not text.endswith(b"\n"):
            text += received(connection, 1)
    finally:
        enough.set()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        sender.join()
    told = json.loads(text)
    return float(told["bytes"] / told["seconds"] / 1e6)


def given(job: Job, connection: socket.socket) -> float:
    """Return the rate at which bytes come from the far end, MB/s."""
    buffer = bytearray(BLOCK)
    begin = time.monotonic() + job.warm_s
    count, since, last = 0, None, begin
    while (now := time.monotonic()) < begin + job.seconds:
        taken_now = connection.recv_into(buffer)
        if since is None and now >= begin:
            since = now
        elif since is not None:
            count, last = count + taken_now, time.monotonic()
    return count / max(last - (since or begin), 1e-9) / 1e6


def bulk(job: Job, connections: list[socket.socket]) -> Found:
    """Return the rates of all connections, MB/s."""
    rates: list[float] = []
    failed: list[Exception] = []

    def run(connection: socket.socket) -> None:
        try:
            rates.append(taken(connection) if job.what == "take" else given(job, connection))
        except Exception as error:  # whatever it is: the rates of the others are not those of all
            failed.append(error)

    threads = [threading.Thread(target=run, args=(one,)) for one in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise AgentLost(f"bulk: {failed[0]}", "lost")
    return {"mb_per_s": rates}


def main() -> int:
    """Do the job that standard input describes."""
    told = json.loads(sys.stdin.readline())
    job = Job(**{**told, "mark": Mark(**told["mark"])})
    try:
        if job.mark.cgroup:
            (Path(job.mark.cgroup) / "cgroup.procs").write_text(str(os.getpid()), encoding="utf-8")
        connections = [job.connect() for _ in range(job.connections)]
        print("ready", flush=True)
        if not sys.stdin.readline():
            return 1
        found = answered(job, connections[0]) if job.what == "answer" else bulk(job, connections)
    except (OSError, CrosswindError) as error:
        print(json.dumps({"error": str(error), "hint": getattr(error, "hint", None)}), flush=True)
        return 1
    print(json.dumps(found), flush=True)
    return 0


class Sender:
    """A sender's process; ended with its block."""

    def __init__(self, job: Job) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "crosswind.filter.kernel.traffic"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._say(json.dumps(asdict(job)))

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def _hear(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line.startswith('{"error"'):
            told = json.loads(line)
            raise AgentLost(told["error"], "lost", told["hint"])
        if not line:
            raise AgentLost("a sender ended by itself", "lost")
        return line

    def ready(self) -> None:
        """Return once it is connected."""
        self._hear()

    def go(self) -> None:
        """Let it begin."""
        self._say("go")

    def found(self) -> Found:
        """Return what it found."""
        found: Found = json.loads(self._hear())
        return found

    def __enter__(self) -> Sender:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()


if __name__ == "__main__":
    sys.exit(main())
