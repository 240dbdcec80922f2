"""What earlier runs into a directory have done, and which of the tasks at hand need not be done again.

A task is known by its input (path, size and modification time, or what it holds), by the command and by the name of its
result: what Make and Snakemake users expect. The journal (`crates/live/src/farm/journal.rs`) holds digests of these.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from crosswind import _core
from crosswind.files.atomic import take_away_parts
from crosswind.run.lock import locked

Why = Literal["input changed", "command or --name changed", "failed before", "result is missing", "result changed"]

JOURNAL = ".crosswind-journal"
"""Name of the journal of a run of commands, in the directory of its results."""

NAMED = 20
"""Inputs of earlier runs that are named when they are no longer given; of the others, how many."""


class Identity(NamedTuple):
    """What a task is known by in later runs."""

    label: bytes
    """Names the task: the path of its input."""
    input: int
    """Digest of the input."""
    recipe: int
    """Digest of how the result is made and what it is called."""


@dataclass
class Before:
    """What earlier runs left for this one."""

    done: int = 0
    """Tasks whose results stand, and need not be made again."""
    again: Counter[str] = field(default_factory=Counter)
    """Tasks that are made again, by why."""
    new: int = 0
    """Tasks that no earlier run had."""
    gone: int = 0
    """Inputs that an earlier run had and this one does not."""
    gone_names: list[str] = field(default_factory=list)
    """The first of them."""
    set_aside: Path | None = None
    """Where a journal with a damaged head was moved to: all results are made again."""
    resumed: bool = False
    """Whether an earlier run is continued."""

    def summary(self) -> dict[str, object]:
        """Return it as it stands in runs.json."""
        return {"done": self.done, "again": dict(sorted(self.again.items())), "new": self.new, "gone": self.gone}


class Kept:
    """A journal, and the results that it speaks of.

    Parameters
    ----------
    journal : _core.Journal
        It is given to the farm once all that is asked of it here is asked before each task is handed over.
    out : Path, optional
        Directory of the results; without one only the journal counts.
    """

    def __init__(self, journal: _core.Journal, out: Path | None) -> None:
        self.journal, self._out = journal, out
        self.before = Before(set_aside=journal.set_aside)

    def has(self, identity: Identity, name: str) -> bool:
        """Whether a task's result stands; counts it, with why where it does not."""
        known = self.journal.known(identity.label)
        if known is None:
            self.before.new += 1
            return False
        input_, recipe, ok, size = known
        why = self._why(identity, input_, recipe, ok, size, name)
        if why is None:
            self.before.done += 1
            return True
        self.before.again[why] += 1
        return False

    def _why(self, identity: Identity, input_: int, recipe: int, ok: bool, size: int, name: str) -> Why | None:
        if not ok:
            return "failed before"
        if identity.input != input_:
            return "input changed"
        if identity.recipe != recipe:
            return "command or --name changed"
        if self._out is None:
            return None
        try:
            there = os.stat(self._out / name).st_size  # noqa: PTH116 (there may be a million)
        except OSError:
            return "result is missing"
        return None if there == size else "result changed"

    def all_asked(self) -> None:
        """Count what earlier runs had and nothing has asked for."""
        self.before.gone, labels = self.journal.gone(NAMED)
        self.before.gone_names = [os.fsdecode(label) for label in labels]


@contextmanager
def kept(journal: Path, digest: str, resume: bool, out: Path | None, *, force: bool = False) -> Iterator[Kept]:
    """Open a journal, and hold the lock on its directory.

    A run that produced no result, or of which tasks failed, is continued in any case, so that it does not block the
    next attempt.

    Parameters
    ----------
    journal : Path
        Its file.
    digest : str
        Which run it is of; one of another run is refused.
    resume : bool
        Continue it, where there is one; otherwise one whose tasks were all done is refused.
    out : Path, optional
        Directory of the results.
    force : bool
        Begin anew, whatever is there.

    Raises
    ------
    DescriptionError
        When another process writes there; when the journal is of another run, or exists and is not to be resumed.
    """
    with locked(journal.parent):
        if force and not resume:
            journal.unlink(missing_ok=True)
        resume = resume or is_unfinished(journal, digest)
        opened = Kept(_core.Journal(os.fspath(journal), digest, resume), out)
        opened.before.resumed = resume
        if out is not None:
            take_away_parts(out)  # nothing else writes here, since we hold the lock
        yield opened


def is_unfinished(journal: Path, digest: str) -> bool:
    """Whether a journal is of a run that is continued in any case (`kept`)."""
    if not journal.exists():
        return False
    counts = _core.Journal.counts(os.fspath(journal), digest)
    return counts is not None and (counts[0] == 0 or counts[1] > 0)


def digest_of(*parts: bytes | str | int) -> int:
    """Return a digest of 64 bits of what is given, in its order.

    Examples
    --------
    >>> digest_of("ab", "c") == digest_of("a", "bc")
    False
    """
    hashed = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode(errors="surrogateescape")
        hashed.update(len(data).to_bytes(8, "big") + data)
    return int.from_bytes(hashed.digest(), "big")


def digest_of_file(path: str | Path, *, by_content: bool) -> int:
    """Return a digest of a file: of its size and modification time, or of what it holds.

    Raises
    ------
    OSError
        When it cannot be read.
    """
    if not by_content:
        found = os.stat(path)  # noqa: PTH116 (there may be a million)
        return digest_of("stat", found.st_size, found.st_mtime_ns)
    with Path(path).open("rb") as file:
        return digest_of("content", hashlib.file_digest(file, "blake2b").digest())
