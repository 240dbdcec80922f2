"""`crosswind map`: a command over many files -> their results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosswind.cli.console import print_json, tell, tell_warnings
from crosswind.cli.options import spread
from crosswind.cli.outputs import OUTPUT, Force, Json
from crosswind.cli.placement import TASKS, Placed, Recorded, TaskTimeout, failed, seconds_of
from crosswind.cli.run_tables import print_runs
from crosswind.cli.settings import size_mb
from crosswind.cli.verbs import help_of
from crosswind.cli.watch import Watched
from crosswind.errors import DescriptionError
from crosswind.run import On

if TYPE_CHECKING:
    from crosswind.run.deployment import Placing
    from crosswind.run.results import Runs

EXAMPLES = """
Examples:

    crosswind map 'gzip -c {input} > {output}' --inputs 'data/*' --out results/ --name '{name}.gz'

    crosswind map 'gzip -c {input} > {output}' --inputs 'data/*' --out results/ --resume

    crosswind map 'wc -c < {input}' --inputs 'data/*' --on dask:tcp://scheduler:8786

A shell runs the command. {input} is a file of the node that runs it, {output} the file to write there; without
{output}, what the command prints is the result. In Python: `crosswind.map` for functions, `crosswind.map_command`.

Exit codes: 0 done, 1 the run failed, 2 bad input, 3 done but some tasks failed, 130 interrupted.
"""


@spread
def map_(
    *,
    command: Annotated[str, typer.Argument(help="Your program, run once per input.", metavar="COMMAND")],
    inputs: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Files, as a quoted pattern such as 'data/*'; again for more."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Directory of the results.")] = Path(
        "results"
    ),
    name: Annotated[str, typer.Option(help="Name of a result; {name}, {stem}, {number} are its input's.")] = "{name}",
    resume: Annotated[bool, typer.Option("--resume", help="Do again only what --out does not hold.")] = False,
    on: Annotated[
        On,
        typer.Option(
            metavar="PLACE",
            autocompletion=lambda: ["local", "dask:", "hosts:"],
            help="local, dask:tcp://SCHEDULER:PORT or hosts:FILE.toml.",
        ),
    ] = "local",
    platform: Annotated[
        Path | None, typer.Option(help="The tree of nodes. [default: a root and one node per CPU]")
    ] = None,
    json: Json = False,
    retries: Annotated[
        int, typer.Option(help="How often a task that failed is tried again.", min=0, rich_help_panel=TASKS)
    ] = 0,
    task_timeout: TaskTimeout = None,
    task_memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Memory of all processes of a task, such as 500MB or 2GiB.",
            rich_help_panel=TASKS,
        ),
    ] = None,
    grace: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="From SIGTERM to SIGKILL, for what is left of a task. [default: 5]",
            rich_help_panel=TASKS,
        ),
    ] = None,
    by_content: Annotated[
        bool,
        typer.Option(
            "--by-content",
            help="--resume: compare what an input holds, not its size and time.",
            rich_help_panel=TASKS,
        ),
    ] = False,
    sync: Annotated[
        bool,
        typer.Option(help="Report a result only once it is on the disk; --no-sync is faster.", rich_help_panel=TASKS),
    ] = True,
    placed: Placed,
    recorded: Recorded,
    watched: Watched,
    rows: Annotated[int, typer.Option(help="Most nodes in the printed table.", min=1, rich_help_panel=OUTPUT)] = 40,
    force: Force = False,
) -> None:
    """Run a command over many files."""
    recorded.check(out, [platform, placed.links], force=force)
    placing = placed.placing()
    if on == "sim":
        raise DescriptionError("--on sim does not go with a command", "argument", "commands run for real: --on local")
    done = _performed(
        command,
        inputs or [],
        out,
        on=on,
        placing=placing,
        watched=watched,
        token=placed.token,
        platform=platform,
        name=name,
        retries=retries,
        task_timeout_s=seconds_of("--task-timeout", task_timeout, above_zero=True),
        task_memory_mb=size_mb("--task-memory", task_memory) if task_memory is not None else None,
        grace_s=seconds_of("--grace", grace),
        resume=resume,
        by_content=by_content,
        sync=sync,
        force=force,
        trace=recorded.wanted,
    )
    recorded.write(done)
    tell_warnings(done.warnings)
    if json:
        print_json(done.summary())
    else:
        print_runs(done, rows)
    if failed(done):
        raise typer.Exit(3)


def _performed(
    command: str,
    inputs: list[str],
    out: Path,
    *,
    on: On,
    placing: Placing | None,
    watched: Watched,
    token: str | None,
    **options: Any,
) -> Runs[Any]:
    from crosswind.run.command import map_command
    from crosswind.run.deployments import deployed

    given = {name: value for name, value in options.items() if value is not None}
    with deployed(on, placing) as launch, watched.watching(token) as (watch, advance):
        done = map_command(command, inputs, out, launch=launch, progress=advance, watch=watch, **given)
    if (resumed := done[0].data.get("resumed")) is not None:
        again = ", ".join(f"{why} {count}" for why, count in resumed["again"].items())
        counts = f"{resumed['done']} done before, {sum(resumed['again'].values())} made again"
        tell(f"{counts}{f' ({again})' if again else ''}, {resumed['new']} new, {resumed['gone']} missing")
    failed = sum(event["tasks"] for event in done[0].events if event["code"] == "task-failed")
    tell(f"wrote {out} ({done[0].data['tasks'] - failed} results{f', {failed} failed' if failed else ''})")
    return done


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("map", help=help_of("map", EXAMPLES))(map_)
