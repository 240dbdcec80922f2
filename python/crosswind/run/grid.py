"""Many runs: an experiment's points, spread over threads, written as they come in, taken up where they were left."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from crosswind.documents import Params
from crosswind.errors import DescriptionError
from crosswind.experiment import Experiment, FarmPoint, Point, ProgramPoint, StreamsPoint
from crosswind.files.output import ANOTHER, writable
from crosswind.run import On
from crosswind.run.deployment import Placing
from crosswind.run.deployments import HINT, deployed, is_deployed
from crosswind.run.results import AnyRun, ProgramRun, Runs
from crosswind.run.side_by_side import Perform, Simulator, simulated
from crosswind.terminal.progress import done_of, left_in_words

if TYPE_CHECKING:
    from distributed import Client

    from crosswind.watch import Watch

Progress = Callable[[float, str], None]


class Grid(Protocol):
    """Points to run. An `Experiment` is one; a program can make others, of points that no sweep describes."""

    @property
    def name(self) -> str:
        """The name of the experiment in the file of runs."""

    @property
    def kind(self) -> str:
        """What is run: farm, program or streams."""

    def __len__(self) -> int:
        """How many points."""

    def points(self) -> Iterator[Point]:
        """Yield every point; `number` is its place among the runs."""

    def digest(self, on: str) -> str:
        """Return what identifies these runs: those of another digest are not resumed."""


_WRITING_SHARE = 0.05  # most of the time that goes into writing the file of runs


class Store(Protocol):
    """How the runs so far are kept in a file."""

    kind: str
    """Of the file: one of `crosswind.files.kinds.WORDS`."""

    def load(self, path: Path) -> Runs[Any]: ...  # noqa: D102
    def save(self, runs: Runs[Any], path: Path) -> None: ...  # noqa: D102


class _RunsFile:
    """A `runs.json`."""

    kind = "runs"

    def load(self, path: Path) -> Runs[Any]:
        return Runs.load(path)

    def save(self, runs: Runs[Any], path: Path) -> None:
        runs.save(path)


def run(
    experiment: Experiment | Grid | str | Path,
    on: On | Client = "sim",
    *,
    trace: bool = False,
    workers: int | str | Client | None = None,
    placing: Placing | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> Runs[Any]:
    """Run an experiment: every point of its sweep, every repetition.

    A farm whose tasks are not drawn is simulated once at each point: repetitions would be equal.

    Parameters
    ----------
    experiment : Experiment, Grid or path
        What to run. All points of a `Grid` are run as they are.
    on : str or distributed.Client
        `sim`: in virtual time. `local`: for real on this machine, one process per node or rank, one run after the
        other. A farm also runs on a Dask cluster (`dask:ADDRESS`, or a client) and on the hosts of a hosts.toml
        (`hosts:FILE`).
    trace : bool
        Record what each node of a farm did when. Memory: about 60 bytes per activity.
    workers : int, str or distributed.Client, optional
        Points that are simulated at a time, at least 1; default: one per CPU. With a number, a program that is the only
        point is simulated by that many threads, which is faster where nothing else runs. `dask:ADDRESS` or a client: by
        the workers of a Dask cluster. They change nothing in the result.
    placing : Placing, optional
        Which node of the platform goes to which host of a cluster.
    out : path, optional
        A `runs.json` that is written as points come in.
    resume : bool
        Keep the points that stand in `out` already. Refused when they are of another experiment.
    force : bool
        Replace a file of another kind, or of another experiment, in `out`; else it is refused.
    progress : callable, optional
        Called as `progress(fraction, message)`, with the time left in the message.
    watch : Watch, optional
        Shows the current run (`crosswind.watch`). Of a farm on agents only.

    Returns
    -------
    Runs
        In the order of the grid: the last path of the sweep varies fastest, then the repetition.

    Raises
    ------
    DescriptionError
        When the experiment, or a file that it names, is wrong; when `out` holds another experiment.
    KeyboardInterrupt
        After ctrl-C; the points that were finished stand in `out`.

    Examples
    --------
    >>> root = {"name": "r", "compute_per_s": 2.0}
    >>> leaf = {"name": "a", "parent": "r", "compute_per_s": 4.0, "receive_limit_mb_per_s": 10.0}
    >>> pair = {"schema_version": 1, "name": "pair", "node": [root, leaf]}
    >>> farm = {"kind": "farm", "tasks": 600, "task_size_mb": 1.0, "task_work": 1.0}
    >>> sweep = {"policy.order": ["interference", "root-only"]}
    >>> description = {"schema_version": 1, "name": "two", "platform": pair, "workload": farm, "sweep": sweep}
    >>> both, alone = run(Experiment.from_dict(description))
    >>> round(alone.makespan_s), round(both.makespan_s)
    (300, 100)
    """
    if isinstance(experiment, (str, Path)):
        experiment = Experiment.load(experiment)
    provenance = None
    if isinstance(experiment, Experiment):
        if on == "sim" and not experiment.is_drawn:
            experiment = experiment.once()
        if on != "sim" and (own := experiment.own_policies):
            message = f"policy.order is {own[0]!r}; agents do not run a policy in Python"
            raise DescriptionError(message, "argument", 'simulate it: on="sim" (--on sim)')
        workers, provenance = workers_for(experiment, workers), experiment.provenance()
    return run_grid(
        experiment,
        on,
        trace=trace,
        workers=workers,
        placing=placing,
        out=out,
        resume=resume,
        force=force,
        progress=progress,
        watch=watch,
        provenance=provenance,
    )


def run_grid(
    grid: Grid,
    on: On | Client = "sim",
    *,
    trace: bool = False,
    workers: int | str | Client | None = None,
    placing: Placing | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    progress: Progress | None = None,
    watch: Watch | None = None,
    store: Store | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> Runs[Any]:
    """Run every point of a grid; parameters, result and errors as for `run`; `store` keeps them in `out`.

    `provenance` is of the experiment that the grid is made of.
    """
    if isinstance(workers, int) and workers < 1:
        raise DescriptionError(f"workers is {workers}; it must be at least 1", "argument")
    far = is_deployed(on) and on != "local"
    place = str(on) if not far else "dask" if not isinstance(on, str) else on.partition(":")[0]
    with ExitStack() as stack:
        kept_in = Path(out) if out is not None else None
        ledger = _Ledger(grid, place, kept_in, resume, force, store or _RunsFile(), provenance)
        if watch is not None and (grid.kind != "farm" or place == "sim"):
            message = f"watch is of a farm on agents; this is a {grid.kind} on {place}"
            raise DescriptionError(message, "argument", "--on local, dask:ADDRESS or hosts:FILE")
        if far:
            performer: Perform | Simulator = _on_a_cluster(grid.kind, on, trace, placing, stack, watch)
        else:
            if placing:
                raise DescriptionError(f"nodes are placed on a cluster's hosts; on is {place}", "argument", HINT)
            performer = _performer(grid.kind, place, trace, watch, _threads(workers, len(grid)))
        perform = _performed_by(performer, workers, len(grid), stack)
        meter = _Meter(len(grid), progress)
        missing = (point for point in grid.points() if not ledger.has(point))
        try:
            for point, done in perform(missing):
                ledger.add(point, done)
                meter.tell(ledger.done, ledger.taken_over)
        finally:
            ledger.write()
        return ledger.runs()


def workers_for(experiment: Experiment, workers: int | str | Client | None) -> int | str | Client | None:
    """Return the workers to use: policies in Python run one at a time, on the thread that called."""
    return 1 if experiment.own_policies and (workers is None or isinstance(workers, int)) else workers


PerformAll = Callable[[Iterator[Point]], Iterator[tuple[Point, AnyRun]]]


def _performed_by(
    performer: Perform | Simulator, workers: int | str | Client | None, points: int, stack: ExitStack
) -> PerformAll:
    """Return what performs a grid's points: one after the other, threads here, or the workers of a cluster."""
    if not isinstance(performer, Simulator):
        return partial(_one_by_one, performer)
    if workers is None or isinstance(workers, int):
        threads = min(workers or _cpus(), points)
        if threads > 1:
            return partial(simulated, simulator=performer, threads=threads)
        return partial(_one_by_one, performer.simulate)
    from crosswind.cluster.client import connected
    from crosswind.run.spread import spread

    if isinstance(workers, str):
        kind, _, address = workers.partition(":")
        if kind != "dask" or not address:
            message = f"workers is {workers!r}; it must be a number, or dask:ADDRESS of a scheduler"
            raise DescriptionError(message, "argument", "dask:tcp://SCHEDULER:8786")
        workers = stack.enter_context(connected(address))
    return partial(spread, workers, perform=performer.simulate)


