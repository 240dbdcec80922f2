"""`--token-file` and `--tls`, the same for every verb that listens or dials."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crosswind.errors import DescriptionError

TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="What all who belong together share, 16 bytes or more; off loopback this or --tls."
    ),
]
TlsDirectory = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="This node's certificate, key and authority, as `crosswind cert` makes them."),
]


def token_in(file: Path | None) -> str | None:
    """Return the text of a token's file; None where there is none.

    Raises
    ------
    DescriptionError
        When it cannot be read.
    """
    if file is None:
        return None
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DescriptionError(f"--token-file is {str(file)!r}: {error}", "no-file") from None
