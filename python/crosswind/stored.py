"""Results in files: JSON that says its kind and version, and no file that is there in part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crosswind.errors import DescriptionError
from crosswind.reading import json_of


def made(directory: str | Path, code: str = "out") -> Path:
    """Return a directory for results, made if it is not there.

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
        raise DescriptionError(f"{path}: {(error.strerror or str(error)).lower()}", code, hint) from None
    return path


@contextmanager
def replaced(path: str | Path) -> Iterator[Path]:
    """Yield where to write a file: it takes the place of an existing one at the end, and only when nothing went wrong.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "a.txt"
    >>> with replaced(file) as part:
    ...     _ = part.write_text("whole")
    >>> file.read_text()
    'whole'
    """
    part = Path(f"{path}.part")
    yield part
    part.replace(path)


def write_json(document: Mapping[str, Any], path: str | Path) -> None:
    """Write a result as JSON; an existing file is replaced only once the new one is complete."""
    with replaced(path) as part:
        part.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def is_of_kind(document: object, kind: str) -> bool:
    """Whether the content of a JSON file says that it is of a kind."""
    return isinstance(document, dict) and document.get("kind") == kind


def read_json(path: str | Path, kind: str, schema_version: int, hint: str) -> dict[str, Any]:
    """Read a result of a kind, such as `blame` from a `blame.json`; `hint` says what to do about a file that is none.

    Raises
    ------
    DescriptionError
        When it is no JSON, of another kind (code `no-KIND`), or of another version.
    """
    document = json_of(path, f"no-{kind}", hint)
    if not is_of_kind(document, kind):
        raise DescriptionError(f"{path}: is no {kind}.json", f"no-{kind}", hint)
    version = document.get("schema_version")
    if version != schema_version:
        raise DescriptionError(
            f"{path}: schema_version is {version}; this build reads {schema_version}", "schema-version"
        )
    found: dict[str, Any] = document
    return found