def _one_by_one(perform: Perform, points: Iterator[Point]) -> Iterator[tuple[Point, AnyRun]]:
    for point in points:
        yield point, perform(point)


def _on_a_cluster(
    kind: str, on: On | Client, trace: bool, placing: Placing | None, stack: ExitStack, watch: Watch | None
) -> Perform:
    if kind != "farm":
        message = f"an experiment of kind {kind} runs on sim or local; on a cluster only a farm does"
        raise DescriptionError(message, "argument", "--on local has one process per rank on this machine")
    from crosswind.run.emulation import run_on_agents

    deployment = stack.enter_context(deployed(on, placing))
    return lambda point: run_on_agents(cast(FarmPoint, point), trace, deployment, watch)


def _threads(workers: int | str | Client | None, points: int) -> int:
    """Return how many threads simulate a program: the given workers, if it is the only point.

    Not by default: on a busy host threads of one simulation wait for each other longer than they compute.
    """
    return workers if isinstance(workers, int) and points == 1 else 1


def _performer(kind: str, on: str, trace: bool, watch: Watch | None, threads: int) -> Perform | Simulator:
    """Return what runs one point here, or simulates several at a time; `threads` simulate one program."""
    match kind, on:
        case "program" | "streams", "sim" | "local" if trace:
            message = f"trace is of the nodes of a farm; an experiment of kind {kind} has none"
            raise DescriptionError(message, "argument", "leave it out")
        case "farm", "sim":
            from crosswind.run import simulation as farms

            return farms.simulator(trace)
        case "farm", "local":
            from crosswind.run.emulation import run_on_agents
            from crosswind.run.processes import Launch

            return partial(run_on_agents, trace=trace, deployment=Launch(), watch=watch)
        case "program", "sim":
            from crosswind.run import program

            return program.simulator(threads)
        case "program", "local":
            from crosswind.run.ranks import RanksHere

            ranks = RanksHere()
            return lambda point: ranks(cast(ProgramPoint, point))
        case "streams", "sim":
            from crosswind.run import streams

            return streams.simulator()
        case "streams", "local":
            from crosswind.run.streams import complete
            from crosswind.run.streams_local import run_streams_here

            return lambda point: complete(run_streams_here(point.json), cast(StreamsPoint, point))
    raise DescriptionError(f"on is {on!r}; it must be one of: sim; {HINT}", "argument")


