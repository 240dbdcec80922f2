"""What does a background process cost a job? It is stopped and continued in randomised ABBA blocks.

| question | module |
|---|---|
| in which order, and what is counted? | `blocks` |
| what follows from it? | `estimate`, `interim`, `verdict`, `result` |
| what belongs to a target? | `finding`, `naming` |
| what is frozen, and how? | `targets`, `crates/linux/src/freezer` |
| how far is the job? | `job`, `counters`, `kernel`, `processes` |
| what happens when? | `session` |
| what does it cost at scale? | `scale` |
"""

from __future__ import annotations

import shlex
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from crosswind.errors import WATCHDOG_ONLY, DescriptionError, Notice
from crosswind.terminal.progress import Advance

if TYPE_CHECKING:
    from crosswind.cost.job import Job
    from crosswind.cost.kernel import Kernel
    from crosswind.cost.result import Cost
    from crosswind.cost.targets import Target
    from crosswind.documents.cost import CostDocument
    from crosswind.documents.cost import Target as TargetDocument
    from crosswind.documents.values import Host

SECONDS = 60.0
MARGIN = 0.01
MOST_TARGETS = 6
UNDISTURBED_PART, UNDISTURBED_S = 0.2, (2.0, 20.0)
_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def cost(
    of: str | Sequence[str],
    *,
    command: Sequence[str] | None = None,
    job: int | str | None = None,
    progress_of: str | None = None,
    kernel: Kernel = "burn",
    seconds: float = SECONDS,
    margin: float = MARGIN,
    block_ms: float | None = None,
    to_the_end: bool = False,
    intervals: bool = False,
    seed: int = 1,
    out: str | Path | None = None,
    resume: bool = False,
    progress: Advance | None = None,
    notify: Callable[[Notice], None] | None = None,
) -> Cost:
    """Measure what background processes cost a job, by stopping and continuing them.

    Parameters
    ----------
    of : str or sequence of str
        What is investigated, 1 to 6: "pid:N", "name:PATTERN" (all processes whose script or program matches),
        "unit:NAME" (of systemd), "slurm:JOB", "cgroup:PATH" or "command:COMMAND" (started, and ended at the end).
    command : sequence of str, optional
        The job, which is started, and ended at the end. With neither `command` nor `job`, built-in kernels are the
        job, one on each CPU that `of` may use.
    job : int or str, optional
        A process that runs already: its number, or "pid:N".
    progress_of : str, optional
        How its progress is read: "file:PATH" (a size), "count:PATH" (a number), "u64:PATH" (mapped memory),
        "stdin-position", "io" or "cpu". Default: the most precise one that works.
    kernel : str
        Built-in kernel: "burn" (arithmetic) or "triad" (memory).
    seconds : float
        Time limit, s, at least 5. For a fifth of it (2 to 20 s) nothing is stopped.
    margin : float
        What is still tolerated, as a share of the job's rate, greater than 0 and below 1.
    block_ms : float, optional
        Length of a block, ms, at least 5; default: 20 ms, or some 10 counts of the progress.
    to_the_end : bool
        Use all the time, and look once; else it ends when it is known.
    intervals : bool
        Keep when each target computed while it was undisturbed, to 1 ms, for `crosswind.cost.scale`.
    seed : int
        Of the order of blocks, at least 0.
    out : path, optional
        A `cost.json` that is written at every look.
    resume : bool
        Continue the session in `out`; `of`, the job and the margin must be the same.
    progress : callable, optional
        Called with the fraction of the time that has passed (0 to 1) and a message.
    notify : callable, optional
        Called with each warning that is known before anything is stopped.

    Returns
    -------
    Cost
        After ctrl-C, SIGTERM or SIGHUP with what was measured until then.

    Raises
    ------
    DescriptionError
        When something is wrong, or must not be stopped.
    MeasurementError
        When the job makes no progress.

    Notes
    -----
    What is stopped is traced by a process of its own, so that the kernel continues it however either process ends,
    SIGKILL of both included. Where tracing is not permitted, that process continues it; `notify` gets that first.

    Examples
    --------
    >>> found = cost("command:sleep 60", seconds=5)
    >>> found.verdict.outcome in ("below", "unknown")
    True
    """
    from crosswind import _core
    from crosswind.cost.targets import opened, refuse, refuse_absent

    texts = [of] if isinstance(of, str) else list(of)
    _check(texts, command, job, seconds, margin, block_ms, seed)
    pid = None if job is None else _number_of(job)
    for text in texts:
        refuse_absent(text)
    # A wrong name is answered before these, which import numpy and scipy.
    from crosswind.cost.naming import distinct
    from crosswind.cost.result import Cost
    from crosswind.cost.session import Session, Settings, chosen_progress, refuse_the_job
    from crosswind.terminal.signals import heard

    settings = Settings(seconds, undisturbed_part(seconds), block_ms and 1e-3 * block_ms, to_the_end, intervals, seed)
    with ExitStack() as stack, heard(_HEARD) as asked:
        freezer = _core.Freezer()
        stack.callback(freezer.close)
        targets: list[Target] = []
        for text in texts:
            targets.append(opened(text, freezer))
            stack.callback(targets[-1].close)
        for target, name in zip(targets, distinct([target.name for target in targets]), strict=True):
            target.name = name
        of_job = _job(command, pid, kernel, targets)
        stack.callback(of_job.close)
        refuse_the_job(targets, of_job)
        for target in targets:
            refuse(target.members, f"--of {target.text}", {freezer.pid})
        chosen_progress(of_job, progress_of)
        asked_of = asked_for(texts, command, job, progress_of, kernel, margin)
        document: CostDocument = {"asked": asked_of, **_document(targets, of_job, command, margin, settings)}
        if notify is not None:
            for told in document["warnings"]:
                notify(told)
        if resume and out is not None and Path(out).exists():
            document = _resumed(Cost.load(out), document, settings)

        def keep(found: Cost) -> None:
            if out is not None:
                found.save(out)

        return Session(targets, of_job, settings, document, lambda: bool(asked), keep, progress).run()


