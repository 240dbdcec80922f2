"""A run of calls: hands over what calls there are to the nodes of a tree, and brings back what comes of them.

The calls themselves are those of a farm (`crosswind.run.open_calls`) or of a map (`crosswind.run.map_calls`).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, Protocol, TypeVar, get_args

from crosswind.errors import AgentLost, DescriptionError
from crosswind.platform import Platform
from crosswind.run import arguments
from crosswind.run.agents import Launch, Limits, LiveFarm, Task, Work
from crosswind.run.calls import Performer
from crosswind.run.deployment import Deployment, Placing
from crosswind.run.deployments import HINT, deployed, is_deployed
from crosswind.run.pieces import Data
from crosswind.run.printed import Printed, show
from crosswind.run.results import Run
from crosswind.run.this_machine import here, point_of
from crosswind.terminal.waiting import join

if TYPE_CHECKING:
    from distributed import Client

    from crosswind._core import Function
    from crosswind.documents.shared import Run as RunSummary
    from crosswind.documents.shared import RunNode
    from crosswind.watch import Watch

Order = Literal["arrival", "interference", "interference-rate", "bandwidth", "compute"]

ANSWER_S: Final = 2.0
"""Beyond the silence after which a node counts as lost: how long an answer to a recall is waited for, s."""
_LOOK_AGAIN_S: Final = 0.2


class Handed(NamedTuple):
    """What is handed over as one task: a call, or a batch of them (`crosswind.run.batches`)."""

    number: int
    data: bytes
    is_batch: bool
    function: Function | None = None
    """What is called, if it is not in the data."""


class Calls(Protocol):
    """Calls without an answer. Each method may be called from any thread."""

    performer: Performer
    """What does them on the nodes."""

    def close(self) -> None:
        """Take no more calls."""

    def next(self) -> Handed | None:
        """Wait for what is to be handed over and for room for it; None when nothing follows."""

    def begin(self, numbers: Iterable[int]) -> None:
        """Note that nodes have begun tasks."""

    def partial(self, number: int, data: Data) -> None:
        """Take outcomes of a batch's first calls, and take up again those that it gives back."""

    def answer(self, number: int, data: Data, ok: bool, node: str) -> int:
        """Take the outcome of a task, and return how many calls are answered by it."""

    def end_withdrawn(self, numbers: Iterable[int]) -> None:
        """Note that nodes have withdrawn tasks."""

    def withdraw(self, calls: Any, patience_s: float) -> list[int]:
        """Cancel calls that wait here, all without `calls`, and return the tasks that nodes have and may not begin."""

    def learn(self, answers: int, out: int, now_s: float) -> None:
        """Learn from answers, which came while nodes had `out` tasks."""

    @property
    def out(self) -> int:
        """How many tasks nodes have."""

    @property
    def has_open(self) -> bool:
        """Whether a call has no answer."""

    def number_of(self, task: int, call: int) -> int | None:
        """Return the number of a call, by its task and its place in a batch, from 1 (0: it is not known)."""

    def fail(self, error: BaseException) -> None:
        """Fail what is open: nothing will answer it."""


C = TypeVar("C", bound=Calls)


class Setting(NamedTuple):
    """What the calls of a run need to know of it."""

    nodes: int
    """That compute, at least 1."""
    plain: bool
    """Whether nodes must not run code here."""
    local: bool
    """Whether this process has started the nodes on this machine."""
    tries_once: bool
    """Whether a call is tried once and has no time limit: only such calls may go in batches."""
    tells_each: bool
    """Whether each call is to be seen alone, in a trace or on a page."""


