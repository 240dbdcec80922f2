"""A loader in a process of its own: threads that fill pinned memory and have it copied to the device, without end."""

from __future__ import annotations

import threading
import time

import torch

THREADS, MB, PAUSE_S = 4, 16, 0.004


def load() -> None:
    """Fill ordinary memory, copy it into pinned memory, and have that copied to the device."""
    stream = torch.cuda.Stream()
    source = torch.empty(MB << 20, dtype=torch.uint8)
    pinned = torch.empty(MB << 20, dtype=torch.uint8, pin_memory=True)
    there = torch.empty(MB << 20, dtype=torch.uint8, device="cuda")
    while True:
        source.add_(1)
        pinned.copy_(source)
        with torch.cuda.stream(stream):
            there.copy_(pinned, non_blocking=True)
        stream.synchronize()
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    for _ in range(THREADS):
        threading.Thread(target=load).start()
