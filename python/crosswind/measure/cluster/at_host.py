"""What is done on a host while pairs of hosts are measured: a peer, or a measurement, each a process of its own.

So whatever carries the calls there (a Dask worker) stays free to answer. Nothing is left behind: a peer ends on
request, after its time, or with the process that started it, whichever comes first; so does a measurement.
"""

from __future__ import annotations

import json
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from crosswind import _core
from crosswind.errors import CrosswindError, MeasurementError
from crosswind.measure.peer_process import peer_process
from crosswind.run.agent_process import environment

_peers: dict[str, ExitStack] = {}
_held = threading.Lock()


def look() -> dict[str, str]:
    """Tell what this host calls itself, and what runs here: `name`, `crosswind`, `python`."""
    return {"name": socket.gethostname(), "crosswind": _core.__version__, "python": platform.python_version()}


def start_peer(address: str, seconds: float, token: str) -> str:
    """Start a peer on a free port of this host's `address`, for `seconds` at most; return its HOST:PORT.

    It serves callers that know the token.
    """
    stack = ExitStack()
    try:
        found = stack.enter_context(peer_process([], address, token))
    except BaseException:
        stack.close()
        raise
    timer = threading.Timer(seconds, end_peer, [found])
    timer.daemon = True
    stack.callback(timer.cancel)
    with _held:
        _peers[found] = stack
    timer.start()
    return found


def end_peer(address: str) -> None:
    """End a peer that was started here; one that has ended already is no error."""
    with _held:
        stack = _peers.pop(address, None)
    if stack is not None:
        stack.close()


def measured(peer: str, arguments: Mapping[str, Any], seconds: float) -> bytes:
    """Measure with a peer, in a process of its own; the content of `measurement.parquet`.

    Raises
    ------
    MeasurementError
        What the measurement raised, or that it took longer than `seconds`.
    """
    with tempfile.TemporaryDirectory(prefix="crosswind-pair-") as folder:
        out = Path(folder) / "measurement.parquet"
        asked = {"peer": peer, "arguments": dict(arguments), "out": str(out)}
        apart(__name__, asked, seconds, f"the measurement with {peer}")
        return out.read_bytes()


def apart(module: str, asked: Mapping[str, Any], seconds: float, what: str) -> None:
    """Call a module's `main` in a process of its own, which gets `asked` as a line of JSON on stdin.

    Raises
    ------
    MeasurementError
        What it printed as JSON before it failed (`message`, `code`, `hint`), or that it took longer than `seconds`.
    """
    command = [sys.executable, "-c", f"from {module} import main; main()"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment())
    try:
        said, complaint = process.communicate(json.dumps(asked) + "\n", timeout=seconds)
    except subprocess.TimeoutExpired:
        message = f"{what} did not end within {seconds:.0f} s"
        raise MeasurementError(message, "too-slow", "is this host overloaded?") from None
    finally:
        process.kill()
        process.wait()
    if process.returncode == 0:
        return
    try:
        raise MeasurementError(**json.loads(said))
    except (ValueError, TypeError):
        last = complaint.strip().splitlines()[-1:] or [f"exit status {process.returncode}"]
        raise MeasurementError(f"{what} failed: {last[0]}", "failed") from None


def main() -> None:
    """Measure with the request from stdin; an error is one JSON document on stdout."""
    _core.end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is for the parent process, which ends the peer
    from crosswind.measure import measure

    asked = json.loads(sys.stdin.readline())
    try:
        found = measure(asked["peer"], **asked["arguments"])
        if found.partial:
            raise MeasurementError(f"the peer {asked['peer']} went away", "peer-lost")
        found.save(asked["out"])
    except CrosswindError as error:
        print(json.dumps({"message": str(error), "code": error.code, "hint": error.hint}))
        sys.exit(1)
