"""Crosswind: the root in this process, an agent on every other node, a Python function as work.

python on_crosswind.py SETUP.json, with `platform` (as of platform.toml), `point` (as of experiment.toml), `addresses`,
`prefixes` (words before an agent's command) and `bytes`
"""

from __future__ import annotations

import json
import pickle
import sys
import threading
import time
from pathlib import Path

import kernel

from crosswind import Platform
from crosswind.run.agents import Launch, LiveFarm, Task, Work

IMPORTS_S = 2.0
"""What agents have for importing what the function needs: the others import before the time runs, too."""


def main(setup: Path) -> None:
    told = json.loads(setup.read_text())
    launch = Launch(prefix=told["prefixes"].__getitem__, address=told["addresses"].__getitem__)
    platform, point = Platform.from_dict(told["platform"]), told["point"]
    count = point["workload"]["tasks"]
    results: list[tuple[str, int, float]] = []
    with LiveFarm(platform, point, Work("callable", function=kernel.work), launch=launch) as farm:
        if not farm.wait_for_agents(60.0):
            raise RuntimeError("the agents are not there")
        time.sleep(IMPORTS_S)
        begun = time.perf_counter()

        def feed() -> None:
            for data in kernel.tasks(count, told["bytes"]):
                farm.submit(Task(pickle.dumps(data, protocol=pickle.HIGHEST_PROTOCOL), 1.0))
            farm.end_of_tasks()

        threading.Thread(target=feed, daemon=True).start()
        while len(results) < count:
            for result in farm.results(1.0):
                if not result.ok:
                    raise RuntimeError(bytes(result.data).decode())
                results.append(pickle.loads(bytes(result.data)))
        makespan_s = time.perf_counter() - begun
        summary, _ = farm.close()
    print(json.dumps({"makespan_s": makespan_s, "results": results, "summary": summary}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
