"""The work of a task: so many seconds of a CPU, of which the node has a share.

Only the thread that works is under the node's CPU share: under 3 % of a core a scheduler or a raylet would not even
start, and their hunger is not what this compares. The work lets go of Python's global lock nearly all the time, so that
no system's own threads wait for one that the share has stopped.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

CORE_S = float(os.environ.get("TESTBED_CORE_S", "0.05"))
_PIECE = np.linspace(0.0, 1.0, 8192)  # about 0.1 ms
_here = threading.local()


def work(data: bytes) -> tuple[str, int, float]:
    """Work; return the node, the bytes received, and the CPU seconds worked."""
    if not hasattr(_here, "out"):
        _here.out = np.empty_like(_PIECE)
        group = os.environ["TESTBED_CPU_GROUP"]
        (Path(group) / "tasks").write_text(str(threading.get_native_id()))
    begun = time.thread_time()
    while time.thread_time() - begun < CORE_S:
        np.sin(_PIECE, out=_here.out)
    return os.environ["TESTBED_NODE"], len(data), time.thread_time() - begun


def tasks(count: int, size_bytes: int) -> Iterator[bytes]:
    """Yield inputs: all different, and nothing in them to compress."""
    noise = random.Random(1).randbytes(size_bytes - 8)
    for number in range(count):
        yield number.to_bytes(8, "big") + noise
