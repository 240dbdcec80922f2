"""Which rank of a recorded program is slow, and which ranks only wait for it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from crosswind import _core
from crosswind.files.atomic import replaced, write_json
from crosswind.files.recorded import files_of, read_recorded

if TYPE_CHECKING:
    from crosswind.documents.blame import RecordedBlameDocument
    from crosswind.documents.recorded_blame import Timeline

CODES = {"none": 0, "straggler": 4, "unidentifiable": 3}
KIND = "recorded-blame"
SCHEMA_VERSION = 1


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

    data: RecordedBlameDocument
    traces: list[str] = field(default_factory=list)
    timeline: Timeline | None = None

    @classmethod
    def load(cls, path: str | Path) -> RecordedBlame:
        """Read what `crosswind blame TRACE... -o FILE` wrote.

        Raises
        ------
        DescriptionError
            When it is another file, or with the first field that is wrong.
        """
        from crosswind.documents.reading import read_document
        from crosswind.documents.recorded_blame import RecordedBlameFile

        hint = "`crosswind blame TRACE... -o blame.json` writes one"
        document = read_document(path, KIND, SCHEMA_VERSION, hint, RecordedBlameFile)
        traces, timeline = document.pop("traces"), document.pop("timeline")
        verdict = {key: document[key] for key in document if key not in _head()}
        return cls(cast("RecordedBlameDocument", verdict), traces, timeline)

    @property
    def verdict(self) -> str:
        """`straggler`, `none` or `unidentifiable`."""
        return str(self.data["verdict"])

    @property
    def exit_code(self) -> int:
        """0 no rank stands out, 4 one does, 3 that cannot be said."""
        return CODES[self.verdict]

    def to_dict(self) -> dict[str, object]:
        """Return the verdict as `--json` prints it."""
        return {**_head(), **self.data}

    def save(self, path: str | Path) -> None:
        """Write it as JSON, with the timeline."""
        write_json({**self.to_dict(), "traces": self.traces, "timeline": self.timeline}, path)


def _head() -> dict[str, object]:
    return {"schema_version": SCHEMA_VERSION, "kind": KIND}


def blame_recorded(
    traces: Sequence[str | Path], *, timeline: bool = False, perfetto: str | Path | None = None
) -> RecordedBlame:
    """Find which rank of a recorded program is slow, what it costs, and which ranks only wait for it.

    Parameters
    ----------
    traces : sequence of path
        Traces of PyTorch's profiler, lines of JSON, liballprof's text, logs of NCCL's Inspector (one file a rank),
        `app.trace`, step times, or a GOAL schedule (its own times; nothing in it was measured);
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
    files, _ = read_recorded(traces)
    names = [one.name for path in traces for one in files_of(Path(path))]
    with nullcontext() if perfetto is None else replaced(perfetto) as out:
        found = json.loads(_core.judge_recorded(files, timeline, out.write if out else None))
    shown = found.pop("timeline", None)
    return RecordedBlame(found, names, shown if timeline else None)
