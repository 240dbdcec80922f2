"""`crosswind record`: this machine -> Disturbance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from crosswind.cli.console import print_json, print_table, print_text, tell, tell_warnings
from crosswind.cli.measure_options import parse_cpus
from crosswind.cli.outputs import Force, writable
from crosswind.cli.verbs import help_of
from crosswind.files.atomic import is_standard_output
from crosswind.files.intervals import table_beside
from crosswind.noise import RecordHow
from crosswind.terminal.progress import progress_bar

UNTRUSTED = 3
INTERRUPTED = 130

EXAMPLES = """
A loop on each CPU looks at the clock. As root, the kernel's trace tells what had the CPU meanwhile: interrupts,
softirqs, threads by name. "quota": a quota of CPU time was used up. "lost events": the kernel could not keep the
events of that time. "unknown" is not known to the kernel: the hypervisor, or the hardware. Without the trace, only a
quota, another thread and anything else are told apart. Nothing is changed but a trace of its own, which is removed
at the end, by a watchdog process if this program is killed.

Examples:

    crosswind record --seconds 60 -o noise.toml

    crosswind record --seconds 10 --cpus 1 --how loop --json

Exit codes: 0 done, 1 it failed, 2 bad input, 3 done but something was lost, 130 interrupted (and kept so far).
"""


def record(
    seconds: Annotated[float, typer.Option(help="For how long.", min=0.001)] = 60.0,
    cpus: Annotated[str | None, typer.Option(help="CPUs, such as 0,2-5; else all that may be used.")] = None,
    how: Annotated[RecordHow, typer.Option(help="How causes become known.")] = "auto",
    threshold_us: Annotated[
        float, typer.Option("--threshold-us", help="Shorter gaps are not kept, us.", min=0.001)
    ] = 1.0,
    name: Annotated[str | None, typer.Option(help="What to call it.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file.")] = Path("noise.toml"),
    rows: Annotated[int, typer.Option(help="Most causes in the printed table.", min=1)] = 20,
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Record this machine's own noise."""
    from crosswind.noise import record as perform
    from crosswind.noise import usual_name

    writable(out, "recording", force=force, of={"name": name or usual_name()})
    whole_file = is_standard_output(out)
    if not whole_file:
        writable(table_beside(out), "intervals", force=force)
    chosen = parse_cpus(cpus, "--cpus")
    with progress_bar() as advance:
        noise = perform(seconds, cpus=chosen, how=how, threshold_us=threshold_us, name=name, progress=advance)
    noise.save(out)
    files = str(out) if whole_file else f"{out} and {table_beside(out)}"
    tell(f"wrote {files} ({noise.summary['total']['intervals']} intervals in {noise.summary['length_s']:.4g} s)")
    tell_warnings(noise.warnings)
    if json:
        print_json(noise.to_dict())
    else:
        _print(noise.summary, rows)
    if noise.summary["interrupted"]:
        raise typer.Exit(INTERRUPTED)
    if {warning["code"] for warning in noise.warnings} & {"events-lost", "recording-full"}:
        raise typer.Exit(UNTRUSTED)


def _print(summary: dict[str, Any], rows: int) -> None:
    total, cpus = summary["total"], summary["cpus"]
    columns = [("cause", "left"), ("all", "right"), *((f"CPU {cpu['cpu']}", "right") for cpu in cpus)]
    columns += [("intervals", "right"), ("longest us", "right")]

    def cells(name: str, found: dict[str, Any], parts: list[dict[str, Any] | None]) -> list[str]:
        shares = [_percent(part["share"]) if part else "" for part in parts]
        return [name, _percent(found["share"]), *shares, str(found["intervals"]), f"{1e6 * found['longest_s']:.1f}"]

    table = [cells("all", total, cpus)]
    for cause in total["causes"][:rows]:
        parts = [next((one for one in cpu["causes"] if one["cause"] == cause["cause"]), None) for cpu in cpus]
        table.append(cells(cause["cause"], cause, parts))
    print_table(
        columns, table, title=f"{summary['name']}: part of the time in which a CPU was away, by {summary['how']}"
    )
    if len(total["causes"]) > rows:
        print_text(f"and {len(total['causes']) - rows} causes more (--rows, --json)")


def _percent(share: float) -> str:
    return f"{100 * share:.3f} %"


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("record", help=help_of("record", EXAMPLES))(record)
