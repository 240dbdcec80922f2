"""Farm: a `concurrent.futures.Executor` whose workers are the nodes of a tree."""

from __future__ import annotations

import atexit
import contextlib
import inspect
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import CancelledError, Executor, Future, InvalidStateError
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from crosswind.errors import AgentLost, DescriptionError
from crosswind.platform import Platform
from crosswind.run.agents import Launch, Limits, LiveFarm, Result, Task, Work
from crosswind.run.calls import outcome, packed, perform, perform_plain
from crosswind.run.deployment import Deployment, Placing
from crosswind.run.deployments import HINT, deployed, is_deployed
from crosswind.run.functions import Functions
from crosswind.run.futures import futures_in, pickled, resolved, when_all_done
from crosswind.run.open_calls import Call, OpenCalls
from crosswind.run.results import Run
from crosswind.run.this_machine import here, point_of
from crosswind.run.window import Window

if TYPE_CHECKING:
    from distributed import Client

    from crosswind.watch import Watch

T = TypeVar("T")
Order = Literal["arrival", "interference", "interference-rate", "bandwidth", "compute"]

_OF_DASK_INSTEAD: Final = {
    "key": "a call is known by its future: keep that",
    "pure": "calls are not looked up: keep the future of the first one, or crosswind.map(..., out=DIR, resume=True)",
    "workers": "the tree decides which node computes: Farm(client, placing=crosswind.Placing(nodes={...}))",
    "resources": "the tree decides which node computes: give its nodes their rates in a platform",
    "allow_other_workers": "the tree decides which node computes",
    "priority": "calls are taken in the order in which they are submitted",
}
_OF_DASK: Final = frozenset(_OF_DASK_INSTEAD)
_LOOK_AGAIN_S = 0.2
_ANSWER_S = 2.0  # beyond the silence after which a node counts as lost: how long an answer to a recall is waited for
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
        Whether the output of calls is hidden. Otherwise, on this machine, each line is written to stderr after the name
        of its node. On a cluster the output is in the agents' logs.

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
        if buffer_tasks is not None and buffer_tasks < 1:
            raise DescriptionError(f"buffer_tasks is {buffer_tasks}; it must be at least 1", "argument")
        self._pid = os.getpid()
        self._held = ExitStack()
        """What is closed with the farm."""
        self._run: Run | None = None
        self._columns: dict[str, bytes] | None = None
        self._functions = Functions(pickled)
        self._recalling = threading.RLock()
        limits = limits or Limits()
        self._answer_s = limits.silence_s + _ANSWER_S
        with ExitStack() as stack:
            launch, self.platform = _placed(on, platform, placing, launch, max_workers, quiet, stack)
            self._plain = not launch.trusted
            self._open = OpenCalls(Window(sum(node["compute_per_s"] > 0 for node in self.platform.nodes)))
            if watch is True:
                from crosswind.watch import Watch

                watch = Watch(on_address=lambda address: print(f"watch: {address}", file=sys.stderr))
                stack.callback(watch.close)
            timeout_s = limits.task_timeout_s if task_timeout_s is None else task_timeout_s
            self._live = LiveFarm(
                self.platform,
                point_of("farm", 1, 0.001, order, buffer_tasks),
                Work("callable", function=perform_plain if self._plain else perform),
                launch=launch,
                limits=replace(
                    limits, retries=limits.retries if retries is None else retries, task_timeout_s=timeout_s
                ),
                trace=trace,
                watch=watch or None,
            )
            self._live.__enter__()
            self._held = stack.pop_all()
        self._feeder = threading.Thread(target=self._feed, name="crosswind-farm-feeder", daemon=True)
        self._reader = threading.Thread(target=self._read, name="crosswind-farm-reader", daemon=True)
        self._feeder.start()
        self._reader.start()
        _open_farms.add(self)

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
        if not _OF_DASK.isdisjoint(kwargs):
            _refuse_options_of_dask(fn, kwargs)
        function, futures = self._functions.bytes_of(fn), futures_in(args, kwargs)
        call = Call(self._withdraw)
        self._open.add(call, None if futures else packed(function, pickled((args, kwargs))))
        if futures:
            when_all_done(futures, lambda: self._release(call, function, args, kwargs))
        return call

    def _release(self, call: Call, function: bytes, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Take up a call whose arguments are there, or end it as one of them ended."""
        data, failure = None, None
        try:
            data = packed(function, pickled(resolved(args, kwargs)))
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
        self._open.close()
        try:
            if cancel_futures:
                self.cancel_waiting()
            if wait:
                self._join()
        except KeyboardInterrupt:
            self.interrupt()
            self._join()
            raise

    def _join(self) -> None:
        if threading.current_thread() not in {self._feeder, self._reader}:  # in a callback of a call
            self._feeder.join()
            self._reader.join()

    def cancel_waiting(self) -> None:
        """Cancel all calls that no node has begun."""
        self._withdraw(self._open.all())

    def _withdraw(self, calls: Iterable[Call]) -> None:
        """Cancel those calls that no node has begun; asks the nodes that have them."""
        with self._recalling:
            waiting, numbers = self._open.withdraw(calls, self._answer_s)
            for call in waiting:
                call.end_cancelled()
            if numbers:
                self._end_withdrawn(self._live.recall(numbers, self._answer_s))

    def _end_withdrawn(self, numbers: Iterable[int]) -> None:
        for call in self._open.take(numbers):
            call.end_cancelled()

    def interrupt(self) -> None:
        """End the run as soon as possible, whether or not agents are there: open calls fail with `AgentLost`."""
        self._live.interrupt()

    @property
    def run(self) -> Run | None:
        """What each node did: known after `shutdown`."""
        return self._run

    @property
    def _max_workers(self) -> int:
        """How many tasks Dask hands over at a time (`dask.compute(..., scheduler=farm)`): some wait at each node."""
        computing = sum(1 for node in self.platform.nodes if node["compute_per_s"] > 0)
        return _AHEAD_PER_NODE * max(computing, 1)

    @property
    def ahead(self) -> int:
        """How many calls the nodes have at most, at present: two each, more where calls are short."""
        return self._open.size

    def _feed(self) -> None:
        try:
            while (due := self._open.next()) is not None:
                number, data = due
                self._live.submit(Task(data), number)
        except BaseException as error:
            self._break(error)
        finally:
            with contextlib.suppress(Exception):
                self._live.end_of_tasks()

    def _read(self) -> None:
        try:
            while True:
                results = self._live.results(_LOOK_AGAIN_S, or_news=True)  # raises what ended the run
                begun, withdrawn = self._live.news()
                self._open.begin(begun)
                self._end_withdrawn(withdrawn)  # answers that came too late for `_withdraw`
                out = self._open.out
                for result in results:
                    self._answer(result)
                if results:
                    self._open.learn(len(results), out, time.monotonic())
                elif not self._feeder.is_alive() and not out:
                    break
                elif self._live.ended(0.0):
                    raise AgentLost("the run has ended, and not all calls are answered")
        except BaseException as error:
            self._break(error)
        finally:
            self._close()

    def _answer(self, result: Result) -> None:
        [call] = self._open.take([result.task])
        data = result.data if isinstance(result.data, bytes) else Path(result.data).read_bytes()
        try:
            value = outcome(data, result.ok, result.node, plain=self._plain)
        except BaseException as error:  # also of a class that only the node knows, or whose making raises anything
            call.set_exception(error)
        else:
            call.set_result(value)

    def _close(self) -> None:
        try:
            summary, self._columns = self._live.close()
            self._run = Run({"params": {}, **summary})
        except BaseException as error:
            self._break(error)
        finally:
            self._held.close()

    def _break(self, error: BaseException) -> None:
        """Fail whatever is open: nothing will answer it."""
        if isinstance(error, KeyboardInterrupt):  # the run was interrupted: not what a call of the user's raised
            error = AgentLost("the farm was interrupted", "interrupted")
        for call in self._open.fail(error):
            lost = AgentLost(str(error), getattr(error, "code", "farm-over"), getattr(error, "hint", None))
            lost.__cause__ = error  # each its own: a raised exception keeps where it was raised
            with contextlib.suppress(InvalidStateError):
                call.set_exception(lost)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self.interrupt()
        self.shutdown(wait=True, cancel_futures=kind is not None)
        return False


def _refuse_options_of_dask(function: Callable[..., Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse options of Dask's `submit` that would go to a function which does not take them."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of a builtin function nothing is known
        return
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return
    for name in sorted(_OF_DASK.intersection(kwargs) - {one.name for one in parameters}):
        message = (
            f"{name} is an option of Dask's submit, and {getattr(function, '__name__', 'the function')} takes none"
        )
        raise DescriptionError(message, "argument", _OF_DASK_INSTEAD[name])


def _placed(
    on: Platform | str | Path | Client | None,
    platform: Platform | str | Path | None,
    placing: Placing | None,
    launch: Deployment | None,
    max_workers: int | None,
    quiet: bool,
    stack: ExitStack,
) -> tuple[Deployment, Platform]:
    """Return where agents run and their tree; `stack` closes what that takes."""
    if (isinstance(on, str) and not is_deployed(on)) or isinstance(on, (Platform, Path)):
        on, platform = None, on
    if on is not None:
        if isinstance(on, str) or hasattr(on, "scheduler_info"):
            launch = stack.enter_context(deployed(on, placing, echo=not quiet))
        else:
            message = f"on is {on!r}; it must be a platform, its file, a client of Dask, or one of: {HINT}"
            raise DescriptionError(message, "argument", "Farm(max_workers=4) has 4 nodes on this machine")
    elif placing:
        message = "placing is given without a client: it says which host of a cluster carries which node"
        raise DescriptionError(message, "argument", "Farm(client, placing=...)")
    launch = launch or Launch(echo=not quiet)
    if max_workers is not None:
        if launch.on != "local" or platform is not None:
            message = (
                "max_workers is the number of nodes on this machine: it goes with no platform, and with no cluster"
            )
            raise DescriptionError(message, "argument", "leave it out; on a cluster: placing=Placing(per=...)")
        if max_workers < 1:
            raise DescriptionError(f"max_workers is {max_workers}; it must be at least 1", "argument")
        return launch, here(max_workers)
    if platform is None:
        return launch, launch.tree()
    return launch, platform if isinstance(platform, Platform) else Platform.load(platform)


_open_farms: weakref.WeakSet[Farm] = weakref.WeakSet()


@atexit.register
def _end_open_farms() -> None:
    """End the farms that a program leaves open: nothing takes their results."""
    for farm in list(_open_farms):
        if farm._pid == os.getpid() and farm._reader.is_alive():
            farm.interrupt()
            farm._reader.join(_ANSWER_S)
