"""How every result gets into its file: complete or not at all; and how JSON that says its kind is read.

A file is written under a name that nothing else has, in the directory of the file that it replaces, synced, and then
renamed. Until then an older file stays as it is. What may be written where is asked before the work begins, by
`crosswind.files.output`.
"""

from __future__ import annotations

import errno
import json
import math
import os
import signal
import stat
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from types import FrameType
from typing import IO, Any, NoReturn

from crosswind.errors import CrosswindError, DescriptionError
from crosswind.files.reading import Links, json_of

STANDARD_OUTPUT = "-"
"""The path that stands for standard output, as on command lines."""
PART_SUFFIX = ".part"
_PART_PREFIX = ".crosswind-"  # of the results of a farm too: crates/live/src/farm/result_writer.rs
_FULL = (errno.ENOSPC, errno.EDQUOT)
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
)


class NotAPlaceError(Exception):
    """A path at which no file can be written: what it is, and what to do."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.what, self.hint = what, hint


def is_standard_output(path: str | Path | None) -> bool:
    """Whether a path stands for standard output."""
    return path is not None and str(path) == STANDARD_OUTPUT


def place_of(path: str | Path) -> Path:
    """Return the regular file, there or not yet, that a result written to `path` replaces: where links lead to.

    Raises
    ------
    NotAPlaceError
        When it is no regular file, a link that leads to none, or in a directory that cannot be written to.
    """
    path = Path(path).absolute()
    linked = f"a symbolic link to {str(path.readlink())!r}, " if path.is_symlink() else ""
    if linked and _is_planted(path):
        raise NotAPlaceError(f"{linked}of another user, in a directory that all may write to", "name another file")
    try:
        there = _status(path)
        if there is None and linked:
            raise NotAPlaceError(f"{linked}which does not exist", "name the file itself")
        if there is not None and not stat.S_ISREG(there.st_mode):
            what = next((word for is_one, word in _KINDS if is_one(there.st_mode)), "no regular file")
            hint = "name a file" if what == "a directory" else "name a file; `-` is standard output"
            raise NotAPlaceError(linked + what, hint)
        place = Path(os.path.realpath(path, strict=True)) if linked else path
    except OSError as error:
        raise NotAPlaceError(f"{linked}a path that cannot be used: {_why(error)}", "name another file") from None
    if not place.parent.is_dir():
        raise NotAPlaceError("in a directory that does not exist", "make it first")
    if not may(place.parent, os.W_OK | os.X_OK):
        raise NotAPlaceError(f"in a directory that cannot be written to ({place.parent})", "name another directory")
    if there is not None and (not may(place, os.W_OK) or _is_held(place.parent, there)):
        raise NotAPlaceError("a file that cannot be written to", "name another file, or change its permissions")
    return place


def try_file(directory: Path) -> None:
    """Make a file in a directory and remove it again: permissions alone do not say whether one can be made there.

    Raises
    ------
    NotAPlaceError
        When none can be made, as in `/proc`.
    CrosswindError
        With code `no-space`, when the disk is full.
    """
    part = directory / f"{_PART_PREFIX}{os.urandom(8).hex()}{PART_SUFFIX}"
    with _ended_by_signals():
        try:
            os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
            part.unlink()
        except OSError as error:
            if error.errno in _FULL:
                _refuse_full(part)
            what = f"in a directory in which no file can be made ({directory}: {_why(error)})"
            raise NotAPlaceError(what, "name another directory") from None


def refuse_when_full(path: str | Path) -> None:
    """Refuse a file in a directory whose file system has no space left.

    Raises
    ------
    CrosswindError
        With code `no-space`.
    """
    place = Path(path).absolute()
    try:
        about = os.statvfs(place.parent)
    except OSError:
        return  # unknown; writing will show it
    left = about.f_bfree if os.geteuid() == 0 else about.f_bavail  # a part may be reserved for root
    if about.f_blocks and not left:
        _refuse_full(place)


def made(directory: str | Path, code: str = "out") -> Path:
    """Return a directory for results, created if missing.

    Raises
    ------
    DescriptionError
        When it cannot be made, with `code`.
    """
    path = Path(directory)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "name a directory that can be made"
        raise DescriptionError(f"{path}: {_why(error)}", code, hint) from None
    return path


@contextmanager
def replaced(path: str | Path, *, sync: bool = True, mode: int | None = None) -> Iterator[IO[bytes]]:
    """Yield a binary file that takes the place of the one at `path` at the end, and only when nothing went wrong.

    The mode of a file that exists stays, unless `mode` names another. Links are followed: the file that they lead to is
    replaced. After an error, ctrl-C, SIGTERM or SIGHUP the old file is as it was, and nothing else is left. "-" is
    standard output. Without `sync` the disk is not waited for: of many small files, where a torn one does no harm.

    Raises
    ------
    DescriptionError
        When there can be no file at `path`.
    CrosswindError
        When it cannot be written; with code `no-space` when the disk is full.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "a.txt"
    >>> with replaced(file) as new:
    ...     _ = new.write(b"whole")
    >>> file.read_text()
    'whole'
    """
    if is_standard_output(path):
        whole = BytesIO()
        yield whole
        sys.stdout.flush()
        sys.stdout.buffer.write(whole.getbuffer())
        sys.stdout.buffer.flush()
        return
    try:
        place = place_of(path)
    except NotAPlaceError as error:
        raise DescriptionError(f"{str(path)!r} is {error.what}", "out", error.hint) from None
    part = place.with_name(f"{_PART_PREFIX}{os.urandom(8).hex()}{PART_SUFFIX}")
    with _ended_by_signals():
        try:
            with _opened(part, place, mode) as file:
                yield file
                file.flush()
                if sync:
                    os.fsync(file.fileno())
            part.replace(place)
        except BaseException as error:
            if not isinstance(error, FileExistsError):  # an existing file of this name is another process's
                with suppress(OSError):
                    part.unlink(missing_ok=True)
            if isinstance(error, OSError):
                _refuse(error, place)
            raise
        if sync:
            _sync(place.parent)


def take_away_parts(directory: Path) -> None:
    """Remove what a process that was killed had begun to write into a directory; nothing else may write there now."""
    with os.scandir(directory) as entries:  # one by one: there may be a million results beside them
        parts = [e.path for e in entries if e.name.startswith(_PART_PREFIX) and e.name.endswith(PART_SUFFIX)]
    for part in parts:
        with suppress(OSError):
            Path(part).unlink()


def write_text(text: str, path: str | Path, *, mode: int | None = None) -> None:
    """Write a text; an existing file is replaced only once the new one is complete. `mode` as in `replaced`."""
    with replaced(path, mode=mode) as file:
        file.write(text.encode())


def write_json(document: Mapping[str, Any], path: str | Path) -> None:
    """Write a result as JSON; an existing file is replaced only once the new one is complete."""
    write_text(json.dumps(document, indent=1) + "\n", path)


def finite(value: Any) -> Any:
    """Return figures with None for what is not finite, which JSON has no word for.

    Examples
    --------
    >>> finite({"error": math.inf, "of": [1.0, math.nan]})
    {'error': None, 'of': [1.0, None]}
    """
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _opened(part: Path, place: Path, mode: int | None) -> IO[bytes]:
    """Make a file that does not exist yet, with the owner of the one that it is to replace and its mode, or `mode`."""
    there = _status(place)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(part, flags, 0o666 if there is None else 0o600)
    try:
        if there is not None:
            with suppress(PermissionError):  # only root gives files away
                os.fchown(descriptor, there.st_uid, there.st_gid)
            mode = there.st_mode & 0o777 if mode is None else mode
        if mode is not None:
            with suppress(PermissionError):  # some network file systems have no modes
                os.fchmod(descriptor, mode)  # of the open file: at its path another user may put a link
        return os.fdopen(descriptor, "wb")
    except BaseException:
        os.close(descriptor)
        raise


class _EndedError(BaseException):
    """A signal asks the process to end; no `except Exception` on the way may stop it."""


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Have SIGTERM and SIGHUP end the body by an exception, and then the process, as they would have without.

    Only where they would end the process: other handlers, and signals that are ignored, stay.
    """
    asked: list[int] = []
    taken: list[signal.Signals] = []

    def end(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        if len(asked) == 1:  # not again while the part is taken away
            raise _EndedError

    if threading.current_thread() is threading.main_thread():
        taken = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is signal.SIG_DFL]
    try:
        for one in taken:
            signal.signal(one, end)
        yield
    finally:
        for one in taken:
            signal.signal(one, signal.SIG_DFL)
        if asked:
            os.kill(os.getpid(), asked[0])


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def may(path: Path, what: int) -> bool:
    """Whether this process, by its effective user, has access of a kind (`os.W_OK`) to a path."""
    return os.access(path, what, effective_ids=os.access in os.supports_effective_ids)


