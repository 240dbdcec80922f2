"""`crosswind blame`: Experiment of kind program -> what each cause of its disturbance costs."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosswind.cli.console import number_of, print_json, print_table, print_text, tell, tell_warnings
from crosswind.cli.interruption import tells_what_is_kept
from crosswind.cli.outputs import Force, file_of, writable
from crosswind.cli.settings import Settings, settings_of
from crosswind.cli.verbs import help_of
from crosswind.errors import DescriptionError
from crosswind.inject import DEFAULT_LIMIT_S
from crosswind.terminal.progress import progress_bar

if TYPE_CHECKING:
    from crosswind.blame.command import CommandBlame
    from crosswind.blame.result import Blame, CauseCost
    from crosswind.blame.shares import Estimate

INTERRUPTED = 130
COMMAND = "With a command"

EXAMPLES = """
The program is run again with each cause removed, with each alone, with every combination of them (more than 6 causes:
with those of an order that is drawn for each seed), and with all causes aligned over the ranks. What causes do together
is shared out by Shapley's value: the shares sum to the whole cost. A command (after --) runs for real under a
disturbance.toml: with all causes, with none, without each, in blocks of random order.

Of recorded ranks (traces of PyTorch's profiler, lines of JSON, liballprof's text, step times) it says which rank is
slow, what that costs, and which ranks only wait for it. Exit code 0: no rank stands out; 4: one does; 3: that cannot be
said, with the reason.

