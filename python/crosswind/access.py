"""The token that all who belong together share, as it stands in a file."""

from __future__ import annotations

from pathlib import Path

from crosswind.errors import DescriptionError


def read_token(file: Path) -> str:
    """Return a token, space around it left out.

    Raises
    ------
    DescriptionError
        When the file cannot be read, or is not one line: agents get the token as a line.
    """
    hint = "head -c 32 /dev/urandom | base64 > token; chmod 600 token"
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise DescriptionError(f"--token-file is {str(file)!r}: {error}", "no-file", hint) from None
    if (lines := len(token.splitlines())) != 1:
        message = f"--token-file is {str(file)!r}: it has {lines} lines; it must have one, of 16 bytes or more"
        raise DescriptionError(message, "token", hint)
    return token
