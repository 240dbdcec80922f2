"""Functions of CuPy as `crosswind measure --gpu --task` takes them."""

from __future__ import annotations

import cupy

_x = cupy.random.random((4096, 4096), dtype=cupy.float32)
_y = cupy.empty_like(_x)
_a = cupy.random.random(1 << 26, dtype=cupy.float32)
_b = cupy.empty_like(_a)


def matmul() -> None:
    """Enqueue one matrix product."""
    cupy.matmul(_x, _x, out=_y)


def scale() -> None:
    """Enqueue one pass over 256 MiB."""
    cupy.multiply(_a, 2.0, out=_b)


def reads() -> None:
    """Read a result, and so wait for the device: refused."""
    float(_a.sum())


def elsewhere() -> None:
    """Enqueue on a stream of its own: refused."""
    with _own:
        cupy.multiply(_a, 2.0, out=_b)


_own = cupy.cuda.Stream(non_blocking=True)
