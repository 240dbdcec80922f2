"""Map: a Python function over many items, on the nodes of a tree."""

from __future__ import annotations

import builtins
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from crosswind.errors import DescriptionError
from crosswind.platform import Platform
from crosswind.run.deployment import Placing
from crosswind.run.deployments import HINT, deployed, is_deployed
from crosswind.run.farm import Farm, Order
from crosswind.run.store import Store
from crosswind.terminal.progress import Advance, progress_bar, progress_of_long_work

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")
R = TypeVar("R")

_AHEAD_PER_NODE = 64  # calls under way or answered and not yet taken: bounds the memory, keeps every node busy


def map(
    function: Callable[[T], R],
    items: Iterable[T],
    *,
    platform: Platform | str | Path | None = None,
    on: str | Client = "local",
    placing: Placing | None = None,
    ordered: bool = True,
    order: Order = "interference",
    buffer_tasks: int | None = None,
    retries: int = 0,
    task_timeout_s: float | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    key: Callable[[T], object] | None = None,
    progress: Advance | bool | None = None,
) -> Iterator[R]:
    """Call a function on every item, on the nodes of a tree, and yield what it returns.

    Parameters
    ----------
    function : callable
        Of one argument. It travels by cloudpickle, as items and results do: lambdas and functions of `__main__` too.
    items : iterable
        Taken lazily, some ahead of the results: it may be endless.
    platform, order, buffer_tasks, retries, task_timeout_s
        As of `Farm`. Default: this machine, one node per CPU.
    on : str or distributed.Client
        `local`: agents on this machine, one process per node. `dask:ADDRESS` or a client: on the hosts of a Dask
        cluster, one per thread of its workers. `hosts:FILE`: on the hosts of a hosts.toml.
    placing : Placing, optional
        On a cluster: how many agents, and which node goes to which host.
    ordered : bool
        Yield in the order of the items, or as results come in.
    out : path, optional
        Directory in which each result is kept, pickled. Its file is named by a digest of the function's code and of
        the item's key; of equal items, each has a file of its own. A file is whole or not there. Each is on the disk
        before it is yielded, unless another was so less than 0.2 s before: then the system writes it in its own time.
    resume : bool
        Do not call again for items whose result stands in `out`. Items may have been added, left out or moved since; a
        changed item, or a function whose own code has changed, is called again. What the function calls does not count.
    key : callable, optional
        What an item is known by, for `resume`: anything that can be pickled. Default: the item itself. Give one for
        items whose pickles differ between processes (sets of text) or are large.
    progress : bool or callable, optional
        True: a progress bar with the time left, on a terminal or in a notebook. False: none. Default: one where it
        takes longer than two seconds. Or what is called as `progress(fraction, message)`; the fraction is 0 where
        `items` has no length.

    Yields
    ------
    object
        What the function returned.

    Raises
    ------
    DescriptionError
        When an argument is wrong, or another process writes into `out`.
    Exception
        Whatever the function raised, at the place of its item, with the traceback of the node as its `__cause__`.
    AgentLost
        When the run ends before all items are done, with what ended it.

    Examples
    --------
    >>> list(map(abs, [-1, 2, -3]))  # doctest: +SKIP
    [1, 2, 3]
    """
    if not is_deployed(on):
        raise DescriptionError(f"on is {on!r}; it must be one of: {HINT}", "argument")
    if resume and out is None:
        raise DescriptionError("resume is given without out", "argument", "name the directory of the results")
    if key is not None and out is None:
        raise DescriptionError("key is given without out", "argument", "name the directory of the results")
    store = Store(out, function, key, resume) if out is not None else None
    total = len(items) if isinstance(items, Sized) else None

    def results() -> Iterator[R]:
        with ExitStack() as stack:
            if store is not None:
                stack.enter_context(store)
            launch = stack.enter_context(deployed(on, placing))
            farm = stack.enter_context(
                Farm(
                    platform=platform,
                    order=order,
                    buffer_tasks=buffer_tasks,
                    retries=retries,
                    task_timeout_s=task_timeout_s,
                    launch=launch,
                )
            )
            meter = _Meter(total, _shown(progress, stack))
            calls = _calls(farm, function, items, store)
            ahead = _AHEAD_PER_NODE * len(farm.platform)
            for value in _in_order(calls, ahead) if ordered else _as_completed(calls, ahead):
                meter.one_more()
                yield value

    return results()


def _shown(progress: Advance | bool | None, stack: ExitStack) -> Advance | None:
    if progress is None:
        return stack.enter_context(progress_of_long_work())
    if progress is True:
        return stack.enter_context(progress_bar())
    return progress or None


def _calls(farm: Farm, function: Callable[[T], R], items: Iterable[T], store: Store | None) -> Iterator[Future[R]]:
    for item in items:
        if store is None:
            yield farm.submit(function, item)
        else:
            name = store.name_of(item)
            yield store.known(name) or store.kept(name, farm.submit(function, item))


def _in_order(calls: Iterator[Future[R]], ahead: int) -> Iterator[R]:
    open_: deque[Future[R]] = deque()
    for call in calls:
        open_.append(call)
        if len(open_) >= ahead:
            yield open_.popleft().result()
    while open_:
        yield open_.popleft().result()


def _as_completed(calls: Iterator[Future[R]], ahead: int) -> Iterator[R]:
    open_: set[Future[R]] = set()
    for call in calls:
        open_.add(call)
        if len(open_) >= ahead:
            done, open_ = wait(open_, return_when=FIRST_COMPLETED)
            yield from builtins.map(Future.result, done)
    while open_:
        done, open_ = wait(open_, return_when=FIRST_COMPLETED)
        yield from builtins.map(Future.result, done)


class _Meter:
    def __init__(self, total: int | None, progress: Advance | None) -> None:
        self._total, self._progress = total, progress
        self._begun, self._done = time.monotonic(), 0

    def one_more(self) -> None:
        self._done += 1
        if self._progress is None:
            return
        if self._total:
            left = (time.monotonic() - self._begun) / self._done * (self._total - self._done)
            self._progress(self._done / self._total, f"{self._done} of {self._total}, {left:.0f} s left")
        else:
            self._progress(0.0, f"{self._done} done")
