"""Run a command and record the ranks that it starts."""

from __future__ import annotations

import datetime
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from crosswind import _core
from crosswind.absences import remove_leftovers
from crosswind.errors import CrosswindError, DescriptionError, Notice, warning
from crosswind.files import output
from crosswind.files.atomic import is_standard_output, replaced
from crosswind.recorder import build, launcher
from crosswind.recorder.parts import Absences, Part, is_complete, parts_in, write
from crosswind.recorder.quotas import Quotas, attributed
from crosswind.recorder.stand_in import MPICC, PARTS
from crosswind.recorder.summary import Cause, Head, KernelTrace, Summary
from crosswind.terminal.progress import Advance, duration
from crosswind.terminal.signals import heard

How = Literal["auto", "trace", "none"]
KIND = "recorded-program"

_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOOK_S = 0.25
"""How often signals and new ranks are looked for; to look more often would disturb the ranks."""
_OWN_NAME = "crosswind record"
"""Name of this process among what kept ranks from running; its command line begins with python."""
_PATIENCE_S = 10.0
"""How long the command may take to end after a signal, before it is sent the next harder one."""
_NO_RANK = "no process of the command called MPI_Init or crosswind.record_step()"
_NO_RANK_HINT = (
    "record an MPI program by its launcher (-- mpirun -n 4 ./app); one that is linked statically, or begins with "
    "MPI_Session_init, cannot be recorded; "
    "a program without MPI marks its steps by crosswind.record_step()"
)


@dataclass(frozen=True)
class RecordedProgram:
    """What was recorded.

    Attributes
    ----------
    summary : Summary
        Files, ranks, how the command ended, and what kept ranks from running.
    """

    summary: Summary

    @property
    def warnings(self) -> list[Notice]:
        """What one should know before using it: code, message, hint."""
        return _warnings(self.summary)

    def to_dict(self) -> dict[str, object]:
        """Return the summary with its warnings."""
        return {**self.summary, "warnings": self.warnings}


def record_program(
    command: Sequence[str],
    out: str | Path = "app.trace",
    *,
    how: How = "auto",
    mpicc: str | None = None,
    force: bool = False,
    stdout_to_stderr: bool = False,
    notify: Callable[[str], None] = lambda text: None,
    progress: Advance | None = None,
) -> RecordedProgram:
    """Run a command and record what each of its ranks does: every MPI call, steps, and what kept it from running.

    Parameters
    ----------
    command : sequence of str
        Program and arguments: a launcher with its program (`mpirun -n 4 ./app`), a script that calls one, or a program
        that marks its steps with `crosswind.record_step()`.
    out : path
        The file. While the program runs, its parts are in a directory beside it.
    how : str
        "trace": also what had the processors while ranks could have run, by the kernel's trace (root). "auto": where
        it can be had. "none": not.
    mpicc : str, optional
        Compiler command of the program's MPI; default: the one beside the launcher, else the one on PATH.
    force : bool
        Whether a file of another kind may be replaced.
    stdout_to_stderr : bool
        Whether the command's output goes to standard error.
    notify : callable
        Called with a sentence about what takes a while before the command starts.
    progress : callable, optional
        Called several times a second with 0.0 (how long the command runs is not known) and how many ranks are recorded.

    Returns
    -------
    RecordedProgram

    Raises
    ------
    DescriptionError
        When the command cannot be recorded; the message says what to change.
    """
    words = [str(word) for word in command]
    if not words:
        raise DescriptionError("there is no command", "command", "crosswind record -o app.trace -- mpirun -n 4 ./app")
    output.writable(out, KIND, option="out", force=force)
    beside = Path.cwd() if is_standard_output(out) else Path(out).absolute().parent
    name = "stdout" if is_standard_output(out) else Path(out).name
    removed = remove_leftovers()
    with tempfile.TemporaryDirectory(prefix=f".{name}.", suffix=".parts", dir=beside) as temporary:
        parts = Path(temporary)
        words, environment = _prepared(words, parts, mpicc, notify)
        with _preemptions(how) as trace:
            ran = _run(words, environment, parts, trace, sys.stderr if stdout_to_stderr else None, progress)
            if progress is not None:
                progress(0.0, f"writing {name}")
            absences, causes, kernel = trace.stopped()
        return _merged(parts, list(command), Path(out), ran, (absences, causes, kernel), removed, force)


