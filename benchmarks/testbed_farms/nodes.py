"""The testbed: nodes as network namespaces, and processes on them that end with the benchmark."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

_NETWORK = 0x40000000  # CLONE_NEWNET


def _place() -> Path:
    """Return where the testbed is: `CROSSWIND_TESTBED`, or `shared/testbed/testbed.py` in a directory above."""
    if named := os.environ.get("CROSSWIND_TESTBED"):
        return Path(named)
    places = [above / "shared" / "testbed" / "testbed.py" for above in Path(__file__).resolve().parents]
    return next((place for place in places if place.exists()), places[3])


TESTBED = _place()


def missing() -> str | None:
    """Why there can be no testbed here; None where there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not TESTBED.exists():
        return f"{TESTBED} is not there (CROSSWIND_TESTBED names another place)"
    return None


class Testbed:
    """A testbed that is up while this is entered.

    `spec` is what the testbed's manual calls so, or a file of it; its `prefix` keeps it apart from others.
    """

    __test__ = False  # its name is none of a test

    def __init__(self, spec: Mapping[str, Any] | Path) -> None:
        self.spec: dict[str, Any] = json.loads(spec.read_text()) if isinstance(spec, Path) else dict(spec)
        self.prefix = str(self.spec.get("prefix", "tb"))
        self._processes: list[subprocess.Popen[bytes]] = []
        self.logs = Path(tempfile.mkdtemp(prefix="testbed-farms-"))

    def __enter__(self) -> Testbed:
        self._run("up", "-", "--replace", stdin=json.dumps(self.spec))
        nodes = json.loads(self._run("status"))["nodes"]
        self.addresses: dict[str, str] = {name: nodes[name]["addr"] for name in self.spec["nodes"]}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end_processes()
        self._run("down")

    @property
    def root(self) -> str:
        """The node that holds the tasks."""
        return str(self.spec["links"][0]["from"])

    def _run(self, *words: str, stdin: str | None = None) -> str:
        command = [sys.executable, str(TESTBED), "--prefix", self.prefix, *words]
        done = subprocess.run(command, capture_output=True, text=True, input=stdin, check=False)
        if done.returncode:
            raise RuntimeError(f"testbed {words[0]}: {done.stderr.strip()}")
        return done.stdout

    def on(self, node: str, *, shared: bool = False) -> list[str]:
        """Words before a command that put it on a node; outside its CPU share, if that is not `shared`."""
        share = [] if shared else ["--no-cpu"]
        return [sys.executable, str(TESTBED), "--prefix", self.prefix, "exec", node, *share, "--"]

    @contextlib.contextmanager
    def entered(self, node: str) -> Iterator[None]:
        """Have this thread, and the threads that it starts, on a node's network."""
        with Path("/proc/thread-self/ns/net").open() as own, Path(f"/run/netns/{self.prefix}-{node}").open() as there:
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(own.fileno())

    def change(self, what: str, **settings: float) -> None:
        """Change a node (`cpu`, `egress`, `ingress`), or a link FROM:TO (`MBps`), while it is up."""
        self._run("set", what, *(f"{name}={value}" for name, value in settings.items()))

    def cable(self, node: str, *, plugged: bool) -> None:
        """Pull a node's cable out, or plug it in again."""
        port = f"{self.prefix}{list(self.spec['nodes']).index(node)}"
        self._ip(f"{self.prefix}--hub", "link", "set", port, "up" if plugged else "down")

    def way(self, node: str, to: str, *, there: bool) -> None:
        """Take away the way from a node to another one, or give it back; others still reach both."""
        self._ip(f"{self.prefix}-{node}", "route", "del" if there else "add", "blackhole", f"{self.addresses[to]}/32")

    @staticmethod
    def _ip(network: str, *words: str) -> None:
        done = subprocess.run(["ip", "-n", network, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")

    def start(
        self, node: str, command: Sequence[str], environment: Mapping[str, str] | None = None, until: bytes = b""
    ) -> None:
        """Start a process on a node and wait until it says something; it is ended in the end."""
        path = self.logs / f"{node}-{len(self._processes)}.log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                [*self.on(node), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        self._processes.append(process)
        while until not in path.read_bytes():
            if process.poll() is not None:
                raise RuntimeError(f"{node}: {path.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    def end_processes(self) -> None:
        """End all that was started, with what it started in its turn."""
        for step in (signal.SIGTERM, signal.SIGKILL):
            for process in self._processes:
                try:
                    os.killpg(process.pid, step)
                except ProcessLookupError:
                    continue
            until = time.monotonic() + 5.0
            for process in self._processes:
                try:
                    process.wait(max(until - time.monotonic(), 0.0))
                except subprocess.TimeoutExpired:
                    continue
        self._processes.clear()


def _enter(network: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(network, _NETWORK):
        raise OSError(ctypes.get_errno(), "entering a network")
