"""`Farm`: a `concurrent.futures.Executor` whose workers are the nodes of a tree.

It checks arguments and keeps the run open between calls. `open_calls` has a future for each call, `call_run` hands
calls to the agents and reads their results, and the crates decide which node gets which task.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Never, TypeVar

from crosswind.documents import Arguments
from crosswind.platform import Platform
from crosswind.run.agents import Limits
from crosswind.run.batches import MOST
from crosswind.run.call_run import CallRun, Order, Setting
from crosswind.run.dask_options import METHODS_OF_DASK, OF_DASK, refuse_of_map, refuse_of_submit
from crosswind.run.deployment import Deployment, Placing
from crosswind.run.functions import Functions
from crosswind.run.futures import (
    futures_in,
    pickled,
    pickled_arguments,
    pickled_function,
    resolved,
    when_all_done,
)
from crosswind.run.open_calls import Call, OpenCalls
from crosswind.run.results import Run
from crosswind.run.window import Window

if TYPE_CHECKING:
    from distributed import Client

    from crosswind.watch import Watch

T = TypeVar("T")

_AHEAD_PER_NODE = 4  # calls of Dask under way per node: one computes, the others are sent meanwhile


class Farm(Executor):
    """Runs calls on the nodes of a tree, one process per node.

    Parameters
    ----------
    on : Platform, path, str or distributed.Client, optional
        The tree, on this machine. Or where the agents run: `local`, a Dask cluster (`dask:ADDRESS`, or a client, which
        stays open), or `hosts:FILE`.
    platform : Platform or path, optional
        The tree. Its root is this process; it computes only where its `compute_per_s` is above 0. Default: on this
        machine a root and one node per CPU, on a cluster a root and one node per thread of its workers.
    max_workers : int, optional
        Nodes of this machine, at least 1; default: one per CPU that this process may use.
    order : {"arrival", "interference", "interference-rate", "bandwidth", "compute"}
        Which child is served next. All but arrival reckon with the platform's rates, and follow what sends of 1 MiB
        and more show of the links (docs/concepts/adaptation.md).
    buffer_tasks : int, optional
        Tasks that a node asks for ahead, at least 1; default: chosen from latency and rates.
    retries : int, optional
        How often a call that raised, or took longer than `task_timeout_s`, is tried again.
    task_timeout_s : float, optional
        Seconds after which a call is ended and fails with `CallError`. The agent that it runs on is ended with it and
        started again; its other calls run again elsewhere. The root must compute nothing itself. Default: no limit.
    launch, limits : optional
        Where agents run and how they are started (`crosswind.run.deployment`), and when an agent is given up.
    placing : Placing, optional
        On a cluster: how many agents, which node goes to which host, and more.
    trace : bool
        Record what each node did when.
    watch : bool or Watch
        True: show the run on a page on loopback while it runs; its address goes to stderr. A `crosswind.watch.Watch`
        says where the page is; it stays open.
    quiet : bool
        Whether the output of calls, and of programs that they start, is hidden. Otherwise each line is written to
        stderr as it comes, after the name of its node and the number of its call, from 0 in the order of `submit`; of
        very much, a part, and how many bytes were left out.

    Raises
    ------
    DescriptionError
        When the platform is wrong.

    Notes
    -----
    Functions and values travel by cloudpickle: lambdas and functions of `__main__` too. An exception is raised here
    with the traceback of the node as its `__cause__`. A node that is lost costs no call: those that were out there run
    again elsewhere, so a call may run more than once, though it is answered once. When no agent is left, or the run
    ends for another reason, every open call fails with `AgentLost`, which names the cause, and so does every later
    `submit`. A call that ends its process, with whatever status, is tried five times; then it fails with `CallError`.

    An argument that is a future (of a farm, of any other executor, of a Dask client) is waited for: the call gets its
    result, and fails as it failed; also within lists, tuples, sets and dicts. One in an attribute or a closure is
    refused. `dask.compute(..., scheduler=farm)` has a farm run the tasks of Dask's collections.

    Examples
    --------
    >>> with Farm() as farm:  # doctest: +SKIP
    ...     farm.submit(pow, 2, 10).result()
    1024
    """

    def __init__(
        self,
        on: Platform | str | Path | Client | None = None,
        *,
        platform: Platform | str | Path | None = None,
        max_workers: int | None = None,
        order: Order = "interference",
        buffer_tasks: int | None = None,
        retries: int | None = None,
        task_timeout_s: float | None = None,
        launch: Deployment | None = None,
        limits: Limits | None = None,
        placing: Placing | None = None,
        trace: bool = False,
        watch: Watch | bool = False,
        quiet: bool = False,
    ) -> None:
        self._pid = os.getpid()
        self._run = CallRun(
            self._calls_of,
            on=on,
            platform=platform,
            max_workers=max_workers,
            order=order,
            buffer_tasks=buffer_tasks,
            retries=retries,
            task_timeout_s=task_timeout_s,
            launch=launch,
            limits=limits,
            placing=placing,
            trace=trace,
            watch=watch,
            quiet=quiet,
        )
        self.platform = self._run.platform
        # One that is dropped takes no calls any more: each of its calls holds it.
        weakref.finalize(self, self._run.shutdown, wait=False, cancel=False).atexit = False

    def _calls_of(self, setting: Setting) -> OpenCalls:
        most = MOST if setting.tries_once and not setting.tells_each else 1
        self._functions = Functions(pickled_function, local=setting.local)
        self._open = OpenCalls(Window(setting.nodes, most=most), plain=setting.plain, local=setting.local)
        return self._open

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Have `fn(*args, **kwargs)` called on some node.

        Raises
        ------
        RuntimeError
            After `shutdown`.
        AgentLost
            When the run is over, with what ended it: the agents are lost, the root's disk is full.
        DescriptionError
            For a future that cannot be waited for: in an attribute or a closure, or of asyncio. For options of Dask's
            `submit` that the function does not take.
        """
        if os.getpid() != self._pid:
            raise RuntimeError("the farm belongs to the process that made it, of which this one is a copy")
        if not OF_DASK.isdisjoint(kwargs):
            refuse_of_submit(fn, kwargs)
        function, futures = self._functions.bytes_of(fn), futures_in(args, kwargs)
        call = Call(self._withdraw, function, None if futures else pickled_arguments(args, kwargs))
        self._open.add(call)
        if futures:
            when_all_done(futures, lambda: self._release(call, args, kwargs))
        return call

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        **of_dask: Never,
    ) -> Iterator[T]:
        """Have `fn` called on every item, as of `concurrent.futures.Executor`.

        Raises
        ------
        DescriptionError
            For options of Dask's `map`.
        """
        refuse_of_map(of_dask)
        return super().map(fn, *iterables, timeout=timeout, chunksize=chunksize)

    def _release(self, call: Call, args: tuple[Any, ...], kwargs: Arguments) -> None:
        """Take up a call whose arguments are there, or end it as one of them ended."""
        data, failure = None, None
        try:
            data = pickled(resolved(args, kwargs))
        except BaseException as error:  # whatever an argument raised is what this call raises
            failure = error
        if not self._open.release(call, data):
            return
        if isinstance(failure, CancelledError):
            call.end_cancelled()
        elif failure is not None and call.set_running_or_notify_cancel():
            call.set_exception(failure)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls; with `wait`, return when all are answered and every agent has ended.

        With `cancel_futures`, calls that no node has begun are cancelled. Ctrl-C meanwhile ends the calls that run.
        """
        self._run.shutdown(wait, cancel_futures)

    def cancel_waiting(self) -> None:
        """Cancel all calls that no node has begun, also those that batches give back later."""
        self._run.withdraw(self._open.all())

    def _withdraw(self, calls: list[Call]) -> None:
        """Cancel those calls that no node has begun; asks the nodes that have them."""
        self._run.withdraw(calls)
        self._open.keep(calls, may_wait=threading.current_thread() is not self._run.reader)

    def __getattr__(self, name: str) -> Any:
        instead = METHODS_OF_DASK.get(name)
        hint = f", as a client of Dask has it: {instead}" if instead else ""
        raise AttributeError(f"a farm has no {name!r}{hint}", name=name, obj=self)

    def interrupt(self) -> None:
        """End the run as soon as possible, whether or not agents are there: open calls fail with `AgentLost`."""
        self._run.interrupt()

    @property
    def run(self) -> Run | None:
        """What each node did: known after `shutdown`."""
        return self._run.summary

    @property
    def _max_workers(self) -> int:
        """How many tasks Dask hands over at a time (`dask.compute(..., scheduler=farm)`): some wait at each node."""
        computing = sum(1 for node in self.platform.nodes if node["compute_per_s"] > 0)
        return _AHEAD_PER_NODE * max(computing, 1)

    @property
    def ahead(self) -> int:
        """How many calls the nodes have at most, at present: two each, more where calls are short."""
        return self._open.size

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        if kind is not None and _is_interrupt(kind):
            self.interrupt()
        self.shutdown(wait=True, cancel_futures=kind is not None)
        return False


def _is_interrupt(kind: type[BaseException]) -> bool:
    """Whether it is ctrl-C, or a task of asyncio was cancelled, as ctrl-C does in `asyncio.run` and in notebooks."""
    asyncio = sys.modules.get("asyncio")
    return issubclass(kind, KeyboardInterrupt) or (asyncio is not None and issubclass(kind, asyncio.CancelledError))
