"""Files that a verb reads: a wrong name is answered before anything is imported that takes a second."""

from __future__ import annotations

from pathlib import Path

from crosswind.errors import DescriptionError


def refuse_missing(*paths: Path | None, hint: str | None = None) -> None:
    """Refuse the first path at which nothing lies.

    Raises
    ------
    DescriptionError
        With its name.

    Examples
    --------
    >>> refuse_missing(None, Path("/"))
    >>> refuse_missing(Path("/no/such/file"))
    Traceback (most recent call last):
    crosswind.errors.DescriptionError: /no/such/file: no such file or directory
    """
    for path in paths:
        if path is not None and not path.exists():
            raise DescriptionError(f"{path}: no such file or directory", "no-file", hint)
