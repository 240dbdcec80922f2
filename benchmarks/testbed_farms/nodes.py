"""The testbed: nodes as network namespaces, and processes on them that end with the benchmark."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

_SHARED = Path(__file__).parents[3] / "shared" / "testbed" / "testbed.py"
TESTBED = Path(os.environ.get("CROSSWIND_TESTBED", _SHARED))


def missing() -> str | None:
    """Why there can be no testbed here; None where there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not TESTBED.exists():
        return f"{TESTBED} is not there (CROSSWIND_TESTBED names another place)"
    return None


class Testbed:
    """A testbed that is up while this is entered."""

    def __init__(self, spec: Path) -> None:
        self.spec: dict[str, Any] = json.loads(spec.read_text())
        self._file = spec
        self._processes: list[subprocess.Popen[bytes]] = []
        self.logs = Path(tempfile.mkdtemp(prefix="testbed-farms-"))

    def __enter__(self) -> Testbed:
        self._run("up", str(self._file), "--replace")
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

    def _run(self, *words: str) -> str:
        done = subprocess.run([sys.executable, str(TESTBED), *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"testbed {words[0]}: {done.stderr.strip()}")
        return done.stdout

    def on(self, node: str) -> list[str]:
        """Words before a command that put it on a node, but outside its CPU share."""
        return [sys.executable, str(TESTBED), "exec", node, "--no-cpu", "--"]

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
