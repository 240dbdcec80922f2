"""`--watch` of `run`, `map` and `serve`: a page about the current run, and a few lines of it on the terminal."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosswind.cli.console import tell, tell_error
from crosswind.cli.outputs import OUTPUT, writable
from crosswind.errors import CrosswindError, DescriptionError
from crosswind.terminal.progress import Advance, progress_bar

if TYPE_CHECKING:
    from crosswind.watch import Watch

_EVERY_S = 0.5


@dataclass(frozen=True)
class Watched:
    """Whether a run is watched, and where."""

    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Show the run live, on a page on loopback and on the terminal (agents only). run and map keep its "
            "last state in NAME.watch.html.",
            rich_help_panel=OUTPUT,
        ),
    ] = False
    watch_listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="As --watch, on this address. Other than loopback needs --token-file.",
            rich_help_panel=OUTPUT,
        ),
    ] = None

    @property
    def asked(self) -> bool:
        """Whether a page is wanted."""
        return self.watch or self.watch_listen is not None

    def refuse(self, why: str, hint: str = "--on local, dask: or hosts:") -> None:
        """Refuse the options where there is nothing to watch.

        Raises
        ------
        DescriptionError
            When one of them is given.
        """
        if self.asked:
            option = "--watch-listen" if self.watch_listen is not None else "--watch"
            raise DescriptionError(f"{option} does not go with {why}", "argument", hint)

    def file_beside(
        self, result: Path, *, inputs: Iterable[str | Path | None] = (), force: bool = False
    ) -> Path | None:
        """Return the file that keeps the page's last state, `NAME.watch.html` beside a result; None if none is watched.

        Raises
        ------
        DescriptionError, CrosswindError
            When nothing can, or nothing should, be written there.
        """
        if not self.asked:
            return None
        named = result if result.name not in ("", "..") else result.resolve()  # a directory of results may be "."
        file = result.parent / f"{named.stem}.watch.html"
        writable(file, "watched-page", "the page of --watch", inputs=inputs, force=force)
        return file

    @contextmanager
    def watching(self, token: str | None, keep: Path | None) -> Iterator[tuple[Watch | None, Advance | None]]:
        """Serve the page until the body ends; where none is wanted, show a progress bar.

        Yields the page's watch and the progress callback; one of them is None. `keep` is the file of `file_beside`.
        """
        if self.asked:
            with self.page(token, keep) as watch:
                yield watch, None
        else:
            with progress_bar() as advance:
                yield None, advance

    @contextmanager
    def page(self, token: str | None, keep: Path | None = None) -> Iterator[Watch]:
        """Serve the page, and show its state on a terminal, until the body ends; a file `keep` gets the last state."""
        from crosswind.watch import LISTEN, Watch

        with Watch(self.watch_listen or LISTEN, token, lambda address: tell(f"watch: {address}")) as watch:
            over = threading.Event()
            thread = threading.Thread(target=_show, args=(watch, over), name="crosswind-lines", daemon=True)
            thread.start()
            try:
                yield watch
            finally:
                over.set()
                thread.join()
                if keep is not None and watch.has_begun:
                    watch.ended()
                    _keep(watch, keep)


def _keep(watch: Watch, file: Path) -> None:
    try:
        watch.save(file)
    except CrosswindError as error:  # the run itself is whole
        tell_error(f"the page's last state is lost: {error}", error.hint)
    else:
        tell(f"watch: {file} keeps the page's last state")


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
