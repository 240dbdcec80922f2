"""A command over many files: each input goes to a node, the command runs there, its output comes back."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from crosswind import _core
from crosswind.errors import DescriptionError, Notice, warning
from crosswind.files.atomic import is_standard_output
from crosswind.files.output import writable, writable_directory
from crosswind.platform import Platform
from crosswind.run import arguments
from crosswind.run.agents import Launch, Limits, Result, Task, Work, run_farm
from crosswind.run.deployment import Deployment
from crosswind.run.drift import stale_warnings
from crosswind.run.inputs import Inputs, check_placeholders, inputs_of
from crosswind.run.joblog import Job, Joblog
from crosswind.run.lock import LOCK
from crosswind.run.printed import Printed, lines_of, write
from crosswind.run.result_names import check_names, check_results, make_directories, name_of, template_of
from crosswind.run.results import Run, Runs
from crosswind.run.resume import JOURNAL, Before, Identity, digest_of, digest_of_file, is_unfinished
from crosswind.run.shells import handed_to, words_of
from crosswind.run.this_machine import here, point_of
from crosswind.terminal.printable import printable
from crosswind.terminal.progress import Advance, done_of, left_in_words

if TYPE_CHECKING:
    from crosswind.documents.shared import RunEvent
    from crosswind.watch import Watch

FAILED = "task-failed"
UNLIMITED = "task-memory-unlimited"
TOLD = 1_000
"""Failures that are reported one by one; the others are counted."""


def map_command(
    command: str,
    inputs: Sequence[str | Path] = (),
    out: str | Path = "results",
    *,
    values: Sequence[str] = (),
    platform: Platform | str | Path | None = None,
    max_workers: int | None = None,
    name: str | None = None,
    order: str = "interference",
    retries: int = 0,
    task_timeout_s: float | None = None,
    task_memory_mb: float | None = None,
    grace_s: float = Limits.grace_s,
    resume: bool = False,
    by_content: bool = False,
    sync: bool = True,
    force: bool = False,
    halt: int | None = None,
    shell: str | None = None,
    joblog: str | Path | None = None,
    trace: bool = False,
    quiet: bool = False,
    launch: Deployment | None = None,
    progress: Advance | None = None,
    watch: Watch | None = None,
) -> Runs[Run]:
    """Run a command once per input file, on the nodes of a tree.

    Parameters
    ----------
    command : str
        As a shell takes it. `{input}` or `{}` stands for the input's file on the node, which has the input's name,
        `{output}` for the file to write there; without `{output}`, what it prints is the result. `{name}` is the
        input's name, `{stem}` that without its last suffix, `{ext}` the suffix, `{number}` its place. A value is one
        word of the shell, in double and in single quotes too.
    inputs : sequence of path or pattern
        Files; patterns such as `data/*` take the files that match, sorted. Those of a pattern that cannot be read are
        counted in a warning, `inputs-unreadable`, and left out.
    values : sequence of str
        Inputs that are no files: the placeholders stand for the value itself. `name` must then make names of files.
    out : path
        Directory for the results, made where it is missing.
    platform : Platform or path, optional
        The tree. Default: that of the deployment; on this machine a root and one node per CPU.
    max_workers : int, optional
        Nodes of this machine, and so commands at a time; default: one per CPU that this process may use.
    name : str
        Name of a result's file; `{name}` is its input's, `{stem}` that without the last suffix, `{ext}` the suffix,
        `{number}` its place, `{dir}` the input's directory: `{dir}/{name}` keeps directories. Directories are made.
        Default: `{name}`, of values `{number}`.
    order : str
        Which child is served next; all but arrival reckon with the platform's rates.
    retries : int
        How often a command that failed is tried again.
    task_timeout_s : float, optional
        Seconds after which a command is ended, with every process that it started, and has failed. Default: no limit.
    task_memory_mb : float, optional
        Memory of all processes of a command together, MB. More than that ends them, and the command has failed. Needs
        a control group that the agent may divide; where there is none, a warning `task-memory-unlimited` says so.
    grace_s : float
        Time from SIGTERM to SIGKILL for what is left of a command's processes, s.
    resume : bool
        Continue where an earlier run into `out` ended, as Make would: an input is done again when its size, its
        modification time, the command or the name of its result has changed, when it failed, or when its result is
        missing.
    by_content : bool
        Tell by what an input holds whether it has changed, not by its size and modification time.
    sync : bool
        Report a result only once it is on the disk (at most every 0.2 s), so that a power cut loses only later ones.
    force : bool
        Make everything anew, and replace files in `out`, also those that no earlier run has made. Inputs are never
        replaced.
    halt : int, optional
        Number of failed commands, at least 1, after which no more begin; those that run are finished. Default: all run.
    shell : str, optional
        The shell that interprets the command, with options: `bash`, `bash -eo pipefail`. It must read quoted words as
        `sh` does (`crosswind.run.shells.SHELLS`). A node that does not have it fails its commands. Default: `/bin/sh`.
    joblog : path, optional
        File that gets a line for each command that has ended (`crosswind.run.joblog`), as it ends. Where a run is
        continued, lines are added. Otherwise a job log that is there is replaced, and any other file with `force` only.
    trace : bool
        Record what each node did when.
    quiet : bool
        Do not show what commands print on stderr, as it comes and each line after its node and input. Of those that
        fail, the last lines are in their events in any case.
    launch : optional
        Where agents run and how they are started, and whether what commands print is shown; default: here.
    watch : Watch, optional
        Shows the run while it runs (`crosswind.watch`).
    progress : callable, optional
        Called as `progress(fraction, message)`.

    Returns
    -------
    Runs
        One run. A command that failed is an event `task-failed` of it, with the last lines of its stderr. With
        `resume`, its `resumed` says what was done before, what was done again and why, and how many inputs are gone.

    Raises
    ------
    DescriptionError
        When there is no input, two results would have one name, a result would replace an input or a file that no
        earlier run has made, another run writes into `out`, or an argument is wrong.
    """
    check_placeholders(command)
    arguments.whole("--retries", retries, 0)
    arguments.whole("--halt", 1 if halt is None else halt, 1)
    found = inputs_of(inputs, values)
    files, name = found.names, template_of(name, found)
    check_names(files, name)
    out, launch = arguments.directory("--out", out), launch or Launch(echo=not quiet)
    described = platform is not None  # the capacity of this machine's links is not known
    platform = _tree(platform, max_workers, launch)
    line = command if shell is None else handed_to(command, words_of(shell, must_exist=launch.on == "local"))
    recipe = (command,) if shell is None else (command, shell)
    if joblog is not None:
        _check_joblog(Path(joblog), found, name, out, force=force)
    _make(out)
    check_results(files, name, out, may_replace=resume or force, are_values=found.are_values)
    make_directories(files, name, out)
    size_mb = found.bytes / len(files) / 1e6
    point = point_of(command, len(files), size_mb, order, None)
    is_continued = resume or (not force and is_unfinished(out / JOURNAL, "command"))
    log = Joblog(joblog, append=is_continued, line=line, job_of=lambda n: _job(command, found, out, name, n))
    failures = _Failures(line, found, log)
    befores: list[Before] = []

    def source() -> Iterator[Task]:
        for number, file in enumerate(files):
            called = name_of(name, file, number)
            data = os.fsencode(file) if found.are_values else Path(file)
            identity = _identity(file, recipe, called, by_content, found.are_values)
            yield Task(data, 0.0, called, identity, found.are_values)

    def tell(done: int, total: int | None) -> None:
        if progress is not None:
            left = left_in_words(done, len(files), time.monotonic() - failures.begun)
            failed = f", {failures.count} failed" if failures.count else ""
            progress(done / len(files), f"{done_of(done, len(files), found.noun)}{failed}{left}")

    if watch is not None and not resume:  # of those of a resumed run, some are done
        watch.expect(len(files))
    with log:
        summary, columns = run_farm(
            platform,
            point,
            Work("command", command=line),
            source=source(),
            sink=failures.take,
            launch=launch,
            limits=Limits(
                retries=retries, task_timeout_s=task_timeout_s, task_memory_mb=task_memory_mb, grace_s=grace_s
            ),
            out=out,
            journal=out / JOURNAL,
            resume=resume,
            force=force,
            sync=sync,
            on_before=befores.append,
            on_begin=log.begin,
            trace=trace,
            progress=tell,
            watch=watch,
            halt=halt,
            on_printed=None if quiet else failures.show,
        )
    whole: Any = {"bound_tasks_per_s": None, "root_only_tasks_per_s": None, **summary, "params": {}}
    if resume or befores[0].resumed:
        whole["resumed"] = befores[0].summary()
        whole["warnings"] = [*whole.get("warnings", []), *_damaged(befores[0]), *_gone(befores[0])]
    whole["warnings"] = [*whole.get("warnings", []), *_unlimited(whole.get("events", [])), *found.warnings]
    left = len(files) - whole["tasks"] - (befores[0].done if befores else 0)
    whole["warnings"] += _halted(halt, failures.count, left)
    if described:
        whole["warnings"] = [*whole.get("warnings", []), *stale_warnings(whole["nodes"])]
    known = {(event["code"], event["t_s"]) for event in whole.get("events", [])}
    whole["events"] = [*whole.get("events", []), *(e for e in failures.events() if (e["code"], e["t_s"]) not in known)]
    if columns is not None:
        from crosswind.run.columns import as_trace

        return Runs(command, launch.on, [Run(whole, as_trace(columns, whole, platform, command, launch.on))])
    return Runs(command, launch.on, [Run(whole, None)])


def _halted(halt: int | None, failed: int, left: int) -> list[Notice]:
    """Return a warning that inputs were not begun after too many failures."""
    if halt is None or left <= 0:
        return []
    message = f"{failed} commands failed, and {left} inputs were not begun (--halt {halt})"
    return [warning("halted", message, "--resume runs them, and those that failed")]


def _make(out: Path) -> None:
    writable_directory(out, "--out")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"--out is {str(out)!r}: {(error.strerror or str(error)).lower()}"
        raise DescriptionError(message, "out", "name a directory that can be made") from None


def commands_of(
    command: str, inputs: Sequence[str | Path], values: Sequence[str], out: Path, name: str | None
) -> Iterator[str]:
    """Yield each input's command, as a shell would get it, with the user's own paths.

    Raises
    ------
    DescriptionError
        As `map_command`.
    """
    check_placeholders(command)
    found = inputs_of(inputs, values)
    name = template_of(name, found)
    check_names(found.names, name)
    for number in range(len(found.names)):
        yield _job(command, found, out, name, number).command


def _job(command: str, found: Inputs, out: Path, name: str, number: int) -> Job:
    """Return a task's command as a shell would get it, with the user's own paths, and its input."""
    file = found.names[number]
    own = b"" if found.are_values else os.fsencode(PurePath(file).name)
    result = os.fsencode(out / name_of(name, file, number))
    line = os.fsdecode(_core.command_line(command, os.fsencode(file), result, own, number))
    return Job(line, file, found.are_values)


def check_jobs(jobs: int | None, *, is_elsewhere: bool) -> None:
    """Refuse a number of commands at a time where it does not go with the tree, or is none.

    Raises
    ------
    DescriptionError
        With what to do instead.
    """
    if jobs is not None and is_elsewhere:
        message = "--jobs is the number of nodes on this machine: it goes with no --platform, and with --on local"
        raise DescriptionError(message, "argument", "on a cluster: --per")
    if jobs is not None and jobs < 1:
        raise DescriptionError(f"--jobs is {jobs}; it must be at least 1", "argument")


def _tree(platform: Platform | str | Path | None, max_workers: int | None, launch: Deployment) -> Platform:
    if max_workers is not None:
        check_jobs(max_workers, is_elsewhere=platform is not None or launch.on != "local")
        return here(arguments.whole("--jobs", max_workers, 1, arguments.MOST_NODES))
    if isinstance(platform, Platform):
        return platform
    return Platform.load(platform) if platform is not None else launch.tree()


def _identity(file: str, recipe: tuple[str, ...], called: str, by_content: bool, is_value: bool) -> Identity:
    made = digest_of(*recipe, called)
    if is_value:
        return Identity(b"value:" + os.fsencode(file), digest_of(file), made)
    path = os.path.abspath(file)  # noqa: PTH100 (there may be a million; links stay distinct)
    try:
        holds = digest_of_file(file, by_content=by_content)
    except OSError:  # gone, or something else by now: its task says so
        holds = 0
    return Identity(os.fsencode(path), holds, made)


def _damaged(before: Before) -> list[Notice]:
    """Return a warning about a journal whose head is damaged."""
    if before.set_aside is None:
        return []
    message = f"the journal of the earlier run is damaged at its head and was moved to {before.set_aside}"
    return [warning("journal-damaged", message, "which results were whole is not known: all were made again")]


def _gone(before: Before) -> list[Notice]:
    """Return a warning that names the inputs of earlier runs that are not among those of this one."""
    if not before.gone:
        return []
    more = before.gone - len(before.gone_names)
    named = ", ".join(before.gone_names) + (f" and {more} more" if more else "")
    message = f"{before.gone} inputs of earlier runs are not among the inputs: {named}"
    return [warning("inputs-gone", message, "their results are still in --out; remove them if they are stale")]


class _Failures:
    """The tasks that failed, as events; of very many, the first ones and how many more."""

    def __init__(self, line: str, found: Inputs, log: Joblog) -> None:
        self._line, self._files, self._log = line, found.names, log
        self._are_values = found.are_values
        self._told: list[dict[str, object]] = []
        self._untold = 0
        self.count = 0
        self.begun = time.monotonic()

    def take(self, result: Result) -> None:
        """Take note of a result."""
        self._log.take(result)
        if result.ok:
            return
        self.count += 1
        if len(self._told) >= TOLD:
            self._untold += 1
            return
        said = result.data.decode(errors="replace") if isinstance(result.data, bytes) else ""
        said = said.removeprefix(f"{self._line}: ").strip()  # the same for all
        message = f"{self._files[result.task]}: failed on {result.node}: {said or 'it printed nothing'}"
        self._told.append(self._event(result.node, 1, message))

    def show(self, said: Sequence[Printed]) -> None:
        """Show what commands print on stderr, each line after its node and input."""
        write(line for one in said for line in lines_of(one, f"[{one.node}] {self._name_of(one.task)}: "))

    def _name_of(self, task: int) -> str:
        file = self._files[task] if task < len(self._files) else ""  # a node may say anything
        return printable(PurePath(file).name if self._are_names_distinct else file)

    @cached_property
    def _are_names_distinct(self) -> bool:
        """Whether the names of inputs, without their directories, tell them apart."""
        return not self._are_values and len({PurePath(file).name for file in self._files}) == len(self._files)

    def events(self) -> list[dict[str, object]]:
        """Return them all."""
        if not self._untold:
            return self._told
        message = f"{self._untold} more failed; --resume tries them again"
        return [*self._told, self._event(None, self._untold, message)]

    def _event(self, node: str | None, tasks: int, message: str) -> dict[str, object]:
        t_s = time.monotonic() - self.begun
        return {"t_s": t_s, "code": FAILED, "node": node, "tasks": tasks, "message": message}


def _unlimited(events: Sequence[RunEvent]) -> list[Notice]:
    """Return the warnings that a limit of memory was not kept, by node."""
    hint = (
        "run the agents where they may divide their control group (as root, or a systemd unit with Delegate=yes); an "
        "address-space limit (ulimit -v) is no substitute: it counts what is reserved, for each process alone"
    )
    return [warning(event["code"], event["message"], hint) for event in events if event["code"] == UNLIMITED]


def _check_joblog(path: Path, found: Inputs, name: str, out: Path, *, force: bool) -> None:
    """Refuse a job log that cannot be written, or that would be an input or a result."""
    if path.absolute().parent != out.absolute() or out.exists():  # otherwise it is made with the directory
        writable(path, "joblog", option="--joblog", inputs=() if found.are_values else found.names, force=force)
    if is_standard_output(path):
        message = "--joblog is standard output; it must be a file, which is written during the run"
        raise DescriptionError(message, "out", "name a file; `tail -f` shows it")
    place = os.path.relpath(os.path.realpath(path), os.path.realpath(out))
    if place in {JOURNAL, LOCK} or any(place == name_of(name, file, n) for n, file in enumerate(found.names)):
        raise DescriptionError(f"--joblog is {str(path)!r}, which the run itself writes", "out", "name another file")
