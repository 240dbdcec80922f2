"""`crosswind filter`: traffic of two classes through two queues; or the settings that do it elsewhere."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosswind.cli import filter_kernel
from crosswind.cli.access import AllowLooseToken, TlsDirectory, TokenFile, token_in
from crosswind.cli.console import print_json, print_table, tell
from crosswind.cli.verbs import help_of
from crosswind.documents import Arguments
from crosswind.errors import CrosswindError, DescriptionError
from crosswind.filter import DEFAULT_CONNECTIONS, DEFAULT_DISCIPLINE, DEFAULT_FRAME_BYTES, Credits, Discipline
from crosswind.filter.export import Target
from crosswind.terminal.signals import heard

if TYPE_CHECKING:
    from crosswind.filter import Filter, FilterCounters

UNTRUSTED = 3
_LOOK_S = 0.05
_SHOW_S = 1.0

GROUPS = {
    "Queues in user space": (
        "credits_",
        "receive_frames",
        "receive_threshold",
        "idle_s",
        "frame_bytes",
        "pad",
        "connections",
        "for_s",
    ),
    "With --in-kernel": ("rate_in", "dry_run", "yes", "undo"),
    "With --export": ("export", "dev", "check"),
}

EXAMPLES = """
Examples:

    crosswind filter --listen 0.0.0.0:7200 --token-file token

    crosswind filter --peer there:7200 --token-file token --parallel 8001=localhost:9001 --local 8002=localhost:9002

    crosswind filter --peer there:7200 --token-file token --local 8002=db:5432 --rate 110 --policy drr --threshold 4

    crosswind filter --in-kernel eth1 --parallel 8001,dscp:af41 --rate 110

    crosswind filter --in-kernel eth1 --parallel cgroup:/jobs --rate auto --peer there:7300 --token-file token

    crosswind filter --in-kernel eth1 --parallel 8001 --rate-in 110 --dry-run

    crosswind filter --undo

    crosswind filter --export tc --dev eth0 --threshold 4 --check --peer there:7200 --token-file token

A filter runs on each host; forwarding works as with `ssh -L`, and the port gives the class. Frames wait here only where
this is the bottleneck: on a fast network give --rate, a little below the link's.

With root, --in-kernel has the kernel do the same at line rate for the packets of a device, without touching an
application, and takes it back however this process ends; classes by port, dscp:N, mark:N or cgroup:PATH. --export
prints the settings that do the same in the kernel, in Cilium or on a card; --check reports whether marks reach the
other end.

