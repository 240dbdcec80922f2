"""Several parallel programs at the same time on this machine's processors, under several schedulers.

Rank r of each job is bound to the r-th CPU, so each CPU has one rank of each job. Where a schedule fixes
which job has which processor when, the same turns are simulated as well.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from crosswind import _core
from crosswind.errors import AgentLost, DescriptionError, Notice, watchdog_only
from crosswind.experiment import Experiment, ProgramPoint
from crosswind.run.program import simulate_program
from crosswind.run.quanta import Quanta
from crosswind.run.rank_processes import RankProcesses
from crosswind.run.ranks import RankLimits
from crosswind.run.results import ProgramRun, Runs
from crosswind.run.switching import Switched, Switcher, summary, urgent
from crosswind.terminal.progress import Advance

if TYPE_CHECKING:
    from crosswind.documents.program_runs import ProgramRun as Entry

Schedule = Literal["local", "gang", "block", "implicit"]
SCHEDULES: tuple[Schedule, ...] = ("local", "gang", "block", "implicit")
ALONE = "alone"
QUANTUM_S = 0.1
MOST_QUANTUM_S = 5.0
MOST_ROUND_S = 10.0
"""Quanta of all jobs together, s: a rank that is stopped longer would be taken for lost."""
_WITH_QUANTA = ("local", "gang")
_AHEAD_NS = 50_000_000
_LOOK_S = 0.05
_SOON_S = 0.002
"""Time before a switch from which on nothing else is done, s."""
_EXCHANGES = 300


@dataclass
class _Job:
    """A program that runs now."""

    point: ProgramPoint
    conductor: _core.Conductor
    processes: RankProcesses
    is_over: bool = False

    def look(self, timeout_s: float) -> None:
        """Wait for its end, for `timeout_s` at most; raise what ended it before its time."""
        try:
            if (why := self.processes.fallen()) is not None:
                self.conductor.fail(why)
            self.is_over = self.conductor.wait(timeout_s)
        except AgentLost as error:
            raise AgentLost(str(error), error.code, f"the logs are in {self.processes.logs}") from None


@dataclass(frozen=True)
class Together:
    """What came of jobs that ran at the same time.

    Attributes
    ----------
    conductors : list of Conductor
        By job; each has its result.
    switched : list of Switched
        Every change of jobs on a processor, in order, as long as all jobs ran.
    warnings : list of Notice
    """

    conductors: list[_core.Conductor]
    switched: list[Switched] = field(default_factory=list)
    warnings: list[Notice] = field(default_factory=list)


def run_jobs(
    experiments: Sequence[Experiment],
    *,
    schedules: Sequence[Schedule] = SCHEDULES,
    quantum_s: float = QUANTUM_S,
    spin_s: float | None = None,
    limits: RankLimits | None = None,
    progress: Advance | None = None,
) -> Runs[ProgramRun]:
    """Run parallel programs alone, then all of them at once under each schedule, and simulate the same.

    Parameters
    ----------
    experiments : sequence of Experiment
        One of kind program for each job, at least two; without a sweep and a disturbance, with as many repetitions
        each, and `execution.compute = "burn"`. A job has at most as many ranks as this process may use CPUs.
    schedules : sequence of str
        local: each CPU gives the jobs quanta by itself. gang: all CPUs change jobs at the same times. block: the
        kernel decides, and ranks that wait block at once. implicit: the kernel decides, and ranks that wait poll for
        `spin_s`, then block.
    quantum_s : float
        Length of a quantum, s, 0.001 to 5.
    spin_s : float, optional
        How long ranks poll before they block, s, 0 to 1. Default: a round trip between two threads that block, which
        is measured first.
    limits : RankLimits, optional
        When a run is given up.
    progress : callable, optional
        Called with the fraction of the runs that are done (0 to 1) and what runs now.

    Returns
    -------
    Runs
        Of kind program. `params` of each run: `job`, `schedule` (alone where nothing else ran), `on` (local or sim).
        `slowdown_dedicated` is over the same job alone, live or simulated.

    Raises
    ------
    DescriptionError
        When an experiment or a number is not as above.
    AgentLost
        When a rank is lost. All other ranks are ended.
    """
    _check(experiments, schedules, quantum_s, spin_s)
    names = _names(experiments)
    limits = limits or RankLimits()
    spin_s = round_trip_s() if spin_s is None and "implicit" in schedules else spin_s or 0.0
    repetitions = len(experiments[0])
    each = len(experiments) + len(schedules)
    done: list[ProgramRun] = []

    def announce(number: int, what: str) -> None:
        if progress is not None:
            progress(number / (each * repetitions), what)

    for repetition in range(repetitions):
        points = [_point_of(experiment, repetition) for experiment in experiments]
        alone_s = []
        for place, point in enumerate(points):
            announce(repetition * each + place, f"{names[place]} alone")
            entry: Entry = json.loads(together([point], None, 0.0, limits).conductors[0].entry(None))
            alone_s.append(entry["makespan_s"])
            done.append(_run(entry, names[place], ALONE, "local", 1))
        for place, schedule in enumerate(schedules):
            announce(repetition * each + len(points) + place, f"all together, {schedule}")
            quanta = _quanta(schedule, points, quantum_s)
            found = together(points, quanta, spin_s if schedule == "implicit" else 0.0, limits)
            switches = summary(found.switched, quantum_s)
            for job, conductor in enumerate(found.conductors):
                entry = json.loads(conductor.entry(alone_s[job]))
                entry |= {"switches": switches} if switches else {}
                entry["warnings"] = [*entry["warnings"], *found.warnings]
                done.append(_run(entry, names[job], schedule, "local", len(points)))
            if quanta is not None:
                done += _simulated(points, names, schedule, quanta)
    return Runs(" beside ".join(names), "local", done, kind="program")


def together(points: Sequence[ProgramPoint], quanta: Quanta | None, spin_s: float, limits: RankLimits) -> Together:
    """Run programs at the same time, from a common time 0 on.

    Parameters
    ----------
    points : sequence of ProgramPoint
        One for each job.
    quanta : Quanta or None
        Which job has which processor when; None: the kernel decides.
    spin_s : float
        How long ranks that wait poll before they block, s.
    limits : RankLimits
        When it is given up.

    Returns
    -------
    Together

    Raises
    ------
    AgentLost, InfeasibleError, CrosswindError
        As `crosswind.run.ranks.run_once`.
    """
    cpus = sorted(os.sched_getaffinity(0))
    jobs: list[_Job] = []
    freezer = None if quanta is None else _core.Freezer()
    is_right = False
    try:
        for point in points:
            jobs.append(_started(point, spin_s, limits, cpus, 0 if freezer is None else freezer.pid))
        while not all(job.conductor.is_ready() for job in jobs):
            for job in jobs:
                job.look(_LOOK_S)
        pids = [[job.processes.pid(rank) for rank in range(job.conductor.ranks)] for job in jobs]
        switcher = None if freezer is None or quanta is None else Switcher(freezer, pids, quanta)
        with contextlib.ExitStack() as stack:
            if switcher is not None:
                stack.enter_context(urgent())
            zero_ns = _zero_ns(quanta)
            if switcher is not None:
                switcher.begin(zero_ns)
            for job in jobs:
                job.conductor.begin(zero_ns)
            switched = _wait(jobs, switcher)
        is_right = True
        return Together([job.conductor for job in jobs], switched, _warnings(switcher) if switcher else [])
    finally:
        if freezer is not None:
            freezer.close()  # first: a rank that is stopped cannot end
        for job in jobs:
            job.conductor.interrupt()
        for job in jobs:
            job.processes.end(keep_logs=not is_right)


def _started(point: ProgramPoint, spin_s: float, limits: RankLimits, cpus: Sequence[int], tracer: int) -> _Job:
    token = secrets.token_hex(32)
    processes = RankProcesses(token)
    config = {
        "about": {"point": point.json, "goal": point.goal},
        "disturbance": None,
        "log": str(processes.logs / "conductor.log"),
        "limits": vars(limits),
        "start_file": None,
        "spin_s": spin_s,
        "held": True,
    }
    try:
        conductor = _core.Conductor(json.dumps(config), token)
        if conductor.ranks > len(cpus):
            message = (
                f"a job has {conductor.ranks} ranks; jobs that share this machine have 1 to {len(cpus)}, one per CPU"
            )
            raise DescriptionError(message, "argument", f"--set workload.ranks={len(cpus)}")
        conductor.start()
        processes.start(conductor.ranks, conductor.address, cpus, tracer)
    except BaseException:
        processes.end(keep_logs=False)
        raise
    return _Job(point, conductor, processes)


def _zero_ns(quanta: Quanta | None) -> int:
    """Return time 0: a multiple of the quantum on the monotonic clock, which all processors of a host share."""
    step_ns = 1 if quanta is None else quanta.quantum_ns
    return -(-(time.monotonic_ns() + _AHEAD_NS) // step_ns) * step_ns


def _wait(jobs: Sequence[_Job], switcher: Switcher | None) -> list[Switched]:
    """Wait until all jobs are over, and switch meanwhile; return the switches while none of them was."""
    while_all = 0
    while left := [job for job in jobs if not job.is_over]:
        wait_s = _LOOK_S if switcher is None else min(switcher.left_s() * 0.5, _LOOK_S)
        for job in left:
            job.look(wait_s / len(left))
        if switcher is not None and switcher.left_s() < _SOON_S:
            switcher.switch()
            while_all = len(switcher.done) if len(left) == len(jobs) else while_all
    return [] if switcher is None else switcher.done[:while_all]


def _warnings(switcher: Switcher) -> list[Notice]:
    if not switcher.exposed:
        return []
    return [watchdog_only("ranks may not be traced here, so only a watchdog continues what is stopped")]


def _quanta(schedule: Schedule, points: Sequence[ProgramPoint], quantum_s: float) -> Quanta | None:
    if schedule not in _WITH_QUANTA:
        return None
    processors = len(os.sched_getaffinity(0))
    if schedule == "gang":
        return Quanta.gang(len(points), processors, quantum_s)
    return Quanta.local(len(points), processors, quantum_s, points[0].seed)


def _simulated(
    points: Sequence[ProgramPoint], names: Sequence[str], schedule: Schedule, quanta: Quanta
) -> list[ProgramRun]:
    found = []
    for job, (point, name) in enumerate(zip(points, names, strict=True)):
        disturbance = quanta.disturbance(schedule, job, len(quanta.shifts_ns))
        simulated = simulate_program(replace(point, disturbance=disturbance))
        found.append(_run(dict(simulated.data), name, schedule, "sim", len(points)))
    return found


def _run(entry: Any, job: str, schedule: str, on: str, jobs: int) -> ProgramRun:
    """Return a job's run with what it shares the machine with: a fair share would take `coscheduled_s`."""
    coscheduled_s = entry["dedicated_s"] * jobs
    entry |= {
        "params": {"job": job, "schedule": schedule, "on": on},
        "disturbance": schedule if schedule in _WITH_QUANTA else None,
        "coscheduled_s": coscheduled_s,
        "slowdown": entry["makespan_s"] / coscheduled_s,
        "slowdown_dedicated": entry["makespan_s"] / entry["dedicated_s"],
        "bounds": {},
    }
    return ProgramRun(entry)


