"""When an agent that ended is started again: immediately, and later and later where it ends soon after each start."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_S, LONGEST_S = 0.1, 2.0


@dataclass
class Backoff:
    """The pauses before the starts of one agent.

    Examples
    --------
    >>> backoff, due = Backoff(), []
    >>> for time_s in (0.0, 0.5, 1.0):
    ...     backoff.began(time_s)
    ...     backoff.ended(time_s + 0.1)
    ...     due.append([backoff.is_due(time_s + later) for later in (0.15, 0.25, 0.45, 0.55)])
    >>> due
    [[False, True, True, True], [False, False, True, True], [False, False, False, True]]
    """

    _begun: float = float("-inf")
    _pause_s: float = 0.0
    _due: float | None = None

    def began(self, now: float) -> None:
        """Note a start."""
        self._begun, self._due = now, None

    def ended(self, now: float) -> None:
        """Note that it ended; again before the next start changes nothing."""
        if self._due is None:
            lived = now - self._begun
            self._pause_s = FIRST_S if lived > LONGEST_S else min(max(2 * self._pause_s, FIRST_S), LONGEST_S)
            self._due = now + self._pause_s

    def failed(self, now: float) -> None:
        """Note that a start failed: the next one is later."""
        self._begun, self._due = now, None
        self.ended(now)

    def is_due(self, now: float) -> bool:
        """Whether it may be started."""
        return self._due is None or now >= self._due
