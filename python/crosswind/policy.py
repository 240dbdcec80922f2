"""A policy of your own for simulated farms: which child gets which task next (docs/guides/write-a-policy.md)."""

from __future__ import annotations

from crosswind._core import PolicyChild as Child
from crosswind._core import PolicyNode as Node
from crosswind._core import PolicyTask as Task

__all__ = ["Child", "Choice", "Node", "Policy", "Task"]

Choice = Child | Node | tuple[Child | Node, Task] | None
"""What a method returns: a child to send a task to, the node itself to compute one here, or None to wait.

Either of the first two may stand in a pair with the task; alone it takes the task that has waited longest."""


class Policy:
    """Decides for one node of a farm; each node has an instance of its own.

    After a choice was carried out, `choose` is called again, as long as a task waits and something can begin. Nodes
    request tasks from their parents by themselves. A choice that is not permitted ends the run with an error.

    A run is deterministic if the policy is: use `random.Random(f"{node.seed} {node.name}")`, and no time of day.

    Attributes
    ----------
    own_first : bool
        Whether an idle processor of the node takes the task that has waited longest before the policy is asked.

    Parameters
    ----------
    node : Node
        The node it decides for, before anything has happened.

    Examples
    --------
    >>> class BandwidthCentric(Policy):
    ...     def choose(self, node):
    ...         return max(node.open, key=lambda child: child.receive_limit_mb_per_s, default=None)
    """

    own_first: bool = True

    def __init__(self, node: Node) -> None:
        pass

    def choose(self, node: Node) -> Choice:
        """Return what the node does next: a task waits, and a child is open or the node is idle."""
        raise NotImplementedError(f"{type(self).__name__} has no method choose(self, node)")

    def on_ask(self, node: Node, child: Child) -> Choice:
        """Return what the node does next: `child` has requested tasks."""
        return self.choose(node) if node.can_begin else None

    def on_arrival(self, node: Node, task: Task) -> Choice:
        """Return what the node does next: `task` has arrived; of several at once it is the first."""
        return self.choose(node) if node.can_begin else None

    def on_done(self, node: Node, task: Task) -> Choice:
        """Return what the node does next: `task` was computed here, or its result has arrived from a child."""
        return self.choose(node) if node.can_begin else None
