"""What a command is run over: files, or values that are no files; and the placeholders that stand for them."""

from __future__ import annotations

import glob
import os
import re
import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, overload

from crosswind import _core
from crosswind.errors import DescriptionError, Told, warning

PLACEHOLDERS: Final = ("{input}", "{output}", "{name}", "{stem}", "{ext}", "{number}", "{}", "{.}", "{/}")
_SHOWN: Final = 5
_QUOTED: Final = re.compile(r"'[^']*'")
_BRACED: Final = re.compile(r"(?<![$\\{])\{([A-Za-z_]\w*)\}")
_INSTEAD: Final = {
    "{/.}": "{stem} is the name without its last suffix",
    "{//}": "files of a node have directories of their own",
    "{#}": "{number} is the input's place, from 0",
    "{%}": "$CROSSWIND_NODE is the node's name",
}
"""What there is in the place of what parallel replaces."""
_OF_PARALLEL: Final = re.compile("|".join(rf"(?<![$\\{{]){re.escape(word)}" for word in _INSTEAD))


@dataclass
class Inputs:
    """The inputs of a run."""

    names: Sequence[str]
    """Paths of files, or values."""
    are_values: bool = False
    bytes: int = 0
    """Of all inputs together."""
    warnings: list[Told] = field(default_factory=list)


class Names(Sequence[str]):
    """Names in one piece: of a million, a list takes twice as much, and paths ten times.

    Parameters
    ----------
    names : list of bytes
        It is emptied, so that there are never two copies of all.

    Examples
    --------
    >>> names = Names([b"a", b"b c", b""])
    >>> len(names), list(names), names[-2]
    (3, ['a', 'b c', ''], 'b c')
    """

    def __init__(self, names: list[bytes]) -> None:
        size = sum(map(len, names))
        self._text, self._ends = bytearray(size), array("I" if size < 2**32 else "Q")
        names.reverse()
        end = 0
        while names:
            name = names.pop()
            begin, end = end, end + len(name)
            self._text[begin:end] = name
            self._ends.append(end)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._ends)

    @overload
    def __getitem__(self, at: int) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> list[str]: ...

    def __getitem__(self, at: int | slice) -> str | list[str]:
        """Return one, or those of a slice."""
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        at = range(len(self))[at]
        return os.fsdecode(bytes(self._text[self._ends[at - 1] if at else 0 : self._ends[at]]))


def check_placeholders(command: str) -> None:
    """Refuse a command that does not use its input, or that has an unknown placeholder outside of single quotes.

    Raises
    ------
    DescriptionError
        With what it might have meant.

    Examples
    --------
    >>> check_placeholders("gzip -c {input} > {output}")
    >>> check_placeholders("awk '{print}' {}")
    """
    outside = _QUOTED.sub("", command)
    unknown = [f"{{{word}}}" for word in _BRACED.findall(outside) if f"{{{word}}}" not in PLACEHOLDERS]
    if unknown:
        known = ", ".join(PLACEHOLDERS[:6])
        hint = f"there are {known}; quote it as '{unknown[0]}' to hand it to the shell as it is"
        raise DescriptionError(f"the command {command!r} has the unknown {unknown[0]}", "command", hint)
    if of_parallel := _OF_PARALLEL.search(outside):
        word = of_parallel[0]
        hint = f"{_INSTEAD[word]}; quote it as '{word}' to hand it to the shell as it is"
        raise DescriptionError(f"the command {command!r} has the unknown {word}", "command", hint)
    if not _core.uses_input(command):
        message = f"the command {command!r} does not use its input: there is no {{input}}"
        raise DescriptionError(message, "command", f"{command} {{input}}" if command.strip() else "wc -l < {input}")


def listed(given: Sequence[str]) -> list[str]:
    """Return names or values; `-` stands for those on standard input, one per line or each before a 0 byte."""
    return [one for word in given for one in (_from_stdin() if word == "-" else [word])]


def _from_stdin() -> list[str]:
    data = sys.stdin.buffer.read()
    parts = data.split(b"\0") if b"\0" in data else data.splitlines()
    found = [os.fsdecode(part) for part in parts if part]
    if not found:
        raise DescriptionError(
            "standard input is empty", "no-input", "- reads names or values from there, one per line"
        )
    return found


