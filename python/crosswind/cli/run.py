"""`crosswind run`: Experiment -> Runs; or a command over many files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosswind.cli.access import AllowLooseToken, token_in
from crosswind.cli.console import print_json, tell, tell_warnings
from crosswind.cli.interrupted import tells_what_is_kept
from crosswind.cli.outputs import Force, file_of, writable
from crosswind.cli.printed_runs import print_runs
from crosswind.cli.settings import hosts_of_nodes, settings_of, size_mb
from crosswind.cli.verbs import help_of
from crosswind.cluster.hosts import Place
from crosswind.errors import DescriptionError
from crosswind.files.output import distinct
from crosswind.run import On
from crosswind.terminal.progress import progress_bar

if TYPE_CHECKING:
    from crosswind.run.deployment import Placing
    from crosswind.run.results import Runs

EXAMPLES = """
What runs is an experiment (platform, workload, policy, and a sweep over any of them), or, with `--command`, your own
program over many files. The result stands beside the upper bound of the tree.

Examples:

    crosswind run examples/fork_graph.toml

    crosswind run experiment.toml --set policy.order=arrival --trace trace.parquet --perfetto trace.json

    crosswind run experiment.toml --on local --out runs.json --resume

    crosswind run --command 'gzip -c {input} > {output}' --inputs 'data/*' --out results/

    crosswind run experiment.toml --on dask:tcp://scheduler:8786 --node Lab3=10.0.0.3

    crosswind run experiment.toml --workers dask:tcp://scheduler:8786

    crosswind run experiment.toml --on hosts:hosts.toml --token-file token

In Python: `crosswind.Farm(client)`.

