"""A training job: steps of a small model, counted in a file that `crosswind cost --progress u64:FILE` reads."""

from __future__ import annotations

import mmap
import struct
import sys
from pathlib import Path

import torch
from torch_work import train_step


def main() -> None:
    """Train for ever; argument: the file of the count."""
    path = Path(sys.argv[1])
    if not path.exists():  # a file that is mapped elsewhere must keep its length
        path.write_bytes(bytes(8))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 8) as count:
        done = 0
        while True:
            train_step()
            torch.cuda.synchronize()
            done += 1
            count[:8] = struct.pack("<Q", done)


if __name__ == "__main__":
    main()
