"""The shared token, read from a file."""

from __future__ import annotations

import os
import shlex
import stat
import unicodedata
from pathlib import Path

from crosswind.errors import DescriptionError

_LARGEST_BYTES = 4096
_OTHERS = 0o077


def read_token(file: Path, allow_loose: bool = False) -> str:
    """Return a token, space around it left out.

    Parameters
    ----------
    file : path
        A file, or a pipe such as a shell's `<(command)`.
    allow_loose : bool
        Take it although others than its owner may read or write it.

    Raises
    ------
    DescriptionError
        When the file cannot be read, others may read it, or it is not one line: agents get the token as a line.
    """
    hint = "head -c 32 /dev/urandom | base64 > token; chmod 600 token"
    told = f"--token-file is {str(file)!r}"
    try:
        with file.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode  # of what is read, wherever links lead
            content = opened.read(_LARGEST_BYTES + 1)
        token = content.decode().strip()
    except OSError as error:
        raise DescriptionError(f"{told}: {(error.strerror or str(error)).lower()}", "no-file", hint) from None
    except UnicodeDecodeError:
        raise DescriptionError(f"{told}: it is no text", "no-file", hint) from None
    kept = stat.S_ISREG(mode) or stat.S_ISFIFO(mode)  # a terminal keeps nothing that others could read later
    if kept and mode & _OTHERS and not allow_loose:
        message = (
            f"{told}, of mode {stat.S_IMODE(mode):04o}: users other than its owner may read or write it; "
            "it must be 0600, or --allow-loose-token be given"
        )
        raise DescriptionError(message, "loose-token", f"chmod 600 {shlex.quote(str(file))}")
    if len(content) > _LARGEST_BYTES:
        raise DescriptionError(f"{told}: it has more than {_LARGEST_BYTES} bytes, the most of a token", "token", hint)
    if token.startswith("\ufeff") or any(
        unicodedata.category(letter) == "Cc" for letter in token if letter not in "\r\n"
    ):
        what = "a byte order mark" if token.startswith("\ufeff") else "a control character"
        raise DescriptionError(f"{told}: it has {what} in it; it must be one line of printable text", "token", hint)
    if (lines := len(token.splitlines())) != 1:
        message = f"{told}: it has {lines} lines; it must have one, of 16 bytes or more"
        raise DescriptionError(message, "token", hint)
    return token
