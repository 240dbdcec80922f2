"""`crosswind blame`: Experiment of kind program -> what each cause of its disturbance costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crosswind.cli.answer import show
from crosswind.cli.blame_answers import UNSETTLED, answer_of, answer_of_command, code_of, cost_of
from crosswind.cli.console import number_of, tell
from crosswind.cli.given import refuse_others
from crosswind.cli.inputs import refuse_missing
from crosswind.cli.interruption import tells_what_is_kept
from crosswind.cli.outputs import Force, file_of, writable, written
from crosswind.cli.settings import Settings, settings_of
from crosswind.cli.verbs import help_of
from crosswind.documents import Arguments
from crosswind.inject import DEFAULT_LIMIT_S
from crosswind.terminal.progress import progress_bar, progress_lines

INTERRUPTED = 130
MANY_RUNS = 200
"""Runs above which their number is said before they begin."""
COMMAND = "With a command"

EXAMPLES = """
The program is run again with each cause removed, with each alone, with every combination of them (more than 6 causes:
with those of an order that is drawn for each seed), and with all causes aligned over the ranks. What causes do together
is shared out by Shapley's value: the shares sum to the whole cost. A command (after --) runs for real under a
disturbance.toml: with all causes, with none, without each, in blocks of random order.

With --iterations, times are means of a run's iterations: what starts the program, and its warm-up, do not count.

Of recorded ranks (traces of PyTorch's profiler or NCCL's Inspector, lines of JSON, step times, a GOAL schedule) it says
which rank is slow, what that costs, and which ranks only wait for it. Exit code 0: no rank stands out; 4: one does; 3:
that cannot be said, with the reason.

Of a program or a command: exit code 0: the cost is distinguishable from 0, or below 1 %; 3: not settled, or a rank of
the disturbance or of --ranks was not found; 1: the command failed; 130: interrupted.

Examples:

    crosswind blame examples/barriers_under_daemons.toml

    crosswind blame experiment.toml --seeds 10 --out blame.json --resume

    crosswind blame experiment.toml --set workload.ranks=1024 --json

    crosswind blame noise.toml --blocks 10 -- ./app

    crosswind blame noise.toml --iterations 're:step took (?P<ms>[0-9.]+) ms' -- mpirun -n 4 ./app

    crosswind blame traces/rank-*.json.gz

    crosswind blame app.trace -o blame.json --perfetto timeline.json
"""


def blame(
    experiment: Annotated[
        Path,
        typer.Argument(
            help="An experiment.toml of kind program; before a command a disturbance.toml; or traces of ranks.",
            metavar="FILE",
        ),
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(help="A program and its arguments, after --; or more traces.", metavar="-- COMMAND"),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Seeds. Each makes every run once.", min=1)] = 5,
    settings: Settings = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="blame.json, written as runs come in; for `crosswind report`.")
    ] = None,
    perfetto: Annotated[
        Path | None, typer.Option(help="Write what each rank did when, as JSON for ui.perfetto.dev (traces only).")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Keep the runs that are already in --out.")] = False,
    workers: Annotated[int | None, typer.Option(help="Runs at a time. [default: one per CPU]", min=1)] = None,
    blocks: Annotated[
        int, typer.Option(help="Runs without each cause, with all, and with none.", min=2, rich_help_panel=COMMAND)
    ] = 5,
    cause: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Cause to remove in turn. Repeat for more. [default: the first 8]",
            rich_help_panel=COMMAND,
        ),
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option(help="Ranks of the command. [default: as many as are found]", min=1, rich_help_panel=COMMAND),
    ] = None,
    pin: Annotated[
        bool,
        typer.Option("--pin", help="Bind rank r to the r-th CPU that may be used.", rich_help_panel=COMMAND),
    ] = False,
    iterations: Annotated[
        str | None,
        typer.Option(
            help="Iteration times of a run: a file it makes (s, one a line), or re:PATTERN of its output.",
            metavar="FILE|re:PATTERN",
            rich_help_panel=COMMAND,
        ),
    ] = None,
    limit_s: Annotated[
        float,
        typer.Option("--limit-s", help="Time limit of a run, s.", min=0.001, rich_help_panel=COMMAND),
    ] = DEFAULT_LIMIT_S,
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Say which cause of a disturbance costs how much."""
    refuse_missing(experiment)
    from crosswind.files.recorded import is_recorded

    if is_recorded(experiment):
        from crosswind.cli.blame_recorded import blame_of_traces

        refuse_others("traces", ("out", "perfetto", "force", "json"))
        raise typer.Exit(blame_of_traces([experiment, *map(Path, command or [])], out, perfetto, force, json))
    if command:
        refuse_others("a command", ("blocks", "cause", "ranks", "pin", "iterations", "limit_s", "out", "force", "json"))
        options = {"ranks": ranks, "pin": pin, "limit_s": limit_s, "iterations": iterations}
        raise typer.Exit(_of_command(experiment, command, blocks, cause, options, out, force, json))
    refuse_others("an experiment", ("seeds", "settings", "out", "resume", "workers", "force", "json"))
    from crosswind.blame import blame as find
    from crosswind.blame.variants import Variants
    from crosswind.experiment import Experiment

    described = Experiment.load(experiment).fixed(settings_of(settings or []))
    writable(out, "blame", inputs=[experiment, *described.files], force=force)
    runs = len(Variants(described, seeds))
    if runs > MANY_RUNS:
        kept = "" if out else "; -o FILE keeps them after ctrl-C"
        tell(f"{number_of(runs, 'run')} with {seeds} seeds{kept}")
    with tells_what_is_kept(file_of(out)), progress_bar() as advance:
        found = find(
            described, seeds=seeds, workers=workers, out=file_of(out), resume=resume, force=force, progress=advance
        )
    if out and not file_of(out):
        found.save(out)
    show(
        None if json else answer_of(found),
        warnings=found.warnings,
        wrote=written(out, number_of(len(found.runs), "run"), goes_on=resume),
        document=found.summary() if json else None,
    )
    raise typer.Exit(code_of(cost_of(found)))


def _of_command(
    disturbance: Path,
    command: list[str],
    blocks: int,
    causes: list[str] | None,
    options: Arguments,
    out: Path | None,
    force: bool,
    json: bool,
) -> int:
    """Blame causes for what they cost a real command, print it, and return the exit code."""
    from crosswind.blame.command import blame_command
    from crosswind.disturbance import Disturbance

    of = {"command": list(command), "disturbance": Disturbance.load(disturbance).name}
    writable(out, "command-blame", inputs=[disturbance], force=force, of=of)
    with progress_lines() as advance:
        found = blame_command(
            disturbance, command, blocks=blocks, causes=causes, **options, stdout_to_stderr=True, progress=advance
        )
    if out:
        found.save(out)
    show(
        None if json else answer_of_command(found),
        warnings=found.turns.warnings,
        wrote=written(out),
        document=found.to_dict() if json else None,
    )
    if found.turns.interrupted:
        return INTERRUPTED
    return UNSETTLED if found.turns.is_incomplete else code_of(found.cost)


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("blame", help=help_of("blame", EXAMPLES))(blame)
