"""A tree of agents, one process per node, on this machine or wherever a deployment puts them.

`run_farm` runs a whole workload and ends; `LiveFarm` stays open and takes tasks as they come. Both have the root in
this process: results are handed over without another hop.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired

from crosswind import _core
from crosswind.errors import AgentLost, DescriptionError, warning
from crosswind.files.reading import read_bytes
from crosswind.plan import ports_of, result_mb_of
from crosswind.platform import Platform
from crosswind.run.agent import load
from crosswind.run.deployment import Agents, Deployment, MeanTask
from crosswind.run.printed import Printed
from crosswind.run.processes import Launch
from crosswind.run.resume import Before, Identity, Kept, digest_of, digest_of_file, kept

if TYPE_CHECKING:
    from crosswind.documents import Row
    from crosswind.documents.shared import ComputedBy, Run
    from crosswind.watch import Watch

    class LiveSummary(Run):
        """A run on agents, before its bounds and flow times are added."""

        done_s: NotRequired[list[float]]
        """When each task was done, where tasks arrive over time or are of several classes or users."""


__all__ = ["Launch", "Limits", "LiveFarm", "Result", "Task", "Work", "run_farm"]

_FOREVER_S = 1e8
_LOOK_S = 0.2
_RECALL_S = 5.0
_REST_S = 2.0

OnPrinted = Callable[[list[Printed]], None]


class Task(NamedTuple):
    """A task of the user: its input, and its work where that is known (work units; 0: not known)."""

    data: bytes | Path
    """Bytes, or a file that is streamed as it is sent."""
    work: float = 0.0
    name: str = ""
    """Names the result's file in `out`; default: the task's number."""
    identity: Identity | None = None
    """What it is known by in a journal; default: its number and what it holds."""
    is_value: bool = False
    """Of a command: whether `{input}` stands for the data themselves, not for a file that holds them."""
    is_batch: bool = False
    """Whether it is a batch of calls: outcomes may come early (`LiveFarm.news`), and it is not tried again."""
    function: _core.Function | None = None
    """What it calls, if that travels once to each node; else the data say it."""


class Ran(NamedTuple):
    """The last attempt of a command, as its node has measured it."""

    began_s: float
    """On this process's monotonic clock, s."""
    seconds: float


class Result(NamedTuple):
    """What came back of a task."""

    task: int
    """Number of the task, from 0 in the order of the source."""
    ok: bool
    data: bytes | Path
    """The result; a file where it was large or stands in `out`. Where not `ok`, the error's text in UTF-8."""
    node: str
    """Which node computed it."""
    ran: Ran | None = None
    """Of a command that a node has finished."""


@dataclass(frozen=True)
class Work:
    """What agents do for the work of a task."""

    kind: ComputedBy
    """`emulated`, `noop`, `command`, `callable`, or the name of a kernel."""
    command: str | None = None
    """Of kind command: `CMD {input} {output}`; without `{output}`, what it prints is the result."""
    function: Callable[[Any], Any] | None = None
    """Of kind callable: takes the unpickled input; sent to the agents by cloudpickle."""


@dataclass(frozen=True)
class Limits:
    """Limits of a live run."""

    start_s: float = 30.0
    """Time after which agents that have not connected are skipped, s."""
    silence_s: float = 5.0
    """Silence after which an agent counts as lost, s."""
    retries: int = 0
    """How often a task that failed is tried again."""
    task_timeout_s: float | None = None
    """A try of a task that takes longer is ended, and has failed; None: it takes as long as it takes."""
    task_memory_mb: float | None = None
    """Memory that all processes of a task may take together; None: as much as there is. Commands only."""
    grace_s: float = 5.0
    """Time from SIGTERM to SIGKILL for what is left of a task's processes, s."""


