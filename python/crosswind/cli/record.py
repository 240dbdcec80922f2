"""`crosswind record`: this machine -> Disturbance; with a command: a parallel program -> what its ranks did."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.console import number_of, tell
from crosswind.cli.measure_options import parse_cpus
from crosswind.cli.outputs import Force, writable, written
from crosswind.cli.verbs import help_of
from crosswind.documents import Arguments
from crosswind.errors import CrosswindError, DescriptionError
from crosswind.files.atomic import is_standard_output
from crosswind.files.intervals import table_beside
from crosswind.statistics.digits import plain
from crosswind.terminal.progress import progress_bar, progress_lines

if TYPE_CHECKING:
    from crosswind.documents.noise import NoiseCause, NoiseOfCpu, NoisePart, NoiseSummary
    from crosswind.recorder.summary import Summary

UNTRUSTED = 3
INTERRUPTED = 130
USUAL_ROWS = 8
MOST_CPUS = 2
"""CPUs that the table has a column for; of more it shows the worst."""
NAMED = 3
"""Processes that kept ranks from running, each with a line."""

How = Literal["auto", "trace", "loop", "none"]

GROUPS = {
    "Without a command": ("seconds", "cpus", "threshold_us", "name", "rows"),
    "With a command": ("mpicc",),
}

EXAMPLES = """
Without a command, a loop on each CPU looks at the clock. As root, the kernel's trace tells what had the CPU meanwhile:
interrupts, softirqs, threads by name, with process, control group and container. "quota": a quota of CPU time was used
up. "lost events": the kernel could not keep the events of that time. "unknown" is not known to the kernel: the
hypervisor, or the hardware. Without the trace, the causes are only three: a quota, another thread, and anything else.

With a command, its MPI ranks are recorded: each MPI call, CPU time and steps. As root, the kernel's trace adds when a
rank could run and did not, and which process had its processor. The recorder is built once by the mpicc of the
program's MPI and kept in ~/.cache/crosswind/mpi. Programs without MPI mark their steps: crosswind.record_step().

Nothing on the machine is changed but a trace of its own, which is removed at the end, by a watchdog process if this
program is killed.

Examples:

    crosswind record --seconds 60 -o noise.toml

    crosswind record --seconds 10 --cpus 1 --how loop --json

    crosswind record -o app.trace -- mpirun -n 4 ./app

Exit codes: 0 done, 1 it or the command failed, 2 bad input, 3 done but something was lost, 130 interrupted (and kept so
far).
"""


def record(
    command: Annotated[
        list[str] | None,
        typer.Argument(help="A parallel program to record, after --; without: the machine.", metavar="-- COMMAND"),
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="Seconds to record. [default: 60]", min=0.001)] = None,
    cpus: Annotated[str | None, typer.Option(help="CPUs, such as 0,2-5. [default: all permitted]")] = None,
    how: Annotated[
        How, typer.Option(help="How causes are found. loop: only without a command. none: only with one.")
    ] = "auto",
    threshold_us: Annotated[
        float | None,
        typer.Option("--threshold-us", help="Shortest gap that is kept, us. [default: 1]", min=0.001),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the recording.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Output file. [default: noise.toml, with a command app.trace]")
    ] = None,
    rows: Annotated[int | None, typer.Option(help="Causes in the printed table, at most. [default: 8]", min=1)] = None,
    mpicc: Annotated[
        str | None, typer.Option(help="Compiler command of the program's MPI. [default: mpicc beside the launcher]")
    ] = None,
    force: Force = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document; what a command prints goes to stderr.")
    ] = False,
) -> None:
    """Record this machine's own noise, or a parallel program."""
    of_machine = {"--seconds": seconds, "--cpus": cpus, "--threshold-us": threshold_us, "--name": name, "--rows": rows}
    if command:
        _refuse([option for option, value in of_machine.items() if value is not None], "with", "leave it out")
        if how == "loop":
            raise DescriptionError("--how is loop; with a command it must be auto, trace or none", "argument")
        raise typer.Exit(_record_program(command, out or Path("app.trace"), how, mpicc, force=force, json=json))
    _refuse(["--mpicc"] if mpicc is not None else [], "without", "end the line with -- and the command")
    if how == "none":
        raise DescriptionError("--how is none; without a command it must be auto, trace or loop", "argument")
    chosen = parse_cpus(cpus, "--cpus")
    raise typer.Exit(
        _record_noise(
            out or Path("noise.toml"),
            {"seconds": seconds or 60.0, "cpus": chosen, "how": how, "threshold_us": threshold_us or 1.0, "name": name},
            rows or USUAL_ROWS,
            force=force,
            json=json,
        )
    )


