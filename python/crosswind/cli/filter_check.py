"""`crosswind filter check`: what each class gets over a path."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Annotated

import typer

from crosswind.cli.access import AllowLooseToken, TokenFile, token_in
from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.console import tell
from crosswind.cli.filter_kernel import KernelAsked
from crosswind.cli.verbs import help_of
from crosswind.errors import DescriptionError
from crosswind.filter import DEFAULT_DISCIPLINE, Discipline
from crosswind.terminal.signals import heard

if TYPE_CHECKING:
    from crosswind.filter.kernel.check import FilterCheck, OfClass

NARROW = (0, 1, 2, 3, 5)
"""Columns on a terminal."""
GROUPS = {"With --in-kernel": ("policy", "threshold", "rate", "rate_in", "yes")}

EXAMPLES = """
Send messages of both classes, of 64 bytes and 16 KB, alone, beside bulk of class local and beside bulk of both, and say
what each class gets: rates, and times there and back. With --in-kernel twice: before the classes are set on the device,
and after; then they are taken back.

Examples:

    crosswind filter check --listen 10.0.0.2:7300 --token-file token

    crosswind filter check --peer 10.0.0.2:7300 --token-file token --parallel dscp:af41

    crosswind filter check --peer 10.0.0.2:7300 --token-file token --parallel dscp:af41 --in-kernel eth1 --rate auto

