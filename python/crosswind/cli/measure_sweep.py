"""`crosswind measure sweep`: one measurement for each value of a setting -> a directory."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from crosswind.cli.answer import Answer, Section, section, show
from crosswind.cli.console import number_of
from crosswind.cli.measure import USUAL_S
from crosswind.cli.measure_options import INTERRUPTED, UNTRUSTED, Measuring, Peers
from crosswind.cli.options import spread
from crosswind.cli.outputs import Force, Json
from crosswind.cli.verbs import help_of
from crosswind.documents import Row
from crosswind.files.output import writable_directory
from crosswind.statistics.digits import half_of, percent, plain, with_half
from crosswind.terminal.progress import progress_bar

if TYPE_CHECKING:
    from crosswind.measure.sweep import Sweep

Kind = Literal["footprint", "message-size", "streams", "wait", "placement", "runtime"]

MOST_LINES = 4
GROUPS = {"Where the threads run": ("placement",), "Output": ("resume",)}

EXAMPLES = """
Examples:

    crosswind measure sweep message-size --values 64KB,1MB,8MB

    crosswind measure sweep footprint --peer host:7117 --token-file token -o sweep-footprint/

    crosswind measure sweep runtime --values 'java,java io=direct,go,node'

The values are measured in a shuffled order, each as `crosswind measure` does; the same command again goes on where an
earlier one ended. `crosswind report` takes the directory.

Exit codes: 0 all settled, 2 bad input, 3 done but not trustworthy (one did not settle, host not quiet),
130 interrupted.
"""


@spread
def sweep(
    *,
    kind: Annotated[Kind, typer.Argument(help="The setting that is varied.", metavar="KIND")],
    values: Annotated[
        str | None, typer.Option(metavar="V,V,...", help="Its values. [default: the usual ones of the kind]")
    ] = None,
    peers: Peers,
    how: Measuring,
    resume: Annotated[bool, typer.Option(help="Keep the completed points of the same sweep.")] = True,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Directory of the points. [default: sweep-KIND]")
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Measure once for each value of one setting."""
    from crosswind.measure.sweep import measure_sweep, parse_values

    arguments = how.arguments() | peers.arguments() | {"max_seconds": how.max_seconds or USUAL_S}
    if kind == "runtime":
        arguments["paced_by"] = how.paced_by
    directory = out or Path(f"sweep-{kind}")
    writable_directory(directory, "--out")
    with progress_bar() as advance:
        result = measure_sweep(
            kind,
            directory,
            parse_values(kind, values) if values else None,
            resume=resume,
            force=force,
            progress=advance,
            **arguments,
        )
    raise typer.Exit(told(result, directory, json))


def told(result: Sweep, directory: Path, json: bool) -> int:
    """Print a sweep and return the exit code."""
    rows = result.to_arrow().to_pylist()
    document = {"kind": result.kind, "directory": str(directory), "points": rows, "warnings": result.warnings}
    show(
        None if json else _answer(result, rows),
        warnings=result.warnings,
        wrote=[f"{directory} ({number_of(len(result.points), 'point')})"],
        document=document if json else None,
    )
    if not result.complete:
        return INTERRUPTED
    return 0 if result.trustworthy else UNTRUSTED


def _answer(result: Sweep, rows: list[Row]) -> Answer:
    """Return which value costs least and which most at a rate that all reached, then a line per value and direction."""
    several = len({row["peer"] for row in rows}) > 1
    by_channel: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_channel.setdefault((row["direction"], row["peer"]), []).append(row)
    lines = [
        line
        for (_, peer), alike in by_channel.items()
        if (line := _sentence(result.kind, alike, peer if several else ""))
    ]
    if not lines:
        lines = [f"Nothing to compare: {number_of(len(result.points), 'point')} of {len(result.values)}."]
    elif len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"{len(lines) - MOST_LINES} more peers: the table."]
    from crosswind.measure.sweep.result import known

    columns = [(result.kind, "right"), *([("peer", "left")] if several else []), ("direction", "left")]
    columns += [("lost", "right"), ("at MB/s", "right"), ("IR, s/GB", "right")]
    first = ("lost", result.kind, "direction", *(["peer"] if several else []), "at MB/s", "IR, s/GB")
    cells = [
        [
            str(row["value"]),
            *([row["peer"]] if several else []),
            row["direction"],
            percent(row["loss_at_matched"]) if math.isfinite(row["loss_at_matched"]) else "-",
            known(row["matched_mb_per_s"], ".0f"),
            _ir(row),
        ]
        for row in rows
    ]
    notes = ["lost: at the highest rate that all values reach. ±: 95 % confidence interval"]
    if any(not row["settled"] for row in rows):
        notes.append(
            "Not settled: " + ", ".join(dict.fromkeys(str(row["value"]) for row in rows if not row["settled"]))
        )
    return Answer(
        lines,
        [Section(columns, cells, first=first)],
        notes,
        wide=[section(one) for one in result.tables()],
        rest="All figures",
    )


def _sentence(kind: str, rows: list[Row], peer: str) -> str:
    """Return what the best and the worst value cost in one direction; nothing where fewer than two are known."""
    known = sorted(
        (row for row in rows if math.isfinite(row["loss_at_matched"])), key=lambda row: row["loss_at_matched"]
    )
    if len(known) < 2:
        return ""
    least, most = known[0], known[-1]
    moves = "Sending" if least["direction"] == "send" else "Receiving"
    where = f" {'to' if least['direction'] == 'send' else 'from'} {peer}" if peer else ""
    costs = f"{percent(least['loss_at_matched'])} ({kind} {least['value']})"
    return (
        f"{moves} {plain(least['matched_mb_per_s'])} MB/s{where} costs {costs} to {percent(most['loss_at_matched'])} "
        f"({kind} {most['value']}) of the computation."
    )


def _ir(row: Row) -> str:
    if row["upper_bound_s_per_mb"] is not None:
        return f"< {plain(1000 * row['upper_bound_s_per_mb'])}"
    value, ends = 1000 * row["ir_s_per_mb"], (1000 * row["ir_low"], 1000 * row["ir_high"])
    return with_half(value, half_of(value, ends)) if math.isfinite(value) else "-"


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("sweep", help=help_of("measure sweep", EXAMPLES))(sweep)