def _refuse(options: list[str], when: str, hint: str) -> None:
    if options:
        raise DescriptionError(f"{options[0]} is for recording {when}out a command", "argument", hint)


def _record_noise(out: Path, settings: Arguments, rows: int, *, force: bool, json: bool) -> int:
    """Record the machine and print what was found; return the exit code."""
    from crosswind.noise import record as perform
    from crosswind.noise import usual_name

    writable(out, "recording", force=force, of={"name": settings["name"] or usual_name()})
    whole_file = is_standard_output(out)
    if not whole_file:
        writable(table_beside(out), "intervals", force=force)
    with progress_bar() as advance:
        noise = perform(**settings, progress=advance)
    noise.save(out)
    counted = f"{number_of(noise.summary['total']['intervals'], 'interval')} in {noise.summary['length_s']:.4g} s"
    show(
        None if json else answer_of(noise.summary, rows, noise.processes),
        warnings=noise.warnings,
        wrote=[*written(out, counted), *(written(table_beside(out)) if not whole_file else [])],
        document=noise.to_dict() if json else None,
    )
    if noise.summary["interrupted"]:
        return INTERRUPTED
    lost = {warning["code"] for warning in noise.warnings} & {"events-lost", "recording-full"}
    return UNTRUSTED if lost else 0


def _record_program(
    command: list[str], out: Path, how: Literal["auto", "trace", "none"], mpicc: str | None, *, force: bool, json: bool
) -> int:
    """Record a program and say what is in the file; return the exit code."""
    from crosswind.recorder.program import KIND, record_program

    writable(out, KIND, force=force)
    to_stderr = json or is_standard_output(out)
    options: Arguments = {"how": how, "mpicc": mpicc, "force": force, "stdout_to_stderr": to_stderr}
    with progress_lines() as advance:  # a bar would share its line with what the command prints
        recorded = record_program(command, out, **options, notify=tell, progress=advance)
    summary = recorded.summary
    size = f"{summary['bytes'] / 1e6:.3g} MB" if summary["bytes"] else ""
    counted = [f"{summary['records']} records", *([size] if size else [])]
    # The command's own output is on standard output, and stays alone there.
    tell_answer(summary)
    show(
        None,
        warnings=recorded.warnings,
        wrote=[one for file in summary["files"] for one in written(Path(file), *counted)],
        document=recorded.to_dict() if json else None,
    )
    if summary["interrupted"]:
        return INTERRUPTED
    if summary["exit_status"] != 0:
        status = summary["exit_status"]
        ended = f"ended with status {status}" if status is not None else f"was ended by signal {summary['exit_signal']}"
        raise CrosswindError(f"the command {ended}", "command-failed", "the file has the recording until then")
    return 0 if summary["complete"] and not summary["kernel_trace"]["lost_events"] else UNTRUSTED


def tell_answer(summary: Summary) -> None:
    """Say on standard error what was recorded of a program, and what kept its ranks from running."""
    tell(f"Recorded {number_of(summary['ranks'], 'rank')}. Which one is slow: crosswind blame {summary['files'][0]}")
    for cause in summary["causes"][:NAMED]:
        group = cause.get("container") or cause["cgroup"] or "control group not known"
        process = f" ({cause['pid']}, {group})" if cause["pid"] is not None else ""
        tell(f"kept ranks from running for {cause['seconds']:.4g} s: {cause['name']}{process}")