def _cpus() -> int:
    return len(os.sched_getaffinity(0))


class _Ledger:
    """The runs that are done, and their file."""

    def __init__(
        self,
        grid: Grid,
        on: str,
        out: Path | None,
        resume: bool,
        force: bool,
        store: Store,
        provenance: Mapping[str, Any] | None,
    ) -> None:
        self._store, self._provenance = store, provenance
        self._grid, self._on, self._out = grid, on, out
        self._digest = grid.digest(on)
        self._done: dict[int, AnyRun] = {}
        self._there: dict[str, AnyRun] = {}
        self.taken_over = 0
        self._written_at = time.monotonic()
        self._write_s = 0.0
        # With resume, reading what is there says whether it is of this experiment.
        of = {} if resume else {"experiment": grid.name, "on": on, "digest": self._digest}
        writable(out, store.kind, force=force and not resume, of=of)
        self._least = self._held_by(out) if out is not None and not resume and out.exists() else 1
        """Runs from which on the file may be written: none without a run, and until then an older one holds more."""
        if out is not None and resume and out.exists():
            self._there = {_key(run.params, run.seed): run for run in self._taken_up(out)}
        if resume and out is None:
            raise DescriptionError("resume is given without out", "argument", "name the file of runs to continue")

    def _held_by(self, out: Path) -> int:
        """Return how many runs of this experiment a file holds, at least 1: no empty file replaces another."""
        try:
            there = self._store.load(out)
        except DescriptionError:
            return 1
        return max(len(there), 1) if there.digest == self._digest else 1

    def _taken_up(self, out: Path) -> Runs[Any]:
        there = self._store.load(out)
        if self._provenance and there.provenance:
            versions = [*there.provenance["versions"], *self._provenance["versions"]]
            self._provenance = {**self._provenance, "versions": list(dict.fromkeys(versions))}
        if there.digest != self._digest:
            message = f"{out}: holds runs of another experiment ({there.experiment!r}, on {there.on})"
            if (differs := first_difference(there.provenance or {}, self._provenance or {})) is not None:
                path, was, now = differs
                message += f": {path} is {was} there, {now} now"
            raise DescriptionError(message, ANOTHER, "name another file, or replace it: --force without --resume")
        return there

    @property
    def done(self) -> int:
        return len(self._done)

    def has(self, point: Point) -> bool:
        """Whether a point stood in the file already; it is taken over."""
        run = self._there.get(_key(point.params, point.seed)) if self._there else None
        if run is not None:
            self._done[point.number] = run
            self.taken_over += 1
            if self._on == "sim" and isinstance(point, ProgramPoint):
                from crosswind.run.program import remember

                remember(point, cast(ProgramRun, run))
        return run is not None

    def add(self, point: Point, run: AnyRun) -> None:
        self._done[point.number] = run
        # After every point, but never so often that writing a long file costs more than the runs.
        if time.monotonic() - self._written_at > self._write_s / _WRITING_SHARE:
            self.write()

    def runs(self) -> Runs[Any]:
        done = [self._done[number] for number in sorted(self._done)]
        return Runs(self._grid.name, self._on, done, self._digest, self._grid.kind, self._provenance)

    def write(self) -> None:
        if self._out is None or len(self._done) < self._least:
            return
        begun = time.monotonic()
        self._store.save(self.runs(), self._out)
        self._written_at = time.monotonic()
        self._write_s = self._written_at - begun