class LiveFarm:
    """A tree of agents that takes tasks until it is closed. Parameters as of `run_farm`.

    >>> with LiveFarm(platform, point, Work("callable", function=f)) as farm:  # doctest: +SKIP
    ...     farm.submit(Task(pickle.dumps(1)))
    ...     farm.end_of_tasks()
    ...     while results := farm.results():
    ...         print(results)
    """

    def __init__(
        self,
        platform: Platform,
        point: Mapping[str, Any],
        work: Work,
        *,
        launch: Deployment | None = None,
        limits: Limits | None = None,
        out: Path | None = None,
        journal: _core.Journal | None = None,
        sync: bool = True,
        trace: bool = False,
        token: str | None = None,
        own_tasks: bool = False,
        discard: bool = False,
        watch: Watch | None = None,
        names_logs: bool = True,
        on_printed: OnPrinted | None = None,
    ) -> None:
        self._platform, self._point, self._work = platform, dict(point), work
        self._launch: Deployment = launch or Launch()
        self._trace = trace
        # With certificates none is drawn: agents that are started by hand could not know it.
        self._token = token or self._launch.token or ("" if self._launch.tls else os.urandom(32).hex())
        self._own_tasks, self._journal = own_tasks, journal
        self._submitted, self._abandoned = 0, False
        self._interrupted = threading.Event()
        self._names_logs = names_logs  # in the summary, which the user sees
        self._are_logs_named = False
        """Whether an error or the summary names the agents' logs; otherwise they are removed."""
        self._watch, self._events_told = watch, 0
        self._nodes = platform.to_dict()["node"]
        self._processes: Agents | None = None
        self._root: Any = None
        self._settings = settings(platform, self._point, work, limits or Limits(), trace)
        self._settings["recording"]["printed"] = on_printed is not None
        self._on_printed = on_printed
        self._ran: dict[int, Ran] = {}
        self._config = {
            "run": self._settings,
            "log": None,
            "out": str(out) if out is not None else None,
            "sync": sync,
            "drawn": json.dumps(self._point) if own_tasks else None,
            "discard": discard,
        }

    def start(self) -> LiveFarm:
        """Open the root's door and start the agents."""
        root = next(node["name"] for node in self._nodes if node.get("parent") is None)
        self._processes = self._launch.agents(self._nodes, self._token, self._mean_task())
        config = {
            **self._config,
            "listen": self._launch.door(root),
            "spool_directory": str(self._processes.spool),
            "log": str(self._processes.logs / "root.log"),
        }
        try:
            self._root = _core.FarmRoot(
                json.dumps(config),
                self._token or None,
                _code(self._work),
                _tasks_csv(self._point, self._own_tasks),
                load,
                self._launch.tls(root) if self._launch.tls else None,
                self._journal,
            )
            if self._watch is not None:
                scale = float(self._point.get("execution", {}).get("time_scale", 1.0))
                self._watch.begin(self._platform, self._settings, self._root.tasks, scale, name=self._point.get("name"))
            self._root.start()
            self._processes.start(self._root.address)
        except BaseException as error:
            self._abandon(error)
            raise
        return self

    def _mean_task(self) -> MeanTask:
        ports = ports_of(self._settings["policy"])
        return MeanTask(
            self._settings["mean_size_mb"], self._settings["mean_work"], ports, result_mb_of(self._settings)
        )

    @property
    def address(self) -> str:
        """HOST:PORT at which the root's children connect."""
        return str(self._root.address)

    @property
    def processes(self) -> Agents:
        """The agents."""
        assert self._processes is not None  # after start
        return self._processes

    @property
    def tasks(self) -> int | None:
        """How many tasks the workload itself has; None where they are handed over."""
        tasks: int | None = self._root.tasks
        return tasks

    @property
    def delivered(self) -> int:
        """Results delivered so far, those before a resume not counted."""
        return int(self._root.delivered)

    def wait_for_agents(self, timeout_s: float) -> bool:
        """Wait until all agents are there, or are waited for no more, where tasks are handed over.

        Returns whether it is so within the time, in seconds.

        Raises
        ------
        AgentLost
            When the run has ended before.
        """
        return bool(self._root.wait_for_agents(timeout_s))

    def submit(self, task: Task, number: int | None = None) -> int:
        """Hand a task over; waits while as many wait already as the tree's buffers ask for. Its number.

        Parameters
        ----------
        task : Task
            What is to be done.
        number : int, optional
            What its result is called; default: the next one, from 0.

        Raises
        ------
        AgentLost
            When the run has ended, with what ended it.
        """
        number = self._submitted if number is None else number
        self._submitted = number + 1
        data = task.data if isinstance(task.data, bytes) else str(task.data)
        flags = (task.is_value, task.is_batch, task.function)
        try:
            self._root.submit(number, data, float(task.work), task.name, task.identity, *flags)
        except AgentLost as error:
            raise self._explained(error) from None
        except KeyboardInterrupt:
            if not self._abandoned:
                raise
            raise AgentLost("the farm was closed before its run was over", "farm-over") from None
        return number

    def end_of_tasks(self) -> None:
        """No more will be submitted: `results` ends with the last one."""
        self._root.end_of_tasks()

    def recall(self, tasks: list[int], timeout_s: float) -> list[int]:
        """Withdraw tasks that no node has begun. Calls must not overlap.

        Parameters
        ----------
        tasks : list of int
            Numbers of tasks that were submitted.
        timeout_s : float
            How long answers of nodes are waited for, s.

        Returns
        -------
        list of int
            Those that are withdrawn, which have no result. The others have begun, are done, or had no answer in time.
        """
        return list(self._root.recall(tasks, timeout_s))

    def news(self) -> tuple[list[int], list[int], list[tuple[int, bytes]]]:
        """Return the tasks that nodes have begun, those that are withdrawn, and what batches said, since the last call.

        Nodes report calls that take 50 ms or more.
        """
        begun, withdrawn, partial = self._root.news()
        return list(begun), list(withdrawn), list(partial)

    def results(self, timeout_s: float | None = None, *, or_news: bool = False, views: bool = False) -> list[Result]:
        """Results that have come, as completed; waits for at least one. Empty: all are there (or the time is over).

        With `or_news` it may be empty at any time, at the latest when there are `news`. With `views`, large results are
        views of memory that nothing else uses, which spares a copy.

        Raises
        ------
        AgentLost
            When the run has ended before its tasks were done, and all results that came are taken.
        MeasurementError
            The same, where the disk of the root is full, or a file cannot be read or written.
        """
        until = time.monotonic() + (_FOREVER_S if timeout_s is None else timeout_s)
        try:
            taken = self._root.results(until - time.monotonic(), or_news, views)
            while self._has_shown_printed() and not (taken or or_news):
                taken = self._root.results(max(until - time.monotonic(), 0.0), or_news, views)
        except AgentLost as error:
            raise self._explained(error) from None
        if self._watch is not None:
            self._watch.took(node for _, _, _, node in taken)
            events = self._root.events(self._events_told)
            self._events_told += len(events)
            self._watch.happened(events)
        if self._work.kind == "command":
            self._ran |= {task: Ran(*ran) for task, *ran in self._root.ran()}
        return [
            Result(task, ok, Path(data) if isinstance(data, str) else data, node, self._ran.pop(task, None))
            for task, ok, data, node in taken
        ]

    def _has_shown_printed(self) -> bool:
        """Pass on what tasks have printed, and return whether they have."""
        if self._on_printed is None or not (said := self._root.printed()):
            return False
        self._on_printed([Printed(*one) for one in said])
        return True

    def events(self, known: int) -> list[tuple[str, str | None, str]]:
        """Return code, node and message of the events so far, without the first `known`."""
        return list(self._root.events(known))

    def interrupt(self) -> None:
        """End the run as soon as possible: what does not answer is not waited for."""
        self._interrupted.set()
        self._root.interrupt()

    def ended(self, timeout_s: float) -> bool:
        """Whether the run has ended within a time. Raises what ended it."""
        try:
            return bool(self._root.wait(timeout_s))
        except AgentLost as error:
            raise self._explained(error) from None

    def _explained(self, error: AgentLost) -> AgentLost:
        """Return why the run ended, with what is known of the agents; after an interrupt that is not asked for."""
        known = "" if self._interrupted.is_set() else self.processes.lost(self._interrupted)
        if self._interrupted.is_set():
            return error
        message = f"{error}: {known}" if known else str(error)
        self._are_logs_named = True
        return AgentLost(message, error.code, f"the logs of the agents are in {self.processes.logs}")

    def logs(self) -> dict[str, str]:
        """Each node's events and commands, for a replay (`trace` only), after `close`."""
        return dict(self._root.logs())

    def replay(self) -> dict[str, int]:
        """Replay each node's log through a fresh policy; events by node. Raises where commands differ."""
        run = json.dumps(self._settings)
        return {name: _core.replay_log(run, name, log) for name, log in self.logs().items() if log}

    def close(self) -> tuple[LiveSummary, dict[str, bytes] | None]:
        """End all agents; summary (an entry of `runs` in runs.json, params and bound left out) and trace's columns."""
        try:
            self._root.end_of_tasks()
            self.ended(_FOREVER_S)
        except BaseException as error:
            self._abandon(error)
            raise
        if self._watch is not None:
            self._watch.ended()
        summary = self._summary(json.loads(self._root.summary()))
        columns = dict(self._root.columns()) if self._trace else None
        self.processes.end(keep_logs=self._are_logs_named, hurried=self._interrupted)
        return summary, columns

    def _abandon(self, error: BaseException | None = None) -> None:
        self._abandoned = True
        if self._root is not None:
            self._root.interrupt()
            with contextlib.suppress(Exception, KeyboardInterrupt):
                self._root.wait(5.0)
        if self._processes is not None:
            # After an interrupt no question is open that the logs would answer.
            if isinstance(error, KeyboardInterrupt):
                self._interrupted.set()
            keep_logs = self._are_logs_named and not self._interrupted.is_set()
            self._processes.end(keep_logs=keep_logs, hurried=self._interrupted)

    def _summary(self, found: Row) -> LiveSummary:
        policy = self._point.get("policy", {})
        makespan = found["makespan_s"]
        warnings = list(self.processes.warnings)
        if found["events"]:
            self._are_logs_named = self._are_logs_named or self._names_logs
            hint = f"the agents' logs are in {self.processes.logs}" if self._names_logs else "run.events lists them"
            warnings.append(warning("events", "something happened in this run: look at its events", hint))
        nodes: list[Any] = [{name: value for name, value in one.items() if value != {}} for one in found["nodes"]]
        summary: LiveSummary = {
            "seed": int(self._point.get("seed", 1)),
            "platform": self._platform.name,
            "order": policy.get("order", "interference"),
            "ports": ports_of(policy),
            "compute": self._work.kind,
            "tasks": found["tasks"],
            "makespan_s": makespan,
            "throughput_tasks_per_s": found["tasks"] / makespan if makespan > 0 else 0.0,
            "bound_tasks_per_s": None,
            "root_only_tasks_per_s": None,
            "nodes": nodes,
            "events": found["events"],
            "warnings": warnings,
        }
        if found["done_s"]:
            summary["done_s"] = found["done_s"]
        return summary

    def __enter__(self) -> LiveFarm:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._abandon(error)


