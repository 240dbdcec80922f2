"""The probe for Python: computes and moves bytes as Crosswind asks (docs/reference/probe-protocol.md).

Run as a script of its own, by any CPython from 3.8 on. Options: io=threads|asyncio switch_interval=SECONDS.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import mmap
import operator
import os
import socket
import sys
import sysconfig
import threading
import time
from concurrent.futures import Future
from typing import Coroutine  # noqa: UP035 - also for 3.8

PLACES, MESSAGES_EACH, STEP = 8, 32, 1024

options = dict(argument.split("=", 1) for argument in sys.argv[1:])
with_loop = options.get("io", "threads") == "asyncio"
counter = memoryview(bytearray(8)).cast("Q")  # until the first line names the file
flows: list[Flow] = []
loop: asyncio.AbstractEventLoop | None = None


def name_thread(name: str) -> None:
    """Name the calling thread for the kernel, so that its CPU time can be attributed."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)


def say(line: str) -> None:
    """Say one line, whole."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def start(name: str, run: object) -> None:
    """Start a thread."""

    def named() -> None:
        name_thread(name)
        run()  # type: ignore[operator]

    threading.Thread(target=named, daemon=True).start()


class Diagonals:
    """Elements (i, i + d) of the square of a matrix of small integers; one step is a few dot products."""

    def __init__(self, side: int, diagonals: int) -> None:
        self.side, self.diagonals, self.dots = side, diagonals, max(STEP // side, 1)
        drawn = os.urandom(side * side)
        self.rows = [[byte - 128 for byte in drawn[i * side : (i + 1) * side]] for i in range(side)]
        self.columns = [list(column) for column in zip(*self.rows)]  # noqa: B905 - also for 3.8
        self.row = self.diagonal = 0

    def step(self) -> int:
        """Do one step."""
        total = 0
        for _ in range(self.dots):
            total += sum(map(operator.mul, self.rows[self.row], self.columns[(self.row + self.diagonal) % self.side]))
            self.row += 1
            if self.row == self.side:
                self.row, self.diagonal = 0, (self.diagonal + 1) % self.diagonals
        return total

    def run(self) -> None:
        """Compute without end."""
        steps = 0
        while True:
            self.step()
            steps += 1
            counter[0] = steps

    async def run_in_loop(self) -> None:
        """Compute without end, and let the loop do something else after each step."""
        steps = 0
        while True:
            self.step()
            steps += 1
            counter[0] = steps
            await asyncio.sleep(0)


class Flow:
    """One connection."""

    def __init__(self, send: bool, to: str, ticket: str, size: int) -> None:
        host, _, port = to.rpartition(":")
        self.socket = socket.create_connection((host.strip("[]"), int(port)))
        self.socket.sendall(ticket.encode())
        self.send, self.size, self.closing = send, size, False
        self.task: Future[None] | None = None
        self.done = threading.Event()

    def places(self) -> list[memoryview]:
        """Return where messages lie, one place after the other."""
        return [memoryview(bytearray(os.urandom(self.size))) for _ in range(PLACES)]

    def run(self) -> None:
        """Move bytes until the connection is closed."""
        try:
            places, moved = self.places(), 0
            while True:
                at = moved % self.size
                part = places[moved // self.size // MESSAGES_EACH % PLACES][at:]
                now = self.socket.send(part) if self.send else self.socket.recv_into(part)
                if not now:
                    raise ConnectionError("the peer closed a connection")
                moved += now
        except OSError as problem:
            self.ended(problem)

    async def run_in_loop(self) -> None:
        """Do the same in the event loop."""
        running = asyncio.get_running_loop()
        self.socket.setblocking(False)
        try:
            places, moved = self.places(), 0
            while True:
                at = moved % self.size
                part = places[moved // self.size // MESSAGES_EACH % PLACES][at:]
                if self.send:
                    await running.sock_sendall(self.socket, part)
                    now = len(part)
                else:
                    now = await running.sock_recv_into(self.socket, part)
                if not now:
                    raise ConnectionError("the peer closed a connection")
                moved += now
        except OSError as problem:
            self.ended(problem)
        finally:
            self.done.set()

    def ended(self, problem: OSError) -> None:
        """Tell that the connection ended, unless that was asked for."""
        if not self.closing:
            say(f"error a flow ended: {problem}")

    def close(self) -> None:
        """End the connection, and with it what moves its bytes."""
        self.closing = True
        if self.task:
            # The loop must have forgotten the socket before its number is used again.
            self.task.cancel()
            self.done.wait()
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def run_loop() -> None:
    """Run the event loop, in which the computing and the traffic take turns."""
    global loop  # noqa: PLW0603 - one for the whole process
    loop = asyncio.new_event_loop()
    loop.run_forever()


def in_loop(coroutine: Coroutine[None, None, None]) -> Future[None]:
    """Have the event loop run a coroutine as well."""
    while loop is None:
        time.sleep(0.001)
    return asyncio.run_coroutine_threadsafe(coroutine, loop)


def answer(words: list[str]) -> str:
    """Do what a line asks; return the words after ok."""
    global counter  # noqa: PLW0603 - one for the whole process
    if words[0] == "crosswind":
        with open(words[2], "r+b") as file:  # noqa: PTH123 - quick to start
            counter = memoryview(mmap.mmap(file.fileno(), 8)).cast("Q")
        lock = "no" if sysconfig.get_config_var("Py_GIL_DISABLED") and not sys._is_gil_enabled() else "yes"  # type: ignore[attr-defined,unused-ignore]
        facts = f"gil={lock} io={options.get('io', 'threads')} switch_interval={sys.getswitchinterval():g}"
        return f" 1 {sys.implementation.name} {sys.version.split()[0]} {facts}"
    if words[0] == "compute":
        if words[1] != "diagonals":
            raise ValueError(f"this probe computes diagonals only, not {words[1]}")
        work = Diagonals(int(words[2]), int(words[3]))
        if with_loop:
            start("cw-compute", run_loop)
            in_loop(work.run_in_loop())
        else:
            start("cw-compute", work.run)
        while not counter[0]:
            time.sleep(0.001)
        return f" {work.side * work.diagonals / work.dots}"
    if words[0] == "flow":
        flow = Flow(words[1] == "send", words[2], words[3], int(words[4]))
        port = flow.socket.getsockname()[1]
        flows.append(flow)
        if with_loop:
            flow.task = in_loop(flow.run_in_loop())
        else:
            start("cw-traffic", flow.run)
        return f" {port}"
    if words[0] == "close":
        while flows:
            flows.pop().close()
        return ""
    raise ValueError(f"unknown request {words[0]}")


def main() -> None:
    """Answer line by line until the line `quit`."""
    if "switch_interval" in options:
        sys.setswitchinterval(float(options["switch_interval"]))
    for line in sys.stdin:
        if line == "quit\n":
            break
        try:
            say("ok" + answer(line.split()))
        except Exception as problem:  # whatever it is, the other end gets it
            say(f"error {type(problem).__name__}: {problem}".replace("\n", " "))
    os._exit(0)


if __name__ == "__main__":
    main()
