"""Claim: emulated runs by agents on this machine take within 2 % of a simulated makespan, for every order of service.

The fork graph of table 4 (`examples/fork_graph_emulated.toml`) on both ports: agents in seven processes, their
computation slept, their links paced, in wall time divided by the time scale. Quiet host; orders in the file's order.

A request between two agents of this machine takes about 0.1 ms, 6 ms of the platform at the example's time scale. So
both kinds of run are told a latency of 10 ms. Without one (`latency_s` 0, also in the record) a simulated request takes
no time at all, and where a child receives exactly as fast as it computes the next request always comes at the very
moment when its port falls idle: no other child is ever served between. Any latency ends that (simulated, several ports,
order `compute`: 30.9 s at 0, 33.8 s from 1 to 20 ms), and real requests have one.

Some of these makespans stand on a knife's edge: which of two children asks first, within some microseconds, decides
whether a slow one computes one task more. So each case is simulated on platforms nearly alike, too (rates up to 0.2 %
lower, each link's latency drawn from 2 to 40 ms), and a run is asked to take within 2 % of one of those makespans.
`of_one` says how far it is from the platform's own, `of_alike` how far from the nearest of all.

    python benchmarks/emulated_against_simulated.py [rounds]
"""

from __future__ import annotations

import itertools
import random
import re
import sys
import tempfile
from pathlib import Path
from typing import Literal

import record

import crosswind

EXAMPLE = Path(__file__).parents[1] / "examples" / "fork_graph_emulated.toml"
PLATFORM = "fork_of_table_4_corrected.toml"
LATENCIES_S = (0.01, 0.0)
WITHIN = 0.02
RATE = re.compile(r"((?:compute_per_s|_limit_mb_per_s) = )([\d.]+)")
ALIKE, SLOWER, OF_LATENCY = 200, 0.002, (0.2, 4.0)
LATENCY_S = 0.01


def experiment(latency_s: float, ports: str, directory: Path) -> crosswind.Experiment:
    """Return the example on a platform whose requests take so long."""
    below = 'parent = "Lab0"\n'
    platform = (EXAMPLE.parent / PLATFORM).read_text().replace(below, f"{below}latency_s = {latency_s}\n")
    (directory / PLATFORM).write_text(platform)
    (directory / EXAMPLE.name).write_text(EXAMPLE.read_text())
    return crosswind.Experiment.load(directory / EXAMPLE.name).fixed({"policy.ports": ports})


def alike(latency_s: float, ports: str, directory: Path, rng: random.Random) -> crosswind.Experiment:
    """Return the example on a platform that could not be told from it, links' latencies drawn where there are any."""
    experiment(latency_s, ports, directory)
    text = (directory / PLATFORM).read_text()
    drawn = re.sub(RATE, lambda found: f"{found[1]}{float(found[2]) * (1 - rng.uniform(0, SLOWER))!r}", text)
    latency = re.compile(r"latency_s = .*")
    (directory / PLATFORM).write_text(
        latency.sub(lambda _: f"latency_s = {LATENCY_S * rng.uniform(*OF_LATENCY)}", drawn)
    )
    return crosswind.Experiment.load(directory / EXAMPLE.name).fixed({"policy.ports": ports})


def makespans(given: crosswind.Experiment, on: Literal["sim", "local"]) -> dict[str, float]:
    return {run.params["policy.order"]: run.makespan_s for run in crosswind.run(given, on=on)}


def main(rounds: int = 3) -> None:
    cases, rng = [], random.Random(1)
    for latency_s, ports in itertools.product(LATENCIES_S, ("single", "multi")):
        with tempfile.TemporaryDirectory() as folder:
            directory = Path(folder)
            nearly = [makespans(alike(latency_s, ports, directory, rng), "sim") for _ in range(ALIKE)]
            given = experiment(latency_s, ports, directory)
            simulated = makespans(given, "sim")
            lived = [makespans(given, "local") for _ in range(rounds)]
        for order, expected in simulated.items():
            known = [expected, *(one[order] for one in nearly)]
            ratios = [run[order] / expected for run in lived]
            nearest = [min((run[order] / one for one in known), key=lambda ratio: abs(ratio - 1)) for run in lived]
            cases.append(
                {
                    "latency_s": latency_s,
                    "ports": ports,
                    "order": order,
                    "simulated_s": expected,
                    "emulated_over_simulated": record.spread(ratios),
                    "simulated_alike_s": {
                        "low": min(known),
                        "high": max(known),
                        "further_than_within": sum(abs(one / expected - 1) > WITHIN for one in known) / len(known),
                    },
                    "of_one": max(abs(ratio - 1) for ratio in ratios),
                    "of_alike": max(abs(ratio - 1) for ratio in nearest),
                    "reached": max(abs(ratio - 1) for ratio in nearest) <= WITHIN,
                }
            )
            print(f"{latency_s} s {ports} {order}: {', '.join(f'{ratio:.4f}' for ratio in ratios)}", flush=True)
    record.write(
        "emulated_against_simulated",
        ["numpy"],
        rounds=rounds,
        within=WITHIN,
        alike={"platforms": ALIKE, "slower": SLOWER, "latency_s": [part * LATENCY_S for part in OF_LATENCY]},
        cases=cases,
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
