"""A peer of our own on this machine, which lives no longer than the measurement, however that ends."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from crosswind.errors import MeasurementError

START_PATIENCE_S = 20.0
END_PATIENCE_S = 2.0


@contextmanager
def peer_process(cpus: Sequence[int], host: str = "127.0.0.1", token: str | None = None) -> Iterator[str]:
    """Start a peer on a free port of an address of this host, on some CPUs (none: any), and end it in the end.

    Off loopback it needs a token, which goes in on its stdin.

    It asks the kernel to be killed when the thread that started it ends, so that even `kill -9` leaves nothing behind.

    Yields
    ------
    str
        Its HOST:PORT.

    Raises
    ------
    MeasurementError
        When it does not start.
    """
    start = "from crosswind.serve import main; main()"
    command = [sys.executable, "-c", start, "--listen", f"{host}:0", "--end-with-parent"]
    if cpus:
        command += ["--cpus", ",".join(map(str, cpus))]
    package = str(Path(__file__).resolve().parents[1])
    paths = [package, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command += ["--token-on-stdin"] if token else []
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    try:
        assert process.stdin is not None  # it was asked for
        with contextlib.suppress(BrokenPipeError):  # it has ended already: seen when it is waited for
            process.stdin.write((token or "").encode() + b"\n")
            process.stdin.close()
        yield _address(process)
    finally:
        process.terminate()
        try:
            process.wait(END_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()


def _address(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None  # it was asked for
    ready, _, _ = select.select([process.stdout], [], [], START_PATIENCE_S)
    address = process.stdout.readline().decode().strip() if ready else ""
    if not address:
        raise MeasurementError(
            "the peer process did not start", "no-peer", "run `crosswind serve` by hand and give its address as peer"
        )
    return address
