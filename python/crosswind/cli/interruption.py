"""What ctrl-C leaves in a file of results, without promising more than was written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crosswind.cli.console import tell

RESUME = "--resume continues with them"


@contextmanager
def tells_what_is_kept(out: Path | None, then: str = RESUME) -> Iterator[None]:
    """Say after ctrl-C whether the body wrote `out`, a file or a directory, and how to resume; re-raise it."""
    before = _identity(out)
    try:
        yield
    except KeyboardInterrupt:
        now = _identity(out)
        if now is not None and now != before:
            tell(f"{out} holds the runs that were finished; {then}")
        elif out is not None:
            tell(f"no run was finished; {out} {'was not written' if now is None else 'is as it was'}")
        raise


def _identity(path: Path | None) -> tuple[int, int, int] | None:
    """Return what changes whenever a file is replaced, or a file in a directory; None where there is none."""
    try:
        found = path.stat() if path is not None else None
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_size) if found else None
