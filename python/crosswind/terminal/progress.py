"""A progress bar with the time left, for people who wait at a terminal or in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from html import escape as escaped_html

from crosswind.terminal.printable import is_plain, printable

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
    """Show a progress bar on a terminal or in a notebook; yields `advance(fraction, message)`, or None elsewhere."""
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
