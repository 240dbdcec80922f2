"""How far a study is: the progress of several grids as one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from crosswind.terminal.progress import left_in_words

Progress = Callable[[float, str], None]
"""Called with the part that is done, 0 to 1, and a message."""


class Meter:
    """Joins the progress of several grids into one, with the time left at the pace of what was run now.

    Parameters
    ----------
    sizes : dict
        How many runs each figure will have, about.
    progress : callable or None
        The message.
    clock : callable
        Seconds.
    """

    def __init__(
        self, sizes: Mapping[str, int], progress: Progress | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._sizes, self._progress, self._clock = dict(sizes), progress, clock
        self._before, self._ran = 0, 0
        self._begun = clock()

    def within(self, figure: str, size: int, kept: int) -> Progress:
        """Return the progress callback of one grid; `kept` of its runs were in its file."""
        self._sizes[figure] = size
        before, ran = self._before, self._ran
        self._before, self._ran = before + size, ran + size - kept

        def tell(fraction: float, message: str) -> None:
            done = round(fraction * size)
            now, whole = ran + done - kept, sum(self._sizes.values())
            left = left_in_words(now, now + whole - before - done, self._clock() - self._begun)
            if self._progress is not None:
                self._progress((before + done) / whole, f"{before + done} of about {whole} runs{left}")

        return tell
