"""The verbs of the command line, each in a module of its own that is imported when the verb is called.

Importing all of them takes longer than most commands do; the list of verbs needs none.
"""

from __future__ import annotations

VERBS = {
    "doctor": "Report what this host lacks and what will disturb a measurement on it.",
    "cert": "Make the certificates of a cluster: an authority, and a directory for each node.",
    "serve": "Be the peer that `crosswind measure --peer HOST:PORT` exchanges traffic with, until ctrl-C.",
    "measure": "Measure how much communication slows this host's computation down.",
    "probe": "Check a probe of your own: a program that computes and moves bytes for `crosswind measure --runtime`.",
    "fit": "Fit interference rates to measurements and write the platform that they describe.",
    "platform": "Show the tree of a platform, or convert it from and to SimGrid's XML and Slurm's topology.conf.",
    "tasks": "Turn a workload of other tools (Standard Workload Format, Batsim's JSON) into a tasks.csv.",
    "plan": "Find the rates at which a tree of nodes computes most tasks per second, and what limits each node.",
    "run": "Run an experiment: in virtual time, or by agents on this machine or on a cluster.",
    "map": "Run a command once for each of many input files, on this machine or on a cluster.",
    "filter": "Let small urgent messages of parallel programs pass large ones of local users, through two queues.",
    "overlap": "Measure whether this machine communicates while it computes, and report what to change.",
    "record": (
        "Record this machine's own noise: when each CPU is kept from computing, for how long, and by what. "
        "Or record a parallel program: what each rank does, and what keeps it from running."
    ),
    "inject": "Run a command while its processors are taken away as a disturbance.toml says.",
    "blame": "Find which cause of a disturbance costs a parallel program how much.",
    "cost": "Measure what a background process costs a job.",
    "compare": "Measure whether one command is slower than another.",
    "check": "Measure whether this node is slower than its baseline, in one line fit for a drain reason.",
    "report": "Write one self-contained HTML file about measurements, platforms, plans, runs and traces.",
    "reproduce": "Run the figures of a paper again and grade its claims.",
    "lesson": (
        "Write a page that shows why the child with the fastest link is served first (bandwidth-centric scheduling): "
        "two orders side by side from simulated timelines, and a link to change, with a guess before the outcome."
    ),
    "lpt": "Schedule jobs on machines, longest first, and compare with the optimum and Graham's bound.",
    "grade": "Write a sheet of homework with a platform of its own for each student, or mark the answers to one.",
    "schema": "Print the JSON Schema of a file kind: editors complete and check with it.",
}
"""Verb -> the first paragraph of its help, in the order in which `crosswind --help` lists them."""

PARTS = {
    "measure": {
        "cluster": "Measure the hosts of a Dask cluster and the links between them.",
        "sweep": "Measure again for each of several values of one setting.",
    },
    "fit": {"contention": "Fit which part of a link several flows use while they share it."},
    "plan": {
        "tree": "Find the tree over the measured links of a cluster that computes most tasks per second.",
        "queues": "Find the threshold and credits of two queues that serve the parallel class best within a limit for "
        "the local class.",
        "overlap": "Find whether a GPU's kernel and a transfer are faster together or one after the other.",
        "tolerance": "Find which quantum, skew, daemon, share or number of ranks a parallel program tolerates.",
    },
    "filter": {"check": "Measure what each class of messages gets over a path, before and after."},
}
"""Verb -> the verbs below it: `plan tree` is in the module `plan_tree`, beside `plan` itself."""


def help_of(verb: str, rest: str) -> str:
    """Return the help of a verb, such as `plan` or `plan tree`: its sentence in the list, then the rest."""
    first, _, part = verb.partition(" ")
    return f"{PARTS[first][part] if part else VERBS[first]}\n{rest}"