Exit codes: 0 done or ctrl-C, 1 it failed, 2 bad input, 3 a mark did not arrive.
"""


def filter_(
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Address for other filters. Port 0 takes a free one.")
    ] = None,
    peer: Annotated[
        list[str] | None, typer.Option(metavar="HOST:PORT", help="A filter to connect to. Repeat for more.")
    ] = None,
    in_kernel: Annotated[
        str | None, typer.Option("--in-kernel", metavar="DEV", help="Set two classes on this network device (root).")
    ] = None,
    parallel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PORT=HOST:PORT",
            help="Forward as class parallel; @PEER behind it where there are several. "
            "--in-kernel: PORT, dscp:N, mark:N or cgroup:PATH.",
        ),
    ] = None,
    local: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PORT=HOST:PORT",
            help="Forward as class local. Repeat for more. --in-kernel: exceptions from --parallel.",
        ),
    ] = None,
    policy: Annotated[Discipline, typer.Option(help="Rule that chooses the next frame.")] = DEFAULT_DISCIPLINE,
    threshold: Annotated[
        int, typer.Option(help="Parallel frames (threshold) or bytes (drr) to one of local.", min=1)
    ] = 4,
    credits_: Annotated[
        Credits, typer.Option("--credits", help="receiver: hold local senders back while parallel frames come here.")
    ] = "none",
    receive_frames: Annotated[
        int, typer.Option(help="With --credits: frames of each class on their way here, at most.", min=1)
    ] = 16,
    receive_threshold: Annotated[
        int, typer.Option(help="With --credits: the same for local frames while parallel ones come.", min=1)
    ] = 1,
    idle_s: Annotated[
        float,
        typer.Option(
            "--idle-s",
            help="With --credits: seconds without a parallel frame until local senders get full credit again.",
        ),
    ] = 0.01,
    frame_bytes: Annotated[int, typer.Option(help="Longest frame.", min=1, max=262144)] = DEFAULT_FRAME_BYTES,
    rate: Annotated[
        str | None,
        typer.Option(
            metavar="MB/S",
            help="Rate at which frames leave here: emulates a link, or shapes one. --in-kernel: or auto.",
        ),
    ] = None,
    rate_in: Annotated[
        str | None, typer.Option(metavar="MB/S", help="Rate at which frames come in. --in-kernel: or auto.")
    ] = None,
    pad: Annotated[bool, typer.Option("--pad", help="--rate: each frame takes a whole frame's time.")] = False,
    connections: Annotated[
        int, typer.Option(help="Connections at a time, at most. Each may hold 512 KiB.", min=1, max=100000)
    ] = DEFAULT_CONNECTIONS,
    token_file: TokenFile = None,
    allow_loose_token: AllowLooseToken = False,
    tls: TlsDirectory = None,
    for_s: Annotated[float | None, typer.Option("--for-s", help="Stop after this many seconds.", min=0.001)] = None,
    export: Annotated[
        Target | None, typer.Option(help="Print the settings that do the same elsewhere, and end.")
    ] = None,
    dev: Annotated[str, typer.Option(help="With --export: the network interface.")] = "eth0",
    check: Annotated[
        bool, typer.Option("--check", help="With --export: send marked packets to --peer, or over loopback without it.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="--in-kernel: print the commands that set the same, and end.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="With --in-kernel: accept the device that carries the default route.")
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Take back what --in-kernel has set, on DEV or everywhere, and end.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document at the end.")] = False,
) -> None:
    """Queue traffic of two classes between hosts."""
    if undo:
        filter_kernel.undo(in_kernel, json)
        return
    token = token_in(token_file, allow_loose_token)
    if in_kernel is not None:
        other = {"--listen": listen, "--export": export, "--pad": pad, "--tls": tls, "--credits": credits_ != "none"}
        _refuse(other, "cannot be combined with --in-kernel")
        sides = (parallel or [], local or [])
        first = peer[0] if peer else None
        wanted = filter_kernel.KernelAsked(in_kernel, *sides, rate, rate_in, policy, threshold, first, token, yes)
        if dry_run:
            filter_kernel.dry_run(wanted, json)
        else:
            filter_kernel.serve(wanted, for_s, json)
        return
    _refuse({"--dry-run": dry_run, "--yes": yes}, "goes with --in-kernel DEV")
    rates = (filter_kernel.rate_of(rate, "--rate"), filter_kernel.rate_of(rate_in, "--rate-in"))
    if export is not None:
        not_there = {"--listen": listen, "--parallel": parallel, "--local": local, "--for-s": for_s}
        _refuse(not_there, "does not go with --export")
        _export(export, policy, threshold, dev, rates[0], check, peer or [], token, tls, json)
        return
    if check:
        raise DescriptionError("--check goes with --export", "argument", "--export tc --check")
    _serve(
        listen,
        peer or [],
        (parallel or [], local or []),
        {
            "queue": policy,
            "threshold": threshold,
            "credits": credits_,
            "receive_frames": receive_frames,
            "receive_threshold": receive_threshold,
            "idle_s": idle_s,
        },
        {
            "frame_bytes": frame_bytes,
            "rate_mb_per_s": rates[0],
            "rate_in_mb_per_s": rates[1],
            "pad": pad,
            "connections": connections,
            "window_bytes": max(512 * 1024, frame_bytes),
            "token": token,
            "tls": tls,
        },
        for_s,
        json,
    )


def _refuse(given: Mapping[str, object], why: str) -> None:
    """Refuse the first option that is given."""
    for option, value in given.items():
        if value:
            raise DescriptionError(f"{option} {why}", "argument")


def _export(
    target: Target,
    policy: Discipline,
    threshold: int,
    dev: str,
    rate: float | None,
    check: bool,
    peers: list[str],
    token: str | None,
    tls: Path | None,
    json: bool,
) -> None:
    from crosswind.filter.export import check_marks
    from crosswind.filter.export import export as describe

    described = describe(target, policy, threshold, device=dev, rate_mb_per_s=rate)
    checks: list[Arguments] = []
    for peer in peers if check and peers else [None] * check:
        where = peer or "loopback"
        checks += [{"peer": where, **one} for one in check_marks(target, peer, token, tls)]
    if json:
        print_json({**described.to_dict(), "checks": checks})
    else:
        typer.echo(described.text, nl=False)
        typer.echo(f"# Take it back: {described.undo}", nl=False)
    for one in checks:
        seen = "the other end cannot tell" if one["arrived_dscp"] is None else f"arrived with {one['arrived_dscp']}"
        tell(f"{one['peer']}: class {one['class']}, sent with DSCP {one['sent_dscp']}: {seen}")
    if not all(one["ok"] for one in checks):
        raise typer.Exit(UNTRUSTED)


def _serve(
    listen: str | None,
    peers: list[str],
    forwarded: tuple[list[str], list[str]],
    queues: Arguments,
    options: Arguments,
    for_s: float | None,
    json: bool,
) -> None:
    from crosswind.filter import Filter, Forward, Queues

    if listen is None and not peers:
        hint = "--listen HOST:PORT here, --peer HOST:PORT on the other host"
        raise DescriptionError("neither --listen nor --peer is given", "argument", hint)
    parallel, local = forwarded
    forwards = [Forward.parse(text, "parallel", peers) for text in parallel]
    forwards += [Forward.parse(text, "local", peers) for text in local]
    with heard([signal.SIGINT, signal.SIGTERM]) as asked:
        filter_here = Filter(forwards, peers, listen, Queues(**queues), **options)
        with filter_here:
            if filter_here.address:
                tell(f"filters connect to {filter_here.address}")
            for forward, port in zip(forwards, filter_here.ports, strict=True):
                tell(f"{forward.message_class}: {port} -> {forward.target} through {peers[forward.peer]}")
            _watch(filter_here, asked, for_s)
    done = filter_here.counters()
    if json:
        print_json(done)
    else:
        _print(done)


def _watch(filter_here: Filter, asked: list[int], for_s: float | None) -> None:
    """Wait until the end is requested; on a terminal, report every second what goes through."""
    from rich.console import Console
    from rich.live import Live

    start = shown = time.monotonic()
    met = not filter_here.peers
    screen = Console(stderr=True)
    with Live(console=screen, transient=True, auto_refresh=False, redirect_stdout=False) as live:
        while not asked:
            time.sleep(_LOOK_S)
            if not filter_here.at_work:
                filter_here.stop()
                raise CrosswindError("the filter ended unexpectedly", "ended")
            if not met and filter_here.wait_for_peers(0.0):
                met = True
                tell("all peers are there; ctrl-C ends")
            now = time.monotonic()
            if for_s is not None and now >= start + for_s:
                return
            if screen.is_terminal and now >= shown + _SHOW_S:
                shown = now
                live.update(_line(filter_here.counters(), now - start), refresh=True)


def _line(counters: FilterCounters, elapsed_s: float) -> str:
    parts = [f"{elapsed_s:.0f} s, {counters['peers']} peers, {counters['connections']} connections"]
    for name in ("parallel", "local"):
        one = counters[name]
        frames = max(one["sent_frames"], 1)
        sent = f"{one['sent_bytes'] / 1e6:.1f} MB out, {one['received_bytes'] / 1e6:.1f} MB in"
        waits = f"{one['waiting_frames']} frames wait, {1e3 * one['waited_s'] / frames:.2f} ms each"
        parts.append(f"{name}: {sent}, {waits}")
    return "; ".join(parts)


def _print(counters: FilterCounters) -> None:
    rows = []
    for name in ("parallel", "local"):
        one = counters[name]
        mean_s = one["waited_s"] / max(one["sent_frames"], 1)
        rows.append(
            [
                name,
                str(one["sent_frames"]),
                f"{one['sent_bytes'] / 1e6:.3f}",
                str(one["received_frames"]),
                f"{one['received_bytes'] / 1e6:.3f}",
                f"{1e3 * mean_s:.3f}",
                f"{1e3 * one['longest_wait_s']:.3f}",
            ]
        )
    heads = ["frames sent", "MB sent", "frames received", "MB received", "mean wait ms", "longest wait ms"]
    made = f"{counters['connections_made']} connections"
    title = f"{made}, {counters['refused']} refused, {counters['peers_dropped']} peers dropped"
    print_table([("class", "left"), *((head, "right") for head in heads)], rows, title=title)


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("filter", help=help_of("filter", EXAMPLES))(filter_)