def answer_of(summary: NoiseSummary, rows: int, processes: Sequence[str] = ()) -> Answer:
    """Return how much of the CPUs' time programs lose here, and what takes it, with the processes that take most."""
    total, cpus = summary["total"], summary["cpus"]
    causes = total["causes"]
    shown = [_row(one, cpus) for one in causes[:rows]]
    each = [(f"CPU {cpu['cpu']}", "right") for cpu in cpus] if len(cpus) <= MOST_CPUS else [("worst CPU", "right")]
    columns = [("lost to", "left"), *([("all CPUs", "right")] if len(cpus) > 1 else []), *each, ("longest", "right")]
    first = ("lost to", "all CPUs", each[0][0], "longest")
    more = f"{len(causes) - rows} more causes: --rows {len(causes)}"
    lost = "Incomplete: not all of it could be kept. Take the shares as estimates."
    return Answer(
        [_sentence(summary), *([lost] if summary["lost_events"] or summary["full"] else [])],
        [Section(columns, shown, first=first)] if shown else [],
        [*processes, *([more] if len(causes) > rows else [])],
        wide=[_whole(summary, rows)],
        rest="Every CPU, and how often",
    )


def _sentence(summary: NoiseSummary) -> str:
    total = summary["total"]
    by = f"{summary['name']}, {summary['length_s']:.4g} s, by {summary['how']}"
    if not total["causes"]:
        return f"Nothing kept a program from running ({by})."
    most = total["causes"][0]
    largest = f", most to {most['cause']} ({_percent(most['share'])})" if len(total["causes"]) > 1 else ""
    only = f" to {most['cause']}" if len(total["causes"]) == 1 else ""
    return f"Programs here lose {_percent(total['share'])} of the CPUs' time{only}{largest} ({by})."


def _row(cause: NoiseCause, cpus: list[NoiseOfCpu]) -> list[str]:
    parts = [_part_of(cause, cpu) for cpu in cpus]
    if len(cpus) <= MOST_CPUS:
        each = [_percent(part["share"]) if part else "" for part in parts]
    else:
        share, number = max((part["share"] if part else 0.0, cpu["cpu"]) for part, cpu in zip(parts, cpus, strict=True))
        each = [f"{_percent(share)} (CPU {number})"]
    whole = [_percent(cause["share"])] if len(cpus) > 1 else []
    return [cause["cause"], *whole, *each, f"{plain(1e3 * cause['longest_s'], 2)} ms"]


def _part_of(cause: NoiseCause, cpu: NoiseOfCpu) -> NoiseCause | None:
    return next((one for one in cpu["causes"] if one["cause"] == cause["cause"]), None)


def _whole(summary: NoiseSummary, rows: int) -> Section:
    total, cpus = summary["total"], summary["cpus"]
    columns = [("cause", "left"), ("all", "right"), *((f"CPU {cpu['cpu']}", "right") for cpu in cpus)]
    columns += [("intervals", "right"), ("longest us", "right")]

    def cells(name: str, found: NoisePart, parts: Sequence[NoisePart | None]) -> list[str]:
        shares = [f"{100 * part['share']:.3f} %" if part else "" for part in parts]
        counts = [str(found["intervals"]), f"{1e6 * found['longest_s']:.1f}"]
        return [name, f"{100 * found['share']:.3f} %", *shares, *counts]

    table = [cells("all", total, cpus)]
    table += [cells(one["cause"], one, [_part_of(one, cpu) for cpu in cpus]) for one in total["causes"][:rows]]
    return Section(columns, table, f"{summary['name']}: share of the time in which a CPU was away")


def _percent(share: float) -> str:
    return f"{plain(100 * share, 2)} %"


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("record", help=help_of("record", EXAMPLES))(record)
