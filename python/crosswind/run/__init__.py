"""Run: an experiment in virtual time or for real; a user's own tasks over a tree of nodes.

| question | module |
|---|---|
| every point of an experiment, spread, resumed | `grid` |
| one point in virtual time, on real agents | `simulation`, `emulation` |
| streams of messages in virtual time, through the live filter | `streams`, `streams_local` |
| the outcome | `results`, `trace`, `columns`, `perfetto`, `bounds` |
| a Python function over many items | `mapping`, `farm`, `calls`, `futures` |
| a command over many files | `command` |
| the tree when the user names none | `this_machine`, `places` |
| a tree of agents: the root, an agent, its token | `agents`, `agent`, `node_token` |
| where agents run, from the user's word, and what such a place can do | `deployments`, `deployment` |
| the places: here, on a Dask cluster, on hosts of a file | `processes`, `dask`, `worker_agents`, `hosts` |
| simulations spread over a Dask cluster | `spread` |
| a program by real ranks, one process each | `ranks`, `rank_processes`, `rank` |

Imports nothing heavy here: an agent is a process that must start at once.
"""

On = str
"""Where an experiment runs: `sim` (in virtual time), `local` (by real agents or ranks on this machine), `dask:ADDRESS`
(by agents on a Dask cluster), `hosts:FILE` (by agents on the hosts of a hosts.toml)."""
