"""What a result may be written over, asked before the work begins; writing itself is `crosswind.files.atomic`.

Refused is what can be no file, an input of the same work, and, unless forced, a file of another kind or of another
experiment: its name may have been given by mistake.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from crosswind.errors import DescriptionError
from crosswind.files.atomic import (
    NotAPlaceError,
    is_standard_output,
    may,
    place_of,
    refuse_when_full,
    try_file,
)
from crosswind.files.kinds import BINARY, EMPTY, MISSING, WORDS, Found, found_at

ANOTHER = "runs-differ"
"""Code of the error about a file of another experiment."""
_SHOWN = {
    "experiment": "{!r}",
    "paper": "{!r}",
    "on": "on {}",
    "form": "{} form",
    "cluster": "at {}",
    "asked": "{}",
    "command": "{}",
}
"""Fields by which messages name an experiment's result; of any other field they name the two values."""

_HIDDEN = frozenset({"digest", "asked"})
"""Fields whose value says nothing to a reader."""


def writable(
    path: str | Path | None,
    kind: str,
    *,
    option: str | None = None,
    inputs: Iterable[str | Path | None] = (),
    force: bool = False,
    of: Mapping[str, Any] | None = None,
) -> None:
    """Refuse an output path now rather than after hours of work.

    Parameters
    ----------
    path : path, optional
        Where the result is to go; None: nowhere, which is always permitted; "-": standard output.
    kind : str
        Of the result: one of `crosswind.files.kinds.WORDS`.
    option : str, optional
        What names the path on the command line.
    inputs : iterable of paths
        What the work reads; a directory stands for the files in it.
    force : bool
        Whether a file of another kind or another experiment may be replaced.
    of : mapping, optional
        Fields of the result that say of what it is, such as `host.name`: a file that has one of them otherwise is
        another experiment's.

    Raises
    ------
    DescriptionError
        When nothing can, or nothing should, be written there.
    CrosswindError
        With code `no-space`, when the disk is full.
    """
    if path is None:
        return
    if is_standard_output(path):
        if kind in BINARY and sys.stdout.isatty():
            message = f"{WORDS[kind]} is binary, and standard output is a terminal"
            raise DescriptionError(message, "out", "name a file, or a pipe: `... -o - | other`")
        return
    subject = f"{option} is {str(path)!r}, " if option else f"{str(path)!r} is "
    try:
        place = place_of(path)
        try_file(place.parent)
    except NotAPlaceError as error:
        raise DescriptionError(f"{subject}{error.what}", "out", error.hint) from None
    if place.exists():
        if any(_is_same(place, each) for one in inputs if one is not None for each in _files(Path(one))):
            raise DescriptionError(f"{subject}an input of the same command", "out", "name another file")
        if not force:
            hint = f"name another file, or replace it with {'--force' if option else 'force=True (--force)'}"
            _refuse_another(place, kind, of or {}, subject, hint)
    refuse_when_full(place)


def writable_directory(path: str | Path | None, option: str | None = None) -> None:
    """Refuse a directory for results that cannot be made or written to, before the work begins.

    Raises
    ------
    DescriptionError
        When it is none.
    """
    if path is None:
        return
    subject = f"{option} is {str(path)!r}, " if option else f"{str(path)!r} is "
    if is_standard_output(path):
        raise DescriptionError(f"{subject}standard output; several files are written", "out", "name a directory")
    there = Path(path).absolute()
    while not os.path.lexists(there) and there != there.parent:
        there = there.parent
    within = "" if there == Path(path).absolute() else f"in {str(there)!r}, which is "
    if not there.is_dir():
        raise DescriptionError(f"{subject}{within}no directory", "out", "name a directory")
    if not may(there, os.W_OK | os.X_OK):
        message = f"{subject}{within}a directory that cannot be written to"
        raise DescriptionError(message, "out", "name another directory")
    try:
        try_file(there)
    except NotAPlaceError as error:
        raise DescriptionError(f"{subject}{error.what}", "out", error.hint) from None


def distinct(outputs: Mapping[str, str | Path | None]) -> None:
    """Refuse two options that name one file.

    Raises
    ------
    DescriptionError
        Naming both.
    """
    known: dict[str, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        place = os.path.realpath(path) if not is_standard_output(path) else str(path)
        if place in known:
            message = f"{known[place]} and {option} are both {str(path)!r}"
            raise DescriptionError(message, "out", "name two files")
        known[place] = option


def has_content(path: str | Path) -> bool:
    """Whether a file that is not empty lies at a path."""
    try:
        return Path(path).stat().st_size > 0
    except OSError:
        return False


def _files(path: Path) -> Iterable[Path]:
    return path.iterdir() if path.is_dir() else (path,)


def _is_same(place: Path, other: Path) -> bool:
    """Whether two paths are one file, by whatever links."""
    try:
        return place.samefile(other)
    except OSError:
        return False  # a missing input: reading it reports that


def _refuse_another(place: Path, kind: str, of: Mapping[str, Any], subject: str, hint: str) -> None:
    try:
        found = found_at(place)
    except OSError:
        message = f"{subject}a file that cannot be read, so what would be replaced is not known"
        raise DescriptionError(message, "out", hint) from None
    if found.kind == EMPTY:
        return
    if found.kind != kind:
        message = f"{subject}{found.words}; {WORDS[kind]} would take its place"
        raise DescriptionError(message, "other-kind", hint)
    differing = [name for name in of if found.at(name) is not MISSING and found.at(name) != of[name]]
    if differing:
        raise DescriptionError(f"{subject}{_of_another(found, of, differing)}", ANOTHER, hint)


def _of_another(found: Found, of: Mapping[str, Any], differing: list[str]) -> str:
    told = {name: value for name, value in found.fields.items() if name in _SHOWN and not isinstance(value, dict)}
    shown = ", ".join(form.format(told[name]) for name, form in _SHOWN.items() if name in told)
    if set(differing) & set(told):
        return f"{found.words}, but of another: {shown}"
    settings = [name for name in differing if name not in _HIDDEN]
    if settings:
        values = (f"{name} is {found.at(name)!r}, now {of[name]!r}" for name in settings)
        return f"{found.words}, but of another: {'; '.join(values)}"
    return f"{found.words} ({shown}), but made with other settings or files"
