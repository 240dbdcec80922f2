"""How many calls a farm's nodes have at a time: what has not been handed to them can be withdrawn at once."""

from __future__ import annotations

from typing import Final

LEAST_PER_NODE: Final = 2
"""One is computed, one is on its way or waits."""
MOST_PER_NODE: Final = 512
AHEAD_S: Final = 0.1
"""Work that a node has ahead where calls are short, s: longer than handing over takes, too short to be missed."""
_NEW: Final = 0.3  # weight of a sample


class Window:
    """The number of calls handed over and not answered: two for each node, more where calls are short.

    Parameters
    ----------
    nodes : int
        Nodes that compute, at least 1.

    Examples
    --------
    >>> window = Window(2)
    >>> window.size
    4
    >>> window.answered(4, out=4, now_s=1.0)  # the first answers tell no rate
    >>> window.answered(4, out=4, now_s=1.002)  # 1 ms a call
    >>> window.size
    200
    """

    def __init__(self, nodes: int) -> None:
        self._nodes = max(nodes, 1)
        self._call_s: float | None = None
        self._last_s: float | None = None
        self.size = LEAST_PER_NODE * self._nodes

    def answered(self, count: int, out: int, now_s: float) -> None:
        """Learn from answers.

        Parameters
        ----------
        count : int
            Answers that came together.
        out : int
            Calls that were handed over before they came. With fewer than nodes, the rate is not that of the nodes.
        now_s : float
            Time of a monotonic clock, s.
        """
        before, self._last_s = self._last_s, now_s
        if before is None or out < self._nodes or count < 1:
            return
        call_s = self._nodes * max(now_s - before, 1e-6) / count
        self._call_s = call_s if self._call_s is None else self._call_s + _NEW * (call_s - self._call_s)
        per_node = min(max(round(AHEAD_S / self._call_s), LEAST_PER_NODE), MOST_PER_NODE)
        self.size = per_node * self._nodes
