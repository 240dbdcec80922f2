"""A progress bar with the time left, for people who wait at a terminal or in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from html import escape as escaped_html

from crosswind.terminal.printable import is_plain, printable

LINES_EVERY_S = 10.0
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


@contextmanager
def progress_lines(every_s: float = LINES_EVERY_S) -> Iterator[Advance | None]:
    """Say on a terminal how far work is, a line each `every_s`: for programs that write to the same terminal.

    A bar would share its line with what they write. Yields `advance(fraction, message)`, or None elsewhere.
    """
    if is_plain(sys.stderr):
        yield None
        return
    last = time.monotonic()

    def advance(fraction: float, message: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= every_s:
            last = now
            sys.stderr.write(f"crosswind: {printable(message)}\n")

    yield advance


@contextmanager
def progress_bar() -> Iterator[Advance | None]:
    """Show a progress bar on a terminal or in a notebook; yields `advance(fraction, message)`, or None elsewhere.

    While the fraction is 0 nothing is known of the time: the bar moves to and fro.
    """
    if _in_notebook():
        yield _notebook_bar()
        return
    if is_plain(sys.stderr):
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        yield None
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
    """Show a progress bar, as `progress_bar` does, of work that takes longer than `after_s` seconds only."""
    begun, tried = time.monotonic(), False
    shown: Advance | None = None
    with ExitStack() as stack:

        def advance(fraction: float, message: str) -> None:
            nonlocal tried, shown
            if not tried and time.monotonic() - begun >= after_s:
                tried, shown = True, stack.enter_context(progress_bar())
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
    from IPython.display import display

    last, shown = 0.0, None

    def advance(fraction: float, message: str) -> None:
        nonlocal last, shown
        now = time.monotonic()
        if now - last <= 0.5 and fraction < 1.0:
            return
        last = now
        text = f"{fraction:.0%} {printable(message)}"
        bar = f'<progress value="{fraction:.4f}" max="1"></progress> <code>{escaped_html(text)}</code>'
        bundle = {"text/plain": text, "text/html": bar}
        if shown is None:
            shown = display(bundle, raw=True, display_id=True)
        else:
            shown.update(bundle, raw=True)

    return advance
