"""Options that `measure`, `measure sweep` and `measure cluster` share: what computes, what traffic, where, how long."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from crosswind import _core
from crosswind.cli.access import AllowLooseToken, TlsDirectory, TokenFile, token_in
from crosswind.documents import Arguments
from crosswind.errors import DescriptionError
from crosswind.terminal.sizes import parse_bytes

KERNELS = tuple(name for name, _ in _core.KINDS["kernel"])
if TYPE_CHECKING:
    Kernel = str
else:
    Kernel = Literal[KERNELS]

Direction = Literal["each", "receive", "send", "both"]
Wait = Literal["event", "poll"]
PacedBy = Literal["peer", "sender", "receiver"]
Variation = Literal["paced", "contention"]
Pin = Literal["process", "threads"]
Beside = Literal["native"]
Placement = Literal["same-core", "other-core", "free", "explicit"]

UNTRUSTED = 3
INTERRUPTED = 130

_COMPUTES, _RUNTIME, _TRAFFIC = "What computes", "With --runtime", "Traffic"
_WHERE, _ENDS = "Where the threads run", "When it ends"


@dataclass(frozen=True)
class Measuring:
    """How one measurement is made, wherever it is made."""

    task: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="Your own work: a command, run again and again.")
    ] = None
    shell: Annotated[bool, typer.Option("--shell", help="Run --task in a shell, for pipes and the like.")] = False
    runtime: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|COMMAND",
            help="Runtime to measure: java, python, go or node with options ('java io=direct'), or a probe.",
        ),
    ] = None
    placement: Annotated[Placement, typer.Option(help="CPUs of computation and traffic; the result depends on it.")] = (
        "same-core"
    )
    max_seconds: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Time limit, s. [default: 60]", min=1, max=86400),
    ] = None
    kernel: Annotated[Kernel, typer.Option(help="The work of the computation.", rich_help_panel=_COMPUTES)] = KERNELS[0]
    matrix: Annotated[
        int, typer.Option(help="Side of the matrix of `diagonals`, 8..4096.", rich_help_panel=_COMPUTES)
    ] = 1024
    diagonals: Annotated[int, typer.Option(help="Diagonals per unit of work.", rich_help_panel=_COMPUTES)] = 1
    carriers: Annotated[
        int | None, typer.Option(help="Carrier threads of 'java threads=virtual'.", rich_help_panel=_RUNTIME)
    ] = None
    python: Annotated[
        str | None, typer.Option(metavar="FILE", help="python: the interpreter.", rich_help_panel=_RUNTIME)
    ] = None
    pin: Annotated[
        Pin, typer.Option(help="Bind the runtime to its CPUs before it starts, or after.", rich_help_panel=_RUNTIME)
    ] = "process"
    forks: Annotated[
        int | None, typer.Option(help="Times that the runtime is started. [default: 5]", rich_help_panel=_RUNTIME)
    ] = None
    own_work: Annotated[
        bool,
        typer.Option(
            "--own-work",
            help="The probe has work of its own and runs none of Crosswind's kernels.",
            rich_help_panel=_RUNTIME,
        ),
    ] = False
    beside: Annotated[
        Beside | None, typer.Option(help="Also measure native threads, in turns.", rich_help_panel=_RUNTIME)
    ] = None
    message_size: Annotated[
        str, typer.Option(metavar="SIZE", help="Bytes per message, 1KB..64MB.", rich_help_panel=_TRAFFIC)
    ] = "1MB"
    streams: Annotated[int, typer.Option(help="Connections per direction and peer.", rich_help_panel=_TRAFFIC)] = 1
    wait: Annotated[Wait, typer.Option(help="How this host waits for bytes.", rich_help_panel=_TRAFFIC)] = "event"
    paced_by: Annotated[
        PacedBy | None,
        typer.Option(help="End that keeps the rate. [default: sender; with --runtime peer]", rich_help_panel=_TRAFFIC),
    ] = None
    pacing_chunk: Annotated[
        str, typer.Option(metavar="SIZE", help="Granularity of the pacing.", rich_help_panel=_TRAFFIC)
    ] = "64KiB"
    socket_buffer: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Socket buffers. [default: the probe's own]", rich_help_panel=_TRAFFIC),
    ] = None
    congestion_control: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Congestion control, such as cubic or bbr.", rich_help_panel=_TRAFFIC),
    ] = None
    compute_cpus: Annotated[
        str | None,
        typer.Option(
            metavar="CPUS", help="--placement explicit: of the computation, such as 0,2-5.", rich_help_panel=_WHERE
        ),
    ] = None
    traffic_cpus: Annotated[
        str | None, typer.Option(metavar="CPUS", help="--placement explicit: of the traffic.", rich_help_panel=_WHERE)
    ] = None
    nice: Annotated[
        int, typer.Option(help="Nice level of the computation.", min=-20, max=19, rich_help_panel=_WHERE)
    ] = 0
    traffic_nice: Annotated[
        int, typer.Option(help="Nice level of the traffic.", min=-20, max=19, rich_help_panel=_WHERE)
    ] = 0
    top: Annotated[
        float | None,
        typer.Option(
            metavar="MB/S",
            help="Highest rate asked for; give it to compare settings. [default: found by calibration]",
            rich_help_panel=_ENDS,
        ),
    ] = None
    target: Annotated[
        float, typer.Option(help="Stop when the 95 % interval is within this share of IR.", rich_help_panel=_ENDS)
    ] = 0.05
    loss_target: Annotated[
        float,
        typer.Option(help="Stop when the loss at the full rate is known to within this share.", rich_help_panel=_ENDS),
    ] = 0.01
    seed: Annotated[int, typer.Option(help="Seed of the shuffled levels.", rich_help_panel=_ENDS)] = 1

    def arguments(self) -> Arguments:
        """Return them as `crosswind.measure` takes them, without the limit of time."""
        return {
            "kernel": self.kernel,
            "matrix": self.matrix,
            "diagonals": self.diagonals,
            "task": self.task,
            "shell": self.shell,
            "message_bytes": parse_bytes(self.message_size, "--message-size"),
            "streams": self.streams,
            "wait": self.wait,
            "paced_by": self.paced_by or (None if self.runtime else "sender"),
            "pacing_chunk_bytes": parse_bytes(self.pacing_chunk, "--pacing-chunk"),
            "runtime": _runtime(self.runtime, {"carriers": self.carriers, "python": self.python}),
            "pin": self.pin,
            "forks": self.forks,
            "own_work": self.own_work,
            "beside": self.beside,
            "placement": self.placement,
            "compute_cpus": parse_cpus(self.compute_cpus, "--compute-cpus"),
            "traffic_cpus": parse_cpus(self.traffic_cpus, "--traffic-cpus"),
            "nice": self.nice,
            "traffic_nice": self.traffic_nice,
            "socket_buffer_bytes": parse_bytes(self.socket_buffer, "--socket-buffer") if self.socket_buffer else None,
            "congestion_control": self.congestion_control,
            "top_mb_per_s": self.top,
            "target": self.target,
            "loss_target": self.loss_target,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class Peers:
    """Which peers this host exchanges traffic with, and in which directions."""

    peer: Annotated[
        list[str] | None, typer.Option(metavar="HOST:PORT", help="Address of a `crosswind serve`. Repeat for more.")
    ] = None
    direction: Annotated[
        Direction, typer.Option(help="Direction, seen from here. each: one after the other, then both at once.")
    ] = "each"
    variation: Annotated[Variation, typer.Option(help="How the rate is varied.", rich_help_panel=_TRAFFIC)] = "paced"
    loader: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST:PORT",
            help="With --variation contention: a `crosswind serve` that loads the peer. Repeat for more.",
            rich_help_panel=_TRAFFIC,
        ),
    ] = None
    token_file: TokenFile = None
    allow_loose_token: AllowLooseToken = False
    tls: TlsDirectory = None

    def arguments(self) -> Arguments:
        """Return them as `crosswind.measure` takes them."""
        return {
            "peer": self.peer or None,
            "direction": self.direction,
            "variation": self.variation,
            "loaders": tuple(self.loader or ()),
            "token": token_in(self.token_file, self.allow_loose_token),
            "tls": self.tls,
        }


def parse_cpus(text: str | None, option: str) -> list[int] | None:
    """Read a CPU list such as 0,2-5, as the kernel writes them.

    Raises
    ------
    DescriptionError
        When it is not a CPU list.

    Examples
    --------
    >>> parse_cpus("0,2-4", "--compute-cpus")
    [0, 2, 3, 4]
    """
    if text is None:
        return None
    cpus: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,4})(?:-(\d{1,4}))?\s*", part)
        if not match:
            raise DescriptionError(f"{option} is {text!r}; it must be a list of CPUs", "cpus", "such as 0 or 0,2-5")
        cpus.extend(range(int(match[1]), int(match[2] or match[1]) + 1))
    return cpus


def _runtime(text: str | None, options: Arguments) -> str | None:
    """Return a runtime with the options that have a switch of their own."""
    given = {name: value for name, value in options.items() if value is not None}
    if text is None and given:
        option = f"--{next(iter(given))}"
        raise DescriptionError(f"{option} is given without --runtime", "usage", "add --runtime, such as --runtime java")
    return text and shlex.join([*shlex.split(text), *(f"{name}={value}" for name, value in given.items())])
