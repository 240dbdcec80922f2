"""Run a cost measurement: stop and continue processes beside a job, and count the job's progress in blocks.

A `Session` first measures how much the targets compute when nothing is stopped. It then repeats ABBA blocks (running,
stopped, stopped, running, or the reverse). After each group of blocks, an interim analysis (`result`) decides whether
the cost is known well enough. The session also ends at its time limit and on ctrl-C, and leaves no target stopped.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from crosswind.cost import counters
from crosswind.cost.blocks import ON, contrasts, schedule
from crosswind.cost.job import Job, changes_per_s, choose_progress, ended_early
from crosswind.cost.result import Cost
from crosswind.cost.targets import Target
from crosswind.errors import DescriptionError, MeasurementError, warning
from crosswind.host import processes
from crosswind.host.tree import ROOT, cpu_ticks
from crosswind.terminal.progress import Advance

if TYPE_CHECKING:
    from crosswind.documents.cost import CostDocument

WINDOW_S = 0.1
WINDOWS = (0.5, 1.5)
"""Windows are of random lengths, so that no daemon wakes with them."""
FINE_WINDOW_S = 0.001
TRIAL_S, MOST_TRIAL_S = 0.25, 5.0
TRIAL_COUNTS = 20
LATE_S = 0.5
"""A block that takes so much longer than asked says nothing: its quad is dropped. The freezer waits longer."""
SETTLING_S = (0.002, 0.008)
"""What is left out after something was stopped or continued: what it missed it may do in its first moments, while the
counters are read. Of random length, so that no block begins at the same place of a daemon's period again and again."""
STARTING_S = (1.0, 1.5)
"""How long a command that we start is left to itself first: what it does then is not what it does later. Of random
length, so that the undisturbed part does not begin with one of its bursts each time."""
_NS = 1e-9


@dataclass
class Settings:
    """What a session does.

    Attributes
    ----------
    seconds : float
        Of this stage, the undisturbed part included, s.
    undisturbed_s : float
        How long the duty is measured before anything is stopped, s.
    block_s : float or None
        Length of a block; None: by the counter.
    to_the_end : bool
        One look at the end instead of stopping when it is known.
    intervals : bool
        Keep when each target computed, to 1 ms.
    seed : int
        Of the order of blocks.
    """

    seconds: float
    undisturbed_s: float
    block_s: float | None = None
    to_the_end: bool = False
    intervals: bool = False
    seed: int = 1