def settings(platform: Platform, point: Mapping[str, Any], work: Work, limits: Limits, trace: bool) -> dict[str, Any]:
    """Return the settings that every agent of a run gets (`crates/experiment`, farm_live.rs)."""
    if work.kind == "callable" and work.function is None:
        raise DescriptionError("work is callable, and no function is given", "argument")
    told: dict[str, Any] = json.loads(
        _core.farm_settings(
            platform._checked,
            json.dumps({**point, "platform": ""}),
            json.dumps({"kind": work.kind, "command": work.command}),
            json.dumps(vars(limits)),
            trace,
            _tasks_csv(point, own_tasks=True),
        )
    )
    return told


def _code(work: Work) -> bytes | None:
    if work.function is None:
        return None
    import cloudpickle

    code: bytes = cloudpickle.dumps(work.function)
    return code


def _tasks_csv(point: Mapping[str, Any], own_tasks: bool) -> bytes | None:
    file = point["workload"].get("tasks_file") if own_tasks else None
    return read_bytes(file) if file else None


def run_farm(
    platform: Platform,
    point: Mapping[str, Any],
    work: Work,
    *,
    source: Iterable[Task] | None = None,
    sink: Callable[[Result], None] = lambda result: None,
    launch: Deployment | None = None,
    limits: Limits | None = None,
    out: Path | None = None,
    journal: Path | None = None,
    resume: bool = False,
    force: bool = False,
    sync: bool = True,
    on_before: Callable[[Before], None] = lambda before: None,
    on_begin: Callable[[LiveFarm], None] = lambda farm: None,
    trace: bool = False,
    progress: Callable[[int, int | None], None] | None = None,
    watch: Watch | None = None,
    halt: int | None = None,
    on_printed: OnPrinted | None = None,
) -> tuple[LiveSummary, dict[str, bytes] | None]:
    """Run a workload on a tree of agents, one process per node.

    Parameters
    ----------
    platform : Platform
        The tree. Its root is this process.
    point : mapping
        An experiment without sweep (`Experiment` as a dict), its platform left out of account: workload, policy,
        execution (`time_scale`), seed. With a `source`, the workload's sizes are what the policy reckons with.
    work : Work
        What agents do.
    source : iterable of Task, optional
        Taken lazily, as places become free. Default: the workload's own tasks, of as many blank bytes as it says.
    sink : callable
        Called with each result, as completed, in the thread that called this.
    launch, limits
        Where agents run and how they are started (`crosswind.run.deployment`), and when a node counts as lost.
    out : Path, optional
        Directory for results, one file each.
    journal : Path, optional
        File in which delivered results are noted; `resume` does only what it does not know, or knows of other inputs.
        `force` begins it anew.
    sync : bool
        Report a result only once it is on the disk (at most every 0.2 s for all that came meanwhile).
    on_before : callable
        Gets at the end what earlier runs had done; with a `journal`.
    on_begin : callable
        Gets the farm as soon as its agents are there; with a `source`.
    trace : bool
        Gather what every node did when.
    progress : callable, optional
        Called with tasks done, and how many there are where that is known.
    watch : Watch, optional
        Gets the run's events, for the page that shows them.
    halt : int, optional
        Number of failed tasks after which no task of the `source` begins any more. Default: all are done.
    on_printed : callable, optional
        Called with what tasks print, as it comes, in the thread that called this. Default: nodes do not send it.

    Returns
    -------
    dict, dict or None
        The summary: an entry of `runs` in `runs.json`, but for `params` and the bounds. The trace's columns, as
        `crosswind.run.columns.activities` takes them.

    Raises
    ------
    DescriptionError
        A wrong description; a journal of another workload.
    AgentLost
        No node is left that computes.
    MeasurementError
        The disk is full, or a file of the root cannot be read or written. The journal is intact.
    """
    with contextlib.ExitStack() as stack:
        before = None
        if journal is not None:
            if source is None:
                raise DescriptionError("journal is given, and the tasks are the workload's own", "argument")
            before = stack.enter_context(kept(journal, work.kind, resume, out, force=force))
        farm = stack.enter_context(
            LiveFarm(
                platform,
                point,
                work,
                launch=launch,
                limits=limits,
                out=out,
                journal=before.journal if before is not None else None,
                sync=sync,
                trace=trace,
                own_tasks=source is None,
                watch=watch,
                on_printed=on_printed,
            )
        )
        feeder = None
        if source is not None:
            feeder = _Feeder(farm, source, before, work, may_stop=halt is not None)
            feeder.wait_for_agents()
            on_begin(farm)
        done = failed = 0
        while True:
            results = _taken(farm, sink)
            done += len(results)
            failed += sum(not result.ok for result in results)
            if feeder is not None and halt is not None:
                feeder.forget(result.task for result in results)
                if failed >= halt:
                    feeder.stop()
            if progress is not None and results:
                progress(done + (before.before.done if before is not None else 0), farm.tasks)
            if feeder is not None:
                feeder.raise_error()
            if not results and farm.ended(0.0) and farm.delivered <= done:
                break
        if before is not None:
            if feeder is None or not feeder.is_stopped:
                before.all_asked()
            on_before(before.before)
        return farm.close()


