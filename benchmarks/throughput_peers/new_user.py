"""Tasks of 50 ms on a LocalCluster of two workers, as a new user types it: plain Dask, `crosswind.map`, no settings.

python new_user.py TASKS; prints the seconds of each, in shuffled order, the cluster up and its imports done.
"""

from __future__ import annotations

import json
import random
import sys
import time

from distributed import Client, LocalCluster

import crosswind


def work(number: int) -> int:
    time.sleep(0.05)
    return number


if __name__ == "__main__":
    items = range(int(sys.argv[1]))
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        ways = {
            "dask": lambda: client.gather(client.map(work, items, pure=False)),
            "crosswind": lambda: list(crosswind.map(work, items, on=client)),
        }
        seconds = {}
        for way in ways.values():
            way()
        for name in random.sample(list(ways), len(ways)):
            begun = time.perf_counter()
            assert ways[name]() == list(items)
            seconds[name] = time.perf_counter() - begun
    print(json.dumps(seconds))
