"""`crosswind overlap`: what messages and computation cost each other on the same processors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from crosswind.cli.access import AllowLooseToken, TlsDirectory, TokenFile, token_in
from crosswind.cli.answer import Answer, Section, section, show
from crosswind.cli.console import number_of, print_json, print_table, tell
from crosswind.cli.interruption import tells_what_is_kept
from crosswind.cli.measure_options import parse_cpus
from crosswind.cli.outputs import Force, file_of, writable, written
from crosswind.cli.settings import settings_of
from crosswind.cli.verbs import help_of
from crosswind.documents import Arguments
from crosswind.errors import DescriptionError
from crosswind.terminal.progress import progress_bar

if TYPE_CHECKING:
    from crosswind.overlap import Preview
    from crosswind.overlap.result import Overlap

UNTRUSTED = 3
USUAL: Arguments = {"wait": "event,poll,spin-block", "nice": None, "ping": [], "burn_s": 2.0, "repetitions": 3}
QUICK: Arguments = {
    "wait": "event,poll",
    "nice": "0,19",
    "ping": ["200x1MB", "1x64MB"],
    "burn_s": 0.5,
    "repetitions": 2,
}

GROUPS = {
    "Design": ("ping", "burn_s", "burners", "repetitions", "seed", "limit_s", "dry_run"),
    "With --on sim": ("scheduler", "set_"),
    "Output": ("resume",),
}

EXAMPLES = """
Messages are Crosswind's own, over TCP, beside programs that only compute. Whether an MPI library makes progress while
its program computes is another question, which this does not answer.

Examples:

    crosswind overlap

    crosswind overlap --quick

    crosswind overlap --dry-run

    crosswind overlap --peer host:7117 --ping 6400x1MB --ping 100x64MB --burn-s 60 -o overlap.json --resume

    crosswind overlap --wait event,poll --nice 0,19 --json

    crosswind overlap --on sim --cpus 2 --wait event,poll,buffered --set network.mb_per_s=341

Exit codes: 0 done, 1 it failed, 2 bad input, 3 done but the machine was not quiet, 130 interrupted (--resume goes on).
"""


def overlap(
    on: Annotated[Literal["live", "sim"], typer.Option(help="By real processes, or simulated.")] = "live",
    peer: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Address of a `crosswind serve`. [default: one started on this machine]"
        ),
    ] = None,
    token_file: TokenFile = None,
    allow_loose_token: AllowLooseToken = False,
    tls: TlsDirectory = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="About 30 s: two ways to wait, two levels, two kinds of messages.")
    ] = False,
    wait: Annotated[
        str | None,
        typer.Option(
            help="How both ends wait; sim: also buffered. [default: event,poll,spin-block]", metavar="WAIT,..."
        ),
    ] = None,
    nice: Annotated[
        str | None,
        typer.Option(
            help="Nice levels of the computation. [default: the permitted ones of -20,0,19]", metavar="-20,0,19"
        ),
    ] = None,
    ping: Annotated[
        list[str] | None,
        typer.Option(
            help="Round trips x bytes each way, such as 6400x1MB. Repeat for more. [default: four kinds]",
            metavar="COUNTxSIZE",
        ),
    ] = None,
    burn_s: Annotated[
        float | None,
        typer.Option("--burn-s", help="Seconds that the computation takes alone, about. [default: 2]"),
    ] = None,
    burners: Annotated[int | None, typer.Option(help="Programs that compute. [default: one per CPU]")] = None,
    repetitions: Annotated[int | None, typer.Option(help="Runs of each kind; medians count. [default: 3]")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the order of the runs.")] = 1,
    cpus: Annotated[
        str | None, typer.Option(help="CPUs of everything here, such as 0,2-5; sim: how many a node has.")
    ] = None,
    limit_s: Annotated[float, typer.Option("--limit-s", help="Time limit of a run, s.")] = 600.0,
    scheduler: Annotated[Literal["fair", "decay"], typer.Option(help="sim: scheduler of the processors.")] = "fair",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="sim: a constant, such as network.mb_per_s=341.", metavar="PATH=VALUE"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="overlap.json, written as runs come in; for `crosswind report`.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Keep the runs that are already in --out.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Say whether this machine overlaps communication with computation."""
    from crosswind.overlap import overlap as perform
    from crosswind.overlap import preview
    from crosswind.overlap.options import parse_exchange

    if resume and out is None:
        raise DescriptionError(
            "--resume is given without --out", "argument", "name the file to continue: -o overlap.json --resume"
        )
    writable(out, "overlap", force=force)
    usual = QUICK if quick else USUAL
    design: Arguments = {
        "waits": [word.strip() for word in (wait or usual["wait"]).split(",")],
        "nices": _levels(nice or usual["nice"]),
        "pings": [parse_exchange(text) for text in ping or usual["ping"]] or None,
        "burn_s": usual["burn_s"] if burn_s is None else burn_s,
        "burners": burners,
        "repetitions": usual["repetitions"] if repetitions is None else repetitions,
        "seed": seed,
        "peer": peer,
        "cpus": _cpus(cpus, on),
        "limit_s": limit_s,
    }
    model = settings_of(set_ or [])
    shown: Arguments = {"token": token_in(token_file, allow_loose_token), "tls": tls}
    if dry_run:
        if on == "sim":
            raise DescriptionError("--dry-run is given; a simulation changes nothing", "argument")
        _print_preview(preview(**design), json)
        return
    if on == "live":
        told = preview(**design)
        shorter = "" if quick else "; --quick takes about 30 s"
        tell(f"{told['runs']} runs, at least {told['seconds']:.0f} s of computation, messages on top{shorter}")
    kept: Arguments = {"out": file_of(out), "resume": resume, "force": force}
    with tells_what_is_kept(file_of(out)), progress_bar() as advance:
        found = perform(on, **design, **shown, scheduler=scheduler, model=model, **kept, progress=advance)
    if out and not file_of(out):
        found.save(out)
    show(
        None if json else _answer(found),
        warnings=found.warnings,
        wrote=written(out, number_of(len(found), "cell"), goes_on=resume),
        document=found.summary if json else None,
    )
    if _is_busy(found):
        raise typer.Exit(UNTRUSTED)


