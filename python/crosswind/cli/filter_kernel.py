"""`crosswind filter --in-kernel`: two classes on a network device."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from crosswind.cli.console import print_json, print_table, tell
from crosswind.errors import DescriptionError
from crosswind.filter import Discipline
from crosswind.terminal.signals import heard

if TYPE_CHECKING:
    from crosswind.filter.kernel import KernelFilter

_LOOK_S = 0.05
_WATCH_S = 1.0
AUTO = "auto"


def rate_of(text: str | None, option: str, *, auto: bool = False) -> float | None:
    """Return a rate in MB/s; None where none is given, and for `auto`.

    Raises
    ------
    DescriptionError
        When it is not a number greater than 0.
    """
    if text is None or (auto and text == AUTO):
        return None
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 < rate < float("inf"):
        also = ", or auto" if auto else "; auto goes with --in-kernel" if text == AUTO else ""
        raise DescriptionError(f"{option} is {text!r}; it must be MB/s, greater than 0{also}", "rate")
    return rate


@dataclass(frozen=True)
class KernelAsked:
    """What the options ask of a device.

    Parameters
    ----------
    device : str
        The network device.
    parallel, local : list of str
        Which packets belong to which class.
    rate, rate_in : str or None
        MB/s, or "auto".
    queue, threshold : str, int
        How the classes are served.
    peer : str or None
        HOST:PORT of a `crosswind filter check --listen`, for "auto".
    token : str or None
        What both ends share.
    yes : bool
        Whether the device of the default route may be changed.
    """

    device: str
    parallel: list[str]
    local: list[str]
    rate: str | None
    rate_in: str | None
    queue: Discipline
    threshold: int
    peer: str | None
    token: str | None
    yes: bool

    def filter_here(self) -> KernelFilter:
        """Return the filter, not yet set; rates that are `auto` are measured now."""
        from crosswind.filter.kernel import KernelFilter

        rates = [rate_of(self.rate, "--rate", auto=True), rate_of(self.rate_in, "--rate-in", auto=True)]

        def made() -> KernelFilter:
            return KernelFilter(
                self.device,
                self.parallel,
                self.local,
                rate_mb_per_s=rates[0],
                rate_in_mb_per_s=rates[1],
                queue=self.queue,
                threshold=self.threshold,
                default_route=self.yes,
            )

        if AUTO not in (self.rate, self.rate_in):
            return made()
        if self.peer is None:
            hint = "`crosswind filter check --listen HOST:PORT` there, --peer HOST:PORT here; or give MB/s"
            raise DescriptionError("--rate auto needs --peer, to which it sends", "argument", hint)
        from crosswind.filter.kernel.rate import measured

        for side, text in enumerate((self.rate, self.rate_in)):
            if text == AUTO:
                rates[side] = 1.0
        device = made().plan.device  # what is wrong is said before anything is measured
        for side, text in enumerate((self.rate, self.rate_in)):
            if text == AUTO:
                found = measured(device, self.peer, self.token, arriving=side == 1)
                direction = "arrives at" if side else "leaves"
                shaped = f"shaped to {found.rate_mb_per_s:.2f} MB/s"
                tell(f"{found.link_mb_per_s:.2f} MB/s {direction} {self.device}: {shaped}")
                rates[side] = found.rate_mb_per_s
        return made()


def undo(device: str | None, json: bool) -> None:
    """Take back what filters have left."""
    from crosswind.filter.kernel import undo_all

    done = undo_all(device)
    if json:
        print_json({"undone": done})
        return
    for line in done or ["no filter is set in the kernel of this host"]:
        tell(line)


def dry_run(asked: KernelAsked, json: bool) -> None:
    """Print what would be set."""
    from crosswind.filter.kernel.commands import commands, undo_commands

    plan = asked.filter_here().plan
    made, back = commands(plan), undo_commands(plan)
    if json:
        print_json({"device": asked.device, "commands": made, "undo": back, "promised": promised(plan)})
        return
    for line in (
        *_about(plan, "#"),
        *made,
        "# Taken back, where the default qdisc was:",
        *(f"# {one}" for one in back),
    ):
        typer.echo(line)


def serve(asked: KernelAsked, for_s: float | None, json: bool) -> None:
    """Set it, and hold it until the end is requested."""
    from rich.console import Console
    from rich.live import Live

    with heard([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]) as signals:
        filter_here = asked.filter_here()
        filter_here.start()
        try:
            for line in _about(filter_here.plan, f"{asked.device}:"):
                tell(line)
            tell("it is set; ctrl-C takes it back")
            start = looked = time.monotonic()
            screen = Console(stderr=True)
            with Live(console=screen, transient=True, auto_refresh=False, redirect_stdout=False) as live:
                while not signals and (for_s is None or time.monotonic() < start + for_s):
                    time.sleep(_LOOK_S)
                    if (now := time.monotonic()) >= looked + _WATCH_S:
                        looked = now
                        filter_here.watch()
                        if screen.is_terminal:
                            live.update(_line(filter_here.counters(), now - start), refresh=True)
            counters = filter_here.counters()
        finally:
            if done := filter_here.stop():
                tell(done)
    if json:
        print_json(counters)
    else:
        _print(counters)


def promised(plan: Any) -> dict[str, dict[str, float]]:
    """Return what class local is promised, by side."""
    from crosswind.filter.kernel.promise import promise

    sides = {"out": plan.rate_mb_per_s, "in": plan.rate_in_mb_per_s}
    return {side: promise(plan, arriving=side == "in") for side, rate in sides.items() if rate is not None}


def _about(plan: Any, start: str) -> list[str]:
    lines = []
    about = {"out": ("leaves", plan.rate_mb_per_s, plan.segment_bytes)}
    about["in"] = ("arrives", plan.rate_in_mb_per_s, plan.segment_in_bytes)
    for side, told in promised(plan).items():
        verb, rate, segment = about[side]
        lines.append(f"{start} what {verb} is shaped to {rate:g} MB/s, in segments of up to {segment} bytes")
        if plan.queue == "strict":
            lines.append(f"{start} local packets wait while parallel ones do, without limit")
            continue
        lines.append(
            f"{start} a local packet waits at most {1e3 * told['longest_wait_s']:.4g} ms for its turn; while they wait,"
            f" local packets have at least {100 * told['least_share']:.4g} % of that"
        )
    return lines


def _line(counters: dict[str, dict[str, dict[str, int]]], elapsed_s: float) -> str:
    parts = [f"{elapsed_s:.0f} s"]
    for side, classes in counters.items():
        for name, one in classes.items():
            parts.append(f"{name} {side}: {one['bytes'] / 1e6:.1f} MB, {one['waiting_bytes']} bytes wait")
    return "; ".join(parts)


def _print(counters: dict[str, dict[str, dict[str, int]]]) -> None:
    rows = [
        [side, name, f"{one['bytes'] / 1e6:.3f}", str(one["packets"]), str(one["dropped"])]
        for side, classes in counters.items()
        for name, one in classes.items()
    ]
    heads = [("side", "left"), ("class", "left"), ("MB", "right"), ("packets", "right"), ("dropped", "right")]
    print_table(heads, rows)
