"""Records this machine's own noise as a disturbance: when each CPU is kept from computing, and by what.

The loops and the kernel's trace are in Rust (`crates/disturb/src/noise`); this module passes options and reads results.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Literal, cast

from crosswind import _core
from crosswind.absences import Observed, remove_leftovers
from crosswind.errors import DescriptionError, Notice, warning
from crosswind.files.atomic import is_standard_output
from crosswind.files.intervals import save_recording
from crosswind.host import interrupts
from crosswind.terminal.progress import Advance
from crosswind.terminal.signals import heard

if TYPE_CHECKING:
    from crosswind.documents.noise import NoiseCause, NoiseProcess, NoiseSummary

RecordHow = Literal["auto", "trace", "loop"]

_KIND = 'kind = "recorded"\n'
_LOOK_S = 0.5  # to look more often would be noise
_WAYS = ("auto", "trace", "loop")
_HEARD = (signal.SIGINT, signal.SIGTERM)
MOST_PROCESSES = 3
OWN_SHARE = 0.001
"""Part of the time above which noise that the recorder causes itself is reported."""


@dataclass(frozen=True)
class Noise(Observed):
    """What was recorded.

    Attributes
    ----------
    summary : dict
        `length_s` (s), `how` ("trace": causes by the kernel's trace; "loop": only whether another thread had the CPU),
        `no_trace` (why it was not used), `lost_events`, `throttled` (periods in which a quota of CPU time was used up),
        `interrupted`, `full`, `own_share` (0 to 1, left out of the rest), `interrupts` (per CPU: name, count),
        `steal_s` (per CPU), and in `total` and each of `cpus`: `share` (0 to 1), `intervals`, `longest_s`,
        `longest_cause`, and the same for each of `causes`, the worst first. By the trace, causes of `total` have their
        `processes`, at most 5: `pid`, `command` (its first two words), `cgroup`, `container` (runtime and id, or None)
        and `share`.
    recorded : str
        The intervals as a `disturbance.toml` of kind recorded.
    """

    summary: NoiseSummary

    def save(self, path: str | Path) -> None:
        """Write a short `disturbance.toml`, and its intervals as a table beside it (`NAME.intervals.parquet`).

        Standard output ("-") gets one file with everything in it.
        """
        if is_standard_output(path):
            super().save(path)
        else:
            save_recording(self.recorded, path)

    @property
    def share(self) -> float:
        """Part of the time in which processors were away, mean of all CPUs, 0 to 1."""
        return float(self.summary["total"]["share"])

    @property
    def processes(self) -> list[str]:
        """The processes that kept the CPUs longest, a line each: cause, process, its control group or container."""
        found = [(one["share"], cause["cause"], one) for cause in self.summary["total"]["causes"] for one in _of(cause)]
        found.sort(key=lambda each: -each[0])
        return [
            f"{cause.partition(' (')[0]}: {_command(one)}process {one['pid']} in {_where(one)}, {100 * share:.3f} %"
            for share, cause, one in found[:MOST_PROCESSES]
        ]

    @property
    def warnings(self) -> list[Notice]:
        """What one should know before using it: code, message, hint."""
        return [*_warnings(self.summary), *self.summary.get("removed", [])]


def _of(cause: NoiseCause) -> list[NoiseProcess]:
    return list(cause.get("processes", ()))


def _command(process: NoiseProcess) -> str:
    """Return the names of the program and of its script, to stand before the number."""
    words = [PurePath(word).name for word in process["command"].split(" ") if not word.startswith("-")]
    return f"{' '.join(words)}, " if words else ""


def _where(process: NoiseProcess) -> str:
    if process["container"]:
        runtime, _, name = process["container"].partition(" ")
        return f"{runtime} container {name}"
    return process["cgroup"] or "a control group that is not known"


def record(
    seconds: float = 60.0,
    *,
    cpus: Sequence[int] | None = None,
    how: RecordHow = "auto",
    threshold_us: float = 1.0,
    name: str | None = None,
    progress: Advance | None = None,
) -> Noise:
    """Record this machine's noise: a loop per CPU that only looks at the clock, and whose each gap is.

    Parameters
    ----------
    seconds : float
        For how long, s, greater than 0. Ctrl-C ends it earlier and keeps what was recorded.
    cpus : sequence of int, optional
        On which CPUs; default: all that this process may use. Each is busy meanwhile.
    how : str
        "trace": causes by the kernel's trace (root; `sched_switch` and interrupts through tracefs, an instance of its
        own, removed at the end). "loop": without any privilege; distinguishes only whether another thread had
        the CPU or none. "auto": the trace where it can be had.
    threshold_us : float
        Shorter gaps are not kept, us, at least 0.001. A look at the clock takes about 0.03.
    name : str, optional
        What to call it; default: the host's name and the length.
    progress : callable, optional
        Called with the fraction done (0 to 1) and the time left.

    Returns
    -------
    Noise

    Raises
    ------
    DescriptionError
        When a setting is out of its range, or the trace is asked for and can't be had.

    Examples
    --------
    >>> noise = record(0.2, how="loop")
    >>> 0.0 <= noise.share < 1.0, "recorded" in noise.recorded
    (True, True)
    """
    allowed = sorted(os.sched_getaffinity(0))
    chosen = sorted(set(cpus)) if cpus is not None else allowed
    foreign = [cpu for cpu in chosen if cpu not in allowed]
    if foreign or not chosen:
        raise DescriptionError(f"cpus is {list(chosen)}; it must be some of {allowed}", "argument")
    if how not in _WAYS:
        raise DescriptionError(f"how is {how!r}; it must be one of {', '.join(_WAYS)}", "argument")
    if how == "trace" and (why := no_trace()):
        hint = "as root, on a kernel with tracefs; --how loop needs no privilege"
        raise DescriptionError(f"the kernel's trace cannot be had here: {why}", "no-trace", hint)
    wanted = None if how == "auto" else how
    config = {"seconds": seconds, "cpus": chosen, "threshold_us": threshold_us, "how": wanted}
    removed = remove_leftovers()
    before = interrupts.Counts.take()
    with heard(_HEARD) as asked:
        recorder = _core.NoiseRecorder(json.dumps(config))
        while not recorder.wait(min(_LOOK_S, seconds)):
            if asked:
                recorder.stop()
            if progress:
                elapsed_s = min(recorder.elapsed_s(), seconds)
                progress(elapsed_s / seconds, f"{seconds - elapsed_s:.0f} s left")
    called = name or usual_name()
    summary, recorded = recorder.recording(called)
    counted = interrupts.Counts.take().since(before, chosen)
    found = cast("NoiseSummary", {"name": called, **json.loads(summary), **counted, "removed": removed})
    return Noise(found, _with_warnings(recorded, [told["message"] for told in _warnings(found)]))


def usual_name() -> str:
    """Return what a recording of this host is called, unless it is given a name."""
    return f"noise of {socket.gethostname()}"


def _with_warnings(recorded: str, warnings: list[str]) -> str:
    """Return a recording whose file says what was wrong with it."""
    if not warnings:
        return recorded
    line = f"warnings = {json.dumps(warnings, ensure_ascii=False)}\n"
    return recorded.replace(_KIND, f"{_KIND}{line}", 1)


def no_trace() -> str | None:
    """Say why the kernel's trace can't be had here; None when it can. Nothing is left of the try."""
    return _core.no_trace()


def _warnings(summary: NoiseSummary) -> list[Notice]:
    found: list[Notice] = []

    def warn(code: str, message: str, hint: str) -> None:
        found.append(warning(code, message, hint))

    if summary["how"] == "loop" and summary["no_trace"]:
        seen = f"causes are distinguished only roughly: {summary['no_trace']}"
        warn("no-trace", seen, "as root, on a kernel with tracefs, each has its name")
    if summary["lost_events"]:
        seen = f"the kernel could not keep {summary['lost_events']} events: gaps in that time are 'lost events'"
        warn("events-lost", seen, "record while less goes on, or fewer --cpus")
    if summary["full"]:
        seen = f"it ended after {summary['length_s']:.1f} s: there was more noise than is kept"
        warn("recording-full", seen, "a higher --threshold-us keeps fewer intervals")
    if summary["own_share"] > OWN_SHARE:
        seen = f"the recorder itself took {summary['own_share']:.2%} of the time, which was left out"
        warn("own-noise", seen, "record on fewer CPUs than there are: --cpus")
    return found
