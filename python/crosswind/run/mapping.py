"""Map: a Python function over many items, on the nodes of a tree."""

from __future__ import annotations

import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Never, TypeVar

from crosswind.documents import Arguments
from crosswind.errors import DescriptionError
from crosswind.platform import Platform
from crosswind.run import arguments
from crosswind.run.call_run import CallRun, Order
from crosswind.run.dask_options import refuse_of_map
from crosswind.run.deployment import Placing
from crosswind.run.deployments import HINT, is_deployed
from crosswind.run.farm import Farm
from crosswind.run.map_calls import UNTAKEN_PER_NODE, MapCalls, Piece, Raised, length
from crosswind.run.store import Store
from crosswind.terminal.progress import Advance, left_in_words, progress_bar, progress_of_long_work
from crosswind.terminal.waiting import in_steps

if TYPE_CHECKING:
    from distributed import Client

R = TypeVar("R")

_Where = Arguments


def map(
    function: Callable[..., R],
    /,
    *iterables: Iterable[Any],
    platform: Platform | str | Path | None = None,
    on: str | Client = "local",
    placing: Placing | None = None,
    max_workers: int | None = None,
    ordered: bool = True,
    order: Order = "interference",
    buffer_tasks: int | None = None,
    retries: int = 0,
    task_timeout_s: float | None = None,
    timeout: float | None = None,
    return_exceptions: bool = False,
    chunksize: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    key: Callable[[Any], object] | None = None,
    progress: Advance | bool | None = None,
    quiet: bool = False,
    **of_dask: Never,
) -> Results[R]:
    """Call a function on every item, on the nodes of a tree, beginning at once, and yield what it returns.

    `break`, an exception, ctrl-C and the end of the results leave no call to begin; those that nodes compute end by
    themselves, except after ctrl-C, which ends them.

    Parameters
    ----------
    function : callable
        It travels by cloudpickle, as items and results do: lambdas and functions of `__main__` too.
    *iterables : iterable
        One for each argument of the function; the shortest ends the map. Taken lazily, some ahead of the results, in
        another thread: they may be endless.
    platform, max_workers, order, buffer_tasks, retries, task_timeout_s, quiet
        As of `Farm`. Default: this machine, one node per CPU.
    on : str or distributed.Client
        `local`: agents on this machine, one process per node. `dask:ADDRESS` or a client: on the hosts of a Dask
        cluster, one per thread of its workers. `hosts:FILE`: on the hosts of a hosts.toml.
    placing : Placing, optional
        On a cluster: how many agents, and which node goes to which host.
    ordered : bool
        Yield in the order of the items, or as results come in.
    timeout : float, optional
        Seconds from the call of `map` within which a result must come; `TimeoutError` is raised otherwise.
    return_exceptions : bool
        Yield an exception that the function raised as its result, instead of raising it, which ends the map.
    chunksize : int, optional
        Most calls that travel together, at least 1, as soon as the map begins. Default: one at first, then as many as
        take 20 ms. A batch that takes longer than 50 ms gives back what it has not begun. With `retries` or
        `task_timeout_s` each call travels alone.
    out : path, optional
        Directory in which each result is kept, pickled. Its file is named by a digest of the function's code and of
        the item's key; of equal items, each has a file of its own. A file is whole or not there. Each is on the disk
        before it is yielded, unless another was so less than 0.2 s before: then the system writes it in its own time.
    resume : bool
        Do not call again for items whose result stands in `out`. Items may have been added, left out or moved since; a
        changed item, or a function whose own code has changed, is called again. What the function calls does not count.
    key : callable, optional
        What an item is known by, for `resume`: anything that can be pickled. Takes the item; the tuple of them, of
        several iterables. Default: the item itself. Give one for items whose pickles differ between processes (sets of
        text) or are large.
    progress : bool or callable, optional
        True: a progress bar with the time left, on a terminal or in a notebook. False: none. Default: one where it
        takes longer than two seconds. Or what is called as `progress(fraction, message)`; the fraction is 0 where
        `iterables` have no length.

    Returns
    -------
    Results
        An iterator over what the function returned.

    Raises
    ------
    DescriptionError
        When an argument is wrong, or one of Dask's, or another process writes into `out`.
    Exception
        Whatever the function raised, at the place of its item, with the traceback of the node as its `__cause__`.
    AgentLost
        When the run ends before all items are done, with what ended it.

    Examples
    --------
    >>> list(map(abs, [-1, 2, -3]))  # doctest: +SKIP
    [1, 2, 3]
    """
    refuse_of_map(of_dask)
    if not iterables:
        raise DescriptionError("map is given no items", "argument", "crosswind.map(function, items)")
    if not is_deployed(on):
        raise DescriptionError(f"on is {on!r}; it must be one of: {HINT}", "argument")
    if resume and out is None:
        raise DescriptionError("resume is given without out", "argument", "name the directory of the results")
    if key is not None and not callable(key):
        message = f"key is {key!r}; it must be a function of an item"
        raise DescriptionError(message, "argument", "of Dask's keys: calls have none")
    if key is not None and out is None:
        raise DescriptionError("key is given without out", "argument", "name the directory of the results")
    if chunksize is not None:
        chunksize = arguments.whole("chunksize", chunksize, 1)
    if timeout is not None:
        timeout = arguments.seconds("timeout", timeout, may_be_past=True)
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        message = f"progress is {progress!r}; it must be True, False, or called as progress(fraction, message)"
        raise DescriptionError(message, "argument")
    if out is not None:
        out = arguments.directory("out", out)
    where: _Where = {
        "on": on,
        "platform": platform,
        "max_workers": max_workers,
        "order": order,
        "buffer_tasks": buffer_tasks,
        "retries": retries,
        "task_timeout_s": task_timeout_s,
        "placing": placing,
        "quiet": quiet,
    }
    with ExitStack() as stack:
        feed: _Feed | _StoredFeed
        if out is None:
            feed = _Feed(CallRun(partial(MapCalls, function, iterables, ordered, chunksize), **where))
        else:
            store = stack.enter_context(Store(out, function, key, resume))
            feed = _StoredFeed(Farm(**where), function, iterables, store, ordered)
        stack.callback(feed.end, wait=out is not None)
        meter = _Meter(length(iterables), _shown(progress, stack))
        until = None if timeout is None else time.monotonic() + timeout
        return Results(feed, meter, stack.pop_all(), until, return_exceptions)


