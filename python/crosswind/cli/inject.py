"""`crosswind inject`: Disturbance -> a command, disturbed."""

from __future__ import annotations

import shlex
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.blame_answers import code_of, slowed
from crosswind.cli.console import number_of, print_json, print_table, tell, tell_warnings
from crosswind.cli.given import refuse_others
from crosswind.cli.outputs import Force, writable, written
from crosswind.cli.verbs import help_of
from crosswind.documents import Arguments
from crosswind.errors import CrosswindError, Notice
from crosswind.files.atomic import is_standard_output
from crosswind.inject import DEFAULT_LIMIT_S, How
from crosswind.statistics.digits import half_of, with_half
from crosswind.terminal.progress import progress_lines

if TYPE_CHECKING:
    from crosswind.documents.blame import InjectionDocument
    from crosswind.documents.noise import InjectionPreview
    from crosswind.inject import Injected

UNTRUSTED = 3
INTERRUPTED = 130
MOST_CAUSES = 5
MOST_RANKS = 4
"""Ranks with a line of their own, those that lost most; `--json` has all."""

GROUPS = {
    "How it is injected": ("how", "busy", "seed", "start_file", "keep_running"),
    "With --dry-run": ("horizon_s",),
}

EXAMPLES = """
Slices of time stop a rank's processes; daemons and recorded noise compute on the rank's CPU at real-time or high
priority, where the rank is bound to one CPU (MPI does that, or --pin), and stop it elsewhere. While a rank is stopped,
its processor stays busy, as under another job (--idle: it sleeps). The rank of a process stands in its environment:
OMPI_COMM_WORLD_RANK, MV2_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK, PALS_RANKID, RANK (torchrun), FLUX_TASK_RANK or
SLURM_PROCID; a command without any of these is rank 0. When this program is killed, the kernel or a watchdog process
continues what is stopped and removes control groups.

Examples:

    crosswind inject disturbance.toml -- ./app --its-own options

    crosswind inject disturbance.toml --dry-run -- ./app

    crosswind inject disturbance.toml --compare 10 -- ./app

    crosswind inject daemons.toml --limit-s 600 -o injected.toml --json -- mpirun -n 4 ./app

    crosswind inject noise.toml --pin -- ./app

Exit codes: 0 done, 1 the command failed, or the limit was reached, 2 bad input, 3 done but not as it should be (late,
not all injected, fewer ranks found than --ranks, a rank that the disturbance names not found), or with --compare not
settled: the slowdown is neither distinguishable from 0 nor below 1 %; 130 interrupted.
"""


def inject(
    disturbance: Annotated[Path, typer.Argument(help="The disturbance to inject.", metavar="DISTURBANCE.toml")],
    command: Annotated[
        list[str], typer.Argument(help="The program and its arguments, after --.", metavar="-- COMMAND")
    ],
    limit_s: Annotated[
        float, typer.Option("--limit-s", help="Time limit, s. The command is ended then.", min=0.001)
    ] = DEFAULT_LIMIT_S,
    keep_running: Annotated[
        bool, typer.Option("--keep-running", help="At the limit end only the disturbance, not the command.")
    ] = False,
    start_file: Annotated[
        Path | None,
        typer.Option("--start-file", help="Begin when the command creates this file. [default: at its start]"),
    ] = None,
    compare: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Run it N times with and N times without, in turn: how much slower is it?", min=2
        ),
    ] = None,
    ranks: Annotated[
        int | None, typer.Option(help="Ranks of the command. [default: as many as are found]", min=1)
    ] = None,
    how: Annotated[How, typer.Option(help="How processors are taken away.")] = "auto",
    pin: Annotated[bool, typer.Option("--pin", help="Bind rank r to the r-th CPU that may be used.")] = False,
    busy: Annotated[
        bool, typer.Option("--busy/--idle", help="Keep the processor of a stopped rank busy, or let it idle.")
    ] = True,
    seed: Annotated[int, typer.Option(help="Seed of what the disturbance draws, as in a simulation.", min=0)] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")] = False,
    horizon_s: Annotated[
        float, typer.Option("--horizon-s", help="With --dry-run: seconds of the disturbance to look at.", min=0.001)
    ] = 10.0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write the injected intervals, as a disturbance of kind recorded."),
    ] = None,
    force: Force = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document; what the command prints goes to stderr.")
    ] = False,
) -> None:
    """Disturb a command."""
    shared = ("ranks", "how", "pin", "busy", "seed", "limit_s", "start_file", "json")
    if dry_run:
        refuse_others("--dry-run", (*shared, "dry_run", "keep_running", "horizon_s"))
    elif compare is not None:
        refuse_others("--compare", (*shared, "compare"))
    else:
        refuse_others("a command that is run", (*shared, "keep_running", "out", "force"), "--dry-run takes it")
    from crosswind.disturbance import Disturbance
    from crosswind.inject import inject as perform
    from crosswind.inject import preview

    of = {"name": f"{Disturbance.load(disturbance).name}, as it was injected"}
    writable(out, "recording", inputs=[disturbance], force=force, of=of)
    options: Arguments = {
        "ranks": ranks,
        "limit_s": limit_s,
        "how": how,
        "pin": pin,
        "busy": busy,
        "keep_running": keep_running,
        "start_file": start_file,
        "seed": seed,
    }
    if dry_run:
        _print_preview(preview(disturbance, command, **options, horizon_s=horizon_s), json)
        return
    if compare is not None:
        raise typer.Exit(_compared(disturbance, command, compare, options, json))
    first: list[str] = []

    def notify(told: Notice) -> None:
        first.append(told["code"])
        tell_warnings([told])

    with progress_lines() as advance:
        injected = perform(
            disturbance,
            command,
            **options,
            stdout_to_stderr=json or is_standard_output(out),
            progress=advance,
            notify=notify,
        )
    if out:
        injected.save(out)
    if not json:
        _tell(injected)
    show(
        None,
        warnings=[told for told in injected.warnings if told["code"] not in first],
        shown=len(first),
        wrote=written(out),
        document=injected.to_dict() if json else None,
    )
    raise typer.Exit(_exit_code(injected))