def asked_for(
    of: Sequence[str],
    command: Sequence[str] | None,
    job: int | str | None,
    progress_of: str | None,
    kernel: str,
    margin: float,
) -> str:
    """Return what a session is of, as one would type it: a file of another one is replaced only by force.

    Examples
    --------
    >>> asked_for(["pid:12"], ["./job", "a b"], None, None, "burn", 0.01)
    "--of pid:12 --margin 1% -- ./job 'a b'"
    """
    words = [word for one in of for word in ("--of", one)] + ["--margin", f"{100 * margin:.6g}%"]
    words += ["--progress", progress_of] if progress_of else []
    if command is not None:
        words += ["--", *command]
    else:
        words += ["--job", str(job)] if job is not None else ["--kernel", kernel]
    return shlex.join(words)


def undisturbed_part(seconds: float) -> float:
    """Return for how long of a session nothing is stopped, s.

    Examples
    --------
    >>> undisturbed_part(5.0), undisturbed_part(60.0), undisturbed_part(600.0)
    (2.0, 12.0, 20.0)
    """
    return min(max(UNDISTURBED_PART * seconds, UNDISTURBED_S[0]), UNDISTURBED_S[1])


def _check(
    texts: Sequence[str],
    command: Sequence[str] | None,
    job: int | str | None,
    seconds: float,
    margin: float,
    block_ms: float | None,
    seed: int,
) -> None:
    if not texts:
        message = "no target: name the process that may cost the job something"
        raise DescriptionError(message, "target", "--of pid:1234, --of cgroup:PATH or --of 'command:COMMAND'")
    if not 1 <= len(texts) <= MOST_TARGETS:
        raise DescriptionError(f"{len(texts)} targets; there must be 1 to {MOST_TARGETS}", "target", "--of pid:1234")
    if len(set(texts)) < len(texts):
        raise DescriptionError("--of names the same twice", "target")
    if command is not None and job is not None:
        raise DescriptionError("--job cannot be combined with a command after --", "job", "name one job")
    if command is not None and not command:
        raise DescriptionError("there is no command after --", "job")
    if not 5.0 <= seconds < float("inf"):
        raise DescriptionError(f"seconds is {seconds:g} s; it must be at least 5 s", "seconds")
    if not 0.0 < margin < 1.0:
        raise DescriptionError(f"margin is {100 * margin:g} %; it must be greater than 0 % and below 100 %", "margin")
    if block_ms is not None and not 5.0 <= block_ms <= 5000.0:
        raise DescriptionError(f"block_ms is {block_ms:g} ms; it must be from 5 to 5000 ms", "block")
    if seed < 0:
        raise DescriptionError(f"seed is {seed}; it must be at least 0", "seed")