def _prepared(
    words: list[str], parts: Path, mpicc: str | None, notify: Callable[[str], None]
) -> tuple[list[str], dict[str, str]]:
    """Return the command by which ranks are recorded, and its environment."""
    environment = {**os.environ, PARTS: str(parts)}
    if mpicc:
        environment[MPICC] = mpicc
    if launcher.is_launcher(words[0]):
        found = launcher.find(words[0])
        shim = build.built(build.mpicc_for(found, mpicc), found, notify)
        # The launcher itself needs none of it.
        return found.command(launcher.variables(shim, parts), words[1:]), dict(os.environ)
    if shutil.which(words[0]) is None:
        hint = "name a program; -o names the file" if words[0].endswith((".toml", ".trace")) else "name a program"
        raise DescriptionError(f"{words[0]!r} is no program that can be run", "command", hint)
    stand_ins = parts / "bin"
    stand_ins.mkdir()
    for name in launcher.on_path():
        file = stand_ins / name
        target = shlex.join([sys.executable, "-m", "crosswind.recorder.stand_in", str(shutil.which(name))])
        file.write_text(f'#!/bin/sh\nexec {target} "$@"\n')
        file.chmod(0o700)
    environment["PATH"] = f"{stand_ins}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return words, environment


class _Preemptions:
    """The kernel's trace of what ran when, or the reason why there is none."""

    def __init__(self, recorder: _core.PreemptionRecorder | None, why: str | None) -> None:
        self._recorder, self._why = recorder, why
        self._host_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        self._known: dict[Path, int | None] = {}
        self._quotas = Quotas()

    def follow(self, parts: Path) -> None:
        """Tell the recorder which processes of this host are ranks."""
        if self._recorder is None:
            return
        for path in parts.glob("*.part"):
            if path not in self._known and (part := Part.read(path)) is not None:
                self._known[path] = part.pid if part.host_id == self._host_id else None
        here = [pid for pid in self._known.values() if pid is not None]
        self._recorder.follow(here)
        self._quotas.look(here)

    @contextmanager
    def following(self, parts: Path) -> Iterator[None]:
        """Follow new ranks meanwhile, on a thread that takes what the ranks leave of the processors."""
        over = threading.Event()

        def follow() -> None:
            with suppress(OSError):  # without the right to it, it follows as it is
                os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            while not over.wait(_LOOK_S):
                self.follow(parts)

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self.follow(parts)

    def stopped(self) -> tuple[dict[int, Absences] | None, list[Cause], KernelTrace]:
        """End it; return absences by process, their causes, and what the file says of the trace."""
        if self._recorder is None:
            return None, [], {"used": False, "why": self._why, "lost_events": 0}
        data, about = self._recorder.stop()
        told = json.loads(about)
        intervals, at = {}, 0
        for one in told["processes"]:
            intervals[one["pid"]] = data[at : at + one["bytes"]]
            at += one["bytes"]
        intervals, causes = attributed(self._quotas, intervals, told["causes"])
        for cause in causes:
            if cause["pid"] == os.getpid():
                cause["name"], cause["recorder"] = _OWN_NAME, True
        absences = {
            one["pid"]: Absences(intervals[one["pid"]], one["short"], one["short_s"]) for one in told["processes"]
        }
        kernel: KernelTrace = {
            "used": True,
            "why": None,
            "lost_events": told["lost_events"],
            "full": told["full"],
            "host_id": self._host_id,
        }
        return absences, causes, kernel


@contextmanager
def _preemptions(how: How) -> Iterator[_Preemptions]:
    if how not in ("auto", "trace", "none"):
        raise DescriptionError(f"how is {how!r}; it must be auto, trace or none", "argument")
    if how == "none":
        yield _Preemptions(None, "not asked for")
        return
    try:
        recorder = _core.PreemptionRecorder(range(os.cpu_count() or 1))
    except OSError as error:
        if how == "trace":
            message = f"the kernel's trace cannot be had here: {error}"
            hint = "as root, on a kernel with tracefs; --how none does without"
            raise DescriptionError(message, "no-trace", hint) from None
        yield _Preemptions(None, str(error))
        return
    try:
        yield _Preemptions(recorder, None)
    finally:
        del recorder  # ends the trace, if it was not stopped