def _cpus(text: str | None, on: str) -> list[int] | int | None:
    if on == "sim" and text is not None:
        try:
            return int(text)
        except ValueError:
            said = f"--cpus is {text!r}; in a simulation it must be how many a node has"
            raise DescriptionError(said, "argument", "such as 2") from None
    return parse_cpus(text, "--cpus")


def _levels(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise DescriptionError(
            f"--nice is {text!r}; it must be a list of levels", "argument", "such as 0 or -20,0,19"
        ) from None


def _print_preview(found: Preview, json: bool) -> None:
    if json:
        print_json(found)
        return
    title = f"{found['runs']} runs for {found['cells']} cells, at least {found['seconds']:.0f} s; nothing was done"
    print_table([("what would be done", "left")], [[change] for change in found["changes"]], title=title)


def _answer(found: Overlap) -> Answer:
    """Return in how many cases both overlap, the times of each case as parts of those alone, and what to change."""
    from crosswind.overlap.result import name_of
    from crosswind.overlap.verdict import WORDS

    cells = list(found)
    counts = {word: sum(cell["verdict"] == word for cell in cells) for word in WORDS}
    others = ", ".join(f"{WORDS[word]} in {count}" for word, count in counts.items() if count and word != "overlapped")
    line = f"Messages and computation overlap in {counts['overlapped']} of {number_of(len(cells), 'case')}"
    lines = [f"{line}{f': {others}' if others else ''}."]
    if _is_busy(found):
        lines.insert(0, "Not reliable: the host was busy. Repeat on an idle host.")
    elif found.on == "live":
        lines.append("Tested with Crosswind's own TCP messages, not with those of an MPI library.")
    rows = [
        [
            f"{cell['messages']} x {cell['message_bytes'] / 1e6:g} MB",
            f"{cell['wait']}, nice {cell['burn_nice']}",
            f"{cell['ping_s'] / cell['ping_alone_s']:.2f}",
            f"{cell['burn_s'] / cell['burn_alone_s']:.2f}",
            WORDS[str(cell["verdict"])],
        ]
        for cell in cells
    ]
    columns = [("messages", "left"), ("wait", "left"), ("messages", "right"), ("computation", "right")]
    columns += [("verdict", "left")]
    first = ("verdict", "messages", "wait", "computation")
    tables = [Section(columns, rows, title="times as long as alone", first=first)]
    changes = [[name_of(cell), change.partition(": ping ")[0]] for cell in cells if (change := cell.get("change"))]
    more = [Section([("where", "left"), ("what to change", "left")], changes)] if changes else []
    whole = found.tables()[0]
    return Answer(
        lines,
        tables if _is_busy(found) else [*tables, *more],
        wide=[section(whole, _title(found)), *(Section([("", "left")], [[one]]) for one in found.findings), *more],
        rest="Times, findings",
    )


def _is_busy(found: Overlap) -> bool:
    return any(warning["code"] == "overlap-not-quiet" for warning in found.warnings)


def _title(found: Overlap) -> str:
    about = found.summary
    host = about.get("host")
    where = f"{about['scheduler']} scheduler, simulated" if found.on == "sim" or host is None else host["name"]
    return f"{where}: messages beside {about['burners']} programs that compute, on {about['cpus']} processors"


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("overlap", help=help_of("overlap", EXAMPLES))(overlap)
