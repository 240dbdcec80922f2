"""`--watch`: a page about the run that goes on, and a few lines of it on the terminal."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from crosswind.cli.console import tell
from crosswind.errors import DescriptionError

if TYPE_CHECKING:
    from crosswind.watch import Watch

_EVERY_S = 0.5


@contextmanager
def watching(wanted: bool, listen: str | None, token: str | None) -> Iterator[Watch | None]:
    """Serve the page, and show its state on a terminal, until the body ends; None where it is not wanted."""
    if not (wanted or listen):
        yield None
        return
    from crosswind.watch import LISTEN, Watch

    with Watch(listen or LISTEN, token, lambda address: tell(f"watch: {address}")) as watch:
        over = threading.Event()
        thread = threading.Thread(target=_show, args=(watch, over), name="crosswind-lines", daemon=True)
        thread.start()
        try:
            yield watch
        finally:
            over.set()
            thread.join()


def refuse_watch(wanted: bool, listen: str | None, why: str) -> None:
    """Refuse `--watch` where there is nothing to watch."""
    if wanted or listen:
        option = "--watch-listen" if listen else "--watch"
        raise DescriptionError(f"{option} cannot be combined with {why}", "argument", "--on local, dask: or hosts:")


def _show(watch: Watch, over: threading.Event) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from crosswind.watch.lines import lines_of

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while not over.wait(_EVERY_S):
            live.update(Text("\n".join(lines_of(watch.snapshot(), console.width))), refresh=True)