@dataclass(frozen=True)
class _Ran:
    started: datetime.datetime
    seconds: float
    status: int
    asked: list[int]


def _run(
    words: list[str],
    environment: Mapping[str, str],
    parts: Path,
    trace: _Preemptions,
    stdout: Any,
    progress: Advance | None,
) -> _Ran:
    """Run the command to its end, or to the end that a signal asks for."""
    started, began = datetime.datetime.now(datetime.UTC), time.monotonic()

    def look() -> None:
        if progress is not None:
            progress(0.0, _standing(parts, time.monotonic() - began))

    with heard(_HEARD) as asked:
        try:
            process = subprocess.Popen(words, env=environment, stdout=stdout)
        except OSError as error:
            raise DescriptionError(f"{words[0]} could not be started: {error.strerror}", "command") from None
        with trace.following(parts):
            _wait_for(process, asked, look)
        return _Ran(started, time.monotonic() - began, process.returncode, list(asked))


def _standing(parts: Path, elapsed_s: float) -> str:
    """Say how many ranks are recorded, and how long the command runs."""
    with os.scandir(parts) as entries:  # several times a second, beside the ranks: no patterns, no sorting
        ranks = sum(entry.name.endswith(".part") for entry in entries)
    if not ranks:
        return f"waiting for the first rank (MPI_Init or record_step()), {duration(elapsed_s)} so far"
    return f"recording {ranks} rank{'' if ranks == 1 else 's'}, {duration(elapsed_s)} so far"


def _wait_for(process: subprocess.Popen[bytes], asked: Sequence[int], look: Callable[[], None]) -> None:
    """Wait for the command's end; pass signals on to it, and harder ones where it does not end.

    `look` is called after each quarter of a second.
    """
    harder: list[tuple[float, Callable[[], None]]] = []
    passed = 0
    waits = threading.Thread(target=process.wait, daemon=True)
    waits.start()
    while True:
        waits.join(_LOOK_S)
        if not waits.is_alive():
            return
        look()
        now = time.monotonic()
        for number in asked[passed:]:
            if not harder:
                harder = [(now + _PATIENCE_S, process.terminate), (now + 2 * _PATIENCE_S, process.kill)]
            if not (number == signal.SIGINT and _in_foreground()):  # Ctrl-C reaches the command by itself
                process.send_signal(number)
        passed = len(asked)
        while harder and now >= harder[0][0]:
            harder.pop(0)[1]()


