"""What a command is run over: files, or values that are no files; and the placeholders that stand for them."""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final, overload

from crosswind import _core
from crosswind.errors import DescriptionError, Notice, warning

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
    warnings: list[Notice] = field(default_factory=list)

    @property
    def noun(self) -> str:
        """What one of them is called."""
        return "value" if self.are_values else "file"


class Names(Sequence[str]):
    """Names in little room: a million paths take some 35 MB, where a list of them takes 130.

    Parameters
    ----------
    names : iterable of bytes
        The first names.

    Examples
    --------
    >>> names = Names([b"in/b", b"in/a c", b""])
    >>> len(names), list(names), names[-2]
    (3, ['in/b', 'in/a c', ''], 'in/a c')
    >>> names.sort_from(1)
    >>> list(names)
    ['in/b', '', 'in/a c']
    """

    def __init__(self, names: Iterable[bytes] = ()) -> None:
        self._names = _core.Names()
        self.add, self.sort_from = self._names.push, self._names.sort_from
        self.remove_repeated = self._names.remove_repeated
        for name in names:
            self.add(name)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._names)

    @overload
    def __getitem__(self, at: int) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> list[str]: ...

    def __getitem__(self, at: int | slice) -> str | list[str]:
        """Return one, or those of a slice."""
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        found = self._names.get(at if at >= 0 else at + len(self)) if at >= -len(self) else None
        if found is None:
            raise IndexError(at)
        return os.fsdecode(found)


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
    if not _is_text(command):
        hint = "write it into a script, and have the command run that: sh script.sh {input}"
        raise DescriptionError(f"the command {command!r} is not UTF-8", "command", hint)
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


def _is_text(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:  # from a command line or a file of other bytes
        return False
    return True


def listed(given: Sequence[str]) -> Sequence[str]:
    """Return names or values; `-` stands for those on standard input, one per line or each before a 0 byte."""
    if "-" not in given:
        return given
    names = Names()
    for word in given:
        for name in _from_stdin() if word == "-" else [os.fsencode(word)]:
            names.add(name)
    return names


def _from_stdin() -> Iterator[bytes]:
    data = sys.stdin.buffer.read()
    parts = re.finditer(rb"[^\0]+" if b"\0" in data else rb"[^\r\n]+", data)
    if (first := next(parts, None)) is None:
        raise DescriptionError(
            "standard input is empty", "no-input", "- reads names or values from there, one per line"
        )
    yield first[0]
    for part in parts:
        yield part[0]


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
        names = values if isinstance(values, Names) else Names(os.fsencode(value) for value in values)
        return Inputs(names, are_values=True, bytes=sum(len(os.fsencode(value)) for value in names))
    files, unreadable = Names(), Names()
    for given in inputs:
        path = Path(given)
        if not str(given):
            raise DescriptionError("--inputs is ''; it must name files", "no-file", "a variable in it may be empty")
        if path.is_file():
            if not os.access(path, os.R_OK):
                raise DescriptionError(f"{path}: cannot be read", "no-file", "leave it out, or ask its owner")
            _refuse_two_meanings(path, inputs)
            files.add(os.fsencode(path))
            continue
        begin, before = len(files), len(files) + len(unreadable)
        for file in _matching(path):
            (files if os.access(file, os.R_OK) else unreadable).add(file)
        if len(files) + len(unreadable) == before:
            raise _nothing(str(given), path)
        files.sort_from(begin)
    files.remove_repeated()
    unreadable.sort_from(0)
    unreadable.remove_repeated()
    if not files:
        if unreadable:
            message = f"none of {len(unreadable)} inputs can be read"
            raise DescriptionError(message, "no-file", f"such as {unreadable[0]}")
        raise DescriptionError("there are no inputs", "no-input", "--inputs 'data/*', or --values 1 --values 2")
    return Inputs(files, bytes=sum(map(_size, files)), warnings=_unreadable(unreadable))


def _size(file: str) -> int:
    try:
        return os.stat(file).st_size  # noqa: PTH116 (there may be a million)
    except OSError:  # gone since: its task says so
        return 0


def _refuse_two_meanings(path: Path, inputs: Sequence[str | Path]) -> None:
    """Refuse the name of a file that is a pattern, too, and matches files that are not named."""
    if "*" not in path.name and "?" not in path.name:
        return
    named = set(map(Path, inputs))
    matching = (Path(os.fsdecode(file)) for file in _matching(path))
    others = [file for file in matching if file not in named and file.is_file()]
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
    hint = "a pattern may hold *, ? and []; values that are no files: --values 1 --values 2"
    return DescriptionError(f"--inputs is {given!r}: no such file", "no-file", hint)


def _unreadable(files: Names) -> list[Notice]:
    """Return a warning that counts the files of patterns that cannot be read."""
    if not files:
        return []
    more = len(files) - _SHOWN
    named = ", ".join(files[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    counted = "1 input cannot be read and was" if len(files) == 1 else f"{len(files)} inputs cannot be read and were"
    message = f"{counted} left out: {named}"
    return [warning("inputs-unreadable", message, "ask their owner, or leave them out of the pattern")]


def _matching(pattern: Path) -> Iterator[bytes]:
    """Yield the files that a shell would: names that begin with a dot only where the pattern does, too.

    A directory's files are not listed before they are yielded: there may be a million.
    """
    last = pattern.name
    if not glob.has_magic(last):
        for file in glob.iglob(os.fspath(pattern), recursive=True):  # noqa: PTH207 (Path.glob yields hidden names)
            if not os.path.isdir(file):  # noqa: PTH112
                yield os.fsencode(file)
        return
    above = pattern if last == "**" else pattern.parent
    directories = glob.iglob(os.path.join(above, ""), recursive=True) if above.parts else ()  # noqa: PTH118, PTH207
    this = [""] if set(above.parts) <= {"**"} else []  # which `glob` does not yield
    matches = re.compile(fnmatch.translate("*" if last == "**" else last)).match
    for directory in chain(this, directories):
        with contextlib.suppress(OSError), os.scandir(directory or ".") as entries:
            for entry in entries:
                is_hidden = entry.name.startswith(".") and not last.startswith(".")
                if not is_hidden and matches(entry.name) and not entry.is_dir():
                    yield os.fsencode(directory + entry.name)