def _point_of(experiment: Experiment, number: int) -> ProgramPoint:
    point = experiment.point(number)
    assert isinstance(point, ProgramPoint)  # checked before
    return point


def _names(experiments: Sequence[Experiment]) -> list[str]:
    names: list[str] = []
    for experiment in experiments:
        number = sum(1 for one in names if one.partition(" #")[0] == experiment.name) + 1
        names.append(experiment.name if number == 1 else f"{experiment.name} #{number}")
    return names


def _refuse(message: str, hint: str) -> NoReturn:
    raise DescriptionError(message, "argument", hint)


def _check(experiments: Sequence[Experiment], schedules: Sequence[str], quantum_s: float, spin_s: float | None) -> None:
    if len(experiments) < 2:
        _refuse("there is one job; at least two share the machine", "--beside OTHER.toml, or the same file again")
    for name in schedules:
        if name not in SCHEDULES:
            _refuse(f"the schedule is {name!r}; it must be one of {', '.join(SCHEDULES)}", "--schedule gang,implicit")
    if not schedules:
        _refuse("no schedule is named", f"--schedule {','.join(SCHEDULES)}")
    most_s = min(MOST_QUANTUM_S, MOST_ROUND_S / len(experiments))
    if not 0.001 <= quantum_s <= most_s:
        message = f"the quantum is {quantum_s:g} s; with {len(experiments)} jobs it must be 0.001 to {most_s:g} s"
        _refuse(message, f"--quantum-s {QUANTUM_S:g}")
    if spin_s is not None and not 0 <= spin_s <= 1:
        _refuse(f"ranks poll for {spin_s:g} s; it must be 0 to 1 s", "--spin-us 100")
    for experiment in experiments:
        _check_job(experiment)
        if len(experiment) != len(experiments[0]):
            message = (
                f"{experiment.name} runs {len(experiment)} times, {experiments[0].name} {len(experiments[0])} times"
            )
            _refuse(message, f"--set repetitions={len(experiments[0])}")


