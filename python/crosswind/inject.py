"""Injects a disturbance into a command: the same file that is simulated, recorded and blamed, for real.

The time is kept, processes are held and everything is undone in Rust (`crates/disturb/src/inject`); this describes what
is wanted and returns what was done.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from crosswind import _core
from crosswind.absences import Observed, remove_leftovers
from crosswind.errors import WATCHDOG_ONLY, DescriptionError, Notice, watchdog_only
from crosswind.files.intervals import whole
from crosswind.files.reading import read_bytes
from crosswind.files.tabular import Plotted
from crosswind.files.wrong_kind import read_as
from crosswind.terminal.progress import Advance
from crosswind.terminal.signals import heard

if TYPE_CHECKING:
    from crosswind.documents.blame import InjectionDocument
    from crosswind.documents.noise import InjectionMeans, InjectionPreview

SCHEMA_VERSION = 1

How = Literal["auto", "stop", "freeze", "burn"]

DEFAULT_LIMIT_S = 3600.0
_LOOK_S = 0.1
_WAYS = ("auto", "stop", "freeze", "burn")
_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_HARMLESS = {"too-short", "leftovers-removed", WATCHDOG_ONLY}
NOT_INJECTED = {"missing-ranks", "no-rank", "no-start"}
"""Codes of warnings that say that a command was not disturbed as asked."""
LATE_S = 0.005
"""A mean lateness above this makes a result untrustworthy, s."""
SHORT_PART = 0.05
"""So do intervals too short to be injected above this part of all that was to be."""


@dataclass(frozen=True)
class Injected(Observed, Plotted):
    """What was really injected into a command, and how long it took.

    Attributes
    ----------
    summary : dict
        `elapsed_s`, `start_s` (time 0 of the disturbance after the command's start; None: the command never made its
        `start_file`), `cpu_user_s`, `cpu_system_s` (s), `exit_status`, `exit_signal`, `ended` ("exited", "limit",
        "asked", "unwatched"), `priority`, `ranks_asked` (None: as many as are found), `ranks_told_by`, and per rank
        `busy_cpus`, `intervals`, `away_s`, `share` (0 to 1), `late_mean_s`, `late_max_s`, `longer_mean_s`, `too_short`,
        `missed`, `causes`, `exposed` (whether only a watchdog would have continued it).
    recorded : str
        The intervals as they really were, as a `disturbance.toml` of kind recorded, one CPU per rank.
    """

    summary: InjectionDocument

    @property
    def elapsed_s(self) -> float:
        """How long the command took, s."""
        return float(self.summary["elapsed_s"])

    @property
    def succeeded(self) -> bool:
        """Whether the command ended by itself with status 0."""
        return bool(self.summary["ended"] == "exited" and self.summary["exit_status"] == 0)

    @property
    def trustworthy(self) -> bool:
        """Whether what was injected is what was asked, but for intervals too short to matter."""
        return not {warning["code"] for warning in self.warnings} - _HARMLESS and all(
            rank["too_short_s"] <= SHORT_PART * (rank["away_s"] + rank["too_short_s"]) for rank in self.summary["ranks"]
        )

    @property
    def warnings(self) -> list[Notice]:
        """What one should know before comparing: code, message, hint."""
        return [*_warnings(self.summary), *self.summary.get("removed", [])]


def inject(
    disturbance: str | Path,
    command: Sequence[str],
    *,
    ranks: int | None = None,
    limit_s: float = DEFAULT_LIMIT_S,
    how: How = "auto",
    pin: bool = False,
    busy: bool = True,
    keep_running: bool = False,
    start_file: str | Path | None = None,
    seed: int = 1,
    stdout_to_stderr: bool = False,
    progress: Advance | None = None,
    notify: Callable[[Notice], None] | None = None,
) -> Injected:
    r"""Run a command while its ranks' processors are taken away as a disturbance says.

    Parameters
    ----------
    disturbance : path
        A `disturbance.toml`.
    command : sequence of str
        Program and arguments. Which of its processes is which rank follows from OMPI_COMM_WORLD_RANK,
        MV2_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK, PALS_RANKID, RANK (beside WORLD_SIZE or LOCAL_RANK: torchrun),
        FLUX_TASK_RANK or SLURM_PROCID in their environment; where none has any of these, the whole command is rank 0.
    ranks : int, optional
        How many ranks it will have, at least 1; default: as many as are found. When fewer are found, a warning says so.
    limit_s : float
        The most that it may take, s, greater than 0. Then everything is undone and the command is ended.
    how : str
        "stop" (all threads stopped by tracing them; where that is not permitted SIGSTOP and SIGCONT), "freeze" (a
        control group of version 2), "burn" (a thread of real-time or high priority on the rank's CPU, where it is bound
        to one; elsewhere as "stop"). "auto": daemons and recorded noise burn, slices of time stop.
    pin : bool
        Bind rank r to the r-th CPU that this process may use (again from the first); undone at the end.
    busy : bool
        While a rank is stopped or frozen (1 ms or longer), compute where its threads ran last, by the policy
        SCHED_IDLE: as under another job, the processor does not fall asleep. False: it idles.
    keep_running : bool
        At the limit only the disturbance ends, and the command continues.
    start_file : path, optional
        Time 0 of the disturbance is when the command makes this file, which must not exist before: empty, or with the
        ns of CLOCK_MONOTONIC that are time 0, a moment ahead. Default: when the command starts.
    seed : int
        Seed of what the disturbance draws; 0 or more. The same as in a simulation: the same intervals.
    stdout_to_stderr : bool
        Send what the command prints to our stderr.
    progress : callable, optional
        Called with the fraction of the limit that has passed (0 to 1) and a message.
    notify : callable, optional
        Called with the warning `watchdog-only` before the command starts, where programs may not be traced.

    Returns
    -------
    Injected

    Raises
    ------
    DescriptionError
        When the disturbance is wrong, the command can't be started, or `how` can't be had here.

    Notes
    -----
    SIGINT, SIGTERM and SIGHUP end the command, undo everything, and give a result with `ended` = "asked". When this
    process is killed, what is stopped is continued by the kernel or by a watchdog process, which has another command
    line, session and, where permitted, control group than this process, and undoes the rest; the command then continues
    undisturbed.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "half.toml"
    >>> _ = file.write_text(
    ...     'schema_version = 1\nname = "half"\n[[source]]\nkind = "coscheduled"\nquantum_s = 0.01\njobs = 2\n'
    ... )
    >>> injected = inject(file, ["sleep", "0.1"])
    >>> injected.succeeded, injected.summary["ranks"][0]["intervals"] >= 1
    (True, True)
    """
    text, file = whole(read_bytes(disturbance), disturbance), str(disturbance)
    config = _config(
        command,
        ranks=ranks,
        limit_s=limit_s,
        how=how,
        pin=pin,
        busy=busy,
        keep_running=keep_running,
        start_file=start_file,
        seed=seed,
        stdout_to_stderr=stdout_to_stderr,
    )
    removed = remove_leftovers()
    if notify is not None and how != "freeze" and not _core.injection_traces():
        notify(watchdog_only("programs may not be traced here, so only a watchdog continues what is stopped"))
    with heard(_HEARD) as asked:
        with read_as(disturbance, "disturbance", "recording"):
            injection = _core.Injection(config, text, file)
        stopped = False
        while not injection.wait(_LOOK_S):
            if asked and not stopped:
                injection.stop(asked[0])
                stopped = True
            if progress:
                elapsed_s = injection.elapsed_s()
                progress(min(elapsed_s / limit_s, 1.0), f"running for {elapsed_s:.0f} s; limit {limit_s:.0f} s")
    summary, recorded = injection.outcome()
    about = {
        "schema_version": SCHEMA_VERSION,
        "kind": "injection",
        "command": list(command),
        "disturbance": file,
        "limit_s": limit_s,
        "keep_running": keep_running,
        "ranks_asked": ranks,
        "ranks_struck": [] if _is_a_rank(os.environ) else _struck(text, file),
        "removed": removed,
    }
    found = json.loads(summary)
    # Ctrl-C on a terminal reaches the command too, which may end before it is asked to: it was asked all the same.
    if asked and (found["ended"] == "exited" or (found["ended"] == "limit" and keep_running)):
        found |= {"ended": "asked", "asked_by_signal": asked[0]}
    return Injected(about | found, recorded)


def _is_a_rank(environment: Mapping[str, str]) -> bool:
    """Whether a launcher started this injector as a rank, so that the others have injectors of their own.

    A batch script of Slurm has a rank too, and is no step.
    """
    own = [name for name in _core.RANK_VARIABLES if name in environment]
    by_torchrun = "WORLD_SIZE" in environment or "LOCAL_RANK" in environment
    is_told = {"RANK": by_torchrun, "SLURM_PROCID": "SLURM_STEP_ID" in environment}
    return any(is_told.get(name, True) for name in own)


def _struck(text: bytes, file: str) -> list[int]:
    """Return the ranks that a disturbance names."""
    if b"ranks" not in text:  # a recording names none, and may be large
        return []
    is_json = text.lstrip()[:1] == b"{"
    read = _core.Disturbance.from_json if is_json else _core.Disturbance.from_toml
    document = json.loads(read(text, file).to_json())
    return sorted({rank for one in document.get("source", []) for rank in one.get("ranks") or []})


def preview(
    disturbance: str | Path,
    command: Sequence[str],
    *,
    ranks: int | None = None,
    limit_s: float = DEFAULT_LIMIT_S,
    how: How = "auto",
    pin: bool = False,
    busy: bool = True,
    keep_running: bool = False,
    start_file: str | Path | None = None,
    seed: int = 1,
    horizon_s: float = 10.0,
) -> InjectionPreview:
    """Say what `inject` would do, and change nothing.

    Parameters
    ----------
    horizon_s : float
        How much of the disturbance is looked at, s, greater than 0. The other parameters are those of `inject`.

    Returns
    -------
    dict
        `name`, `causes` (each with `how`), `priority`, `cpus`, `changes` (sentences), `horizon_s`, and per rank
        `intervals`, `away_s`, `share` and the `first` ten intervals: start s, duration s, cause.

    Raises
    ------
    DescriptionError
        As `inject`.
    """
    text, file = whole(read_bytes(disturbance), disturbance), str(disturbance)
    config = _config(
        command,
        ranks=ranks,
        limit_s=limit_s,
        how=how,
        pin=pin,
        busy=busy,
        keep_running=keep_running,
        start_file=start_file,
        seed=seed,
        stdout_to_stderr=False,
    )
    with read_as(disturbance, "disturbance", "recording"):
        found: InjectionPreview = json.loads(_core.injection_preview(config, text, file, horizon_s))
    changes = _changes(
        found, how, pin=pin, busy=busy, keep_running=keep_running, start_file=start_file, limit_s=limit_s
    )
    return {**found, "changes": changes}


def means() -> InjectionMeans:
    """Say what injection can do here: `priority` (real-time, nice -20, ordinary), `no_freezer` (why not, or None)."""
    found: InjectionMeans = json.loads(_core.injection_means())
    return found


def _config(
    command: Sequence[str],
    *,
    ranks: int | None,
    limit_s: float,
    how: str,
    start_file: str | Path | None,
    seed: int,
    **rest: bool,
) -> str:
    if not command:
        raise DescriptionError("there is no command", "argument", "crosswind inject disturbance.toml -- COMMAND ...")
    if how not in _WAYS:
        raise DescriptionError(f"how is {how!r}; it must be one of {', '.join(_WAYS)}", "argument")
    if ranks is not None and ranks < 1:
        raise DescriptionError(f"ranks is {ranks}; it must be at least 1", "argument")
    if seed < 0:
        raise DescriptionError(f"seed is {seed}; it must be at least 0", "argument")
    if how == "freeze" and (why := means()["no_freezer"]):
        hint = "as root, or in a control group of version 2 that is delegated; --how stop needs no privilege"
        raise DescriptionError(f"control groups cannot be frozen here: {why}", "no-freezer", hint)
    if not 0 < limit_s < float("inf"):
        raise DescriptionError(f"limit_s is {limit_s} s; it must be greater than 0 s and finite", "argument")
    wanted = {
        "command": [{"Unix": list(os.fsencode(word))} for word in command],
        "ranks": ranks,
        "seed": seed,
        "limit_s": limit_s,
        "how": None if how == "auto" else how,
        "start_file": None if start_file is None else str(start_file),
    }
    return json.dumps(wanted | rest)


def _changes(
    found: InjectionPreview,
    how: str,
    *,
    pin: bool,
    busy: bool,
    keep_running: bool,
    start_file: str | Path | None,
    limit_s: float,
) -> list[str]:
    ways = {way for cause in found["causes"] for way in cause["how"]}
    changes = ["watchdog processes are started first; they undo everything should this process be killed"]
    if "stop" in ways:
        changes.append(
            "processes of the command are traced while they are held (SIGSTOP and SIGCONT where that is not permitted)"
        )
    if "freeze" in ways:
        changes.append(
            f"control groups are made below {found['groups_below']}, the command's processes moved into them"
        )
    if busy and ways & {"stop", "freeze"}:
        changes.append("threads of the lowest priority (SCHED_IDLE) compute where a rank did, while it is held")
    if "burn" in ways:
        changes.append("threads compute on the CPU of a rank that is bound to one (elsewhere the rank is held)")
    changes.append(f"threads that keep the time get the highest priority permitted: {found['priority']}")
    if pin:
        changes.append(f"ranks are bound to one CPU each, of {found['cpus']}")
    if start_file is not None:
        changes.append(f"nothing is injected until the command makes {start_file}")
    end = (
        "the disturbance ends, the command continues"
        if keep_running
        else "the command is ended (SIGTERM, then SIGKILL)"
    )
    changes.append(f"after {limit_s:g} s {end}; then, as at every other end, all of this is undone")
    return changes


def _listed(ranks: Sequence[int]) -> str:
    """Return numbers of ranks, the first ten of many."""
    return ", ".join(map(str, sorted(ranks)[:10])) + (f" and {len(ranks) - 10} more" if len(ranks) > 10 else "")


def _warnings(summary: InjectionDocument) -> list[Notice]:
    found: list[Notice] = []

    def warning(code: str, message: str, hint: str) -> None:
        found.append({"code": code, "message": message, "hint": hint})

    ranks = summary["ranks"]
    for rank in ranks:
        name = f"rank {rank['rank']}"
        if rank["intervals"] and rank["late_mean_s"] > LATE_S:
            seen = f"{name}: intervals began {1e3 * rank['late_mean_s']:.1f} ms late on average"
            warning(
                "injected-late", seen, "as root, or with a limit of real-time priorities, threads keep the time better"
            )
        if rank["too_short"]:
            seen = f"{name}: {rank['too_short']} intervals ({rank['too_short_s']:.3g} s) were too short to be injected"
            warning(
                "too-short", seen, "signals take from 100 us on, burning (ranks bound to CPUs: --pin) from 20 us on"
            )
        if rank.get("exposed"):
            found.append(watchdog_only(f"{name} may not be traced, so only a watchdog continues it"))
        for complaint in rank["complaints"]:
            warning("not-injected", complaint, "look at the rank's processes while it runs, or choose another --how")
    if summary["start_s"] is None:
        warning("no-start", "nothing was injected: the command never made its start file", "look at its --start-file")
    elif (asked := summary.get("ranks_asked")) is not None and ranks and len(ranks) < asked:
        told = summary["ranks_told_by"]
        seen = f"of {asked} ranks {len(ranks)} {'was' if len(ranks) == 1 else 'were'} found, by {told}"
        if told is None:
            seen = f"of {asked} ranks 1 was found: no process says which rank it is, so all were held as rank 0"
        variables = ", ".join(_core.RANK_VARIABLES)
        warning("missing-ranks", seen, f"start the command by a launcher that sets one of {variables} on this host")
    elif (missing := sorted(set(summary.get("ranks_struck", [])) - {one["rank"] for one in ranks})) and ranks:
        named = f"rank{'s' if len(missing) > 1 else ''} {_listed(missing)}"
        have = f"found {'was' if len(ranks) == 1 else 'were'} {_listed([one['rank'] for one in ranks])}"
        told = summary["ranks_told_by"]
        by = f"by {told}" if told else "since no process says which rank it is"
        hint = "name ranks that there are, or start more; a rank on another host needs its own `crosswind inject`"
        warning("missing-ranks", f"the disturbance strikes {named}, not found; {have}, {by}", hint)
    elif not ranks:
        warning("no-rank", "nothing was injected: no rank of the disturbance was found", "say how many: --ranks N")
    if summary["ended"] == "limit" and summary["keep_running"]:
        seen = f"after {summary['limit_s']:g} s the disturbance ended, and the command continued without"
        warning("limit", seen, "--limit-s gives it longer")
    if summary["ended"] == "unwatched":
        warning(
            "unwatched",
            "the watchdog was ended, and so the disturbance was too",
            "leave the processes called undo-watchdog alone",
        )
    return found
