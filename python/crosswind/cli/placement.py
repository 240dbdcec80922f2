"""Options that `run` and `map` share: where agents run, how they are reached, what is written of what they did."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosswind.cli.access import ACCESS, AllowLooseToken, token_in
from crosswind.cli.console import tell
from crosswind.cli.outputs import OUTPUT, writable, written
from crosswind.cli.settings import hosts_of_nodes
from crosswind.cluster.hosts import Place
from crosswind.errors import DescriptionError
from crosswind.files.output import distinct

if TYPE_CHECKING:
    from crosswind.run.deployment import Placing
    from crosswind.run.results import Runs

HOSTS, TASKS = "Hosts", "Tasks"
TaskTimeout = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="End a task that takes longer, with all its processes. It counts as failed.",
        rich_help_panel=TASKS,
    ),
]


@dataclass(frozen=True)
class Placed:
    """Where agents run, and how they are reached."""

    node: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE=HOST", help="dask: host or worker of a node. Repeat for more.", rich_help_panel=HOSTS
        ),
    ] = None
    per: Annotated[
        Place | None,
        typer.Option(
            help="dask: what carries an agent. [default: host; without a platform thread]", rich_help_panel=HOSTS
        ),
    ] = None
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="dask: where the root listens. [default: an address that the hosts reach]",
            rich_help_panel=HOSTS,
        ),
    ] = None
    links: Annotated[
        Path | None,
        typer.Option(
            help="dask: what `measure cluster` found; a host that joins is put where the bound is highest.",
            rich_help_panel=HOSTS,
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Shared-secret file; with Dask it must exist on every host.", rich_help_panel=ACCESS
        ),
    ] = None
    allow_loose_token: AllowLooseToken = False
    tls: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The root's certificates (`crosswind cert`); with Dask a node's are in DIR/../NODE on its host.",
            rich_help_panel=ACCESS,
        ),
    ] = None

    @property
    def token(self) -> str | None:
        """The shared secret, from its file."""
        return token_in(self.token_file, self.allow_loose_token)

    def placing(self) -> Placing | None:
        """Return what a deployment takes, checked before any host is reached.

        Raises
        ------
        DescriptionError
            When an option is wrong, or a file is missing.
        """
        from crosswind.run.deployment import Placing

        given = hosts_of_nodes(self.node or [])
        token_in(self.token_file, self.allow_loose_token)
        if self.links is not None and not self.links.is_file():
            hint = "`crosswind measure cluster` makes one"
            raise DescriptionError(f"--links is {str(self.links)!r}: no such file", "no-file", hint)
        if self.tls is not None and not self.tls.is_dir():
            hint = "`crosswind cert` makes a set"
            raise DescriptionError(f"--tls is {str(self.tls)!r}: no such directory", "no-file", hint)
        placing = Placing(given, self.per, self.listen, self.token_file, self.tls, self.links, self.allow_loose_token)
        return placing if placing else None


@dataclass(frozen=True)
class Recorded:
    """What is written of what each node did when."""

    trace: Annotated[
        Path | None,
        typer.Option(help="Write what each node of a farm did when, as Parquet (one run).", rich_help_panel=OUTPUT),
    ] = None
    perfetto: Annotated[
        Path | None,
        typer.Option(help="Write the same as JSON for ui.perfetto.dev (one run).", rich_help_panel=OUTPUT),
    ] = None

    def check(self, out: Path | None, read: list[Path | None], *, force: bool) -> None:
        """Refuse files that cannot be written, before the work begins.

        Raises
        ------
        DescriptionError, CrosswindError
            As `crosswind.cli.outputs.writable`.
        """
        distinct({"--out": out, "--trace": self.trace, "--perfetto": self.perfetto})
        writable(self.trace, "trace", "--trace", inputs=read, force=force)
        writable(self.perfetto, "perfetto", "--perfetto", inputs=read, force=force)

    @property
    def wanted(self) -> bool:
        """Whether anything is written."""
        return bool(self.trace or self.perfetto)

    def write(self, done: Runs[Any]) -> list[str]:
        """Write it, and return the files."""
        if done.trace is None:
            return []
        if self.trace:
            done.trace.save(self.trace)
        if self.perfetto:
            from crosswind.run.perfetto import write_perfetto

            write_perfetto(done.trace, self.perfetto)
        return [*written(self.trace), *written(self.perfetto)]


def seconds_of(option: str, value: float | None, *, above_zero: bool = False) -> float | None:
    """Return a number of seconds.

    Raises
    ------
    DescriptionError
        When it is not finite, or below what is permitted.
    """
    if value is None or (math.isfinite(value) and (value > 0 if above_zero else value >= 0)):
        return value
    permitted = "finite and greater than 0" if above_zero else "finite and at least 0"
    raise DescriptionError(f"{option} is {value} s; it must be {permitted}", "argument")


def tell_events(done: Runs[Any], most: int) -> None:
    """Say what happened in a single run: agents lost, tasks run again, tasks that failed."""
    if len(done) == 1:
        for event in done[0].events[:most]:
            tell(f"{event['t_s']:.3f} s: {event['message']}".replace("\n", "\n    "))


def failed(done: Runs[Any]) -> bool:
    """Return whether a task of a run failed for good."""
    return any(event["code"] == "task-failed" for one in done for event in one.events)
