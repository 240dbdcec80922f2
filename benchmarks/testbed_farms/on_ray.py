"""Ray: a head on the root, one CPU per node, its defaults.

python on_ray.py HEAD NODES TASKS BYTES
"""

from __future__ import annotations

import json
import sys
import time

import kernel
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy


def main(head: str, nodes: int, count: int, size_bytes: int) -> None:
    ray.init(address=head, log_to_driver=False, logging_level="error")
    until = time.monotonic() + 120
    while len(alive := [node["NodeID"] for node in ray.nodes() if node["Alive"]]) < nodes:
        if time.monotonic() > until:
            raise RuntimeError(f"{len(alive)} of {nodes} nodes are there")
        time.sleep(0.2)
    work = ray.remote(num_cpus=1)(kernel.work)
    # A process on every node, with its imports done.
    ray.get(
        [work.options(scheduling_strategy=NodeAffinitySchedulingStrategy(n, soft=False)).remote(b"") for n in alive]
    )
    data = list(kernel.tasks(count, size_bytes))
    begun = time.perf_counter()
    calls = []
    while data:
        calls.append(work.remote(data.pop()))  # a copy of it is in the object store then
    results = ray.get(calls)
    makespan_s = time.perf_counter() - begun
    print(json.dumps({"makespan_s": makespan_s, "results": results}))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
