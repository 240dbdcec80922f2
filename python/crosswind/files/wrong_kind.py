"""A file that was given to the wrong verb: what it is, and the command that takes it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crosswind import _core
from crosswind.errors import DescriptionError
from crosswind.files.kinds import WORDS, found_at
from crosswind.files.reading import read_bytes

_TASK = "--task-size-mb MB --task-work WORK"
_DISTURBS = (
    'name it in an experiment (`disturbance = "{file}"`) for `crosswind run` and `crosswind blame`; '
    "`crosswind inject {file} -- COMMAND` injects it"
)
_TAKEN_BY = {
    "disturbance": _DISTURBS,
    "experiment": "`crosswind run {file}` takes it",
    "goal": (
        "`crosswind run {file}` runs it; to sweep over disturbances, name it in an experiment: `[workload]` with "
        '`kind = "program"`, `program = "goal"` and `parameters = {{ file = "{file}" }}`'
    ),
    "hosts": "`crosswind run EXPERIMENT.toml --on hosts:{file}` takes it",
    "links": f"`crosswind plan tree {{file}} {_TASK} -o platform.toml` makes a platform of it",
    "measurement": "run `crosswind fit {file} -o platform.toml` first: it makes a platform of it",
    "noise": _DISTURBS,
    "perfetto": "of traces of PyTorch's profiler, one per rank, `crosswind blame TRACE...` says which rank is slow",
    "platform": f'`crosswind plan {{file}} {_TASK}` takes it; an experiment names it (`platform = "{{file}}"`)',
    "recording": _DISTURBS,
    "recorded-program": "`crosswind blame {file}` says which rank is slow; `crosswind run {file}` runs it again",
    "trace": "run `crosswind fit {file} -o platform.toml` first: it makes a platform of it",
}
"""Kind of a file -> the command to type; `crosswind report` shows those of other kinds."""
_CALLED = WORDS | {"flows": "a table of flows"}
REPORT_TAKES = (
    "a report takes *.parquet (crosswind measure, run --trace), *.json (crosswind plan, run, blame, cost, compare, "
    "check, overlap, reproduce, inject --json), *.toml (platform, crosswind record), or a sweep's directory"
)
"""What can stand in a report, as a hint."""
_NOT_REPORTED = ("hosts", "schema", "perfetto", "report", "watched-page")


@contextmanager
def read_as(path: str | Path, *kinds: str) -> Iterator[None]:
    """Have an error in reading a file say what the file is, where it is not of these kinds.

    Raises
    ------
    DescriptionError
        That of the body, or one that names the kind of the file and the command that takes it.
    """
    try:
        yield
    except DescriptionError:
        found = _kind_of(path)
        if _is_xml(path):
            hint = "platforms and experiments of other simulators are not read; docs/reference/files.md has the fields"
            raise DescriptionError(f"{path} is XML, not {_CALLED[kinds[0]]}", "wrong-kind", hint) from None
        if found not in WORDS or found in kinds:
            raise
        raise wrong_kind(path, found, kinds[0]) from None


def read_result(path: str | Path, kind: str, written_by: str) -> Any:
    """Read a result that is one JSON document, checked by the core.

    Parameters
    ----------
    path : path
        The file.
    kind : str
        One of `WORDS`.
    written_by : str
        The command that writes one, for a hint.

    Raises
    ------
    DescriptionError
        When it is of another kind, or no JSON document; with the first field that is wrong.
    """
    with read_as(path, kind):
        content = read_bytes(path)
        if not content.lstrip().startswith(b"{"):
            what = f"{path} is {'empty' if not content.strip() else 'no JSON object'}; it must be {_CALLED[kind]}"
            raise DescriptionError(what, "wrong-kind", f"`{written_by}` writes one")
        return json.loads(_core.read_result(kind, content, str(path)))


def wrong_kind(path: str | Path, found: str, wanted: str) -> DescriptionError:
    """Return the error for a file of one kind where another is wanted.

    Examples
    --------
    >>> error = wrong_kind("here.parquet", "measurement", "platform")
    >>> print(error)
    here.parquet is a measurement, not a platform
    >>> print(error.hint)
    run `crosswind fit here.parquet -o platform.toml` first: it makes a platform of it
    """
    shows = "`crosswind report {file}` shows it" if found not in _NOT_REPORTED else f"it must be {_CALLED[wanted]}"
    hint = taken_by(path, found) or shows.format(file=shlex.quote(str(path)))
    return DescriptionError(f"{path} is {WORDS[found]}, not {_CALLED[wanted]}", "wrong-kind", hint)


def taken_by(path: str | Path, found: str) -> str | None:
    """Return the command that takes a file of a kind; None where that is `crosswind report`, or no command does."""
    hint = _TAKEN_BY.get(found)
    return hint and hint.format(file=shlex.quote(str(path)))


def _is_xml(path: str | Path) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(64).lstrip().startswith(b"<?xml")
    except (OSError, ValueError):  # a path may hold any character, 0 too
        return False


def _kind_of(path: str | Path) -> str:
    try:
        return found_at(path).kind if Path(path).is_file() else ""
    except OSError:
        return ""
