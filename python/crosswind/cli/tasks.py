"""`crosswind tasks`: workloads in the Standard Workload Format or Batsim's JSON -> tasks.csv."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.console import number_of
from crosswind.cli.outputs import Force, Json, writable, written
from crosswind.cli.verbs import help_of
from crosswind.statistics.digits import plain

if TYPE_CHECKING:
    from crosswind.exchange.workloads import ImportedTasks

EXAMPLES = """
Examples:

    crosswind tasks KTH-SP2-1996-2.1-cln.swf.gz -o tasks.csv

    crosswind tasks workload.json --size-mb 10 --parallel split -o tasks.csv

An experiment reads the file as `workload.tasks_file`. Its tasks arrive when the jobs were submitted, the first at 0 s.
"""


Parallel = Literal["leave-out", "split"]


def tasks(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A workload, .swf or Batsim's JSON; gzip is unpacked.")],
    size_mb: Annotated[float, typer.Option(metavar="MB", help="Input of each task; neither format has sizes.")] = 0.001,
    work_per_s: Annotated[
        float, typer.Option(metavar="RATE", help="Work units of a second of a job's run time.")
    ] = 1.0,
    parallel: Annotated[
        Parallel, typer.Option(help="Jobs of several processors: no tasks, or one task for each processor.")
    ] = "leave-out",
    jobs: Annotated[int | None, typer.Option(metavar="N", help="Read the first N jobs only.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the tasks.csv there.")] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Turn a workload into a tasks.csv."""
    from crosswind.exchange.workloads import import_tasks

    writable(out, "tasks", inputs=[file], force=force)
    read = import_tasks(file, size_mb=size_mb, work_per_s=work_per_s, parallel=parallel, jobs=jobs)
    if out:
        read.save(out)
    document = {"tasks": len(read.tasks), "jobs": read.jobs, "left_out": read.left_out}
    show(None if json else _answer(read), wrote=written(out), document=document if json else None)


def _answer(read: ImportedTasks) -> Answer:
    left_out = sum(read.left_out.values())
    total = sum(task.work for task in read.tasks)
    lines = [
        f"{number_of(len(read.tasks), 'task')} of {number_of(read.jobs - left_out, 'job')}: {plain(total)} work units, "
        f"released over {plain(read.tasks[-1].release_s)} s. Each has an input of {plain(read.size_mb)} MB."
    ]
    tables = []
    if left_out:
        lines.append(f"{number_of(left_out, 'job')} left out.")
        rows = [[reason, f"{jobs:,}"] for reason, jobs in read.left_out.items()]
        tables.append(Section([("left out", "left"), ("jobs", "right")], rows))
    return Answer(lines, tables)


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("tasks", help=help_of("tasks", EXAMPLES))(tasks)
