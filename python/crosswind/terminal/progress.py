"""How far long work is: a bar at a terminal and in a notebook, a line now and then in a log."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from crosswind.terminal.printable import is_plain, printable

LINES_EVERY_S = 10.0
"""Least time between two lines of a log."""
LINES_PER_DURATION = 6
"""A line each sixth of the time so far, once that is longer: some 30 lines in an hour."""
LINES_AT_MOST_EVERY_S = 600.0
NO_PROGRESS = "CROSSWIND_PROGRESS"
"""The environment variable that turns progress off when it is 0."""
LEAST_KNOWN_S = 1.0
"""Time after which the pace so far says something."""
BAR_WIDTH = 20
BESIDE = BAR_WIDTH + 14
"""Columns that stand beside the message: spinner, bar, elapsed time and the spaces between."""

Advance = Callable[[float, str], None]
"""Called as `advance(fraction, message)`."""


def duration(seconds: float) -> str:
    """Return how long something takes, for people.

    Examples
    --------
    >>> duration(99.4), duration(600)
    ('99 s', '10 min')
    """
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def done_of(done: int, total: int, noun: str) -> str:
    """Return how many of a number of things are done.

    Examples
    --------
    >>> done_of(12, 24, "file"), done_of(1, 1, "file")
    ('12 of 24 files', '1 of 1 file')
    """
    return f"{done} of {total} {noun}{'' if total == 1 else 's'}"


def left_in_words(done: int, total: int, elapsed_s: float) -> str:
    """Return how much longer it takes at the pace so far, to follow a count; nothing where that is a guess.

    Examples
    --------
    >>> left_in_words(12, 24, 4.0), left_in_words(0, 24, 4.0), left_in_words(24, 24, 4.0), left_in_words(1, 9, 0.2)
    (', about 4 s left', '', '', '')
    """
    if done < 1 or done >= total or elapsed_s < LEAST_KNOWN_S:
        return ""
    return f", about {duration(elapsed_s / done * (total - done))} left"


def first_words(message: str, room: int) -> str:
    """Return as many whole words as fit, without what belongs to words that are left out.

    Examples
    --------
    >>> first_words("12 of 24 files, about 4 s left", 80), first_words("12 of 24 files, about 4 s left", 18)
    ('12 of 24 files, about 4 s left', '12 of 24 files')
    """
    if len(message) <= room:
        return message
    return (message[: room + 1].rpartition(",")[0] or message[: room + 1].rpartition(" ")[0]) or message[:room]


class Lines:
    """Whole lines for a log, or for a terminal that another program writes to, each in one write.

    The first comes after `every_s`. Later ones are rarer: a log of hours stays short.

    Parameters
    ----------
    every_s : float
        Least time between two lines, s.
    timed : bool
        Whether a line has the share that is done and the time so far.
    """

    def __init__(self, every_s: float = LINES_EVERY_S, *, timed: bool = False) -> None:
        self._every_s, self._timed = every_s, timed
        self._begun = time.monotonic()
        self._next_s = every_s

    def __call__(self, fraction: float, message: str) -> None:
        """Write a line if one is due."""
        elapsed_s = time.monotonic() - self._begun
        if elapsed_s < self._next_s:
            return
        self._next_s = elapsed_s + pause_after(elapsed_s, self._every_s)
        share = f"{100 * fraction:.0f} %, " if self._timed and fraction > 0.0 else ""
        so_far = f", {duration(elapsed_s)} so far" if self._timed else ""
        sys.stderr.write(f"crosswind: {share}{printable(message)}{so_far}\n")
        sys.stderr.flush()


def pause_after(elapsed_s: float, every_s: float = LINES_EVERY_S) -> float:
    """Return how long a log is silent after a line, s.

    Examples
    --------
    >>> pause_after(10.0), pause_after(600.0), pause_after(36_000.0)
    (10.0, 100.0, 600.0)
    """
    return max(every_s, min(elapsed_s / LINES_PER_DURATION, LINES_AT_MOST_EVERY_S))


@contextmanager
def progress_lines(every_s: float = LINES_EVERY_S) -> Iterator[Advance | None]:
    """Say in whole lines how far work is: for programs that write to the same terminal or log.

    A bar would share its line with what they write. Yields `advance(fraction, message)`; None where progress is off.
    """
    yield None if _is_off() else Lines(every_s)


def _is_off() -> bool:
    return os.environ.get(NO_PROGRESS) == "0"


@contextmanager
def progress_bar() -> Iterator[Advance | None]:
    """Show a progress bar on a terminal or in a notebook, and whole lines in a log.

    Yields `advance(fraction, message)`; None where progress is off. While the fraction is 0 nothing is known of the
    time: the bar moves to and fro.
    """
    if _is_off():
        yield None
        return
    if _in_notebook():
        yield _notebook_bar()
        return
    if is_plain(sys.stderr):
        yield Lines(timed=True)
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        yield Lines(timed=True)
        return
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=BAR_WIDTH),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        refresh_per_second=4,  # drawing costs CPU time on the very host that is measured
    )
    with bar:
        task = bar.add_task("starting", total=None)
        last = 0.0

        def advance(fraction: float, message: str) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last > 0.2 or fraction >= 1.0:
                last = now
                total = 1.0 if fraction > 0.0 else None
                shown = first_words(printable(message), console.width - BESIDE)
                bar.update(task, total=total, completed=fraction, description=escape(shown))

        yield advance


@contextmanager
def progress_of_long_work(after_s: float = 2.0) -> Iterator[Advance]:
    """Show a progress bar of work that takes longer than `after_s` seconds; a log gets nothing unasked."""
    begun, tried = time.monotonic(), False
    shown: Advance | None = None
    with ExitStack() as stack:

        def advance(fraction: float, message: str) -> None:
            nonlocal tried, shown
            if not tried and time.monotonic() - begun >= after_s:
                tried = True
                if _in_notebook() or not is_plain(sys.stderr):
                    shown = stack.enter_context(progress_bar())
            if shown is not None:
                shown(fraction, message)

        yield advance


def _in_notebook() -> bool:
    """Whether a Jupyter kernel shows what this process displays: its shell has one, that of a terminal has none."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def _notebook_bar() -> Advance:
    """Show a bar in a cell's output; it stays, with the last message."""
    from html import escape

    from IPython.display import display

    last, shown = 0.0, None

    def advance(fraction: float, message: str) -> None:
        nonlocal last, shown
        now = time.monotonic()
        if now - last <= 0.5 and fraction < 1.0:
            return
        last = now
        text = f"{fraction:.0%} {printable(message)}"
        bar = f'<progress value="{fraction:.4f}" max="1"></progress> <code>{escape(text)}</code>'
        bundle = {"text/plain": text, "text/html": bar}
        if shown is None:
            shown = display(bundle, raw=True, display_id=True)
        else:
            shown.update(bundle, raw=True)

    return advance
