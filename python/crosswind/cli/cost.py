"""`crosswind cost`: background processes -> what they cost a job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosswind.cli.answer import Answer, Section, section, show
from crosswind.cli.console import tell_warnings
from crosswind.cli.outputs import Force, file_of, writable, written
from crosswind.cli.verbs import help_of
from crosswind.cost.kernel import Kernel
from crosswind.cost.shares import parsed_share
from crosswind.errors import Notice
from crosswind.terminal.progress import progress_bar, progress_lines

if TYPE_CHECKING:
    from crosswind.cost.result import Cost
    from crosswind.cost.scale import AtScale

CODES = {"below": 0, "above": 4, "unknown": 3}
INTERRUPTED = 130

GROUPS = {
    "Blocks": ("block_ms", "to_the_end", "seed", "kernel"),
    "At scale": ("ranks", "program"),
    "Output": ("resume",),
}

EXAMPLES = """
It is stopped and continued in randomised quads of blocks of 20 ms, and the job's progress is compared. Nothing is
restarted. It is traced, as by a debugger, or its control group is frozen, and it runs again however this ends,
`kill -9` included. Where neither is permitted, signals stop it, and a warning comes first.

Four estimators: wall (work per wall time), own (per CPU time of the job: caches, switches), available (per CPU time of
both), exchange (the same, for the duty that the process has when nothing stops it). The headline is the one that holds
here. Intervals are 95 % and hold at all looks together.

"Less than the margin" is said after 74 s of watching, in which bursts each 20 s would be seen; after 37 s of a process
that has lived for long and used less than that since its start.

Examples:

    crosswind cost --of pid:1234 --seconds 90 -- ./my-job args

    crosswind cost --of unit:exporter --job pid:5678 --progress file:/var/log/step.log

    crosswind cost --of name:'loader*' --job pid:5678 --progress count:/dev/shm/steps

    crosswind cost --of 'command:./exporter --interval 1' --margin 0.5% --seconds 120 -o cost.json

    crosswind cost --of pid:1234 --of pid:1240 --progress stdin-position -- sha256sum < data

    crosswind cost --of pid:1234 --ranks 10000 --program bsp:work_s=0.0071

Exit codes: 0 it costs less than the margin, 4 it costs more, 3 not settled, or the job waits for it, 1 it failed, 2 bad
input, 130 interrupted (what was measured is printed and kept).
"""


def cost(
    command: Annotated[
        list[str] | None,
        typer.Argument(help="The job and its arguments, after --; ended when it is known.", metavar="-- JOB"),
    ] = None,
    of: Annotated[
        list[str] | None,
        typer.Option(
            "--of",
            help="pid:N, name:PATTERN, unit:NAME, slurm:JOB, cgroup:PATH or command:COMMAND. Repeat for more.",
            metavar="TARGET",
        ),
    ] = None,
    job: Annotated[str | None, typer.Option(help="A job that is already running: pid:N.")] = None,
    progress: Annotated[
        str | None,
        typer.Option(help="How far the job is: file:PATH (size), count:PATH, u64:PATH, stdin-position, io or cpu."),
    ] = None,
    kernel: Annotated[Kernel, typer.Option(help="Without a job: arithmetic, or memory.")] = "burn",
    seconds: Annotated[float, typer.Option(help="Time limit, s.", min=5.0)] = 60.0,
    margin: Annotated[str, typer.Option(help="Cost that is still tolerated, such as 1% or 0.01.")] = "1%",
    block_ms: Annotated[
        float | None, typer.Option(help="Length of a block, ms. [default: 20, or more where progress is coarse]")
    ] = None,
    to_the_end: Annotated[
        bool, typer.Option("--to-the-end", help="Use all the time, instead of ending as soon as the answer is known.")
    ] = False,
    ranks: Annotated[
        int | None, typer.Option(help="Also simulate a parallel program of this many ranks, one per such host.", min=2)
    ] = None,
    program: Annotated[
        str, typer.Option(help="Kind and parameters of the program of --ranks.", metavar="KIND:NAME=VALUE,...")
    ] = "bsp:work_s=0.01,iterations=500",
    seed: Annotated[int, typer.Option(help="Seed of the order of blocks.", min=0)] = 1,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="cost.json, written at every look; for `crosswind report`.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the session in --out.")] = False,
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Say what a background process costs a job."""
    from crosswind.cost import asked_for
    from crosswind.cost import cost as measure
    from crosswind.cost.targets import refuse_absent

    share = parsed_share(margin, "--margin")
    for target in of or []:
        refuse_absent(target)
    described = None
    if ranks:
        from crosswind.cost.scale import at_scale, parsed_program

        described = parsed_program(program)
    first: list[Notice] = []

    def notify(told: Notice) -> None:
        first.append(told)
        tell_warnings([told])

    asked_of = asked_for(of or [], command or None, job, progress, kernel, share)
    writable(out, "cost", force=force or resume, of={"asked": asked_of})
    # A job that is started here writes to the same terminal: a bar would share its lines.
    with progress_lines() if command else progress_bar() as advance:
        found = measure(
            of or [],
            command=command or None,
            job=job,
            progress_of=progress,
            kernel=kernel,
            seconds=seconds,
            margin=share,
            block_ms=block_ms,
            to_the_end=to_the_end,
            intervals=ranks is not None,
            seed=seed,
            out=file_of(out),
            resume=resume,
            progress=advance,
            notify=notify,
        )
    unusable = found.interrupted or any(one.waits or one.is_beyond for one in found.costs)
    scaled = at_scale(found, ranks, described) if ranks and described is not None and not unusable else None
    if out and not file_of(out):
        found.save(out)
    show(
        None if json else _answer(found, scaled),
        warnings=[told for told in found.warnings if told not in first],
        shown=len(first),
        wrote=written(out, f"{found.measured_s:.1f} s of blocks", goes_on=resume),
        document=found.to_dict() | ({"at_scale": scaled.to_dict()} if scaled else {}) if json else None,
    )
    raise typer.Exit(INTERRUPTED if found.interrupted else CODES[found.verdict.outcome])


def _answer(found: Cost, scaled: AtScale | None) -> Answer:
    [costs] = found.tables()
    job = found.job
    blocks = f"{found.measured_s:.1f} s in blocks of {1e3 * job['block_s']:.0f} ms"
    title = f"beside {job['name']}, by {job['progress']}: {blocks}"
    narrow = section(costs.part((0, 2, 3, 4)))
    more = []
    if found.shares:
        shares = [[name, f"{100 * share:.2f}"] for name, share in found.shares.items()]
        more.append(Section([("share of what they cost together", "left"), ("%", "right")], shares))
    if scaled:
        more.append(Section([("at scale", "left"), ("", "right")], scaled.rows, title=scaled.title))
    sentence = (
        found.sentence[:1].upper() + found.sentence[1:] if found.sentence.startswith("the job") else found.sentence
    )
    whole = [section(costs, title), *more]
    return Answer([f"{sentence}."], [narrow, *more], wide=whole, rest="Four estimators")


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("cost", help=help_of("cost", EXAMPLES))(cost)
