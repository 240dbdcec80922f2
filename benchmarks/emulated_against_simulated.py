"""Claim: emulated runs by agents on this machine take within 5 % of the simulated makespan, for every order of service.

The fork graph of table 4 (`examples/fork_graph_emulated.toml`) on both ports: agents in seven processes, their
computation slept, their links paced, in wall time divided by the time scale. Quiet host; orders in the file's order.

    python benchmarks/emulated_against_simulated.py [rounds]
"""

from __future__ import annotations

import sys
from pathlib import Path

import record

import crosswind

EXAMPLE = Path(__file__).parents[1] / "examples" / "fork_graph_emulated.toml"
WITHIN = 0.05


def makespans(on: str, ports: str) -> dict[str, float]:
    experiment = crosswind.Experiment.load(EXAMPLE).fixed({"policy.ports": ports})
    return {run.params["policy.order"]: run.makespan_s for run in crosswind.run(experiment, on=on)}


def main(rounds: int = 3) -> None:
    cases = []
    for ports in ("single", "multi"):
        simulated = makespans("sim", ports)
        lived = [makespans("local", ports) for _ in range(rounds)]
        for order, expected in simulated.items():
            ratios = [run[order] / expected for run in lived]
            worst = max(abs(ratio - 1) for ratio in ratios)
            cases.append(
                {
                    "ports": ports,
                    "order": order,
                    "simulated_s": expected,
                    "emulated_over_simulated": record.spread(ratios),
                    "reached": worst <= WITHIN,
                }
            )
            print(f"{ports} {order}: {', '.join(f'{ratio:.4f}' for ratio in ratios)}", flush=True)
    record.write("emulated_against_simulated", ["numpy"], rounds=rounds, within=WITHIN, cases=cases)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
