"""Run: an experiment in virtual time or for real; a user's own tasks over a tree of nodes.

| question | module |
|---|---|
| every point of an experiment, spread, resumed | `grid` |
| one point in virtual time, on real agents | `simulated`, `emulated` |
| streams of messages in virtual time, through the live filter | `streams`, `streams_local` |
| what came of it | `results`, `trace`, `columns`, `perfetto`, `bounds` |
| a Python function over many items | `mapping`, `farm`, `calls`, `awaited` |
| a command over many files | `command` |
| the tree when the user names none | `here`, `places` |
| a tree of agents: the root, an agent, its token | `local`, `agent`, `node_token` |
| what says where agents run, and what a place of theirs can do | `deploying`, `deployment` |
| the places: here, on a Dask cluster, on hosts of a file | `processes`, `dask`, `hosted`, `hosts` |
| simulations spread over a Dask cluster | `spread` |
| a program by real ranks, one process each | `ranks`, `rank_processes`, `rank` |

Imports nothing heavy here: an agent is a process that must start at once.
"""

On = str
"""Where an experiment runs: `sim` (in virtual time), `local` (by real agents or ranks on this machine), `dask:ADDRESS`
(by agents on a Dask cluster), `hosts:FILE` (by agents on the hosts of a hosts.toml)."""
