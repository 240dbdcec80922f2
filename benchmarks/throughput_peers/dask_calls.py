"""Calls per second of Dask distributed: python dask_calls.py WORKERS CALLS BYTES."""

from __future__ import annotations

import sys
import time

from distributed import Client, LocalCluster


def nothing(data: bytes, number: int) -> None:
    return None


if __name__ == "__main__":
    workers, calls, size_bytes = map(int, sys.argv[1:])
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.gather(client.map(nothing, [b""] * 10 * workers, range(-10 * workers, 0), pure=False))
        data = bytes(size_bytes)
        begun = time.perf_counter()
        client.gather(client.map(nothing, [data] * calls, range(calls), pure=False))
        print(calls / (time.perf_counter() - begun))