def first_difference(there: Any, now: Any, path: str = "") -> tuple[str, str, str] | None:
    """Return where two documents differ first, and what each has there; versions and numbers of files do not count.

    Examples
    --------
    >>> first_difference({"experiment": {"seed": 1}}, {"experiment": {"seed": 2}})
    ('seed', '1', '2')
    >>> first_difference({"platforms": {"a": {"node": [1]}}}, {"platforms": {"a": {"node": [1, 2]}}})
    ('platforms.a.node[1]', 'missing', '2')
    """
    if isinstance(there, Mapping) and isinstance(now, Mapping):
        names = [name for name in dict.fromkeys([*there, *now]) if path or name != "versions"]
        pairs = [(f"{path}.{name}", there.get(name, _MISSING), now.get(name, _MISSING)) for name in names]
    elif isinstance(there, list) and isinstance(now, list):
        both = enumerate(zip_longest(there, now, fillvalue=_MISSING))
        pairs = [(f"{path}[{at}]", was, is_now) for at, (was, is_now) in both]
    else:
        shown = [_brief(value) for value in (there, now)]
        return None if there == now else (path.removeprefix(".").removeprefix("experiment."), shown[0], shown[1])
    each = (first_difference(was, is_now, where) for where, was, is_now in pairs)
    return next((found for found in each if found is not None), None)


_MISSING: Final = object()


def _brief(value: Any) -> str:
    text = "missing" if value is _MISSING else json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _key(params: Params, seed: int) -> str:
    return json.dumps([params, seed], sort_keys=True)


class _Meter:
    """Reports how far it is, and how long it will take at the pace so far."""

    def __init__(self, runs: int, progress: Progress | None) -> None:
        self._runs, self._progress = runs, progress
        self._begun = time.monotonic()

    def tell(self, done: int, taken_over: int) -> None:
        if self._progress is None:
            return
        elapsed_s = time.monotonic() - self._begun
        left = left_in_words(done - taken_over, self._runs - taken_over, elapsed_s)
        self._progress(done / self._runs, f"{done_of(done, self._runs, 'run')}{left}")
