"""`--token-file` and `--tls`, the same for every verb that listens or dials."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crosswind.access import read_token

ACCESS = "Access"

TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="The shared secret, 16 bytes or more; required off loopback, unless --tls is given.",
        rich_help_panel=ACCESS,
    ),
]
TlsDirectory = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="This node's certificate, key and authority, as `crosswind cert` makes them.",
        rich_help_panel=ACCESS,
    ),
]

AllowLooseToken = Annotated[
    bool,
    typer.Option(
        "--allow-loose-token",
        help="Accept a token file that others may read or write.",
        rich_help_panel=ACCESS,
    ),
]


def token_in(file: Path | None, allow_loose: bool) -> str | None:
    """Return the token of a file; None where no file is given."""
    return read_token(file, allow_loose) if file is not None else None
