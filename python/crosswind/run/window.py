"""How many calls nodes have at a time, and how many travel together."""

from __future__ import annotations

from typing import Final

from crosswind.run.batches import BATCH_S, MOST

LEAST_PER_NODE: Final = 2
"""One is computed, one is on its way or waits."""
MOST_PER_NODE: Final = 512
AHEAD_S: Final = 0.1
"""Work that a node has ahead where calls are short, s: longer than handing over takes, too short to be missed."""
_NEW: Final = 0.3  # weight of a sample
_GROWTH: Final = 8
_EVEN_S: Final = 0.001
"""Batches that are shorter than this need not leave calls for other nodes, s."""


class Window:
    """The number of tasks handed over and not answered, and the number of calls in each.

    Two tasks for each node, more where they are short. A task is one call, or as many as take 20 ms in all.

    What has not been handed over can be withdrawn at once, so it is no more than keeps the nodes busy.

    Parameters
    ----------
    nodes : int
        Nodes that compute, at least 1.
    most : int
        Most calls in a task, at least 1.
    begin : int
        Calls in a task while it is not known how long they take.

    Examples
    --------
    >>> window = Window(2)
    >>> window.size
    4
    >>> window.answered(4, out=4, now_s=1.0)  # the first answers tell no rate
    >>> window.answered(4, out=4, now_s=1.002)  # 1 ms a call
    >>> window.size, window.batch
    (10, 8)
    >>> window.took(8, 0.004)  # 0.5 ms each, without the way there and back
    >>> window.calls(waiting=1_000), window.calls(waiting=80)
    (23, 10)
    """

    def __init__(self, nodes: int, *, most: int = MOST, begin: int = 1) -> None:
        self._nodes = max(nodes, 1)
        self._most = most
        self._call_s: float | None = None
        self._last_s: float | None = None
        self.batch = min(begin, most)
        """Calls in a task."""
        self.size = LEAST_PER_NODE * self._nodes
        """Tasks that nodes may have."""

    def answered(self, tasks: int, out: int, now_s: float) -> None:
        """Learn from tasks of one call, by how often answers come.

        Parameters
        ----------
        tasks : int
            Answers that came together.
        out : int
            Tasks that were handed over before they came. With fewer than nodes, the rate is not that of the nodes.
        now_s : float
            Time of a monotonic clock, s.
        """
        before, self._last_s = self._last_s, now_s
        if self.batch == 1 and before is not None and out >= self._nodes and tasks > 0:
            self._learn(self._nodes * max(now_s - before, 1e-6) / tasks)

    def took(self, calls: int, seconds: float) -> None:
        """Learn from a task, by how long its calls took on the node that did them."""
        if calls > 0:
            self._learn(max(seconds, 1e-7) / calls)

    def calls(self, waiting: int) -> int:
        """Return how many of the calls that wait go together: fewer when few are left, so that each node gets some."""
        if self._call_s is None:
            return min(self.batch, waiting)
        left = max(int(_EVEN_S / self._call_s), waiting // (4 * self._nodes), 1)
        return min(self.batch, left, waiting)

    def _learn(self, call_s: float) -> None:
        self._call_s = call_s if self._call_s is None else self._call_s + _NEW * (call_s - self._call_s)
        self.batch = max(min(int(BATCH_S / self._call_s), _GROWTH * self.batch, self._most), 1)
        task_s = max(self._call_s * self.batch, BATCH_S if self.batch > 1 else 0.0)
        self.size = min(max(round(AHEAD_S / task_s), LEAST_PER_NODE), MOST_PER_NODE) * self._nodes