def inputs_of(inputs: Sequence[str | Path], values: Sequence[str]) -> Inputs:
    """Return files and the files of patterns, each once, or values.

    Raises
    ------
    DescriptionError
        When there are none, or both; when a file that is named does not exist or cannot be read.
    """
    if values:
        if inputs:
            message = "--inputs and --values are both given; a run has files or values"
            raise DescriptionError(message, "argument", "write the values into files, or name no files")
        encoded = [os.fsencode(value) for value in values]
        size = sum(map(len, encoded))
        return Inputs(Names(encoded), are_values=True, bytes=size)
    files: list[bytes] = []  # there may be a million: they take less room than text
    unreadable: list[bytes] = []
    for given in inputs:
        path = Path(given)
        if not str(given):
            raise DescriptionError("--inputs is ''; it must name files", "no-file", "a variable in it may be empty")
        if path.is_file():
            if not os.access(path, os.R_OK):
                raise DescriptionError(f"{path}: cannot be read", "no-file", "leave it out, or ask its owner")
            _refuse_two_meanings(path, inputs)
            files.append(os.fsencode(path))
            continue
        found = sorted(os.fsencode(file) for file in _matching(path) if not file.is_dir())
        if not found:
            raise _nothing(str(given), path)
        unreadable += (file for file in found if not os.access(file, os.R_OK))
        if unreadable:
            found = [file for file in found if os.access(file, os.R_OK)]
        files = files + found if files else found
    if len(inputs) > 1:
        files = list(dict.fromkeys(files))
    if not files:
        if unreadable:
            raise DescriptionError(
                f"none of {len(unreadable)} inputs can be read", "no-file", f"such as {os.fsdecode(unreadable[0])}"
            )
        raise DescriptionError("there are no inputs", "no-input", "--inputs 'data/*', or --values 1 --values 2")
    size = sum(os.stat(file).st_size for file in files)  # noqa: PTH116
    return Inputs(Names(files), bytes=size, warnings=_unreadable(unreadable))


def _refuse_two_meanings(path: Path, inputs: Sequence[str | Path]) -> None:
    """Refuse the name of a file that is a pattern, too, and matches files that are not named."""
    if "*" not in path.name and "?" not in path.name:
        return
    named = set(map(Path, inputs))
    others = [file for file in _matching(path) if file not in named and file.is_file()]
    if others:
        message = f"--inputs is {str(path)!r}: a file has this name, and as a pattern it matches {others[0]} and more"
        hint = "without quotes the shell names them all; [*] and [?] stand for the letters themselves"
        raise DescriptionError(message, "no-file", hint)


def _nothing(given: str, path: Path) -> DescriptionError:
    if path.is_dir():
        hint = f"name the files in it: --inputs '{given.rstrip('/')}/*'"
        return DescriptionError(f"--inputs is {given!r}: a directory", "no-file", hint)
    if path.exists():
        return DescriptionError(f"--inputs is {given!r}: not a regular file", "no-file", "copy what it holds to a file")
    if any(letter in given for letter in "*?["):
        return DescriptionError(f"--inputs is {given!r}: no file matches", "no-file", "check the pattern")
    return DescriptionError(f"--inputs is {given!r}: no such file", "no-file", "a pattern may hold *, ? and []")


def _unreadable(files: list[bytes]) -> list[Told]:
    """Return a warning that counts the files of patterns that cannot be read."""
    if not files:
        return []
    more = len(files) - _SHOWN
    named = ", ".join(map(os.fsdecode, files[:_SHOWN])) + (f" and {more} more" if more > 0 else "")
    counted = "1 input cannot be read and was" if len(files) == 1 else f"{len(files)} inputs cannot be read and were"
    message = f"{counted} left out: {named}"
    return [warning("inputs-unreadable", message, "ask their owner, or leave them out of the pattern")]


def _matching(pattern: Path) -> Iterator[Path]:
    """Yield what a shell would: names that begin with a dot only where the pattern does, too."""
    return map(Path, glob.iglob(os.fspath(pattern), recursive=True))  # noqa: PTH207 (it yields hidden names)
