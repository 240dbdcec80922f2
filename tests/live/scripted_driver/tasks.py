"""Functions to measure above the scripted driver."""

from __future__ import annotations

import torch


def layer() -> None:
    """Enqueue 2 ms of work."""
    torch.work(2e6)


def waits() -> None:
    """Enqueue work and wait for it."""
    torch.work(2e6)
    torch.cuda.synchronize()


def elsewhere() -> None:
    """Enqueue work on another stream."""
    torch.work(2e6, 0)


def fails() -> None:
    """Fail as PyTorch does."""
    raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB\nmore")
