"""Run: an experiment in virtual time or for real; a user's own tasks over a tree of nodes.

- `run`: Experiment -> Runs, on `sim` or on `local`.
- `map`, `Farm`: a Python function over many items, on real agents.
- `run_command`: a command over many files.
"""

from crosswind.run.grid import run
from crosswind.run.results import Run, Runs
from crosswind.run.trace import Trace

__all__ = ["Run", "Runs", "Trace", "run"]
