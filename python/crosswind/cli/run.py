"""`crosswind run`: Experiment -> Runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosswind.cli.answer import show
from crosswind.cli.console import number_of, tell
from crosswind.cli.given import refuse_others
from crosswind.cli.interruption import tells_what_is_kept
from crosswind.cli.jobs import JOB_OPTIONS, OtherJobs, Quantum, Schedules, SpinUs, with_others
from crosswind.cli.options import spread
from crosswind.cli.outputs import OUTPUT, Force, Json, file_of, writable, written
from crosswind.cli.placement import TASKS, Placed, Recorded, TaskTimeout, failed, seconds_of, tell_events
from crosswind.cli.point_tables import PointTables
from crosswind.cli.rerun import Again, AllowCode, refuse_beside, rerun
from crosswind.cli.run_answers import answer_of
from crosswind.cli.settings import Settings, set_fields, settings_of
from crosswind.cli.sweeps import Sweeps, sweeps_of, swept
from crosswind.cli.verbs import help_of
from crosswind.cli.watch import Watched
from crosswind.documents import Arguments, Document
from crosswind.errors import DescriptionError
from crosswind.run import On

if TYPE_CHECKING:
    from crosswind.experiment import Experiment
    from crosswind.run.results import Runs

GOAL_SUFFIXES = (".goal", ".bin")
HEAD_BYTES = 4096
DISTURBED_RUNS = 10
"""Runs of a schedule or a recording with --disturbance, each with everything drawn anew."""
MUCH = 10_000_000
"""Tasks, or steps of ranks, from which on a simulation says how many it has: some ten seconds of work."""

EXAMPLES = """
Examples:

    crosswind run examples/fork_graph.toml

    crosswind run experiment.toml --set policy.order=arrival --trace trace.parquet --perfetto trace.json

    crosswind run experiment.toml --sweep policy.order=arrival,planned --sweep 'node[n3].link=1..100:log' -o runs.json

    crosswind run --again runs.json

    crosswind run experiment.toml --on local --out runs.json --resume

    crosswind run experiment.toml --on local --watch

    crosswind run experiment.toml --on dask:tcp://scheduler:8786 --node Lab3=10.0.0.3

    crosswind run experiment.toml --on hosts:hosts.toml --token-file token

    crosswind run experiment.toml --workers dask:tcp://scheduler:8786

    crosswind run schedule.goal --network latency_s=1e-6 --network gap_per_byte_s=1e-10

    crosswind run app.trace --disturbance daemons.toml

    crosswind run app.trace --disturbance daemons.toml --network cluster --set repetitions=30

    crosswind run a.toml --on local --beside b.toml --schedule gang,implicit

A recording (`crosswind record -- mpirun ...`) is run again: undisturbed it takes as long as recorded, --disturbance
predicts what daemons or other jobs make of that. Transfers take as long as recorded, or with --network what a network
makes of them.

An experiment is a platform, a workload, a policy, and a sweep over any of them. The result is compared with the
upper bound of the tree. `crosswind map` runs a command of yours over files; in Python: `crosswind.map`,
`crosswind.Farm`.