def _shown(progress: Advance | bool | None, stack: ExitStack) -> Advance | None:
    if progress is None:
        return stack.enter_context(progress_of_long_work())
    if progress is True:
        return stack.enter_context(progress_bar())
    return progress or None


class Results(Iterator[R]):
    """The results of a map. Deleting or closing it leaves no call to begin.

    Several threads may take from it, and each result goes to one of them.
    """

    def __init__(
        self,
        feed: _Feed | _StoredFeed,
        meter: _Meter,
        held: ExitStack,
        until: float | None,
        return_exceptions: bool,
    ) -> None:
        self._feed, self._meter, self._held = feed, meter, held
        self._until, self._return_exceptions = until, return_exceptions
        self._is_closed = self._is_begun = False
        self._taking = threading.Lock()
        self._piece: list[R] = []
        self._values = iter(self._piece)

    def __iter__(self) -> Iterator[R]:
        """Return what a loop takes results from: the same ones, and a short call costs no step of Python's own."""
        return chain.from_iterable(_Pieces(self))

    def __next__(self) -> R:
        while True:
            for value in self._values:
                return value
            self.next_piece()

    def next_piece(self) -> Iterator[R]:
        """Return the next results, which are those that `next` takes from.

        Raises
        ------
        StopIteration
            After the last.
        """
        with self._taking:
            if self._values.__length_hint__():  # type: ignore[attr-defined] # another thread has got it
                return self._values
            if self._is_closed:
                raise StopIteration
            self._is_begun = True
            try:
                piece = self._feed.take(self._until)
                if piece is None:
                    self._feed.finish()
                    raise StopIteration
                self._piece = self._returned(piece.error) if isinstance(piece, Raised) else piece
                self._meter.more(len(self._piece))
            except KeyboardInterrupt:
                self._feed.interrupt()
                self._feed.finish()
                self.close()
                raise
            except BaseException:
                self.close()
                raise
            self._values = iter(self._piece)
            return self._values

    def _returned(self, error: BaseException) -> list[Any]:
        """Return what a call raised as a value, or raise it."""
        if self._return_exceptions and isinstance(error, Exception):
            return [error]
        if isinstance(error, StopIteration):  # it would end the results as if there were no more
            raise RuntimeError("the function raised StopIteration") from error
        raise error

    def close(self) -> None:
        """Let no more calls begin, and take no more results."""
        if not self._is_closed:
            self._is_closed = True
            self._piece.clear()  # what has not been taken of it is not any more
            self._held.close()

    def __enter__(self) -> Results[R]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not self._is_closed:
            if not self._is_begun:
                message = "the results of crosswind.map were dropped before any was taken, so its calls are cancelled"
                warnings.warn(message, RuntimeWarning, stacklevel=2)
            with suppress(Exception):
                self.close()