Exit codes: 0 done, 1 the run failed, 2 bad input, 3 done but some tasks failed, 130 interrupted.
"""


def run(
    experiment: Annotated[
        Path | None, typer.Argument(help="What to run: an experiment.toml.", metavar="EXPERIMENT.toml")
    ] = None,
    on: Annotated[
        On | None,
        typer.Option(
            metavar="PLACE",
            autocompletion=lambda: ["sim", "local", "dask:", "hosts:"],
            help="sim: virtual time. Or agents: local, dask:tcp://SCHEDULER:PORT, hosts:FILE.toml. [default: sim]",
        ),
    ] = None,
    node: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE=HOST", help="dask: host or worker that carries a node; again for more."),
    ] = None,
    per: Annotated[
        Place | None,
        typer.Option(help="dask: what carries an agent. [default: host; without a platform thread]"),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="dask: where the root listens; else an address that the hosts reach."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help="hosts: what all agents share. dask: the same, there on every host, so it does not travel."),
    ] = None,
    allow_loose_token: AllowLooseToken = False,
    tls: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="hosts, dask: the root's certificates (`crosswind cert`). dask: a node's: DIR/../NODE on its host.",
        ),
    ] = None,
    links: Annotated[
        Path | None,
        typer.Option(help="dask: what `measure --on` found; a host that joins is put where the bound is highest."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=VALUE",
            help="Such as policy.order=arrival: set it for every run; again for more.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="runs.json, written as runs come in; --command: directory of the results."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Keep what stands in --out already.")] = False,
    trace: Annotated[Path | None, typer.Option(help="Write what each node did when, as Parquet (one run).")] = None,
    perfetto: Annotated[Path | None, typer.Option(help="Write it for ui.perfetto.dev, as JSON (one run).")] = None,
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|dask:ADDRESS", help="Points simulated at a time; else one per CPU. Or a cluster's workers."
        ),
    ] = None,
    time_scale: Annotated[
        float | None, typer.Option(help="Emulated agents: seconds of the platform per second of the clock.")
    ] = None,
    command: Annotated[
        str | None, typer.Option(help="Your program, run once per input; {input} and {output} are files.")
    ] = None,
    inputs: Annotated[
        list[str] | None, typer.Option(help="--command: files, as a quoted pattern such as 'data/*'; again for more.")
    ] = None,
    platform: Annotated[
        Path | None, typer.Option(help="--command: the tree of nodes; else a root and one node per CPU.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="--command: name of a result; {name}, {stem}, {number} of its input. [{name}]")
    ] = None,
    retries: Annotated[
        int | None, typer.Option(help="How often a task that failed is tried again. [default: 0]", min=0)
    ] = None,
    task_timeout: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="End a task that takes longer, with all its processes; it has failed."),
    ] = None,
    task_memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="--command: memory of all processes of a task, such as 500MB or 2GiB."),
    ] = None,
    grace: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="--command: from SIGTERM to SIGKILL, for what is left of a task. [default: 5]"
        ),
    ] = None,
    by_content: Annotated[
        bool, typer.Option("--by-content", help="--command --resume: tell by what an input holds whether it changed.")
    ] = False,
    sync: Annotated[
        bool, typer.Option(help="--command: report a result only once it is on the disk; --no-sync is faster.")
    ] = True,
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    rows: Annotated[int, typer.Option(help="Most runs, and most nodes, in the printed tables.", min=1)] = 40,
) -> None:
    """Run an experiment, or a command over many files."""
    if (experiment is None) == (command is None):
        what = "both an experiment and --command are" if experiment else "neither an experiment nor --command is"
        raise DescriptionError(f"{what} given", "argument", "name an experiment.toml, or give --command and --inputs")
    distinct({"--out": out, "--trace": trace, "--perfetto": perfetto})
    read = [experiment, platform, links]
    writable(trace, "trace", "--trace", inputs=read, force=force)
    writable(perfetto, "perfetto", "--perfetto", inputs=read, force=force)
    placing = _placing(node or [], per, listen, token_file, allow_loose_token, tls, links)
    if command is not None:
        _refuse(
            "--command", {"--on sim": on == "sim", "--set": settings, "--workers": workers, "--time-scale": time_scale}
        )
        done = _command(
            command,
            inputs or [],
            out or Path("results"),
            platform=platform,
            name=name or "{name}",
            retries=retries or 0,
            task_timeout_s=_seconds("--task-timeout", task_timeout, above_zero=True),
            task_memory_mb=size_mb("--task-memory", task_memory) if task_memory is not None else None,
            grace_s=_seconds("--grace", grace),
            resume=resume,
            by_content=by_content,
            sync=sync,
            force=force,
            trace=bool(trace or perfetto),
            on=on or "local",
            placing=placing,
        )
    else:
        _refuse(
            "an experiment",
            {
                "--inputs": inputs,
                "--platform": platform,
                "--name": name,
                "--task-memory": task_memory,
                "--grace": grace is not None,
                "--by-content": by_content,
                "--no-sync": not sync,
            },
        )
        if on in (None, "sim"):
            _refuse("--on sim", {"--task-timeout": task_timeout is not None, "--retries": retries is not None})
        assert experiment is not None
        done = _experiment(
            experiment,
            on or "sim",
            _settings(
                settings or [],
                {
                    "execution.time_scale": time_scale,
                    "execution.task_timeout_s": _seconds("--task-timeout", task_timeout, above_zero=True),
                    "execution.task_retries": retries,
                },
            ),
            out,
            resume,
            trace,
            perfetto,
            workers=_workers(workers),
            placing=placing,
            force=force,
        )
    _write(done, trace, perfetto)
    tell_warnings(done.warnings)
    if json:
        print_json(done.summary())
    else:
        print_runs(done, rows)
    if any(event["code"] == "task-failed" for one in done for event in one.events):
        raise typer.Exit(3)


def _refuse(beside: str, given: dict[str, Any]) -> None:
    for option, value in given.items():
        if value:
            hint = "`crosswind run --help` says what goes with what"
            raise DescriptionError(f"{option} does not go with {beside}", "argument", hint)


def _placing(
    nodes: list[str],
    per: Place | None,
    listen: str | None,
    token_file: Path | None,
    allow_loose_token: bool,
    tls: Path | None,
    links: Path | None,
) -> Placing | None:
    from crosswind.run.deployment import Placing

    given = hosts_of_nodes(nodes)
    token_in(token_file, allow_loose_token)  # checked before any host is reached
    if links is not None and not links.is_file():
        raise DescriptionError(f"--links is {str(links)!r}: no such file", "no-file", "`measure --on` makes one")
    if tls is not None and not tls.is_dir():
        raise DescriptionError(f"--tls is {str(tls)!r}: no such directory", "no-file", "`crosswind cert` makes a set")
    placing = Placing(given, per, listen, token_file, tls, links, allow_loose_token)
    return placing if placing else None


def _workers(text: str | None) -> int | str | None:
    if text is None or text.startswith("dask:"):
        return text
    try:
        return int(text)
    except ValueError:
        message = f"--workers is {text!r}; it must be a number, or dask:ADDRESS of a scheduler"
        raise DescriptionError(message, "argument", "dask:tcp://SCHEDULER:8786") from None


def _settings(given: list[str], options: dict[str, Any]) -> dict[str, Any]:
    return settings_of(given) | {path: value for path, value in options.items() if value is not None}


def _seconds(option: str, value: float | None, *, above_zero: bool = False) -> float | None:
    if value is None or (math.isfinite(value) and (value > 0 if above_zero else value >= 0)):
        return value
    permitted = "finite and greater than 0" if above_zero else "finite and at least 0"
    raise DescriptionError(f"{option} is {value} s; it must be {permitted}", "argument")


def _experiment(
    path: Path,
    on: On,
    settings: dict[str, Any],
    out: Path | None,
    resume: bool,
    trace: Path | None,
    perfetto: Path | None,
    **options: Any,
) -> Runs[Any]:
    from crosswind.experiment import Experiment
    from crosswind.run.grid import run as perform

    experiment = Experiment.load(path).fixed(settings)
    read = [path, *experiment.files]
    writable(out, "runs", inputs=read, force=options["force"])
    of = {"experiment": experiment.name, "on": on}
    writable(trace, "trace", "--trace", inputs=read, force=options["force"], of=of)
    writable(perfetto, "perfetto", "--perfetto", inputs=read, force=True)
    traced = bool(trace or perfetto)
    if traced and len(experiment) > 1:
        hint = "leave one: --set PATH=VALUE for each path of the sweep, --set seed=1 with repetitions = 1"
        raise DescriptionError(f"a trace is of one run; this experiment makes {len(experiment)}", "argument", hint)
    with tells_what_is_kept(file_of(out)), progress_bar() as advance:
        done = perform(experiment, on, trace=traced, out=file_of(out), resume=resume, progress=advance, **options)
    if out:
        if not file_of(out):
            done.save(out)
        tell(f"wrote {out} ({len(done)} runs)")
    return done


def _command(
    command: str, inputs: list[str], out: Path, *, on: On, placing: Placing | None, **options: Any
) -> Runs[Any]:
    from crosswind.run.command import run_command
    from crosswind.run.deploying import deployed

    given = {name: value for name, value in options.items() if value is not None}
    with deployed(on, placing) as launch, progress_bar() as advance:
        done = run_command(command, inputs, out, launch=launch, progress=advance, **given)
    if (resumed := done[0].data.get("resumed")) is not None:
        again = ", ".join(f"{why} {count}" for why, count in resumed["again"].items())
        counts = f"{resumed['done']} done before, {sum(resumed['again'].values())} made again"
        tell(f"{counts}{f' ({again})' if again else ''}, {resumed['new']} new, {resumed['gone']} missing")
    failed = sum(event["tasks"] for event in done[0].events if event["code"] == "task-failed")
    tell(f"wrote {out} ({done[0].data['tasks'] - failed} results{f', {failed} failed' if failed else ''})")
    return done


def _write(done: Runs[Any], trace: Path | None, perfetto: Path | None) -> None:
    if done.trace is None:
        return
    if trace:
        done.trace.save(trace)
        tell(f"wrote {trace}")
    if perfetto:
        from crosswind.run.perfetto import write_perfetto

        write_perfetto(done.trace, perfetto)
        tell(f"wrote {perfetto}")


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("run", help=help_of("run", EXAMPLES))(run)
