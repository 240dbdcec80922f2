"""A progress bar with the time left, for people who wait at a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from crosswind.terminal.printable import printable

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


@contextmanager
def progress_bar() -> Iterator[Advance | None]:
    """Show a progress bar on a terminal only; yields `advance(fraction, message)`, or None elsewhere."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        yield None
        return
    bar = Progress(
        SpinnerColumn(),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=console,
        transient=True,
        refresh_per_second=4,  # drawing costs CPU time on the very host that is measured
    )
    with bar:
        task = bar.add_task("", total=1.0)
        last = 0.0

        def advance(fraction: float, message: str) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last > 0.2 or fraction >= 1.0:
                last = now
                bar.update(task, completed=fraction, description=escape(printable(message)))

        yield advance