class _Pieces(Iterator[Iterator[R]]):
    """The results of a map piece by piece, of which the first may have begun."""

    def __init__(self, results: Results[R]) -> None:
        self._results = results

    def __next__(self) -> Iterator[R]:
        return self._results.next_piece()


class _Feed:
    """Calls in batches, and their values in pieces."""

    def __init__(self, run: CallRun[MapCalls]) -> None:
        self._run = run
        self.take = run.calls.take
        self.interrupt, self.finish = run.interrupt, run.join

    def end(self, wait: bool) -> None:
        """Let no more calls begin; with `wait`, return when those that have begun have ended."""
        self._run.shutdown(wait, cancel=True)


class _StoredFeed:
    """Calls as there is room for them, whose results are kept in files."""

    def __init__(
        self,
        farm: Farm,
        function: Callable[..., Any],
        iterables: tuple[Iterable[Any], ...],
        store: Store,
        ordered: bool,
    ) -> None:
        self.farm = farm
        self.interrupt, self.finish = farm.interrupt, farm.shutdown
        self._function, self._iterables, self._store, self._ordered = function, iterables, store, ordered
        self._changed = threading.Condition()
        self._open: deque[Future[Any]] = deque()
        """Untaken calls in the order of the items; if unordered, those that are done, in the order of completion."""
        self._untaken = self._running = 0
        self._is_over = self._is_ended = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="crosswind-map", daemon=True)
        self._thread.start()

    def take(self, until: float | None) -> Piece | None:
        """Return the value of the next call that is done, each once; None after the last.

        Raises
        ------
        TimeoutError
            When there is none by `until`, s on the monotonic clock.
        BaseException
            What the iterables raised.
        """

        def is_there() -> bool:
            return bool(self._open and self._open[0].done()) or (self._is_over and self._untaken == 0)

        with self._changed:
            left = None if until is None else max(until - time.monotonic(), 0.0)
            if not in_steps(partial(self._changed.wait_for, is_there), left):
                raise TimeoutError
            if self._open:
                self._untaken -= 1
                self._changed.notify_all()
                call = self._open.popleft()
                error = call.exception()
                return [call.result()] if error is None else Raised(error)
            if self._error is not None:
                raise self._error
        return None

    def end(self, wait: bool) -> None:
        """Let no more calls begin; with `wait`, return when those that have begun have ended."""
        with self._changed:
            self._is_ended = True
            self._changed.notify_all()
        self.farm.shutdown(wait=wait, cancel_futures=True)

    def _run(self) -> None:
        try:
            for arguments in zip(*self._iterables, strict=False):
                if not self._has_room():
                    break
                call = self._submitted(arguments)
                with self._changed:
                    self._untaken += 1
                    self._running += 1
                    if self._ordered:
                        self._open.append(call)
                call.add_done_callback(self._done)
        except BaseException as error:
            self._error = error
        finally:
            with self._changed:
                self._is_over = True
                self._changed.notify_all()

    def _has_room(self) -> bool:
        """Wait until another call may be submitted; False if none may be any more."""
        most_untaken = UNTAKEN_PER_NODE * len(self.farm.platform)

        def is_due() -> bool:
            ahead = self.farm.ahead
            return self._is_ended or (self._running <= ahead and self._untaken <= max(most_untaken, 2 * ahead))

        with self._changed:
            self._changed.wait_for(is_due)
            return not self._is_ended

    def _submitted(self, arguments: tuple[Any, ...]) -> Future[Any]:
        name = self._store.name_of(arguments[0] if len(arguments) == 1 else arguments)
        return self._store.known(name) or self._store.kept(name, self.farm.submit(self._function, *arguments))

    def _done(self, call: Future[Any]) -> None:
        with self._changed:
            self._running -= 1
            if not self._ordered:
                self._open.append(call)
            self._changed.notify_all()


class _Meter:
    def __init__(self, total: int | None, progress: Advance | None) -> None:
        self._total, self._progress = total, progress
        self._begun, self._done = time.monotonic(), 0

    def more(self, count: int) -> None:
        self._done += count
        if self._progress is None:
            return
        if self._total:
            left = left_in_words(self._done, self._total, time.monotonic() - self._begun)
            self._progress(self._done / self._total, f"{self._done} of {self._total}{left}")
        else:
            self._progress(0.0, f"{self._done} done")
