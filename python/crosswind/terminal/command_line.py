"""A command as it is typed: split into program and arguments, or left to a shell where that was asked for."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator

from crosswind.errors import DescriptionError

SHELL = "/bin/sh"
_OPERATORS = "|&;<>()\n"
_EXPANDED = "$`"
_PATTERNS = "*?["
_AT_THE_START = "~#"


def shell_syntax(text: str) -> str | None:
    """Return the first character that only a shell gives a meaning, since it is not quoted; None: there is none.

    Examples
    --------
    >>> shell_syntax("./a | cat"), shell_syntax("python3 -c 'print(1) # $x'"), shell_syntax('echo "$HOME"')
    ('|', None, '$')
    """
    start = True
    for letter, quote in _unescaped(text):
        if quote != "'" and letter in _EXPANDED:
            return letter
        if not quote and (letter in _OPERATORS + _PATTERNS or (start and letter in _AT_THE_START)):
            return letter
        start = not quote and letter.isspace()
    return None


def _unescaped(text: str) -> Iterator[tuple[str, str]]:
    """Yield each character with the quotes in which it stands; quotes and what a backslash takes are left out."""
    quote, escaped = "", False
    for letter in text:
        if escaped:
            escaped = False
            yield "a", quote
        elif letter == "\\" and quote != "'":
            escaped = True
        elif letter == quote:
            quote = ""
        elif letter in "'\"" and not quote:
            quote = letter
        else:
            yield letter, quote


def words_of(text: str, subject: str, *, shell: bool = False, option: str = "--shell") -> list[str]:
    """Return program and arguments of a command; with `shell`, those of a shell that runs it.

    Parameters
    ----------
    text : str
        The command.
    subject : str
        What it is called in errors, such as "A" or "--task".
    shell : bool
        Whether a shell runs it.
    option : str
        How a shell is asked for.

    Raises
    ------
    DescriptionError
        When there is no such program, or it has shell syntax without a shell.

    Examples
    --------
    >>> words_of("true 'a b'", "A"), words_of("true | cat", "A", shell=True)
    (['true', 'a b'], ['/bin/sh', '-c', 'true | cat'])
    """
    if not text.strip():
        raise DescriptionError(f"{subject} is empty; it must be a command", "command")
    if shell:
        return [SHELL, "-c", text]
    if letter := shell_syntax(text):
        message = f"{subject} is {text!r}; {letter!r} is shell syntax, and no shell runs it"
        hint = f"{option} runs it in a shell; quote {letter!r} to pass it on as it is"
        raise DescriptionError(message, "shell", hint)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise DescriptionError(f"{subject} is {text!r}: {error}", "command") from None
    if not words or shutil.which(words[0]) is None:
        hint = f"{option} runs it in a shell, which has builtins and aliases of its own"
        raise DescriptionError(f"{subject} is {text!r}; there is no such program", "command", hint)
    return words