@dataclass
class Session:
    """Targets that are stopped and continued beside a job."""

    targets: Sequence[Target]
    job: Job
    settings: Settings
    document: CostDocument
    asked_to_end: Callable[[], bool] = lambda: False
    keep: Callable[[Cost], None] = lambda found: None
    progress: Advance | None = None
    _stopped: set[int] = field(default_factory=set)
    _totals: list[tuple[float, int]] = field(default_factory=list)
    _unseen_earlier: list[float] = field(default_factory=list)
    _begun: float = field(default_factory=time.monotonic)

    def run(self) -> Cost:
        """Measure, and return what is known then.

        Raises
        ------
        MeasurementError
            When nothing can be said: the job makes no progress, or ended before anything was measured.
        """
        self._refresh()
        for one, target in zip(self.document["of"], self.targets, strict=True):
            one["cpus"] = sorted(processes.cpus_of(target.members))
        self.document["job"]["cpus"] = sorted(processes.cpus_of(self.job.members))
        block_s = self.settings.block_s or self._block_s()
        self.document["job"]["block_s"] = block_s
        self._let_start()
        self._measure_duty()
        try:
            if not self._try_each():
                self._measure_quads(block_s)
        finally:
            with contextlib.suppress(MeasurementError):  # a freezer that has ended has left nothing stopped
                self._let_run(set(range(len(self.targets))), 0.0)
        self.document["interrupted"] = self.asked_to_end()
        found = Cost(self.document)
        self.keep(found)
        return found

    def _block_s(self) -> float:
        """Return how long a block must be for the job's counter; built-in kernels count each 80 us."""
        if self.job.progress_of == "kernel":
            return counters.SHORTEST_BLOCK_S
        return counters.block_for(changes_per_s(self.job))

    def _tell(self, message: str) -> None:
        if self.progress:
            self.progress(min((time.monotonic() - self._begun) / self.settings.seconds, 1.0), message)

    def _refresh(self) -> None:
        for target in self.targets:
            target.refresh()
        self.job.refresh(set().union(*(target.members for target in self.targets)))

    def _is_over(self) -> bool:
        """Whether there is nothing left to measure; says why in a warning.

        Raises
        ------
        MeasurementError
            When the job ended before anything was measured.
        """
        if self.asked_to_end():
            return True
        if self.job.has_ended:
            if not self.document["quads"]["at_s"]:
                raise ended_early(self.job)
            message = f"the job ended after {time.monotonic() - self._begun:.0f} s, before the measurement did"
            self._warn("job-ended", message, "a larger input, or fewer --seconds")
            return True
        for target in self.targets:
            if told := target.incomplete():
                self.document["warnings"] = [one for one in self.document["warnings"] if one["code"] != told["code"]]
                self.document["warnings"].append(told)
            if target.is_gone and not target.returns():
                self._warn("target-ended", f"{target.name} ended before the measurement did", "nothing is left to stop")
                return True
        return False

    def _warn(self, code: str, message: str, hint: str) -> None:
        told = warning(code, message, hint)
        if told not in self.document["warnings"]:
            self.document["warnings"].append(told)

    def _let_start(self) -> None:
        if any(target.process for target in self.targets):
            self._tell("letting the started command run first")
            draw = np.random.default_rng([self.settings.seed, len(self.document["undisturbed"]["wall_s"])])
            until = time.monotonic() + draw.uniform(*STARTING_S)
            while (left_s := until - time.monotonic()) > 0.0 and not self._is_over():
                time.sleep(min(left_s, WINDOW_S))
            self._refresh()

    def _measure_duty(self) -> None:
        """Let all run, and count what they use; in fine windows where the intervals are wanted."""
        until = time.monotonic() + self.settings.undisturbed_s
        draw = np.random.default_rng([self.settings.seed, 1, len(self.document["undisturbed"]["wall_s"])])
        window_s = WINDOW_S * draw.uniform(*WINDOWS)
        found, kept = self.document["undisturbed"], [[] for _ in self.targets]  # type: ignore[var-annotated]
        self._totals = [(target.total_s(), target.cpu.ns()) for target in self.targets]
        self._unseen_earlier = self.document.get("unseen_s", [0.0] * len(self.targets))
        before, used = time.monotonic_ns(), [target.cpu.ns() for target in self.targets]
        wall_s, cpu_s, begun = 0.0, np.zeros(len(self.targets)), before
        refreshed = time.monotonic()
        while (now_s := time.monotonic()) < until and not self.asked_to_end():
            time.sleep(FINE_WINDOW_S if self.settings.intervals else window_s - wall_s)
            now, using = time.monotonic_ns(), [target.cpu.ns() for target in self.targets]
            for each, (was, is_now) in zip(kept, zip(used, using, strict=True), strict=True):
                if self.settings.intervals and is_now > was:
                    each.append(((before - begun) * _NS, min(is_now - was, now - before) * _NS))
            wall_s += (now - before) * _NS
            cpu_s += np.subtract(using, used) * _NS
            before, used = now, using
            if wall_s >= window_s:
                found["wall_s"].append(wall_s)
                found["cpu_s"].append(cpu_s.tolist())
                wall_s, cpu_s, window_s = 0.0, np.zeros(len(self.targets)), WINDOW_S * draw.uniform(*WINDOWS)
                self._tell(f"undisturbed duty, {max(until - now_s, 0.0):.0f} s left")
            if now_s > refreshed + 1.0:
                self._refresh()
                refreshed = now_s
                if self._is_over():
                    break
        if self.settings.intervals:
            self.document["intervals"] = {"length_s": (before - begun) * _NS, "of": kept}

    def _try_each(self) -> bool:
        """Note which targets the job waits for, since they hold a lock, or the other end of a pipe; say if any.

        Raises
        ------
        MeasurementError
            When the job makes no progress at all.
        """
        block_s = self.document["job"]["block_s"]
        patience_s = max(TRIAL_S, TRIAL_COUNTS / counters.COUNTS_PER_BLOCK * block_s)
        if self._stands_still(patience_s) and not self._is_over():
            raise MeasurementError("the job makes no progress", "no-progress", "another --progress may tell more")
        everything, waited_for = set(range(len(self.targets))), []
        for number in range(len(self.targets)):
            if self._is_over():
                break
            self._let_run(everything - {number}, MOST_TRIAL_S)
            time.sleep(0.02)  # what it had begun may still come
            stands = self._stands_still(patience_s)
            self._let_run(everything, 0.0)
            if stands and not self.job.has_ended:
                waited_for.append(number)
        if waited_for:
            self.document["waited_for"] = waited_for
        return bool(waited_for)

    def _stands_still(self, patience_s: float) -> bool:
        """Whether the job makes no progress for a time although it computes, or sleeps.

        Time in which it is ready and waits for a CPU says nothing; after 5 s it is not waited for any longer.
        """
        before, begun = self.job.progress(), time.monotonic()
        had_ns, asleep_s = self.job.cpu_ns(), 0.0
        while self.job.progress() == before:
            if (self.job.cpu_ns() - had_ns) * _NS + asleep_s >= patience_s:
                return True
            if time.monotonic() - begun > MOST_TRIAL_S or self.asked_to_end():
                return False
            looked = time.monotonic()
            time.sleep(0.005)
            if not processes.is_ready(self.job.members):
                asleep_s += time.monotonic() - looked
        return False

    def _measure_quads(self, block_s: float) -> None:
        looks, columns = Cost(self.document).looks, self.document["quads"]
        draw = np.random.default_rng([self.settings.seed, len(columns["at_s"])])
        plan = schedule(len(self.targets), draw)
        which = contrasts(len(self.targets))
        watched = self.document.setdefault("watched", {"wall_s": [], "cpu_s": []})
        at_ns, used = time.monotonic_ns(), [target.cpu.ns() for target in self.targets]
        waited, counted_s = self.job.wants_s(), time.monotonic()
        steal, measured_s = _stolen(), float(np.sum(columns["wall_s"]))
        deadline = self._begun + self.settings.seconds
        earlier_s = columns["at_s"][-1] if columns["at_s"] else 0.0
        while not self._is_over():
            if time.monotonic() + 4 * block_s > deadline:
                break
            contrast, order = next(plan)
            row = self._quad(which[contrast], order, block_s, draw)
            if row is None:
                continue
            columns["contrast"].append(contrast)
            columns["at_s"].append(earlier_s + time.monotonic() - self._begun)
            columns["work"].append(row["work"])
            columns["wall_s"].append(row["wall_s"])
            columns["job_cpu_s"].append(row["job_cpu_s"])
            columns["x_cpu_s"].append(row["x_cpu_s"])
            self._refresh()
            now_ns, using = time.monotonic_ns(), [target.cpu.ns() for target in self.targets]
            watched["wall_s"].append((now_ns - at_ns) * _NS)
            watched["cpu_s"].append((np.subtract(using, used) * _NS).tolist())
            at_ns, used = now_ns, using
            measured_s += sum(row["wall_s"])
            self._note_wants(waited, counted_s)
            if measured_s >= looks.next_s() and not self.settings.to_the_end:
                looks.look(measured_s)
                self.document["looks"] = looks.to_dict()
                self._note_unseen()
                found = Cost(self.document)
                waited_for = self._waited_for(found)
                if waited_for:
                    self.document["waited_for"] = waited_for
                    break
                self.keep(found)
                self._tell(found.sentence)
                if all(one.verdict.is_precise for one in found.costs):
                    break
        if columns["at_s"]:
            looks.look(measured_s, at_the_end=not self.asked_to_end())
            self.document["looks"] = looks.to_dict()
        self._note_unseen()
        self.document["steal_share"] = _stolen(steal)

    def _note_unseen(self) -> None:
        """Note what children used that ended between two looks, s: the kernel adds it up where they are waited for."""
        unseen = []
        for target, earlier_s, (total_s, seen_ns) in zip(self.targets, self._unseen_earlier, self._totals, strict=True):
            beyond_s = target.total_s() - total_s - (target.cpu.ns() - seen_ns) * _NS
            unseen.append(earlier_s + max(beyond_s, 0.0))
        self.document["unseen_s"] = unseen

    def _quad(
        self, running: tuple[int, ...], order: tuple[int, int, int, int], block_s: float, draw: np.random.Generator
    ) -> dict[str, list[float]] | None:
        """Measure four blocks; None when one of them took much longer than asked, or a target is gone."""
        row = {name: [0.0, 0.0] for name in ("work", "wall_s", "job_cpu_s", "x_cpu_s")}
        for label in order:
            settling_s = draw.uniform(*SETTLING_S)
            if self._let_run(set(running) if label == ON else set(), settling_s + block_s):
                time.sleep(settling_s)
            at, work, job, used = self._reading(running)
            time.sleep(block_s)
            at_end, work_end, job_end, used_end = self._reading(running)
            if (at_end - at) * _NS > block_s + LATE_S or any(target.is_gone for target in self.targets):
                self._let_run(set(range(len(self.targets))), 0.0)  # the freezer may have continued some
                return None
            for name, value in (
                ("work", work_end - work),
                ("wall_s", (at_end - at) * _NS),
                ("job_cpu_s", (job_end - job) * _NS),
                ("x_cpu_s", (used_end - used) * _NS),
            ):
                row[name][label] += value
        return row

    def _reading(self, running: tuple[int, ...]) -> tuple[int, float, int, int]:
        work = self.job.progress()
        return time.monotonic_ns(), work, self.job.cpu_ns(), sum(self.targets[one].cpu.ns() for one in running)

    def _let_run(self, running: set[int], block_s: float) -> bool:
        """Let exactly these targets run, and return whether that is a change; the freezer thaws and freezes."""
        stopped = set(range(len(self.targets))) - running
        is_new = stopped != self._stopped
        due_ns = time.monotonic_ns() + int(1e9 * (block_s + 0.1))
        for one in stopped & self._stopped:
            self.targets[one].defer(due_ns)
        for one in running & self._stopped:
            self.targets[one].thaw()
        for one in stopped - self._stopped:
            self._stopped.add(one)
            self.targets[one].freeze(due_ns)
        self._stopped = stopped
        return is_new

    def _note_wants(self, before: float, since: float) -> None:
        elapsed = time.monotonic() - since
        self.document["job"]["wants_cpus"] = (self.job.wants_s() - before) / elapsed if elapsed > 0 else 0.0

    def _waited_for(self, found: Cost) -> list[int]:
        """Return the targets without which the job nearly stands still, which a pipe hides from a short trial.

        Its rate is below a tenth then, in nearly every quad: a job that something else holds up now and then does not
        wait for the target.
        """
        of_each = found.costs[: len(self.targets)]
        waited_for = [number for number, one in enumerate(of_each) if one.quads.stand_still_without()]
        everything = list(range(len(self.targets)))
        return waited_for or (everything if found.costs[-1].quads.stand_still_without() else [])


def _stolen(before: Sequence[int] | None = None) -> Any:
    """Return the ticks of all CPUs and the stolen ones; or, since earlier ones, the share that was stolen."""
    ticks = cpu_ticks(ROOT)["cpu"][:8]
    now = (sum(ticks), ticks[7] if len(ticks) > 7 else 0)
    if before is None:
        return now
    return (now[1] - before[1]) / (now[0] - before[0]) if now[0] > before[0] else 0.0


def chosen_progress(job: Job, progress: str | None) -> None:
    """Have the job measured by the counter that was asked for, or by the most precise one."""
    if progress is not None:
        job.measure_by(progress)
    elif not job.progress_of:
        choose_progress(job)


def refuse_the_job(targets: Sequence[Target], job: Job) -> None:
    """Refuse a target that is the job, or what the job descends from.

    Raises
    ------
    DescriptionError
        When one is.
    """
    above = {job.pid, *processes.ancestors(job.pid)}
    for target in targets:
        if target.process is None and target.members & above:
            message = f"--of {target.text} is the job itself, or what it was started by"
            raise DescriptionError(message, "target-refused", "name what runs beside the job")
