"""Workloads of other tools as a `tasks.csv`: the Standard Workload Format, and Batsim's JSON."""

from __future__ import annotations

import gzip
import io
import math
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from crosswind.errors import DescriptionError
from crosswind.files.atomic import write_text
from crosswind.files.reading import LARGEST_BYTES, read_bytes

Parallel = Literal["leave-out", "split"]
MOST_TASKS = 10_000_000
HEAD = "# Crosswind's tasks of "
"""How a `tasks.csv` made here begins."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job of another tool: when it was submitted, and what it computes on each of its processors."""

    submit_s: float
    work: float
    processors: int = 1


@dataclass(frozen=True, slots=True)
class Task:
    """A line of a `tasks.csv`."""

    release_s: float
    work: float


@dataclass(frozen=True)
class ImportedTasks:
    """Tasks read from another tool's workload.

    Attributes
    ----------
    source : str
        The file.
    tasks : list of Task
        In the order of their release.
    jobs : int
        Jobs in the file.
    left_out : dict
        Reason -> number of jobs that are no tasks.
    size_mb : float
        Input of each task, MB.
    """

    source: str
    tasks: list[Task]
    jobs: int
    left_out: dict[str, int]
    size_mb: float

    def text(self) -> str:
        """Return the text of a `tasks.csv`."""
        lines = [f"{HEAD}{Path(self.source).name!r}", "size_mb,work,release_s"]
        lines += (f"{self.size_mb!r},{task.work!r},{task.release_s!r}" for task in self.tasks)
        return "\n".join(lines) + "\n"

    def save(self, path: str | Path) -> None:
        """Write a `tasks.csv`; an existing file is replaced only once the new one is complete."""
        write_text(self.text(), path)


def import_tasks(
    path: str | Path,
    *,
    size_mb: float = 0.001,
    work_per_s: float = 1.0,
    parallel: Parallel = "leave-out",
    jobs: int | None = None,
) -> ImportedTasks:
    r"""Return the tasks of a workload in the Standard Workload Format or in Batsim's JSON; gzip is unpacked.

    Parameters
    ----------
    path : str or Path
        The workload.
    size_mb : float
        Input of each task, MB, > 0. Neither format has sizes.
    work_per_s : float
        Work units of a second of a job's run time, > 0: a node with this `compute_per_s` takes as long as the job took.
        Of profiles of Batsim that compute operations, 10^9 are 1 work unit whatever this is.
    parallel : {"leave-out", "split"}
        What becomes of a job of several processors: a farm has tasks of one. "split" makes of it one task for each
        processor, released together.
    jobs : int, optional
        Read this many jobs at most, the first of the file.

    Raises
    ------
    DescriptionError
        With file and line: what is wrong, or that no job is a task.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".swf") as file:
    ...     _ = file.write("; a header\n1 30 2 60 1 -1 -1 1 -1 -1 1 7 1 1 1 1 -1 -1\n")
    ...     file.flush()
    ...     import_tasks(file.name).tasks
    [Task(release_s=0.0, work=60.0)]
    """
    from crosswind.exchange import batsim, swf

    for name, value in (("size_mb", size_mb), ("work_per_s", work_per_s)):
        if not (math.isfinite(value) and value > 0):
            raise DescriptionError(f"{name} is {value}; it must be finite and above 0", "argument")
    if jobs is not None and jobs < 1:
        raise DescriptionError(f"jobs is {jobs}; it must be at least 1", "argument")
    content = _unpacked(path)
    is_json = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{"
    read = batsim.jobs if is_json else swf.jobs
    return _tasks(str(path), read(str(path), content, work_per_s), size_mb, parallel, jobs)


def _unpacked(path: str | Path) -> bytes:
    content = read_bytes(path)
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:  # it may have several members
            whole = file.read(LARGEST_BYTES + 1)
    except EOFError:
        raise DescriptionError(f"{path}: the gzip file is cut short", "syntax", "copy it again") from None
    except (OSError, zlib.error) as error:
        raise DescriptionError(f"{path}: the gzip file is damaged ({error})", "syntax", "copy it again") from None
    if len(whole) > LARGEST_BYTES:
        raise DescriptionError(f"{path}: unpacked it has more than {LARGEST_BYTES:,} bytes", "too-large")
    return whole


def _tasks(file: str, read: Iterable[Job | str], size_mb: float, parallel: Parallel, most: int | None) -> ImportedTasks:
    count, left_out, kept = 0, Counter[str](), list[Job]()
    for job in _first(read, most):
        count += 1
        if isinstance(job, str):
            left_out[job] += 1
        elif job.processors > 1 and parallel == "leave-out":
            left_out["several processors"] += 1
        else:
            kept.append(job)
    if not kept:
        reasons = ", ".join(f"{reason} ({jobs:,})" for reason, jobs in left_out.most_common()) or "the file has none"
        hint = "--parallel split makes a task for each processor" if left_out["several processors"] else None
        raise DescriptionError(f"{file}: no job is a task of a farm: {reasons}", "no-tasks", hint)
    count_of_tasks = sum(job.processors for job in kept)
    if count_of_tasks > MOST_TASKS:
        what = f"{file}: {count_of_tasks:,} tasks, one for each processor of {len(kept):,} jobs; at most {MOST_TASKS:,}"
        raise DescriptionError(what, "too-large", "read the first jobs only: --jobs N")
    kept.sort(key=lambda job: job.submit_s)
    start_s = kept[0].submit_s
    tasks = [Task(job.submit_s - start_s, job.work) for job in kept for _ in range(job.processors)]
    return ImportedTasks(file, tasks, count, dict(left_out.most_common()), size_mb)


def _first(read: Iterable[Job | str], most: int | None) -> Iterator[Job | str]:
    for number, job in enumerate(read):
        if most is not None and number >= most:
            return
        yield job