def _check_job(experiment: Experiment) -> None:
    described, name = experiment.to_dict(), experiment.name
    if experiment.kind != "program":
        message = f"{name} is of kind {experiment.kind}; jobs that share the machine are of kind program"
        _refuse(message, "run it alone")
    if described.get("sweep"):
        _refuse(f"{name} has a sweep; a job that shares the machine has none", "fix its fields: --set PATH=VALUE")
    if described.get("disturbance"):
        _refuse(f"{name} has a disturbance; here the other jobs disturb it", "leave [disturbance] out")
    if described["workload"]["program"] == "recorded":
        _refuse(f"{name} is a recorded program; it holds no code that real ranks could run", "name another program")
    if described.get("execution", {}).get("compute") != "burn":
        message = f"the ranks of {name} are emulated, so they need no processor that they could share"
        _refuse(message, "--set execution.compute=burn")


def round_trip_s() -> float:
    """Measure a round trip of one byte over loopback between two threads that block: the median, s.

    It contains two wake-ups, so that it is what a rank waits at least for an answer from one that blocks.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    with near, far:
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def answer() -> None:
            while byte := far.recv(1):
                far.sendall(byte)

        thread = threading.Thread(target=answer)
        thread.start()
        times = []
        for _ in range(_EXCHANGES):
            begun = time.perf_counter()
            near.sendall(b"x")
            near.recv(1)
            times.append(time.perf_counter() - begun)
        near.shutdown(socket.SHUT_WR)
        thread.join()
    return median(times)
