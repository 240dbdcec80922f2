"""`crosswind serve`: the other end of a measurement."""

from __future__ import annotations

from typing import Annotated

import typer

from crosswind.cli.console import tell

EXAMPLES = """
Be the peer that `crosswind measure --peer HOST:PORT` exchanges traffic with, until ctrl-C.

Examples:

    crosswind serve

    crosswind serve --listen 192.168.1.7:7117
"""


def serve(
    listen: Annotated[
        str, typer.Option(help="HOST:PORT; port 0 takes a free one. Off loopback, anybody may measure with you.")
    ] = "127.0.0.1:7117",
) -> None:
    """Be the other end of a measurement."""
    from crosswind.serve import serve as serve_forever

    serve_forever(listen, on_listening=lambda address: tell(f"listening on {address}; ctrl-C ends"))


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("serve", help=EXAMPLES)(serve)