def _number_of(job: int | str) -> int:
    text = str(job).removeprefix("pid:")
    if not text.isdecimal() or int(text) < 1:
        raise DescriptionError(f"--job is {job!r}; it must be pid:N", "job", "--job pid:5678")
    return int(text)


def _job(command: Sequence[str] | None, pid: int | None, kernel: str, targets: Sequence[Target]) -> Job:
    import os

    from crosswind.cost.job import Job
    from crosswind.cost.kernel import KERNELS
    from crosswind.host import processes

    if command is not None:
        return Job.of_command(command)
    if pid is not None:
        return Job.of_pid(pid)
    if kernel not in KERNELS:
        raise DescriptionError(f"kernel is {kernel!r}; it must be one of {', '.join(KERNELS)}", "kernel")
    members = set().union(*(target.members for target in targets))
    cpus = sorted(processes.cpus_of(members) & os.sched_getaffinity(0)) or sorted(os.sched_getaffinity(0))
    return Job.of_kernels(kernel, cpus)


def _document(
    targets: Sequence[Target], job: Job, command: Sequence[str] | None, margin: float, settings: Any
) -> CostDocument:
    from crosswind import _core
    from crosswind.cost.result import KIND, SCHEMA_VERSION
    from crosswind.host.description import describe
    from crosswind.statistics.interim import Looks

    looks = Looks(planned_s=settings.seconds - settings.undisturbed_s, one=settings.to_the_end)
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "crosswind": _core.__version__,
        "margin": margin,
        "of": [_described(one) for one in targets],
        "job": {
            "name": job.name,
            "command": list(command) if command else None,
            "progress": job.progress_of,
            "unit": job.unit,
            "cpus": [],
            "wants_cpus": 0.0,
            "block_s": 0.0,
        },
        "host": cast("Host", describe()),
        "steal_share": 0.0,
        "looks": looks.to_dict(),
        "undisturbed": {"wall_s": [], "cpu_s": []},
        "quads": {"contrast": [], "at_s": [], "work": [], "wall_s": [], "job_cpu_s": [], "x_cpu_s": []},
        "warnings": [told for one in targets if (told := one.warning())],
    }


def _described(target: Target) -> TargetDocument:
    from crosswind.cost.lifetime import lifetime

    age_s, used_s = lifetime(target.members, target.roots, target.group)
    return {
        "text": target.text,
        "name": target.name,
        "how": target.frozen.how,
        "cpus": [],
        "age_s": age_s,
        "used_s": used_s,
    }


def _resumed(before: Cost, now: CostDocument, settings: Any) -> CostDocument:
    """Return the document of an earlier session, to continue it; refuse that of another job or target."""
    earlier = before.document
    was, is_now = _identity(earlier), _identity(now)
    differing = [name for name in was if was[name] != is_now[name]]
    if differing:
        message = f"--resume: the file is of another session: {', '.join(differing)} differ"
        raise DescriptionError(message, "runs-differ", "name another file, or replace it with --force")
    looks = before.looks
    if looks.next_s() == float("inf"):
        if looks.one:
            message = "--resume: the session had one look, which took all of the permitted error, so no other is left"
            raise DescriptionError(message, "no-looks", "measure anew; sessions without --to-the-end can be prolonged")
        looks.prolong(settings.seconds - settings.undisturbed_s)
    ended = ("job-ended", "target-ended", WATCHDOG_ONLY)
    kept = [one for one in earlier["warnings"] if one["code"] not in ended]
    kept += [one for one in now["warnings"] if one not in kept]
    found: CostDocument = {**now, "undisturbed": earlier["undisturbed"], "quads": earlier["quads"]}
    if "watched" in earlier:
        found["watched"] = earlier["watched"]
    if "unseen_s" in earlier:
        found["unseen_s"] = earlier["unseen_s"]
    found["looks"], found["warnings"] = looks.to_dict(), kept
    return found


def _identity(document: CostDocument) -> dict[str, object]:
    """Return what identifies a session later, when a process may have another number."""
    return {
        "--of": ["pid" if one["text"].startswith("pid:") else one["text"] for one in document["of"]],
        "the job": document["job"]["command"],
        "--progress": document["job"]["progress"],
        "--kernel": document["job"]["name"].split()[0] if document["job"]["progress"] == "kernel" else None,
        "--margin": document["margin"],
        "the host": [document["host"].get(name) for name in ("name", "cpu", "kernel")],
    }
