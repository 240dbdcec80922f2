"""`crosswind serve`: the other end of a measurement, or a node of a farm."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from crosswind.cli.access import AllowLooseToken, TlsDirectory, TokenFile, token_in
from crosswind.cli.console import tell
from crosswind.cli.options import spread
from crosswind.cli.verbs import help_of
from crosswind.cli.watch import Watched

_LARGEST_ABOUT_BYTES = 65_536

EXAMPLES = """
Examples:

    crosswind serve

    crosswind serve --listen 192.168.1.7:7117 --token-file token

    crosswind serve --parent 192.168.1.7:7200 --name Lab3 --token-file token

    crosswind serve --parent 192.168.1.7:7200 --name Lab3 --tls certs/Lab3

    crosswind serve --hosts hosts.toml --name Lab3 --token-file token --watch

With --parent or --hosts it is a node of a farm whose root is elsewhere, until its run ends; --listen only where it has
children of its own. --watch then shows what comes through this node.

Asked to end (ctrl-C, SIGTERM, SIGHUP), a node gives back what waits there and finishes what it computes; ctrl-C again
ends it.
"""


DEFAULT_LISTEN = "127.0.0.1:7117"


@spread
def serve(
    *,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help=f"Port 0 takes a free one; default {DEFAULT_LISTEN}. Off loopback --token-file or --tls is needed.",
        ),
    ] = None,
    parent: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve as a node of a farm, below this parent.")
    ] = None,
    hosts: Annotated[
        Path | None,
        typer.Option(metavar="HOSTS.toml", help="As --parent, with parent and address taken from this file."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="The node's name in the platform.")] = None,
    token_file: TokenFile = None,
    allow_loose_token: AllowLooseToken = False,
    tls: TlsDirectory = None,
    about: Annotated[
        Path | None,
        typer.Option(
            help="File with the rates of a node that the platform does not know: a node of a platform in JSON."
        ),
    ] = None,
    watched: Watched,
) -> None:
    """Be the other end of a measurement, or a node of a farm."""
    if hosts is not None:
        parent, listen = _of_file(hosts, name, parent, listen)
    if parent is not None:
        _be_agent(parent, name, token_in(token_file, allow_loose_token), tls, about, listen, watched)
        return
    watched.refuse("the other end of a measurement", "--parent or --hosts: a node of a farm shows its part of a run")
    from crosswind.serve import serve as serve_forever

    serve_forever(
        listen or DEFAULT_LISTEN,
        on_listening=lambda address: tell(f"listening on {address}; ctrl-C ends"),
        token=token_in(token_file, allow_loose_token),
        tls=tls,
    )


def _of_file(hosts: Path, name: str | None, parent: str | None, listen: str | None) -> tuple[str, str | None]:
    from crosswind.errors import DescriptionError
    from crosswind.run.hosts import Hosts

    if parent is not None or listen is not None:
        given = "--parent" if parent is not None else "--listen"
        raise DescriptionError(f"{given} does not go with --hosts: the file has it", "argument")
    if name is None:
        raise DescriptionError("--name is missing; --hosts needs it", "argument", "which host of the file is this?")
    found = Hosts.load(hosts)
    return found.dials(name), found.listens(name)


def _be_agent(
    parent: str,
    name: str | None,
    token: str | None,
    tls: Path | None,
    about: Path | None,
    listen: str | None,
    watched: Watched,
) -> None:
    import signal

    from crosswind.errors import DescriptionError
    from crosswind.run.supervision import supervise
    from crosswind.terminal.signals import told_at

    if name is None or (token is None and tls is None):
        missing = "--name" if name is None else "--token-file or --tls"
        raise DescriptionError(f"{missing} is missing; --parent needs it", "argument")
    with told_at([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]) as leave, _shown(watched, token) as standing:
        supervise(
            parent,
            name,
            token,
            tls=str(tls) if tls is not None else None,
            listen=listen,
            about=_text(about, "--about") if about is not None else "",
            leave=leave,
            standing=standing,
            on_listening=lambda address: tell(f"children connect to {address}"),
            on_restart=lambda why: tell(f"{why}; starting it again"),
        )


@contextmanager
def _shown(watched: Watched, token: str | None) -> Iterator[Path | None]:
    """Serve the page of this node, if one is wanted; yields where the agent is to write how it stands."""
    if not watched.asked:
        yield None
        return
    from crosswind.run.spool import Spool
    from crosswind.watch.status_files import followed

    with closing(Spool()) as spool, watched.page(token) as watch, followed(spool.path, watch):
        yield spool.path


def _text(path: Path, option: str) -> str:
    from crosswind.errors import DescriptionError
    from crosswind.files.reading import read_bytes

    try:
        return read_bytes(path, _LARGEST_ABOUT_BYTES).decode()
    except UnicodeDecodeError as error:
        raise DescriptionError(f"{option} is {str(path)!r}: {error}", "no-file") from None


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("serve", help=help_of("serve", EXAMPLES))(serve)