def _compared(disturbance: Path, command: list[str], pairs: int, options: Arguments, json: bool) -> int:
    """Run the command with and without the disturbance in turn, print the difference, and return the exit code."""
    from crosswind.blame.interleaving import BARE, DISTURBED, compare_injected

    del options["keep_running"]
    with progress_lines() as advance:
        turns = compare_injected(disturbance, command, pairs=pairs, **options, stdout_to_stderr=True, progress=advance)
    longer = turns.longer(DISTURBED, BARE)
    ends = {"mean": longer.mean, "low": longer.low, "high": longer.high}
    lines = [slowed(longer, "the command", "the disturbance slows")]
    if not longer.is_settled and (needed := turns.needed("--compare")):
        lines.append(needed)
    times = {name: turns.mean_s(name) for name in (BARE, DISTURBED)}
    rows = [[name, with_half(one.mean, half_of(one.mean, (one.low, one.high)))] for name, one in times.items()]
    note = f"{number_of(len(turns.elapsed_s), 'pair')}. ±: 95 % confidence interval"
    answer = Answer(lines, [Section([("", "left"), ("s", "right")], rows)], [note])
    show(
        None if json else answer,
        warnings=turns.warnings,
        document={**turns.to_dict(), "slowdown": ends} if json else None,
    )
    if turns.interrupted:
        return INTERRUPTED
    return UNTRUSTED if turns.is_incomplete else code_of(longer)


def _exit_code(injected: Injected) -> int:
    summary = injected.summary
    if summary["ended"] == "asked":
        number = summary["asked_by_signal"] or signal.SIGINT
        return INTERRUPTED if number == signal.SIGINT else 128 + number
    if summary["ended"] == "limit" and not summary["keep_running"]:
        raise CrosswindError("the limit was reached", "limit", "--limit-s gives it longer")
    if summary["exit_status"] != 0:
        raise CrosswindError(f"the command {_end(summary)}", "command-failed")
    return 0 if injected.trustworthy else UNTRUSTED


def _end(summary: InjectionDocument) -> str:
    if summary["exit_signal"] is not None:
        number = summary["exit_signal"]
        names = {item.value: item.name for item in signal.Signals}
        return f"was ended by {names.get(number, f'signal {number}')}"
    return f"ended with status {summary['exit_status']}"


def _tell(injected: Injected) -> None:
    """Say on stderr what was injected: stdout is the command's."""
    summary = injected.summary
    used = summary["cpu_user_s"] + summary["cpu_system_s"]
    took = f"{summary['elapsed_s']:.4g} s, of which it computed {used:.4g} s"
    tell(f"{shlex.join(summary['command'])}: {took}; {_end(summary)}")
    for rank in sorted(summary["ranks"], key=lambda one: -one["away_s"])[:MOST_RANKS]:
        causes = sorted(rank["causes"], key=lambda cause: -cause["away_s"])
        ways = ", ".join(
            f"{cause['cause']} {cause['intervals']} times {cause['away_s']:.4g} s ({' and '.join(cause['how'])})"
            for cause in causes[:MOST_CAUSES]
        )
        ways += f", and {len(causes) - MOST_CAUSES} causes more (--json)" if len(causes) > MOST_CAUSES else ""
        late = f"late by {1e6 * rank['late_mean_s']:.0f} us on average, {1e6 * rank['late_max_s']:.0f} us at most"
        tell(f"rank {rank['rank']}: away {rank['away_s']:.4g} s ({rank['share']:.1%}), {late}: {ways or 'nothing'}")
    if len(summary["ranks"]) > MOST_RANKS:
        tell(f"{number_of(len(summary['ranks']) - MOST_RANKS, 'more rank')} lost less each: --json")


def _print_preview(found: InjectionPreview, json: bool) -> None:
    if json:
        print_json(found)
        return
    rows = [[cause["cause"], ", else ".join(cause["how"])] for cause in found["causes"]]
    print_table([("cause", "left"), ("how", "left")], rows, title=f"{found['name']}: nothing was done; this would be")
    for rank in found["ranks"]:
        seen = f"{rank['intervals']} intervals, {rank['away_s']:.4g} s ({rank['share']:.1%})"
        shown = [[f"{start:.6f}", f"{duration:.6f}", cause] for start, duration, cause in rank["first"]]
        title = f"rank {rank['rank']}, first {found['horizon_s']:g} s: {seen}; the first of them"
        print_table([("start s", "right"), ("duration s", "right"), ("cause", "left")], shown, title=title)
    print_table([("what would be changed", "left")], [[change] for change in found["changes"]])


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("inject", help=help_of("inject", EXAMPLES))(inject)
