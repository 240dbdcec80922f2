"""A built-in kernel as the job, when there is none at hand.

    python -m crosswind.cost.kernel KERNEL CPU COUNTER [PARENT]

It counts in 8 bytes of a file that both ends map, and ends with the process that started it.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

from crosswind import _core

Kernel = Literal["burn", "triad"]
KERNELS: tuple[Kernel, ...] = get_args(Kernel)
_BURNED = 1 << 13  # iterations of x += sin x a count: some 80 us
_ELEMENTS, _PIECE = 1 << 22, 1 << 13  # 32 MiB of each array; 64 KiB of each a count


def stepper(kernel: str, cpu: int) -> Callable[[], object]:
    """Return what does one count of work, and bind this process to the CPU."""
    burner = _core.Burner(json.dumps({"iterations": _BURNED, "nice": 0, "cpus": [cpu]}))
    if kernel == "burn":
        return lambda: burner.run(0)
    import numpy as np

    a, b, c = (np.ones(_ELEMENTS) for _ in range(3))
    pieces = [slice(start, start + _PIECE) for start in range(0, _ELEMENTS, _PIECE)]
    at = 0

    def step() -> None:
        nonlocal at
        piece = pieces[at]
        at = (at + 1) % len(pieces)
        np.multiply(c[piece], 3.0, out=a[piece])
        np.add(a[piece], b[piece], out=a[piece])

    return step


def main() -> None:
    """Compute for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is for the parent process, which ends this one
    _core.end_with_parent()
    kernel, cpu, path, *parent = sys.argv[1:]
    if parent and os.getppid() != int(parent[0]):
        return  # it was killed while this one started
    with Path(path).open("r+b") as file:
        counter = memoryview(mmap.mmap(file.fileno(), 8)).cast("Q")  # one store; `struct.pack_into` needs two
    step, count = stepper(kernel, int(cpu)), 0
    while True:
        step()
        count += 1
        counter[0] = count


if __name__ == "__main__":
    main()
