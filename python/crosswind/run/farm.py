"""Farm: a `concurrent.futures.Executor` whose workers are the nodes of a tree."""

from __future__ import annotations

import contextlib
import pickle
import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future, InvalidStateError
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from crosswind.errors import AgentLost, DescriptionError
from crosswind.platform import Platform
from crosswind.run.agents import Launch, Limits, LiveFarm, Result, Task, Work
from crosswind.run.calls import CallError, outcome, packed, perform
from crosswind.run.deployment import Deployment, Placing
from crosswind.run.futures import futures_in, pickled, resolved, when_all_done
from crosswind.run.results import Run
from crosswind.run.this_machine import point_of

if TYPE_CHECKING:
    from distributed import Client

    from crosswind.watch import Watch

T = TypeVar("T")
Order = Literal["arrival", "interference", "interference-rate", "bandwidth", "compute"]

_LOOK_AGAIN_S = 0.2
_AHEAD_PER_NODE = 4  # calls of Dask under way per node: one computes, the others are sent meanwhile
_PICKLED = b"\x80"  # how a pickle begins and no text in UTF-8 does: of a failure that a node could describe


class Farm(Executor):
    """Runs calls on the nodes of a tree, one process per node.

    Parameters
    ----------
    on : Platform, path or distributed.Client, optional
        The tree, on this machine; or the Dask cluster whose hosts carry the agents. The client stays open.
    platform : Platform or path, optional
        The tree. Its root is this process; it computes only where its `compute_per_s` is above 0. Default: on this
        machine a root and one node per CPU, on a cluster a root and one node per thread of its workers.
    order : {"arrival", "interference", "interference-rate", "bandwidth", "compute"}
        Which child is served next. All but arrival reckon with the platform's rates, and follow what sends of 1 MiB
        and more show of the links (docs/concepts/adaptation.md).
    buffer_tasks : int, optional
        Tasks that a node asks for ahead, at least 1; default: chosen from latency and rates.
    retries : int
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
    result, and fails as it failed. A future inside of an argument is refused. `dask.compute(..., scheduler=farm)` has
    a farm run the tasks of Dask's collections.

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
        order: Order = "interference",
        buffer_tasks: int | None = None,
        retries: int = 0,
        task_timeout_s: float | None = None,
        launch: Deployment | None = None,
        limits: Limits | None = None,
        placing: Placing | None = None,
        trace: bool = False,
        watch: Watch | bool = False,
    ) -> None:
        if on is not None and not isinstance(on, (Platform, str, Path)):
            from crosswind.run.dask import OnDask

            launch = OnDask(on, placing)
        elif placing:
            message = "placing is given without a client: it says which host of a cluster carries which node"
            raise DescriptionError(message, "argument", "Farm(client, placing=...)")
        elif platform is None:
            platform = on
        launch = launch or Launch()
        if platform is None:
            platform = launch.tree()
        elif not isinstance(platform, Platform):
            platform = Platform.load(platform)
        if buffer_tasks is not None and buffer_tasks < 1:
            raise DescriptionError(f"buffer_tasks is {buffer_tasks}; it must be at least 1", "argument")
        self.platform = platform
        self._run: Run | None = None
        self._columns: dict[str, bytes] | None = None
        self._calls: queue.SimpleQueue[tuple[Future[Any], bytes] | None] = queue.SimpleQueue()
        self._futures: dict[int, Future[Any]] = {}
        self._held: set[Future[Any]] = set()
        """Calls that wait for a future among their arguments."""
        self._functions: dict[int, tuple[Any, bytes]] = {}
        self._lock = threading.Lock()
        self._submitted = 0  # the feeder's: tasks are numbered in the order in which they are handed over
        self._closed = self._end_is_told = False
        self._broken: BaseException | None = None
        point = point_of("farm", 1, 0.001, order, buffer_tasks)
        limits = limits or Limits()
        timeout_s = limits.task_timeout_s if task_timeout_s is None else task_timeout_s
        self._own_watch: Watch | None = None
        if watch is True:
            from crosswind.watch import Watch

            watch = self._own_watch = Watch(on_address=lambda address: print(f"watch: {address}", file=sys.stderr))
        self._live = LiveFarm(
            platform,
            point,
            Work("callable", function=perform),
            launch=launch,
            limits=replace(limits, retries=retries or limits.retries, task_timeout_s=timeout_s),
            trace=trace,
            watch=watch or None,
        )
        try:
            self._live.__enter__()
        except BaseException:
            self._unwatch()
            raise
        self._feeder = threading.Thread(target=self._feed, name="crosswind-farm-feeder", daemon=True)
        self._reader = threading.Thread(target=self._read, name="crosswind-farm-reader", daemon=True)
        self._feeder.start()
        self._reader.start()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Have `fn(*args, **kwargs)` called on some node.

        Raises
        ------
        RuntimeError
            After `shutdown`.
        AgentLost
            When the run is over, with what ended it: the agents are lost, the root's disk is full.
        DescriptionError
            For a future that cannot be waited for: inside of an argument, or of asyncio.
        """
        function, futures = self._bytes_of(fn), futures_in(args, kwargs)
        call = packed(function, pickled((args, kwargs))) if not futures else b""
        future: Future[T] = Future()
        with self._lock:
            if self._broken is not None:
                raise AgentLost(f"the farm's run is over: {self._broken}", "farm-over") from self._broken
            if self._closed:
                raise RuntimeError("cannot submit a call after shutdown")
            if futures:
                self._held.add(future)
            else:
                self._calls.put((future, call))
        if futures:
            when_all_done(futures, lambda: self._release(future, function, args, kwargs))
        return future

    def _release(self, future: Future[Any], function: bytes, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Hand over a call whose arguments are there, or end it as one of them ended."""
        call: bytes | BaseException
        try:
            call = packed(function, pickled(resolved(args, kwargs)))
        except BaseException as error:  # whatever an argument raised is what this call raises
            call = error
        with self._lock:
            if future not in self._held:  # it was cancelled, or the run is over
                return
            self._held.remove(future)
            if isinstance(call, bytes):
                self._calls.put((future, call))
        self._end_once_none_is_held()
        if isinstance(call, CancelledError):
            future.cancel()
            future.set_running_or_notify_cancel()
        elif isinstance(call, BaseException) and future.set_running_or_notify_cancel():
            future.set_exception(call)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls; with `wait`, return when all are answered and every agent has ended."""
        with self._lock:
            self._closed = True
        if cancel_futures:
            self._cancel_waiting()
        self._end_once_none_is_held()
        if wait:
            self._feeder.join()
            self._reader.join()

    def interrupt(self) -> None:
        """End the run as soon as possible, whether or not agents are there: open calls fail with `AgentLost`."""
        self._live.interrupt()

    @property
    def run(self) -> Run | None:
        """What each node did: known after `shutdown`."""
        return self._run

    def _bytes_of(self, fn: Any) -> bytes:
        # By identity: pickling a closure over a large array anew for each call would cost more than most calls.
        known = self._functions.get(id(fn))
        if known is None or known[0] is not fn:
            if len(self._functions) > 64:
                self._functions.clear()
            known = self._functions[id(fn)] = (fn, pickled(fn))
        return known[1]

    @property
    def _max_workers(self) -> int:
        """How many tasks Dask hands over at a time (`dask.compute(..., scheduler=farm)`): some wait at each node."""
        computing = sum(1 for node in self.platform.nodes if node["compute_per_s"] > 0)
        return _AHEAD_PER_NODE * max(computing, 1)

    def _end_once_none_is_held(self) -> None:
        """Tell the feeder that no call follows, once that is so."""
        with self._lock:
            if self._closed and not self._held and not self._end_is_told:
                self._end_is_told = True
                self._calls.put(None)

    def _cancel_waiting(self) -> None:
        with self._lock:
            held, self._held = self._held, set()
        for future in held:
            future.cancel()
            future.set_running_or_notify_cancel()
        with contextlib.suppress(queue.Empty):
            while True:
                waiting = self._calls.get_nowait()
                if waiting is None:
                    self._calls.put(None)
                    return
                waiting[0].cancel()

    def _feed(self) -> None:
        try:
            while (waiting := self._calls.get()) is not None:
                future, call = waiting
                if future.set_running_or_notify_cancel():
                    with self._lock:  # before it is handed over: its result may come at once
                        self._futures[self._submitted] = future
                    self._submitted += 1
                    self._live.submit(Task(call))
        except BaseException as error:
            self._break(error)
        finally:
            with contextlib.suppress(Exception):
                self._live.end_of_tasks()

    def _read(self) -> None:
        try:
            while True:
                results = self._live.results(_LOOK_AGAIN_S)  # raises what ended the run
                for result in results:
                    self._answer(result)
                if not results and not self._feeder.is_alive() and not self._open():
                    break
                if not results and self._live.ended(0.0):
                    raise AgentLost("the run has ended, and not all calls are answered")
        except BaseException as error:
            self._break(error)
        finally:
            self._close()

    def _open(self) -> bool:
        with self._lock:
            return bool(self._futures)

    def _answer(self, result: Result) -> None:
        with self._lock:
            future = self._futures.pop(result.task)
        data = result.data if isinstance(result.data, bytes) else Path(result.data).read_bytes()
        if not result.ok and not data.startswith(_PICKLED):
            future.set_exception(CallError(data.decode(errors="replace")))
            return
        try:
            succeeded, value = outcome(pickle.loads(data), result.node)
        except BaseException as error:  # a class that only the node knows, or one whose making raises anything
            future.set_exception(error)
            return
        if succeeded:
            future.set_result(value)
        else:
            future.set_exception(value)

    def _close(self) -> None:
        try:
            summary, self._columns = self._live.close()
            self._run = Run({"params": {}, **summary})
        except BaseException as error:
            self._break(error)
        finally:
            self._unwatch()

    def _unwatch(self) -> None:
        if self._own_watch is not None:
            self._own_watch.close()

    def _break(self, error: BaseException) -> None:
        """Fail whatever is open: nothing will answer it."""
        with self._lock:
            if isinstance(error, KeyboardInterrupt):  # the run was interrupted: not what a call of the user's raised
                error = AgentLost("the farm was interrupted", "interrupted")
            self._broken = self._broken or error
            futures, self._futures = list(self._futures.values()), {}
            futures += [future for future in self._held if future.set_running_or_notify_cancel()]
            self._held = set()
        with contextlib.suppress(queue.Empty):
            while (waiting := self._calls.get_nowait()) is not None:
                if waiting[0].set_running_or_notify_cancel():
                    futures.append(waiting[0])
        self._calls.put(None)  # the feeder ends in any case
        for future in futures:
            lost = AgentLost(str(error), getattr(error, "code", "farm-over"), getattr(error, "hint", None))
            lost.__cause__ = error  # each its own: a raised exception keeps where it was raised
            with contextlib.suppress(CancelledError, InvalidStateError):
                future.set_exception(lost)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        # After ctrl-C, tasks that have not begun are cancelled.
        self.shutdown(wait=True, cancel_futures=kind is not None)
        return False
