"""`--out`, `--force` and `--json`, the same for every verb that writes a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from crosswind.cli.console import take_stdout
from crosswind.files import output
from crosswind.files.atomic import is_standard_output

OUTPUT = "Output"
_replaced: set[str] = set()
Force = Annotated[
    bool, typer.Option("--force", help="Replace files of any kind and experiment.", rich_help_panel=OUTPUT)
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def writable(
    path: Path | None,
    kind: str,
    option: str = "--out",
    *,
    inputs: Iterable[str | Path | None] = (),
    force: bool = False,
    of: Mapping[str, Any] | None = None,
) -> None:
    """Refuse an output path before the work begins; "-" takes standard output, so that nothing else goes there.

    Raises
    ------
    DescriptionError, CrosswindError
        As `crosswind.files.output.writable`.
    """
    output.writable(path, kind, option=option, inputs=inputs, force=force, of=of)
    if is_standard_output(path):
        take_stdout()
    elif path is not None and output.has_content(path):
        _replaced.add(str(path))


def written(path: Path | None, *facts: str, goes_on: bool = False) -> list[str]:
    """Return a file as the last line of a verb names it: with its size, and whether an older result was replaced.

    Parameters
    ----------
    path : Path, optional
        None: nothing was written.
    facts : str
        Such as the number of runs in it.
    goes_on : bool
        Whether what was in the file was kept (`--resume`).
    """
    if path is None:
        return []
    about = [*facts, *(["an older one was replaced"] if str(path) in _replaced and not goes_on else [])]
    return [f"{path} ({', '.join(about)})" if about else str(path)]


def file_of(path: Path | None) -> Path | None:
    """Return where results may be written as they come in; standard output gets the whole at the end instead."""
    return None if is_standard_output(path) else path
