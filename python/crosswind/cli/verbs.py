"""The verbs of the command line, each in a module of its own that is imported when the verb is called.

Importing all of them takes longer than most commands do; the list of verbs needs none.
"""

from __future__ import annotations

VERBS = {
    "doctor": (
        "Look at this host: what it lacks, and what will disturb a measurement. Exits with 3 when something will."
    ),
    "cert": (
        "Make certificates for a cluster: an authority of its own, and a directory for each node with its "
        "certificate, its key and the authority's certificate. Nothing is overwritten; nodes can be added later."
    ),
    "serve": "Be the peer that `crosswind measure --peer HOST:PORT` exchanges traffic with, until ctrl-C.",
    "measure": "Measure how much communication slows this host's computation down.",
    "probe": (
        "Check a probe of your own, in whatever language: it computes and moves bytes as `crosswind measure --runtime` "
        "asks."
    ),
    "fit": (
        "Fit interference rates to measurements, and write the platform that they describe. With --contention: which "
        "part of a link several flows use while they share it, from a table of flows or from runs of kind streams."
    ),
    "plan": (
        "Find the rates at which the tree computes most tasks per second, and what limits each node. With "
        "--disturbance: which quantum, skew, daemon, share, number of ranks a parallel program can bear. With "
        "--streams: which threshold and credits of an interface with two queues serve the parallel class best and "
        "hold the local class's slowdown. With --build-tree: which tree over the links of a cluster computes most "
        "tasks per second."
    ),
    "run": (
        "Run a farm of tasks over a tree of nodes: in virtual time (`--on sim`), or by agents on this machine "
        "(`--on local`), on the hosts of a Dask cluster (`--on dask:ADDRESS`) or on those of a file "
        "(`--on hosts:FILE`)."
    ),
    "filter": (
        "Forward connections to another host through two queues, so that small urgent messages of parallel programs "
        "need not wait behind large ones of local users. A filter runs on each host; forwarding works as with "
        "`ssh -L`, and the port says the class."
    ),
    "overlap": (
        "Whether this machine communicates while it computes: a program that only exchanges messages runs beside "
        "programs that only compute, for each way to wait (event, poll, spin-block), nice level of the computation "
        "and kind of messages. Absolute times of each, alone and together, and a verdict with what to change."
    ),
    "record": (
        "Record this machine's own noise: when each CPU is kept from computing, for how long, and by what. The file "
        "is a disturbance.toml that can be simulated, injected and blamed."
    ),
    "inject": (
        "Run a command while the processors of its ranks are taken away as a disturbance.toml says: the same file "
        "that is simulated and recorded, for real."
    ),
    "blame": "Which cause of a disturbance costs a parallel program how much.",
    "cost": "What a background process costs a job.",
    "compare": "Whether one command is slower than another.",
    "check": "Whether this node is sick, against a baseline of a healthy one.",
    "report": (
        "Write one self-contained HTML file about measurements, sweeps, platforms, plans, runs and traces: no network "
        "needed."
    ),
    "reproduce": (
        "Run the figures of a paper again, grade its claims, and write tables, figures and runs into one directory."
    ),
    "schema": "Print the JSON Schema of a file kind: editors complete and check with it.",
}
"""Verb -> the first paragraph of its help, in the order in which `crosswind --help` lists them."""


def help_of(verb: str, rest: str) -> str:
    """Return the help of a verb: its paragraph in the list of verbs, then the rest."""
    return f"{VERBS[verb]}\n{rest}"