Exit codes: 0 done or ctrl-C, 1 the far end cannot be reached, 2 bad input.
"""


def check(
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Listen here as the far end of a check. Port 0 takes a free one."),
    ] = None,
    peer: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="The far end to send to.")] = None,
    parallel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PORT|dscp:N|...", help="Mark of class parallel. Repeat for more; test packets carry the first."
        ),
    ] = None,
    local: Annotated[
        list[str] | None,
        typer.Option(metavar="PORT|dscp:N|...", help="Mark of class local, as --parallel. [default: none]"),
    ] = None,
    in_kernel: Annotated[
        str | None, typer.Option("--in-kernel", metavar="DEV", help="Measure again with two classes on this device.")
    ] = None,
    policy: Annotated[Discipline, typer.Option(help="With --in-kernel: drr or strict.")] = DEFAULT_DISCIPLINE,
    threshold: Annotated[int, typer.Option(help="--in-kernel: parallel bytes to one of local.", min=1)] = 4,
    rate: Annotated[str | None, typer.Option(metavar="MB/S|auto", help="--in-kernel: rate of what leaves.")] = None,
    rate_in: Annotated[
        str | None,
        typer.Option(metavar="MB/S|auto", help="--in-kernel: rate of what arrives; bulk comes from the peer."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="With --in-kernel: accept the device that carries the default route.")
    ] = False,
    connections: Annotated[int, typer.Option(help="Bulk connections of a class.", min=1, max=64)] = 8,
    seconds: Annotated[float, typer.Option(help="Seconds of each phase.", min=0.2, max=600)] = 2.0,
    token_file: TokenFile = None,
    allow_loose_token: AllowLooseToken = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document at the end.")] = False,
) -> None:
    """Send messages beside bulk and say what each class gets."""
    token = token_in(token_file, allow_loose_token)
    if (listen is None) == (peer is None):
        hint = "--listen HOST:PORT there, --peer HOST:PORT here"
        raise DescriptionError("one of --listen and --peer must be given", "argument", hint)
    if listen is not None:
        _serve(listen, token)
        return
    assert peer is not None
    if in_kernel is None and (rate is not None or rate_in is not None):
        raise DescriptionError("--rate goes with --in-kernel", "argument", "--in-kernel DEV --rate MB/S")
    asked = None
    if in_kernel is not None:
        sides = (parallel or [], local or [])
        asked = KernelAsked(in_kernel, *sides, rate, rate_in, policy, threshold, peer, token, yes)
    document = _checked(peer, token, (parallel or [], local or []), asked, connections, seconds)
    show(None if json else _answer(document), document=document if json else None)


def _serve(listen: str, token: str | None) -> None:
    from crosswind.filter.kernel.far_end import FarEnd

    with heard([signal.SIGINT, signal.SIGTERM]) as signals:
        far_end = FarEnd(listen, token)
        tell(f"checks connect to {far_end.address}; ctrl-C ends")
        far_end.serve(lambda: bool(signals))


def _checked(
    peer: str,
    token: str | None,
    selected: tuple[list[str], list[str]],
    asked: KernelAsked | None,
    connections: int,
    seconds: float,
) -> FilterCheck:
    from crosswind.filter.kernel import check as checks
    from crosswind.filter.kernel.selector import parse

    options = ("--parallel", "--local")
    marks = {
        name: checks.mark_of(parse(texts, option))
        for name, texts, option in zip(checks.CLASSES, selected, options, strict=True)
    }
    arriving = asked is not None and asked.rate_in is not None and asked.rate is None
    path = checks.Path(peer, token, marks, connections, seconds, arriving)
    filter_here = asked.filter_here() if asked is not None else None
    document: FilterCheck = {
        "schema_version": checks.SCHEMA_VERSION,
        "kind": "filter-check",
        "peer": peer,
        "connections": connections,
        "seconds": seconds,
        "bulk": "arrives" if arriving else "leaves",
        "before": checks.measured(path, lambda said: tell(f"before: {said}" if asked else said)),
        "after": None,
        "lowered": None,
        "promised": None,
    }
    if filter_here is not None:
        from crosswind.cli.filter_kernel import promised

        with filter_here:
            after = checks.measured(path, lambda said: tell(f"after: {said}"))
        document["after"], document["lowered"] = after, checks.lowered(document["before"], after)
        document["promised"] = promised(filter_here.plan)
    return document


def _answer(document: FilterCheck) -> Answer:
    """Return how long messages take beside bulk, and what the filter changes, then a line per bulk and class."""
    heads = [("bulk of", "left"), ("class", "left")]
    heads += [(head, "right") for head in ("bulk MB/s", "64 B p50 us", "p99 us", "16 KB p50 us", "p99 us")]
    tables, whole = [], []
    for name, measured in (("before", document["before"]), ("after", document["after"])):
        if measured is None:
            continue
        title = name if document["after"] else None
        rows = [
            [bulk if index == 0 else "", of, *_cells(classes[of])]
            for bulk, classes in measured.items()
            for index, of in enumerate(classes)
        ]
        whole.append(Section(heads, rows, title=title))
        tables.append(Section([heads[k] for k in NARROW], [[row[k] for k in NARROW] for row in rows], title=title))
    return Answer([_sentence(document)], tables, ["p50: median"], wide=whole, rest="99 % of messages")


def _sentence(document: FilterCheck) -> str:
    if document["lowered"]:
        faster = [f"{size} bytes {times:.1f} times" for size, times in document["lowered"].items() if times]
        if faster:
            return f"With the filter, parallel messages beside local bulk are faster: {', '.join(faster)}."
        return "With the filter, parallel messages beside local bulk are as fast as without."
    before = document["before"]
    alone, beside = (before[bulk]["parallel"]["messages"]["64"]["p50_s"] for bulk in ("none", "local"))
    if alone is None or beside is None:
        return "No parallel message of 64 bytes was answered."
    longer = f"{beside / alone:.1f} times as long as without bulk ({1e6 * alone:.0f} us)"
    return f"Beside local bulk, parallel messages of 64 bytes take {1e6 * beside:.0f} us: {longer}."


def _cells(found: OfClass) -> list[str]:
    rate = found["bulk_mb_per_s"]
    cells = ["-" if rate is None else f"{rate:.2f}"]
    for one in found["messages"].values():
        cells += ["-" if time_s is None else f"{1e6 * time_s:.0f}" for time_s in (one["p50_s"], one["p99_s"])]
    return cells


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("check", help=help_of("filter check", EXAMPLES))(check)
