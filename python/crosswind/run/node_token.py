"""The token of the farm whose agent this process is: by it a task of Crosswind's own proves to the root where it runs.

A task cannot bring it: what travels to a node may be read on the way.
"""

from __future__ import annotations

_kept: str | None = None


def keep(token: str | None) -> None:
    """Keep the token of this process, which is an agent and nothing else."""
    global _kept  # noqa: PLW0603 (a process is one agent)
    _kept = token


def of_this_node() -> str | None:
    """Return the token that this process was started with; None where it is no agent, or has none."""
    return _kept