def _is_held(directory: Path, there: os.stat_result) -> bool:
    """Whether a file in a directory such as /tmp belongs to another user, so that it cannot be renamed over."""
    about, user = directory.stat(), os.geteuid()
    return bool(about.st_mode & stat.S_ISVTX) and user not in (0, about.st_uid, there.st_uid)


def _is_planted(link: Path) -> bool:
    """Whether a link is one that the kernel does not follow under fs.protected_symlinks: another user may mean harm."""
    about = link.parent.stat()
    shared = about.st_mode & stat.S_ISVTX and about.st_mode & stat.S_IWOTH
    return bool(shared) and link.lstat().st_uid not in (os.geteuid(), about.st_uid)


def _sync(directory: Path) -> None:
    """Have the new name itself on the disk; where a directory cannot be synced, the file system sees to it."""
    with suppress(OSError):
        held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(held)
        finally:
            os.close(held)


def _refuse(error: OSError, place: Path) -> NoReturn:
    if error.errno in _FULL:
        _refuse_full(place)
    raise CrosswindError(f"{place} cannot be written: {_why(error)}", "write-failed", _kept(place)) from None


def _refuse_full(place: Path) -> NoReturn:
    raise CrosswindError(f"no space left on {place.parent}", "no-space", _kept(place)) from None


def _kept(place: Path) -> str:
    there = f"{place.name} is as it was" if place.exists() else f"{place.name} was not written"
    return f"{there}; make space, or name a place where there is some"


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def is_of_kind(document: object, kind: str) -> bool:
    """Whether the content of a JSON file says that it is of a kind."""
    return isinstance(document, dict) and document.get("kind") == kind


def read_json(path: str | Path, kind: str, schema_version: int, hint: str, links: Links = "any") -> dict[str, Any]:
    """Read a result of a kind, such as `blame` from a `blame.json`; `hint` says what to do about a file that is none.

    `links` as in `crosswind.files.reading.read_bytes`.

    Raises
    ------
    DescriptionError
        When it is not JSON, of another kind (code `no-KIND`), or of another version.
    """
    document = json_of(path, f"no-{kind}", hint, links)
    if not is_of_kind(document, kind):
        raise DescriptionError(f"{path}: is no {kind}.json", f"no-{kind}", hint)
    version = document.get("schema_version")
    if version != schema_version:
        raise DescriptionError(
            f"{path}: schema_version is {version}; this build reads {schema_version}", "schema-version"
        )
    found: dict[str, Any] = document
    return found
