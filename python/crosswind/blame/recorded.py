"""Which rank of a recorded program is slow, and which ranks only wait for it."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from crosswind import _core
from crosswind.errors import DescriptionError
from crosswind.files.atomic import replaced, write_json

PART_BYTES = 1 << 20
"""How much of a file is handed to its reader at a time."""
HEAD_BYTES = 4096
READERS = 2
"""Files read at a time: unpacking and scanning release the interpreter."""
CODES = {"none": 0, "straggler": 4, "unidentifiable": 3}
KIND = "recorded-blame"
SCHEMA_VERSION = 1
GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class RecordedBlame:
    """The verdict on a recorded program.

    Attributes
    ----------
    data : dict
        As `crosswind blame --json` prints it.
    traces : list of str
        Names of the files that were read.
    timeline : dict, optional
        Part of what each rank did when, of bounded size, and the waits in each step: `timeline` in its file. None where
        it was not asked for, or the recordings do not fit together.
    """

    data: dict[str, Any]
    traces: list[str] = field(default_factory=list)
    timeline: dict[str, Any] | None = None

    @classmethod
    def load(cls, path: str | Path) -> RecordedBlame:
        """Read what `crosswind blame TRACE... -o FILE` wrote.

        Raises
        ------
        DescriptionError
            When it is another file, or with the first field that is wrong.
        """
        from crosswind.blame.recorded_shape import RecordedBlameFileShape
        from crosswind.files.shape import read_shaped

        hint = "`crosswind blame TRACE... -o blame.json` writes one"
        document = read_shaped(path, KIND, SCHEMA_VERSION, hint, RecordedBlameFileShape)
        traces, timeline = document.pop("traces"), document.pop("timeline")
        return cls({key: document[key] for key in document if key not in _head()}, traces, timeline)

    @property
    def verdict(self) -> str:
        """`straggler`, `none` or `unidentifiable`."""
        return str(self.data["verdict"])

    @property
    def exit_code(self) -> int:
        """0 no rank stands out, 4 one does, 3 that cannot be said."""
        return CODES[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as `--json` prints it."""
        return {**_head(), **self.data}

    def save(self, path: str | Path) -> None:
        """Write it as JSON, with the timeline."""
        write_json({**self.to_dict(), "traces": self.traces, "timeline": self.timeline}, path)


def _head() -> dict[str, Any]:
    return {"schema_version": SCHEMA_VERSION, "kind": KIND}


def is_recorded(path: str | Path) -> bool:
    r"""Return whether a file is a trace of a program, and not a description in TOML.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "steps.csv"
    >>> _ = file.write_text("rank,step,seconds\n0,0,0.1\n")
    >>> is_recorded(file)
    True
    """
    path = Path(path)
    if path.is_dir():
        return any(is_recorded(one) for one in _files_of(path)[:1])
    if not path.is_file():
        return path.name.endswith((".gz", ".json", ".jsonl", ".trace", ".csv"))
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return False
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    first = text.split(b"\n", 1)[0]
    names = {name.strip() for name in first.split(b",")}
    return (
        head.startswith(GZIP)
        or text.startswith((b"{", b"[{", b"[\n", b"MPI_"))
        or b"\nMPI_" in text
        or {b"rank", b"step"} <= names
    )


def blame_recorded(
    traces: Sequence[str | Path], *, timeline: bool = False, perfetto: str | Path | None = None
) -> RecordedBlame:
    """Find which rank of a recorded program is slow, what it costs, and which ranks only wait for it.

    Parameters
    ----------
    traces : sequence of path
        Traces of PyTorch's profiler, lines of JSON, liballprof's text (one file a rank), `app.trace`, or step times;
        gzip is unpacked. A directory stands for its files.
    timeline : bool
        Also find what each rank did when, and which rank caused each wait.
    perfetto : path, optional
        Write all of that for https://ui.perfetto.dev, with a lane for each rank.

    Returns
    -------
    RecordedBlame

    Raises
    ------
    DescriptionError
        When a file cannot be read, is damaged, or is no trace.
    """
    paths = [one for path in traces for one in (_files_of(Path(path)) if Path(path).is_dir() else [Path(path)])]
    with ThreadPoolExecutor(READERS) as pool:
        files = list(pool.map(_read, paths))
    with nullcontext() if perfetto is None else replaced(perfetto) as out:
        found = json.loads(_core.judge_recorded(files, timeline, out.write if out else None))
    shown = found.pop("timeline", None)
    return RecordedBlame(found, [path.name for path in paths], shown if timeline else None)


def _files_of(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if path.is_file() and not path.name.startswith("."))


def _read(path: Path) -> _core.RecordedFile:
    reader = _core.RecordedFile(str(path))
    try:
        with _opened(path) as file:
            while part := file.read(PART_BYTES):
                reader.feed(part)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DescriptionError(
            f"{path}: the gzip file is damaged or cut short ({error})", "trace", "record again, or copy the file again"
        ) from None
    except (OSError, ValueError) as error:
        if isinstance(error, DescriptionError):
            raise
        raise DescriptionError(
            f"{path}: {(getattr(error, 'strerror', None) or str(error)).lower()}", "no-file"
        ) from None
    reader.finish()
    return reader


def _opened(path: Path) -> IO[bytes]:
    file = path.open("rb")
    if file.peek(2)[:2] == GZIP:
        return cast("IO[bytes]", gzip.open(file))
    return file