Exit codes: 0 done, 1 the run failed, 2 bad input, 3 done but some tasks failed, 4 a number differs (--again), 130
interrupted.
"""


@spread
def run(
    *,
    experiment: Annotated[
        Path | None,
        typer.Argument(
            help="What to run: an experiment.toml, a GOAL schedule, or a recording (app.trace, a directory of traces).",
            metavar="EXPERIMENT.toml",
            show_default=False,
        ),
    ] = None,
    on: Annotated[
        On,
        typer.Option(
            metavar="PLACE",
            autocompletion=lambda: ["sim", "local", "dask:", "hosts:"],
            help="sim: virtual time. Or agents: local, dask:tcp://SCHEDULER:PORT, hosts:FILE.toml.",
        ),
    ] = "sim",
    settings: Settings = None,
    sweep: Sweeps = None,
    again: Again = None,
    allow_code: AllowCode = False,
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="N|dask:ADDRESS",
            help="Points simulated at a time, or a cluster whose workers do it. [default: one per CPU]",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="runs.json, written as runs come in.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Keep the runs that are already in --out.")] = False,
    json: Json = False,
    placed: Placed,
    time_scale: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Speed up emulated agents: 60 runs a minute of the platform in one second.",
            rich_help_panel=TASKS,
        ),
    ] = None,
    retries: Annotated[
        int | None,
        typer.Option(help="How often a task that failed is tried again. [default: 0]", min=0, rich_help_panel=TASKS),
    ] = None,
    task_timeout: TaskTimeout = None,
    network: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=VALUE",
            help="Of a GOAL schedule or a recording: its network, such as cluster, or a field of it, such as "
            "latency_s=1e-6. Repeat for more.",
            rich_help_panel=TASKS,
        ),
    ] = None,
    disturbance: Annotated[
        Path | None,
        typer.Option(
            metavar="DISTURBANCE.toml",
            help=f"Of a GOAL schedule or a recording: what takes its processors away; {DISTURBED_RUNS} runs.",
            rich_help_panel=TASKS,
        ),
    ] = None,
    other_jobs: OtherJobs = None,
    schedule: Schedules = None,
    quantum_s: Quantum = None,
    spin_us: SpinUs = None,
    recorded: Recorded,
    watched: Watched,
    tables: PointTables,
    rows: Annotated[
        int, typer.Option(help="Most runs, and most nodes, in the printed tables.", min=1, rich_help_panel=OUTPUT)
    ] = 40,
    force: Force = False,
) -> None:
    """Run an experiment."""
    if again is not None:
        settled: Arguments = {"EXPERIMENT": experiment, "--set": settings, "--sweep": sweep, "--network": network}
        settled |= {"--disturbance": disturbance, "--resume": resume, "--on": on != "sim", "--trace": recorded.wanted}
        refuse_beside(settled | {"--points": tables.points, "--ranks": tables.ranks})
        refuse_others("--again", ("again", "allow_code", "workers", "out", "rows", "force", "json"))
        rerun(again, _workers(workers), out, allow_code=allow_code, rows=rows, force=force, as_json=json)
        return
    if allow_code:
        hint = "policies in Python of an experiment's own files need no permission"
        raise DescriptionError("--allow-code belongs to --again", "argument", hint)
    if experiment is None:
        raise DescriptionError("nothing to run is named", "argument", "crosswind run EXPERIMENT.toml")
    if other_jobs or schedule or quantum_s is not None or spin_us is not None:
        refuse_others("jobs beside each other", ("on", "settings", "out", "json", "force", *JOB_OPTIONS))
        with_others(
            [experiment, *(other_jobs or [])], on, settings or [], schedule, quantum_s, spin_us, out, force, json
        )
        return
    recorded.check(out, [experiment, placed.links], force=force)
    tables.check([experiment, out], force=force)
    placing = placed.placing()
    timeout_s = seconds_of("--task-timeout", task_timeout, above_zero=True)
    if on == "sim":
        watched.refuse("--on sim")
        for option, value in {"--task-timeout": task_timeout, "--retries": retries}.items():
            if value is not None:
                raise DescriptionError(f"{option} does not go with --on sim", "argument", "agents take it: --on local")
    options = {
        "execution.time_scale": time_scale,
        "execution.task_timeout_s": timeout_s,
        "execution.task_retries": retries,
    }
    done = _performed(
        experiment,
        on,
        network,
        disturbance,
        settings_of(settings or []) | {path: value for path, value in options.items() if value is not None},
        sweep or [],
        tables,
        out,
        resume,
        recorded,
        watched,
        placed.token,
        workers=_workers(workers),
        placing=placing,
        force=force,
    )
    wrote = [*written(out, number_of(len(done), "run"), goes_on=resume), *tables.write(done)]
    show(
        None if json else answer_of(done, rows, by=tables.by),
        warnings=done.warnings,
        wrote=wrote + recorded.write(done),
        document=done.summary() if json else None,
    )
    if not json:
        tell_events(done, rows)
    if failed(done):
        raise typer.Exit(3)


def _workers(text: str | None) -> int | str | None:
    if text is None or text.startswith("dask:"):
        return text
    try:
        return int(text)
    except ValueError:
        message = f"--workers is {text!r}; it must be a number, or dask:ADDRESS of a scheduler"
        raise DescriptionError(message, "argument", "dask:tcp://SCHEDULER:8786") from None


def announcement(experiment: Experiment) -> str | None:
    """Return how much a simulation does, where that is much: a file may ask for days of it."""
    document = experiment.to_dict()
    sweep = document.get("sweep", {})

    def most(path: str, usual: int) -> int:
        value: Any = document
        for name in path.split("."):
            value = value.get(name, usual) if isinstance(value, dict) else usual
        return max(int(each) for each in (value, *sweep.get(path, [])))

    if experiment.kind == "farm":
        amount, size = most("workload.tasks", 1000), "{:,} tasks"
    elif experiment.kind == "program":
        ranks, steps = most("workload.ranks", 1), most("workload.parameters.steps", 1)
        amount, size = ranks * steps, f"{ranks:,} ranks and {steps:,} steps"
    else:
        return None
    runs = len(experiment)
    if amount * runs < MUCH:
        return None
    word = "run" if runs == 1 else "runs"
    return f"simulating {runs:,} {word} of up to {size.format(amount)}; ctrl-C ends it, and --out keeps finished runs"


def _program_of(path: Path, network: list[str] | None) -> Document | None:
    """Return the workload of a file that is a program by itself, a GOAL schedule or a recording; None: neither."""
    from crosswind.experiment.goal_binary import is_binary_goal
    from crosswind.files.kinds import UNKNOWN, found_at
    from crosswind.files.recorded import is_recorded

    if path.is_dir():
        kind = "recorded-program" if is_recorded(path) else UNKNOWN
    elif path.is_file() and os.access(path, os.R_OK):
        kind = "goal" if is_binary_goal(_head(path)) else found_at(path).kind
        kind = "recorded-program" if kind in (UNKNOWN, "perfetto") and is_recorded(path) else kind
    else:
        return None
    parameters: Document = {"file": path.absolute().name}
    if kind == "goal":
        return {"kind": "program", "program": "goal", "parameters": parameters}
    if kind == "recorded-program":
        parameters["transfers"] = "network" if network else "recorded"
        return {"kind": "program", "program": "recorded", "parameters": parameters}
    return None


def _read(path: Path, network: list[str] | None, disturbance: Path | None) -> Experiment:
    """Return the experiment of a file; a GOAL schedule or a recording becomes one, with its network and disturbance.

    Raises
    ------
    DescriptionError
        When the file is none of these, or the network or the disturbance is that of an experiment.
    """
    from crosswind.experiment import Experiment

    if workload := _program_of(path, network):
        described: Document = {"schema_version": 1, "name": path.absolute().stem, "workload": workload}
        if disturbance is not None:
            described |= {"disturbance": str(disturbance.absolute()), "repetitions": DISTURBED_RUNS}
        named = [text for text in network or [] if "=" not in text]
        whole = {"network": named[-1]} if named else {}
        fields = settings_of([text for text in network or [] if "=" in text], "--network")
        experiment = set_fields(Experiment.from_dict(described, path.absolute().parent), whole, "--network ")
        return set_fields(experiment, {f"network.{field}": value for field, value in fields.items()}, "--network ")
    if path.suffix in GOAL_SUFFIXES and b"\0" in _head(path):
        hint = "name the text that it was made from, or what LogGOPSim's txt2bin makes of that"
        raise DescriptionError(f"{path} is binary, and not a schedule of LogGOPSim's txt2bin", "not-text", hint)
    for option, given, how in (
        ("--network", network, "network.latency_s=1e-6"),
        ("--disturbance", disturbance, f"disturbance={disturbance}"),
    ):
        if given and path.is_file():
            hint = f"an experiment names its own: --set {how}"
            raise DescriptionError(f"{option} belongs to a GOAL schedule or a recording", "argument", hint)
    return Experiment.load(path)


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""


def _performed(
    path: Path,
    on: On,
    network: list[str] | None,
    disturbance: Path | None,
    settings: Arguments,
    sweeps: list[str],
    tables: PointTables,
    out: Path | None,
    resume: bool,
    recorded: Recorded,
    watched: Watched,
    token: str | None,
    **options: Any,
) -> Runs[Any]:
    from crosswind.run.grid import run as perform

    values = sweeps_of(sweeps, list(settings))
    experiment = swept(set_fields(_read(path, network, disturbance), settings), values)
    tables.check_path(list(experiment.to_dict().get("sweep", {})))
    if on == "sim" and not experiment.is_drawn:
        once = experiment.once()
        if len(once) < len(experiment):
            each = len(experiment) // len(once)
            tell(
                f"the seed changes nothing: no size or work of a task is drawn; each point runs once, not {each} times"
            )
        experiment = once
    if on == "sim" and (size := announcement(experiment)):
        tell(size)
    read = [path, *experiment.files]
    writable(out, "runs", inputs=read, force=options["force"])
    of = {"experiment": experiment.name, "on": on}
    writable(recorded.trace, "trace", "--trace", inputs=read, force=options["force"], of=of)
    writable(recorded.perfetto, "perfetto", "--perfetto", inputs=read, force=True)
    if recorded.wanted and experiment.kind != "farm":
        message = f"a trace is of the nodes of a farm; an experiment of kind {experiment.kind} has none"
        hint = "leave out --trace and --perfetto; of recorded ranks: `crosswind blame app.trace --perfetto FILE`"
        raise DescriptionError(message, "argument", hint)
    if recorded.wanted and len(experiment) > 1:
        hint = "make it one: --set repetitions=1, and --set PATH=VALUE for each path of the sweep"
        raise DescriptionError(f"a trace is of one run; this experiment makes {len(experiment)}", "argument", hint)
    keep = watched.file_beside(file_of(out) or Path(path.name), inputs=read, force=options["force"])
    with tells_what_is_kept(file_of(out)), watched.watching(token, keep) as (watch, advance):
        options |= {"progress": advance, "watch": watch}
        done = perform(experiment, on, trace=recorded.wanted, out=file_of(out), resume=resume, **options)
    if out and not file_of(out):
        done.save(out)
    return done


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("run", help=help_of("run", EXAMPLES))(run)
