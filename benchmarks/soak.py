"""Claim: whatever happens to nodes, links, disks, roots and schedulers, every task is accounted for, exactly once.

Four parts, one after the other, whose faults and moments the seed draws, so that a run that fails can be had again:

- a farm of seven nodes in three levels, in network namespaces (the testbed, which needs root; else on loopback): an
  agent, a subtree or all agents are killed, one is stopped, a cable is pulled, the way to the parent is lost, a link or
  a node becomes slow, the disk of the spools is full. An agent whose disk is full ends for good (troubleshoot.md): then
  the soak makes room and a new farm does what is not answered. Some tasks raise, end their agent, or leave a process;
- `crosswind map ... --resume` over some hundreds of files, whose root is killed with -9 again and again;
- a farm used as a pool on this machine: calls are cancelled; agents are stopped (some for good), killed, and get a
  tenth of a CPU; calls stop or end their agent, raise, or leave a process; inputs and outputs of a command become FIFOs
  and directories, or vanish, while it runs;
- a farm on a Dask cluster whose scheduler, worker or agents are closed, killed or stopped (some for good), calls are
  cancelled, all get a tenth of a CPU, or the files of a command change as above: one of these to each fresh cluster.

In the end nothing may be left: no process, spool, cgroup, mount, network namespace or tc setting.

    python benchmarks/soak.py [--seconds 600] [--seed 1] [--loopback]

Writes records/soak.json, on loopback records/soak_on_loopback.json; ends with 1, and prints what happened when, where
anything is wrong.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import record
from soak_parts import cluster, left, pool, roots, tree
from testbed_farms.nodes import missing

NAME = "soak"
SHARES = {"tree": 0.35, "roots": 0.1, "pool": 0.25, "cluster": 0.3}
"""Parts of the time."""


def soak(seconds: float, seed: int, parts: tuple[str, ...] = tuple(SHARES), *, on_testbed: bool) -> dict[str, Any]:
    """Run the parts; what happened in each, and what is left behind after each and in the end."""
    found: dict[str, Any] = {"seed": seed, "seconds": seconds}
    for part in parts:
        part_s = seconds * SHARES[part]
        with left.Ground(disk=on_testbed and part == "tree") as ground:
            if part == "tree":
                found[part] = tree.soak(part_s, seed, ground, on_testbed=on_testbed)
            else:
                found[part] = {"roots": roots, "pool": pool, "cluster": cluster}[part].soak(part_s, seed, ground)
            found[part] |= {"left_behind": ground.left(), "directories_of_logs": ground.logs()}
    return found


def faults_of(found: dict[str, Any]) -> list[str]:
    """Return what is wrong, a line each; empty where all is as claimed."""
    wrong = []
    for part in SHARES:
        said = found.get(part, {})
        lists = {
            name: said.get(name, []) for name in ("missing", "came_twice", "wrong", "left_on_the_nodes")
        } | said.get("left_behind", {})
        wrong += [f"{part}: {name}: {len(items)}: {items[:20]}" for name, items in lists.items() if items]
        wrong += [f"{part}: {name}: {said[name]}" for name in ("hanging", "ended_early") if said.get(name)]
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", choices=SHARES, action="append", help="only this one, in its share; no record")
    parser.add_argument(
        "--loopback", action="store_true", help="without the testbed: nothing happens to links and disks"
    )
    options = parser.parse_args()
    why = "as asked" if options.loopback else missing()
    print(f"seed {options.seed}", *[f"the tree is on loopback: {why}"] if why else [], sep="\n", flush=True)
    found = soak(options.seconds, options.seed, tuple(options.part or SHARES), on_testbed=why is None)
    for name, value in found.items():
        for line in value.items() if isinstance(value, dict) else [value]:
            print(f"{name}: {line}")
    if wrong := faults_of(found):
        print("\nwrong:", *wrong, sep="\n  ")
        kinds = tree.kinds_of(why is None)
        for fault in tree.schedule(options.seed, options.seconds * SHARES["tree"], kinds):
            print(f"{fault.at_s:8.2f} s  {fault.kind} for {fault.lasts_s:.2f} s: {fault.node}")
        sys.exit(1)
    if not options.part:
        name = f"{NAME}_on_loopback" if why else NAME
        print(record.write(name, ["cloudpickle", "distributed"], **found))


if __name__ == "__main__":
    main()