class CallRun(Generic[C]):
    """Agents, and two threads: one hands calls over, the other one brings answers.

    Parameters
    ----------
    calls_of : callable
        Makes the calls, from a `Setting`.
    on, platform, max_workers, order, buffer_tasks, retries, task_timeout_s, launch, limits, placing, trace, watch
        As of `crosswind.Farm`; so is `quiet`.
    """

    def __init__(
        self,
        calls_of: Callable[[Setting], C],
        *,
        on: Platform | str | Path | Client | None = None,
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
        arguments.one_of("order", order, get_args(Order))
        if buffer_tasks is not None:
            buffer_tasks = arguments.whole("buffer_tasks", buffer_tasks, 1)
        if retries is not None:
            retries = arguments.whole("retries", retries, 0)
        if task_timeout_s is not None:
            task_timeout_s = arguments.seconds("task_timeout_s", task_timeout_s)
        if not (isinstance(watch, bool) or hasattr(watch, "begin")):
            raise DescriptionError(f"watch is {watch!r}; it must be True, or a crosswind.watch.Watch", "argument")
        self._pid = os.getpid()
        self._held = ExitStack()
        """What is closed with the run."""
        self.summary: Run | None = None
        """What each node did: known after the end."""
        self.columns: dict[str, bytes] | None = None
        self._answered: Counter[str] = Counter()
        """Calls that were answered beyond the first of each task, by node."""
        self._recalling = threading.RLock()
        limits = limits or Limits()
        limits = replace(
            limits,
            retries=limits.retries if retries is None else retries,
            task_timeout_s=limits.task_timeout_s if task_timeout_s is None else task_timeout_s,
        )
        self._answer_s = limits.silence_s + ANSWER_S
        with ExitStack() as stack:
            launch, self.platform = _placed(on, platform, placing, launch, max_workers, quiet, stack)
            plain = not launch.trusted
            nodes = max(sum(node["compute_per_s"] > 0 for node in self.platform.nodes), 1)
            tries_once = not limits.retries and limits.task_timeout_s is None
            local = _is_local(launch, self.platform)
            self.calls = calls_of(Setting(nodes, plain, local, tries_once, bool(trace or watch)))
            if watch is True:
                from crosswind.watch import Watch

                watch = Watch(on_address=lambda address: print(f"watch: {address}", file=sys.stderr))
                stack.callback(watch.finish)
            self.live = LiveFarm(
                self.platform,
                point_of("farm", 1, 0.001, order, buffer_tasks),
                Work("callable", function=self.calls.performer),
                launch=launch,
                limits=limits,
                trace=bool(trace),
                watch=watch or None,
                names_logs=False,
                on_printed=None if quiet else self._show,
            )
            self.live.__enter__()
            self._held = stack.pop_all()
        self._feeder = threading.Thread(target=self._feed, name="crosswind-farm-feeder", daemon=True)
        self.reader = threading.Thread(target=self._read, name="crosswind-farm-reader", daemon=True)
        self._feeder.start()
        self.reader.start()
        _open_runs.add(self)

    def shutdown(self, wait: bool, cancel: bool) -> None:
        """Take no more calls; with `cancel`, withdraw those that no node has begun; with `wait`, return at the end."""
        self.calls.close()
        try:
            if cancel:
                self.withdraw()
            if wait:
                self.join()
        except KeyboardInterrupt:
            self.interrupt()
            self.join()
            raise

    def join(self) -> None:
        """Wait for the end, unless a callback of a call waits."""
        if threading.current_thread() not in {self._feeder, self.reader}:
            join(self._feeder)
            join(self.reader)

    def withdraw(self, calls: Any = None) -> None:
        """Cancel those calls, or all, that no node has begun; asks the nodes that have them."""
        with self._recalling:
            numbers = self.calls.withdraw(calls, self._answer_s)
            if numbers:
                self.calls.end_withdrawn(self.live.recall(numbers, self._answer_s))

    def interrupt(self) -> None:
        """End the run as soon as possible."""
        self.live.interrupt()

    def _show(self, said: list[Printed]) -> None:
        """Show what calls printed; before their answers are taken, which end what is known of them."""
        show(said, self.calls.number_of)

    def _feed(self) -> None:
        try:
            while (due := self.calls.next()) is not None:
                self.live.submit(Task(due.data, is_batch=due.is_batch, function=due.function), due.number)
        except BaseException as error:
            self._break(error)
        finally:
            with contextlib.suppress(Exception):
                self.live.end_of_tasks()

    def _read(self) -> None:
        try:
            has_ended = False
            while True:
                results = self.live.results(_LOOK_AGAIN_S, or_news=True, views=True)  # raises what ended the run
                begun, withdrawn, partial = self.live.news()
                self.calls.begin(begun)
                self.calls.end_withdrawn(withdrawn)  # answers that came too late for `withdraw`
                for number, early in partial:
                    self.calls.partial(number, early)
                out = self.calls.out
                for result in results:
                    data: Data = result.data.read_bytes() if isinstance(result.data, Path) else result.data
                    answered = self.calls.answer(result.task, data, result.ok, result.node)
                    self._answered[result.node] += answered - 1
                if results:
                    self.calls.learn(len(results), out, time.monotonic())
                elif has_ended or (not self._feeder.is_alive() and not out):
                    break
                else:  # after its end, one more look: all that came before it is among those results
                    has_ended = self.live.ended(0.0)
        except BaseException as error:
            self._break(error)
        finally:
            self._close()

    def _close(self) -> None:
        try:
            summary, self.columns = self.live.close()
            self.summary = Run({"params": {}, **self._with_calls(summary)})
        except BaseException as error:
            self._break(error)
        finally:
            self._held.close()
            if self.calls.has_open:  # it must not be: but nothing may wait for ever
                self._break(AgentLost("the run has ended, and not all calls are answered", "farm-over"))

    def _with_calls(self, summary: RunSummary) -> RunSummary:
        """Return a summary that counts calls where it counts tasks."""
        nodes: list[RunNode] = [
            {**one, "tasks": one["tasks"] + self._answered[one["name"]]} for one in summary["nodes"]
        ]
        tasks, makespan_s = summary["tasks"] + self._answered.total(), summary["makespan_s"]
        per_s = tasks / makespan_s if makespan_s > 0 else summary["throughput_tasks_per_s"]
        return {**summary, "tasks": tasks, "throughput_tasks_per_s": per_s, "nodes": nodes}

    def _break(self, error: BaseException) -> None:
        """Fail whatever is open: nothing will answer it."""
        if isinstance(error, KeyboardInterrupt):  # the run was interrupted: not what a call of the user's raised
            error = AgentLost("the farm was interrupted", "interrupted")
        self.calls.fail(error)


def _is_local(launch: Deployment, platform: Platform) -> bool:
    """Whether this process starts the agents itself, on this machine and as its own user."""
    if type(launch) is not Launch or launch.by_hand:
        return False
    return not any(launch.prefix(node["name"]) for node in platform.nodes)


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
    if isinstance(on, str) and "://" in on and not is_deployed(on):
        message = f"on is {on!r}; it must be a platform's file, a client of Dask, or one of: {HINT}"
        raise DescriptionError(message, "argument", f"Farm('dask:{on}'), if a scheduler of Dask is there")
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
        return launch, here(arguments.whole("max_workers", max_workers, 1, arguments.MOST_NODES))
    if platform is None:
        return launch, launch.tree()
    if not isinstance(platform, (Platform, str, os.PathLike)):
        raise DescriptionError(f"platform is {platform!r}; it must be a platform, or its file", "argument")
    return launch, platform if isinstance(platform, Platform) else Platform.load(platform)


_open_runs: weakref.WeakSet[CallRun[Any]] = weakref.WeakSet()


@atexit.register
def _end_open_runs() -> None:
    """End the runs that a program leaves open: nothing takes their results."""
    for run in list(_open_runs):
        if run._pid == os.getpid() and run.reader.is_alive():
            run.interrupt()
            run.reader.join(ANSWER_S)
