"""Run: an experiment in virtual time or for real; a user's own tasks over a tree of nodes.

| question | module |
|---|---|
| every point of an experiment, spread, resumed | `grid` |
| one point in virtual time, on real agents | `simulated`, `emulated` |
| streams of messages in virtual time, through the live filter | `streams`, `streams_local` |
| what came of it | `results`, `trace`, `columns`, `perfetto`, `bounds` |
| a Python function over many items | `mapping`, `farm`, `calls` |
| a command over many files | `command` |
| the tree when the user names none | `here` |
| processes of agents, one per node | `local`, `agent` |
| a program by real ranks, one process each | `ranks`, `rank_processes`, `rank` |

Imports nothing heavy here: an agent is a process that must start at once.
"""

from typing import Literal

On = Literal["sim", "local"]
"""Where an experiment runs: in virtual time, or by real agents or ranks on this machine."""