def _taken(farm: LiveFarm, sink: Callable[[Result], None]) -> list[Result]:
    """Return results that have come, passed on; after ctrl-C the rest is passed on too: the journal has it."""
    try:
        results = farm.results(_LOOK_S)
    except KeyboardInterrupt:
        farm.interrupt()
        with contextlib.suppress(BaseException):  # what ended the run is known
            while rest := farm.results(_REST_S):
                for result in rest:
                    sink(result)
        raise
    for result in results:
        sink(result)
    return results


class _Feeder:
    """Takes tasks from a source on a thread of its own, so that a slow one holds no result back."""

    def __init__(
        self, farm: LiveFarm, source: Iterable[Task], before: Kept | None, work: Work, *, may_stop: bool
    ) -> None:
        """Leave out the tasks that were done `before`."""
        self._farm, self._before, self._may_stop = farm, before, may_stop
        self._errors: queue.SimpleQueue[BaseException] = queue.SimpleQueue()
        self._recipe = digest_of(work.kind, work.command or "")
        self._open: set[int] = set()
        """Tasks that were submitted and have no result, if it may be stopped."""
        self.is_stopped = self._is_withdrawn = False
        self._thread = threading.Thread(target=self._feed, args=(source,), name="crosswind-feeder", daemon=True)
        self._thread.start()

    def _feed(self, source: Iterable[Task]) -> None:
        try:
            for number, task in enumerate(source):
                if self.is_stopped:
                    break
                if (wanted := self._wanted(number, task)) is not None:
                    if self._may_stop:
                        self._open.add(number)
                    self._farm.submit(wanted, number)
            self._farm.end_of_tasks()
        except BaseException as error:  # whatever it is, the thread that waits raises it
            self._errors.put(error)

    def _wanted(self, number: int, task: Task) -> Task | None:
        """Return a task with what it is known by; None if it was done before."""
        if self._before is None:
            return task
        known = task._replace(identity=task.identity or _identity(number, task, self._recipe))
        assert known.identity is not None  # it was just made
        return None if self._before.has(known.identity, known.name or f"{number:08}") else known

    def forget(self, numbers: Iterable[int]) -> None:
        """Note that tasks have results."""
        self._open.difference_update(numbers)

    def stop(self) -> None:
        """Submit no more tasks, and withdraw those that no node has begun; called until the run has ended."""
        self.is_stopped = True
        is_over = not self._thread.is_alive()  # before the look at what is open: then that is all
        if self._open and not self._is_withdrawn:
            self.forget(self._farm.recall(list(self._open), _RECALL_S))
        self._is_withdrawn = is_over

    def wait_for_agents(self) -> None:
        """Wait until the agents are there, or the run has ended."""
        while not self._farm.wait_for_agents(_LOOK_S) and not self._farm.ended(0.0):
            self.raise_error()

    def raise_error(self) -> None:
        with contextlib.suppress(queue.Empty):
            error = self._errors.get_nowait()
            raise error


def _identity(number: int, task: Task, recipe: int) -> Identity:
    """Return what a task is known by that has no name of its own: its number and what it holds."""
    data = task.data
    holds = digest_of(data) if isinstance(data, bytes) else digest_of_file(data, by_content=False)
    return Identity(f"#{number}".encode(), holds, recipe)
