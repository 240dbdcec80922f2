"""`crosswind lpt`: jobs on identical machines, longest first, beside the optimum and Graham's bound."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.outputs import Force, Json, writable, written
from crosswind.cli.verbs import help_of
from crosswind.errors import DescriptionError

if TYPE_CHECKING:
    from crosswind.lab.lpt import LongestFirst

EXAMPLES = """
Examples:

    crosswind lpt 7 6 5 5 4 3 --machines 2

    crosswind lpt --tight --machines 3 -o lpt.svg

The jobs may have any unit of time. The optimum of up to 40 jobs is searched for, which is quick up to about 25. If it
is not proven, the ratio is to a lower bound. `--tight` takes the jobs on which longest first reaches Graham's bound.
"""
_SHOWN = 8  # jobs of a machine in the table; more are counted


def lpt(
    times: Annotated[list[float] | None, typer.Argument(metavar="TIME...", help="Lengths of the jobs.")] = None,
    machines: Annotated[int, typer.Option("--machines", "-m", metavar="M", help="Identical machines, 1 to 100.")] = 2,
    tight: Annotated[bool, typer.Option("--tight", help="Jobs that reach the bound: 2M + 1 of them.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Draw both schedules: .svg, .png or .pdf.")
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Schedule jobs longest first, and compare with the optimum.

    Raises
    ------
    DescriptionError
        When there are no jobs, or both jobs and `--tight`.
    """
    if bool(times) == tight:
        message = "lpt takes the lengths of the jobs, or --tight"
        raise DescriptionError(message, "argument", "crosswind lpt 7 6 5 5 4 3 --machines 2")
    from crosswind.lab import lpt as lab
    from crosswind.lab.drawing import refuse_suffix

    if out is not None:
        refuse_suffix(out)
        writable(out, "figure", force=force)
    found = lab.longest_first(lab.tight(machines) if tight else times or [], machines)
    if out is not None:
        lab.write_figure(found, out)
    document = {**asdict(found), "ratio": found.ratio}
    show(_answer(found), wrote=written(out), document=document if json else None)


def _answer(found: LongestFirst) -> Answer:
    machines = len(found.longest_first)
    bound = f"Never more than {found.guarantee:.3f} on {machines} machine{'s' if machines > 1 else ''}: 4/3 - 1/(3m)."
    if found.optimum is None:
        jobs = sum(map(len, found.longest_first))
        lines = [
            f"Longest first ends at {found.makespan:.10g}, at most {found.ratio:.3f} times the optimum.",
            f"No schedule ends before {found.least:.10g}. The search did not prove the optimum of these {jobs} jobs.",
            bound,
        ]
    elif found.makespan == found.least:
        lines = [f"Longest first ends at {found.makespan:.10g}. That is the optimum.", bound]
    else:
        reached = " These jobs reach it." if found.ratio >= found.guarantee * (1 - 1e-12) else ""
        lines = [
            f"Longest first ends at {found.makespan:.10g}, {found.ratio:.3f} times the optimum, {found.least:.10g}.",
            bound + reached,
        ]
    columns = [("machine", "right"), ("longest first", "left"), ("ends", "right")]
    rows = [[str(at + 1), _jobs(part), f"{sum(part):.10g}"] for at, part in enumerate(found.longest_first)]
    if found.optimum is not None:
        columns += [("optimum", "left"), ("ends", "right")]
        rows = [[*row, _jobs(part), f"{sum(part):.10g}"] for row, part in zip(rows, found.optimum, strict=True)]
    return Answer(lines, [Section(columns, rows)])


def _jobs(part: list[float]) -> str:
    return " ".join(f"{job:.10g}" for job in part) if len(part) <= _SHOWN else f"{len(part)} jobs"


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("lpt", help=help_of("lpt", EXAMPLES))(lpt)