def _in_foreground() -> bool:
    """Whether this process and its children are what the terminal's keys are for."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


_Kernel = tuple[dict[int, Absences] | None, list[Cause], KernelTrace]


def _merged(
    directory: Path, command: list[str], out: Path, ran: _Ran, kernel: _Kernel, removed: list[Notice], force: bool
) -> RecordedProgram:
    """Write the parts of each MPI program into a file of its own; return what was recorded."""
    worlds = [list(group) for _, group in groupby(parts_in(directory), key=lambda part: part.world_id)]
    worlds.sort(key=lambda parts: min(part.init_ns for part in parts))
    if not worlds:
        ended = "" if ran.status == 0 else f"; {_end(ran.status)}"
        raise DescriptionError(f"{_NO_RANK}{ended}", "no-rank", _NO_RANK_HINT)
    absences, causes, about_kernel = kernel
    files: list[str] = []
    written = skipped = records = 0
    for at, parts in enumerate(worlds):
        _refuse_doubles(parts)
        file = out if at == 0 or is_standard_output(out) else out.with_name(f"{out.stem}-{at + 1}{out.suffix}")
        if at and is_standard_output(out):
            skipped += 1
            continue
        if at:
            output.writable(file, KIND, force=force)
        head: Head = {
            "command": command,
            "started": ran.started.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "seconds": round(ran.seconds, 6),
            "exit": ran.status if ran.status >= 0 and not ran.asked else None,
            "crosswind": _core.__version__,
            "library": _library(parts[0]),
            "kernel_trace": about_kernel,
        }
        with replaced(file, sync=False) as target:
            records += write(target, head, parts, absences, causes)
        files.append(str(file))
        written += 0 if is_standard_output(file) else file.stat().st_size
    first = worlds[0]
    ranks = {part.rank for part in first}
    summary: Summary = {
        "command": command,
        "files": files,
        "seconds": ran.seconds,
        "exit_status": ran.status if ran.status >= 0 else None,
        "exit_signal": -ran.status if ran.status < 0 else None,
        "interrupted": bool(ran.asked),
        "world_size": first[0].world_size,
        "ranks": len(first),
        "unfinished": [part.rank for part in first if not part.complete],
        "missing": sorted(set(range(first[0].world_size)) - ranks),
        "lost": sum(part.lost for part in first),
        "cpu_clock": first[0].cpu_clock,
        "records": records,
        "bytes": written,
        "library": _library(first[0]),
        "kernel_trace": about_kernel,
        "causes": sorted(causes, key=lambda cause: -cause["seconds"])[:20],
        "complete": all(is_complete(parts) for parts in worlds),
        "worlds": len(worlds),
        "skipped": skipped,
        "removed": removed,
    }
    return RecordedProgram(summary)


def _library(part: Part) -> str | None:
    """Return the name and the version of an MPI: the beginning of what it says of itself."""
    return " ".join(part.library.partition(",")[0].partition("\n")[0].split()) or None


def _refuse_doubles(parts: Sequence[Part]) -> None:
    """Refuse ranks that several processes claim: launchers set different variables, and then all are rank 0."""
    ranks = [part.rank for part in parts]
    double = next((rank for rank in ranks if ranks.count(rank) > 1), None)
    if double is not None:
        message = f"{ranks.count(double)} processes say that they are rank {double}"
        hint = "record one program at a time; each process takes its rank from RANK and WORLD_SIZE, which torchrun sets"
        raise CrosswindError(message, "rank-twice", hint)


def _end(status: int) -> str:
    """Say how the command ended."""
    if status < 0:
        names = {item.value: item.name for item in signal.Signals}
        return f"the command was ended by {names.get(-status, f'signal {-status}')}"
    return f"the command ended with status {status}"


def _warnings(summary: Summary) -> list[Notice]:
    found: list[Notice] = []
    kernel = summary["kernel_trace"]
    if summary["missing"]:
        ranks = ", ".join(map(str, summary["missing"][:8]))
        message = f"{len(summary['missing'])} of {summary['world_size']} ranks are missing: {ranks}"
        found.append(
            warning("missing-ranks", message, "other hosts write beside the output: name a shared directory (-o)")
        )
    if summary["unfinished"] and not summary["interrupted"]:
        ranks = ", ".join(map(str, summary["unfinished"][:8]))
        message = f"ranks ended before MPI_Finalize: {ranks}; what they did until then is in the file"
        found.append(warning("unfinished-ranks", message, "a verdict needs runs that end by themselves"))
    if summary["lost"]:
        message = f"{summary['lost']} records could not be written"
        found.append(warning("records-lost", message, "make space beside the output, and record again"))
    if summary["worlds"] > 1:
        message = f"the command ran {summary['worlds']} MPI programs"
        message += (
            f"; {summary['skipped']} of them were dropped" if summary["skipped"] else ", each in a file of its own"
        )
        found.append(warning("several-programs", message, "record one at a time"))
    if not kernel["used"] and kernel["why"] != "not asked for":
        message = f"what kept ranks from running is not known by name: {kernel['why']}"
        found.append(warning("no-trace", message, "as root, on a kernel with tracefs, each has its name"))
    if kernel["lost_events"]:
        message = f"the kernel could not keep {kernel['lost_events']} events: some absences have no name"
        found.append(warning("events-lost", message, "record on a quieter machine"))
    return [*found, *summary["removed"]]