Examples:

    crosswind blame examples/barriers_under_daemons.toml

    crosswind blame experiment.toml --seeds 10 --out blame.json --resume

    crosswind blame experiment.toml --set workload.ranks=1024 --json

    crosswind blame noise.toml --blocks 10 -- ./app

    crosswind blame traces/rank-*.json.gz
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
    seeds: Annotated[int, typer.Option(help="Seeds, each for every run.", min=1)] = 5,
    settings: Settings = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="blame.json, written as runs come in; for `crosswind report`.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Keep the runs that stand in --out already.")] = False,
    workers: Annotated[int | None, typer.Option(help="Runs at a time; else one per CPU.", min=1)] = None,
    blocks: Annotated[
        int, typer.Option(help="Runs without each cause, with all, and with none.", min=2, rich_help_panel=COMMAND)
    ] = 5,
    cause: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Remove only this one in turn; again for more. [default: the first 8]",
            rich_help_panel=COMMAND,
        ),
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option(help="Ranks that it will have. [default: as many as are found]", min=1, rich_help_panel=COMMAND),
    ] = None,
    pin: Annotated[
        bool,
        typer.Option("--pin", help="Bind rank r to the r-th CPU that may be used.", rich_help_panel=COMMAND),
    ] = False,
    limit_s: Annotated[
        float,
        typer.Option("--limit-s", help="The most that a run may take, s.", min=0.001, rich_help_panel=COMMAND),
    ] = DEFAULT_LIMIT_S,
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Say which cause of a disturbance costs how much."""
    from crosswind.blame.recorded import is_recorded

    if is_recorded(experiment):
        from crosswind.cli.blame_recorded import blame_of_traces

        raise typer.Exit(blame_of_traces([experiment, *map(Path, command or [])], json))
    if command:
        if settings or resume or workers:
            option = "--set" if settings else "--resume" if resume else "--workers"
            raise DescriptionError(f"{option} belongs to an experiment", "argument", "a command runs for real, alone")
        options = {"ranks": ranks, "pin": pin, "limit_s": limit_s}
        raise typer.Exit(_of_command(experiment, command, blocks, cause, options, out, force, json))
    from crosswind.blame import blame as find
    from crosswind.experiment import Experiment

    described = Experiment.load(experiment).fixed(settings_of(settings or []))
    writable(out, "blame", inputs=[experiment, *described.files], force=force)
    with tells_what_is_kept(file_of(out)), progress_bar() as advance:
        found = find(
            described, seeds=seeds, workers=workers, out=file_of(out), resume=resume, force=force, progress=advance
        )
    if out:
        if not file_of(out):
            found.save(out)
        tell(f"wrote {out} ({number_of(len(found.runs), 'run')})")
    tell_warnings(found.warnings)
    if json:
        print_json(found.summary())
    else:
        _print(found)


def _of_command(
    disturbance: Path,
    command: list[str],
    blocks: int,
    causes: list[str] | None,
    options: dict[str, Any],
    out: Path | None,
    force: bool,
    json: bool,
) -> int:
    """Blame causes for what they cost a real command, print it, and return the exit code."""
    from crosswind.blame.command import blame_command
    from crosswind.disturbance import Disturbance

    of = {"command": list(command), "disturbance": Disturbance.load(disturbance).name}
    writable(out, "command-blame", inputs=[disturbance], force=force, of=of)
    with progress_bar() as advance:
        found = blame_command(
            disturbance, command, blocks=blocks, causes=causes, **options, stdout_to_stderr=True, progress=advance
        )
    if out:
        found.save(out)
        tell(f"wrote {out}")
    tell_warnings(found.turns.warnings)
    if json:
        print_json(found.to_dict())
    else:
        _print_command(found)
    return INTERRUPTED if found.turns.interrupted else 0


def _print_command(found: CommandBlame) -> None:
    bare = found.undisturbed
    rows = [
        ["disturbed", _seconds(found.makespan), ""],
        ["undisturbed", _seconds(bare), ""],
        ["all causes cost", _seconds(found.cost_s), _part(found.cost)],
    ]
    title = f"{shlex.join(found.turns.command)} under {found.disturbance}: {len(found.turns.elapsed_s)} blocks"
    print_table([("", "left"), ("s", "right"), ("of undisturbed", "right")], rows, title=title)
    saves = {cause: found.removed_saves_s(cause) for cause in found.causes}
    table = [
        [cause, _seconds(one), _of(one, bare), "" if one.is_told_from_zero else "not distinguishable from 0"]
        for cause, one in sorted(saves.items(), key=lambda item: -item[1].mean)
    ]
    columns = [("cause", "left"), ("removed saves s", "right"), ("of undisturbed", "right"), ("", "left")]
    print_table(columns, table)
    print_text("±: 95 % confidence interval over the blocks, each difference within its block")
    if found.kept:
        print_text(f"{len(found.kept)} more causes were there in every disturbed run: --cause NAME removes one")


def _part(found: Estimate) -> str:
    return f"{100 * found.mean:+.1f} % ± {50 * (found.high - found.low):.1f} %"


def _print(found: Blame) -> None:
    whole, bare = found.makespan, found.undisturbed
    rows = [
        ["makespan", _seconds(whole), ""],
        ["undisturbed", _seconds(bare), ""],
        ["all causes cost", _seconds(found.cost), _of(found.cost, bare)],
        ["beyond the sum of each alone", _seconds(found.together), _of(found.together, bare)],
        ["aligned over the ranks they would cost", _seconds(found.aligned_cost), _of(found.aligned_cost, bare)],
    ]
    programs = "; ".join(dict.fromkeys(f"{one.data['program']}, {one.data['ranks']:,} ranks" for one in found.runs))
    title = f"{found.experiment}: {programs}, {len(found.seeds)} seeds"
    print_table([("", "left"), ("s", "right"), ("of undisturbed", "right")], rows, title=title)
    below = found.below_the_noise
    rows = [
        [one.cause, f"{one.part:.1%}" if one.part is not None else "", *_costs(one.best, bare), *_asked(one)]
        for one in sorted(found.by_cause, key=lambda one: -one.best.mean)
        if one not in below
    ]
    if below:
        known = [one.part for one in below if one.part is not None]
        share = f"{sum(known):.1%}" if known else ""
        costs = _costs(found.below_together, bare)
        rows.append([f"{len(below)} causes below the noise, together", share, *costs, "", ""])
    columns = [("cause", "left"), ("share", "right"), ("costs s", "right"), ("of undisturbed", "right")]
    columns += [("removed saves s", "right"), ("alone costs s", "right")]
    if not found.is_shared_out:  # nothing to sum to 100 %
        shown = [0, 4, 3, 5]
        columns = [columns[k] for k in shown]
        rows = [[row[0], row[2], row[3], row[5]] for row in rows]
    first = ("cause", "share", "costs s", "removed saves s", "of undisturbed")
    print_table(columns, rows, first=[name for name in first if name in dict(columns)])
    if len(found.seeds) > 1:
        print_text("±: 95 % confidence interval over the seeds")


def _costs(found: Estimate, bare: Estimate) -> list[str]:
    return [_seconds(found), _of(found, bare)]


def _asked(one: CauseCost) -> list[str]:
    return [_seconds(one.removed), _seconds(one.alone)]


def _seconds(found: Estimate) -> str:
    if not math.isfinite(found.high):
        return f"{found.mean:.5g}"
    return f"{found.mean:.4g} ± {found.high - found.mean:.1g}"


def _of(found: Estimate, whole: Estimate) -> str:
    return f"{found.mean / whole.mean:+.2%}" if whole.mean else ""


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("blame", help=help_of("blame", EXAMPLES))(blame)
