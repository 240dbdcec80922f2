"""`crosswind map`: a command over many files -> their results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosswind import _core
from crosswind.cli.answer import show
from crosswind.cli.console import is_wide, print_text, tell
from crosswind.cli.map_answers import answer_of, results_of, tell_failures
from crosswind.cli.options import spread
from crosswind.cli.outputs import OUTPUT, Json
from crosswind.cli.placement import TASKS, Placed, Recorded, TaskTimeout, failed, seconds_of
from crosswind.cli.settings import size_mb
from crosswind.cli.verbs import help_of
from crosswind.cli.watch import Watched
from crosswind.errors import DescriptionError
from crosswind.run import On
from crosswind.run.inputs import listed

if TYPE_CHECKING:
    from crosswind.run.deployment import Placing
    from crosswind.run.results import Runs

EXAMPLES = """
Examples:

    crosswind map 'gzip -c {input} > {output}' --inputs 'data/*' --out results/ --name '{name}.gz'

    crosswind map 'gzip -c {input} > {output}' --inputs 'data/*' --out results/ --resume

    crosswind map 'gcc -c {input} -o {output}' src/*.c --name '{stem}.o' -j 4

    crosswind map 'flac {input} -o {output}' --inputs - --name '{stem}.flac' < names.txt

    crosswind map './simulate --seed {}' --values - < seeds.txt

    crosswind map 'sort -u {} > {output}' --inputs 'logs/*/*.log' --name '{dir}/{name}' --joblog jobs.tsv

    crosswind map 'diff <(sort {}) reference' --inputs 'data/*' --shell bash

    crosswind map 'wc -c < {input}' --inputs 'data/*' --on dask:tcp://scheduler:8786

A shell runs the command. {input} or {} is the input's file on the node that runs it, under its own name; {output} is
the file to write there; without {output}, what the command prints is the result. {name}, {stem}, {ext} and {number}
are the input's name, that without its last suffix, the suffix, and its place. Each is one word, however it is quoted.
--name takes these and {dir}, the directory of the input as it was named.
In Python: `crosswind.map` for functions, `crosswind.map_command`.

