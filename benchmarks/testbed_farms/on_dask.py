"""Dask distributed: a scheduler on the root, a worker on every node, its defaults.

    python on_dask.py SCHEDULER WORKERS TASKS BYTES arguments|scattered

`arguments`: each task's data is an argument of its call. `scattered`: data are scattered first, as Dask's documentation
asks for large ones. Either way they are handed over some at a time and forgotten here, since all at once stand three
times in memory (list, pickle, scheduler).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator

import kernel
from distributed import Client

AT_A_TIME = 100
"""Tasks handed over at once: many beside the workers, since a scheduler keeps only what it takes for many (twice as
many as threads) back until a worker is free."""


def portions(data: list[bytes]) -> Iterator[list[bytes]]:
    """Take some at a time out of the list."""
    while data:
        portion = data[:AT_A_TIME]
        del data[:AT_A_TIME]
        yield portion


def main(scheduler: str, workers: int, count: int, size_bytes: int, how: str) -> None:
    with Client(scheduler, timeout=60) as client:
        client.wait_for_workers(workers, timeout=90)
        workers_there = client.scheduler_info(n_workers=-1)["workers"]
        client.gather([client.submit(kernel.work, b"", workers=[one], pure=False) for one in workers_there])  # imports
        data = list(kernel.tasks(count, size_bytes))
        begun = time.perf_counter()
        if how == "scattered":
            scattered = [future for portion in portions(data) for future in client.scatter(portion)]
            calls = client.map(kernel.work, scattered, pure=False)
        else:
            calls = [call for portion in portions(data) for call in client.map(kernel.work, portion, pure=False)]
        results = client.gather(calls)
        makespan_s = time.perf_counter() - begun
    print(json.dumps({"makespan_s": makespan_s, "results": results}))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5])
