"""Which shell interprets a command: `/bin/sh` runs each command, or hands it to the shell that the user names."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import PurePath
from typing import Final

from crosswind.errors import DescriptionError

SHELLS: Final = ("sh", "bash", "dash", "ash", "ksh", "ksh93", "mksh", "yash", "zsh")
"""Shells that read quoted words as `sh` does, which placeholders rely on."""


def words_of(shell: str, *, must_exist: bool) -> list[str]:
    """Return a shell and its options as words.

    Parameters
    ----------
    shell : str
        Such as `bash`, `/usr/local/bin/zsh` or `bash -eo pipefail`.
    must_exist : bool
        Whether this machine must have it: one whose nodes are elsewhere need not.

    Raises
    ------
    DescriptionError
        When it is not one of `SHELLS`, or is missing.

    Examples
    --------
    >>> words_of("sh -eu", must_exist=True)
    ['sh', '-eu']
    """
    known = ", ".join(SHELLS)
    try:
        words = shlex.split(shell)
    except ValueError:
        words = []
    if not words or PurePath(words[0]).name not in SHELLS:
        message = f"--shell is {shell!r}; it must be one of: {known}"
        raise DescriptionError(
            message, "argument", "other programs can be called in the command: fish -c '...' {input}"
        )
    if must_exist and shutil.which(words[0]) is None:
        raise DescriptionError(f"--shell is {shell!r}: this machine has no {words[0]}", "argument", "install it")
    return words


def handed_to(command: str, words: list[str]) -> str:
    """Return a line for `/bin/sh` that hands a command, whose placeholders are not filled, to another shell.

    The command stands in a here-document, so that placeholders in it are quoted as if it stood alone.

    Parameters
    ----------
    command : str
        The user's.
    words : list of str
        The shell and its options.
    """
    end = f"CROSSWIND-{os.urandom(8).hex()}"  # no value of a placeholder can be known to hold it
    program = shlex.quote(words[0])
    missing = shlex.quote(f"this node has no shell {words[0]} (--shell)")
    take = f"{{ set -- \"$(cat <&3)\"; }} 3<<'{end}'"
    return (
        f"command -v {program} >/dev/null || {{ echo {missing} >&2; exit 127; }}\n"
        f'{take}\n{command}\n{end}\nexec {shlex.join(words)} -c "$1"\n'
    )