Exit codes: 0 done, 1 the run failed, 2 bad input, 3 done but some tasks failed, 130 interrupted.
"""


@spread
def map_(
    *,
    command: Annotated[str, typer.Argument(help="Your program, run once per input.", metavar="COMMAND")],
    files: Annotated[
        list[str] | None, typer.Argument(help="Files, as --inputs; a pattern may be unquoted.", metavar="FILE...")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Files, such as 'data/*'. Repeat for more. -: names from standard input."),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VALUE", help="A value as input instead of a file. Repeat for more. -: lines of standard input."
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", metavar="N", help="Commands at a time. [default: one per CPU]", min=1)
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print the commands as a shell would get them, and run none.", rich_help_panel=OUTPUT
        ),
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Directory of the results.")] = Path(
        "results"
    ),
    name: Annotated[
        str | None,
        typer.Option(help="Name of a result, with / for directories. [default: {name}; with --values {number}]"),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Run only the inputs whose results are missing from --out.")
    ] = False,
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
            help="Seconds from SIGTERM to SIGKILL for remaining processes of a task. [default: 5]",
            rich_help_panel=TASKS,
        ),
    ] = None,
    halt: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Start no more commands once N have failed. Those that run are finished.",
            rich_help_panel=TASKS,
        ),
    ] = None,
    shell: Annotated[
        str | None,
        typer.Option(
            metavar="SHELL",
            help="Shell that interprets COMMAND, such as bash or 'bash -eo pipefail'. [default: /bin/sh]",
            rich_help_panel=TASKS,
        ),
    ] = None,
    joblog: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a line for each command as it ends, with the columns of parallel's job log.",
            rich_help_panel=OUTPUT,
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
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Do not show what commands print on stderr.", rich_help_panel=OUTPUT)
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Run everything again, and replace files of any kind.", rich_help_panel=OUTPUT),
    ] = False,
) -> None:
    """Run a command over many files."""
    command, given = _command_among([command, *(files or [])])
    names, texts = listed([*(inputs or []), *given]), listed(values or [])
    if dry_run:
        from crosswind.run.command import commands_of

        for line in commands_of(command, names, texts, out, name):
            print_text(line)
        return
    from crosswind.run.command import check_jobs

    check_jobs(jobs, is_elsewhere=platform is not None or on != "local")
    recorded.check(out, [platform, placed.links], force=force)
    placing = placed.placing()
    if on == "sim":
        raise DescriptionError("--on sim does not go with a command", "argument", "commands run for real: --on local")
    done = _performed(
        command,
        names,
        out,
        values=texts,
        max_workers=jobs,
        on=on,
        placing=placing,
        watched=watched,
        token=placed.token,
        quiet=quiet,
        platform=platform,
        name=name,
        retries=retries,
        task_timeout_s=seconds_of("--task-timeout", task_timeout, above_zero=True),
        task_memory_mb=size_mb("--task-memory", task_memory) if task_memory is not None else None,
        grace_s=seconds_of("--grace", grace),
        halt=_failures(halt) if halt is not None else None,
        shell=shell,
        joblog=joblog,
        resume=resume,
        by_content=by_content,
        sync=sync,
        force=force,
        trace=recorded.wanted,
    )
    wrote = recorded.write(done)
    show(
        None if json else answer_of(done, out, rows, "value" if texts else "file"),
        warnings=done.warnings,
        wrote=[results_of(done, out), *wrote] if json else wrote,
        document=done.summary() if json else None,
    )
    if not json:
        tell_failures(done, wide=is_wide())
    if failed(done) or any(one["code"] == "inputs-unreadable" for one in done.warnings):
        raise typer.Exit(3)


def _failures(halt: str) -> int:
    """Return the number of failures of `--halt`: a number, or as parallel has it, `soon,fail=3`."""
    words = re.fullmatch(r"(?:soon,fail=)?([1-9]\d{0,8})|soon", halt)
    if words is None:
        hint = "--halt 1 begins no more commands after the first failure; ctrl-C ends those that run, too"
        raise DescriptionError(f"--halt is {halt!r}; it must be a number of failures, at least 1", "argument", hint)
    return int(words[1] or 1)


def _command_among(words: list[str]) -> tuple[str, list[str]]:
    """Return the command and the files: after `--inputs data/*` unquoted, the command may be the last word."""
    with_input = [word for word in words if _uses_input(word)]
    if len(with_input) == 1 and not _uses_input(words[0]):
        return with_input[0], [word for word in words if word is not with_input[0]]
    return words[0], words[1:]


def _uses_input(word: str) -> bool:
    return _core.uses_input(word.encode(errors="replace").decode())  # a file's name may hold any bytes


def _performed(
    command: str,
    inputs: Sequence[str],
    out: Path,
    *,
    on: On,
    placing: Placing | None,
    watched: Watched,
    token: str | None,
    quiet: bool,
    **options: Any,
) -> Runs[Any]:
    from crosswind.run.command import map_command
    from crosswind.run.deployments import deployed

    given = {name: value for name, value in options.items() if value is not None}
    keep = watched.file_beside(out, inputs=inputs, force=bool(options["force"]))
    with deployed(on, placing, echo=not quiet) as launch, watched.watching(token, keep) as (watch, advance):
        done = map_command(command, inputs, out, launch=launch, progress=advance, watch=watch, quiet=quiet, **given)
    if (resumed := done[0].data.get("resumed")) is not None:
        again = ", ".join(f"{why} {count}" for why, count in resumed["again"].items())
        counts = f"{resumed['done']} done before, {sum(resumed['again'].values())} made again"
        tell(f"{counts}{f' ({again})' if again else ''}, {resumed['new']} new, {resumed['gone']} missing")
    return done


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("map", help=help_of("map", EXAMPLES))(map_)
