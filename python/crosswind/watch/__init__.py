"""Watch a farm while it runs: a page on loopback, and a few lines on the terminal.

| question | module |
|---|---|
| what is known of the run at a moment, from its results and events | `state` |
| which browsers get the page, and how | `server` |
| what is on the page, live and in a file that keeps the last state | `page`, `templates` |
| the same in a few lines of text | `lines` |
| what does a node that is not the root know? | `status_files` |

Nothing here decides anything about tasks: the farm reports events, and the page shows them beside the plan.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from crosswind.documents import Row
from crosswind.errors import CrosswindError
from crosswind.files.atomic import write_text
from crosswind.plan import plan, ports_of, result_mb_of
from crosswind.platform import Platform
from crosswind.watch.page import still
from crosswind.watch.state import WatchedRun

LISTEN = "127.0.0.1:0"
_finishing = threading.Lock()
_finished: Watch | None = None
"""The page of the last run that has finished."""


class Watch:
    """What a farm reports while it runs, and the page that shows it. Close it, or use it as a context manager.

    Parameters
    ----------
    listen : str
        HOST:PORT of the page; port 0 takes a free one.
    token : str, optional
        What a browser must show; required where HOST is not a loopback address.
    on_address : callable, optional
        Called once with the page's address.

    Raises
    ------
    DescriptionError
        When the address is wrong or in use, a token is missing, or tornado is not installed.

    Examples
    --------
    >>> from crosswind import Farm
    >>> with Watch(on_address=print) as watch, Farm(watch=watch) as farm:  # doctest: +SKIP
    ...     list(farm.map(abs, range(-1000, 0)))
    http://127.0.0.1:39107/
    """

    def __init__(
        self, listen: str = LISTEN, token: str | None = None, on_address: Callable[[str], object] = lambda address: None
    ) -> None:
        from crosswind.watch.server import Server

        self._lock = threading.Lock()
        self._run: WatchedRun | None = None
        self._expected: int | None = None
        self._server = Server(self.snapshot, listen, token)
        on_address(self.address)

    @property
    def address(self) -> str:
        """Where the page is."""
        return self._server.address

    def begin(
        self,
        platform: Platform,
        settings: Mapping[str, Any],
        tasks: int | None,
        time_scale: float = 1.0,
        below: str | None = None,
        name: str | None = None,
    ) -> None:
        """Take up a run that starts now.

        Parameters
        ----------
        platform : Platform
            Its tree.
        settings : mapping
            What every agent gets: the policy, and size and work of the mean task.
        tasks : int, optional
            How many tasks the workload has. None: tasks are handed over, so that neither their number nor their work is
            known, and there is no plan to compare with.
        time_scale : float
            Seconds of the platform per second of the clock.
        below : str, optional
            Only this node and those below it are looked at: what the page of that node can know.
        name : str, optional
            Of the experiment or the command, for the heading. Default: the platform's.
        """
        size_mb, work = settings["mean_size_mb"], settings["mean_work"]
        best = None
        if tasks is not None and work > 0:
            ports = ports_of(settings["policy"])
            with contextlib.suppress(CrosswindError):  # a page without a plan is better than no run
                results = result_mb_of(settings)
                size_mb = max(size_mb, 1e-9)
                best = plan(
                    platform, task_size_mb=size_mb, task_work=work, result_size_mb=results, ports=ports
                ).to_dict()
        with self._lock:
            total = (tasks if tasks is not None else self._expected) if below is None else None
            mean = (size_mb, work)
            self._run = WatchedRun(platform.to_dict(), total, best, mean, time_scale, time.monotonic(), below, name)

    def took(self, nodes: Iterable[str]) -> None:
        """Count results by the nodes that computed them, or take their counts."""
        now = time.monotonic()
        with self._lock:
            if self._run is not None:
                self._run.took(nodes, now)

    def happened(self, events: Iterable[tuple[str, str | None, str]]) -> None:
        """Note events: code, node and message of each."""
        now = time.monotonic()
        with self._lock:
            if self._run is not None:
                for code, node, message in events:
                    self._run.happened(code, node, message, now)

    def expect(self, tasks: int) -> None:
        """Say how many tasks will be handed over, before or after the run begins."""
        with self._lock:
            self._expected = tasks
            if self._run is not None:
                self._run.total = tasks

    def ended(self) -> None:
        """Note that the run is over."""
        with self._lock:
            if self._run is not None:
                self._run.end(time.monotonic())

    def snapshot(self) -> Row:
        """Return what is known now: the fields of `WatchedRun.snapshot`; before a run begins only its state."""
        with self._lock:
            return self._run.snapshot(time.monotonic()) if self._run is not None else {"state": "starting"}

    def finish(self) -> None:
        """Send the last state to every page, also to one that is opened later, until the program ends.

        The page of a run that finished before is closed: a program that makes many farms serves one such page.
        """
        global _finished
        self.ended()
        self._server.finish()
        with _finishing:
            before, _finished = _finished, self
        if before is not None:
            before.close()

    @property
    def has_begun(self) -> bool:
        """Whether there is a run to show."""
        return self._run is not None

    def save(self, path: str | Path) -> None:
        """Write the page with the state as it is now: one HTML file that needs no server.

        Parameters
        ----------
        path : path
            An existing file is replaced.

        Raises
        ------
        DescriptionError
            When there can be no file at `path`.
        CrosswindError
            When it cannot be written; with code `no-space` when the disk is full.
        """
        write_text(still(self.snapshot()), path)

    def close(self) -> None:
        """Send the last state to every page, and stop serving."""
        self.ended()
        self._server.close()

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
