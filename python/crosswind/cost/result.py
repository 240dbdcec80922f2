"""The result of a session: estimates, headline, verdict and shares. Everything follows from the counted blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crosswind.cost.blocks import OFF, ON, Floats, Quads, contrasts
from crosswind.cost.bursts import FEW_BURSTS, LEAST_BURSTS, Doubt, Life, Watched, doubt, span, too_few
from crosswind.cost.estimate import NAMES, Duty, Name, duty_while_on, estimate, exchange_rate, share_of_job, slow_down
from crosswind.cost.verdict import Verdict, judge
from crosswind.errors import Notice, warning
from crosswind.files.atomic import finite, write_json
from crosswind.files.tabular import Plotted
from crosswind.statistics.interim import Looks
from crosswind.statistics.jackknife import Estimate
from crosswind.tables import Column, Table

if TYPE_CHECKING:
    from crosswind.documents.cost import CostDocument, Job, Target, Undisturbed

SCHEMA_VERSION = 1
KIND = "cost"
HINT = "`crosswind cost -o` writes one"
CATCHING_UP = 1.2
"""Above this, duty while it may run over undisturbed duty says that it catches up."""
BUSY = 0.9
"""A job that wants a processor for this part of the time or more takes all that it can get."""
LEAKS = 0.1
STARVED = 0.5
"""Below this part of its processors that the job has, others decide more than what is investigated."""
SHARED = 0.95
"""Below this part of its processors, it matters whether others give up some of theirs."""
SURE_RATE = 0.5
"""An exchange rate with a smaller error than this is taken as known."""
_LEAST_CPU_S = 0.002


@dataclass(frozen=True)
class CostOf:
    """What one contrast costs: one target alone, or all together.

    Attributes
    ----------
    names : tuple of str
        What ran in B.
    texts : tuple of str
        The same as it was asked for, such as `pid:1234`.
    quads : Quads
        What was counted.
    duty : Duty
        Undisturbed CPU time per wall time.
    taken_duty : Duty
        The same per CPU of the job.
    estimates : dict
        By estimator: a loss as a share of the job's rate.
    headline : str
        The estimator to quote, and `why`.
    verdict : Verdict
        Of the headline.
    waits : bool
        Whether the job waits for it, so that stopping it cannot show what it costs.
    watched : Watched or None
        What was seen of it.
    """

    names: tuple[str, ...]
    texts: tuple[str, ...]
    quads: Quads
    duty: Duty
    taken_duty: Duty
    estimates: dict[Name, Estimate]
    headline: Name
    why: str
    verdict: Verdict
    level: float = 0.05
    waits: bool = False
    watched: Watched | None = None

    @property
    def name(self) -> str:
        """What it is called."""
        return " + ".join(self.names)

    @property
    def best(self) -> Estimate:
        """The headline's estimate."""
        return self.estimates[self.headline]

    @property
    def is_a_share(self) -> bool:
        """Whether the estimate is one that a share can be: between -1 and 1, its interval no wider than that."""
        return abs(self.best.value) <= 1.0 and self.best.half_width(self.level) <= 1.0

    @property
    def is_beyond(self) -> bool:
        """Whether it would cost more than the whole job, which cannot be: then the estimator does not hold here."""
        return self.best.value > 1.0

    @property
    def slower(self) -> Estimate | None:
        """By how much the job is slower while it has the processor; None where that cannot be distinguished."""
        if self.headline == "exchange":
            return slow_down(self.quads, self.taken_duty)
        return self.estimates["own"] if self.headline == "own" else None

    @property
    def taken(self) -> float | None:
        """CPU time taken from the job, as a share; None where that cannot be distinguished."""
        return {"exchange": self.taken_duty.value, "own": 0.0}.get(self.headline)

    @property
    def exchange_rate(self) -> Estimate:
        """Seconds of the job lost per CPU second."""
        return exchange_rate(self.quads)

    @property
    def catches_up(self) -> float:
        """Duty while it may run over undisturbed duty; NaN where it has none."""
        return duty_while_on(self.quads) / self.duty.value if self.duty.value > 0 else math.nan

    def cells(self) -> list[str]:
        """Return a row of `Cost.tables`; "-" where an estimator does not hold."""

        def shown(estimate: Estimate | None) -> str:
            known = estimate is not None and abs(estimate.value) <= 1.0
            if estimate is None or not known or not (half := estimate.half_width(self.level)) <= 1.0:
                return "-"
            return f"{100 * estimate.value:.2f} ± {100 * half:.2f}"

        holds = NAMES if self.headline == "exchange" else ("wall", "own")
        return [
            self.name,
            self.headline,
            shown(self.best),
            "-" if self.taken is None or self.waits else f"{100 * self.taken:.2f}",
            shown(self.slower),
            *(shown(self.estimates[name] if name in holds else None) for name in NAMES),
            f"{self.duty.value:.4g}",
            f"{duty_while_on(self.quads):.4g}",
            str(len(self.quads)),
            self.verdict.outcome,
            self.why,
        ]

    def to_dict(self) -> dict[str, object]:
        """Return the figures, without the quads."""
        slower = self.slower
        return {
            "of": list(self.texts),
            "names": list(self.names),
            "verdict": self.verdict.to_dict(),
            "headline": self.headline,
            "why": self.why,
            "cpu_taken": self.taken,
            "slower": slower.to_dict() if slower else None,
            "duty": {"value": self.duty.value, "error": self.duty.error},
            "duty_while_on": duty_while_on(self.quads),
            "exchange_rate": self.exchange_rate.to_dict(),
            "quads": len(self.quads),
            "estimates": {
                name: one.to_dict() | {"half_width": one.half_width(self.level)} for name, one in self.estimates.items()
            },
        }


@dataclass(frozen=True)
class Cost(Plotted):
    """What background processes cost a job.

    Attributes
    ----------
    document : dict
        What was counted, as it stands in the file.
    """

    document: CostDocument = field(repr=False)

    @classmethod
    def load(cls, path: str | Path) -> Cost:
        """Read a `cost.json`.

        Raises
        ------
        DescriptionError
            When it is none, or with the first field that is wrong.
        """
        from crosswind.documents.cost import CostDocument
        from crosswind.documents.reading import read_document

        return cls(read_document(path, KIND, SCHEMA_VERSION, HINT, CostDocument))

    def save(self, path: str | Path) -> None:
        """Write it as a `cost.json`, with its figures beside what was counted."""
        write_json(self.document | {"result": finite(self._figures())}, path)

    def to_dict(self) -> dict[str, object]:
        """Return the figures and the circumstances, without the counted quads."""
        left_out = ("quads", "undisturbed", "result", "intervals")
        return {k: v for k, v in self.document.items() if k not in left_out} | self._figures()

    def _figures(self) -> dict[str, object]:
        return {
            "outcome": self.verdict.outcome,
            "sentence": self.sentence,
            "measured_s": self.measured_s,
            "costs": [one.to_dict() for one in self.costs],
            "shares": self.shares,
            "warnings": self.warnings,
        }

    def tables(self) -> list[Table]:
        """Return what each contrast costs, by every estimator that holds for it."""
        columns = [
            Column("stopped and continued", numeric=False),
            Column("headline", term="cost-estimators", numeric=False),
            Column("costs", "%", "cost-interval"),
            *(Column(label, "%", "cost-estimators") for label in ("CPU taken", "slower", *NAMES)),
            Column("duty alone", "CPU s/s"),
            Column("duty between stops", "CPU s/s"),
            Column("quads", term="cost-quads"),
            Column("verdict", numeric=False),
            Column("why this headline", numeric=False),
        ]
        note = ", ".join(f"{name}: {100 * share:.2f} %" for name, share in self.shares.items())
        note = f"Shares of what they cost together: {note}." if note else ""
        return [Table("What each costs", columns, [one.cells() for one in self.costs], note)]

    @property
    def margin(self) -> float:
        """What is still tolerated, as a share."""
        return float(self.document["margin"])

    @property
    def targets(self) -> list[Target]:
        """What was investigated: text, name, how it was held, CPUs."""
        return self.document["of"]

    @property
    def job(self) -> Job:
        """The job: name, progress, unit, CPUs."""
        return self.document["job"]

    @property
    def interrupted(self) -> bool:
        """Whether it was asked to end before its time."""
        return bool(self.document.get("interrupted", False))

    @property
    def looks(self) -> Looks:
        """The looks that were taken."""
        return Looks.from_dict(self.document["looks"])

    @property
    def measured_s(self) -> float:
        """Wall time of all blocks, s."""
        return float(np.sum(self.document["quads"]["wall_s"]))

    @cached_property
    def costs(self) -> list[CostOf]:
        """Each target alone, and then all together where there are several."""
        return [self._cost_of(number, which) for number, which in enumerate(contrasts(len(self.targets)))]

    @property
    def verdict(self) -> Verdict:
        """The verdict on all together."""
        return self.costs[-1].verdict

    @property
    def sentence(self) -> str:
        """The verdict in one line."""
        whole = self.costs[-1]
        if waited := [one.name for one in self.costs[: len(self.targets)] if one.waits] or [whole.name] * whole.waits:
            which, its = " and ".join(waited), "its cost" if len(waited) == 1 else "their cost"
            stopping = "it" if len(waited) == 1 else "them"
            return f"the job waits for {which}, so {its} cannot be measured by stopping {stopping}"
        if not whole.verdict.is_known:
            return whole.verdict.sentence
        said, slower = f"{whole.name} {whole.verdict.sentence} of the job's rate", whole.slower
        if whole.headline == "exchange" and slower is not None:
            taken = 100 * whole.taken_duty.value
            found, half = 100 * slower.value, 100 * slower.half_width(whole.level)
            how = "slows it by" if abs(found) > half else "no further slowdown:"
            said += f" (takes {taken:.2f} % of {self._cpus_in_words()}, {how} {found:.2f} % ± {half:.2f})"
        if whole.verdict.outcome == "below" and whole.watched is not None and whole.watched.used_s <= 0.0:
            seconds = whole.watched.seconds
            said += f". No burst of it was seen in {span(seconds)}: those rarer than one in {seconds / 3.0:.2g} s are "
            said += "not excluded"
        return said

    def _cpus_in_words(self) -> str:
        cpus = self.job["cpus"]
        return f"CPU {cpus[0]}" if len(cpus) == 1 else f"each of {len(cpus)} CPUs" if cpus else "its CPUs"

    @property
    def shares(self) -> dict[str, float]:
        """What each target costs of all, in company: alone, and an equal part of what they do only together.

        For two targets that is Shapley's value. Empty for one, where the job waits for one, and where an estimate is
        beyond what a share can be.
        """
        if len(self.targets) < 2 or any(one.waits or not one.is_a_share for one in self.costs):
            return {}
        *alone, whole = (one.best.value for one in self.costs)
        together = (whole - sum(alone)) / len(alone)
        names = [one.names[0] for one in self.costs[:-1]]
        return {f"{k + 1}. {name}": value + together for k, (name, value) in enumerate(zip(names, alone, strict=True))}

    def quads_of(self, contrast: int) -> Quads:
        """Return what was counted of one contrast."""
        columns = self.document["quads"]
        which = np.array(columns["contrast"], dtype=int) == contrast
        each = (columns["work"], columns["wall_s"], columns["job_cpu_s"], columns["x_cpu_s"])
        return Quads(*(np.array(pairs, dtype=float).reshape(-1, 2)[which] for pairs in each))

    def _cost_of(self, number: int, which: tuple[int, ...]) -> CostOf:
        quads = self.quads_of(number)
        watched = self._watched(quads, which)
        duty = _duty(watched)
        headline, why = self._headline(watched, which)
        cpus = len(self.job["cpus"]) or 1
        per_cpu = duty.of_each(cpus)
        estimates: dict[Name, Estimate] = {name: estimate(quads, name, per_cpu) for name in NAMES}
        looks = self.looks
        level = looks.level() if looks.taken else 0.05
        names = tuple(self.targets[one]["name"] for one in which)
        texts = tuple(self.targets[one]["text"] for one in which)
        best = estimates[headline]
        waits = self._is_waited_for(best, level, which)
        doubts = self._doubt(quads, watched, headline, cpus, level)
        if headline == "exchange" and duty.bursts < LEAST_BURSTS:
            doubts = too_few(watched)
        if waits:
            estimates = dict.fromkeys(NAMES, Estimate(math.nan, math.inf, 0))
            doubts = Doubt("the job waits for it", math.inf)
        judged = estimates[headline]
        if judged.value > 1.0:
            doubts, judged = Doubt(self._beyond(judged), math.inf), Estimate(math.nan, math.inf, 0)
        verdict = judge(judged, self.margin, level, self.measured_s, doubts)
        return CostOf(
            names, texts, quads, duty, per_cpu, estimates, headline, why, verdict, level, waits=waits, watched=watched
        )

    def _beyond(self, found: Estimate) -> str:
        """Return why an estimate of more than the whole job says nothing."""
        said = f"the estimate, {100 * found.value:.0f} % of the job's rate, is more than the whole job"
        had = self._share_of_cpus()
        return f"{said}; others had {1.0 - had:.0%} of its CPUs" if had < SHARED else said

    def _is_waited_for(self, best: Estimate, level: float, which: tuple[int, ...]) -> bool:
        """Whether the job stood still without one of these, or is slower by more than the margin for certain."""
        return bool(set(which) & set(self.document.get("waited_for", ()))) or (best.interval(level)[1] < -self.margin)

    def _doubt(self, quads: Quads, watched: Watched, headline: Name, cpus: int, level: float) -> Doubt | None:
        """Return why bursts that were not seen, or not often enough, may cost more than the margin."""
        if not len(quads):
            return None
        rate, factor = exchange_rate(quads), 1.0 / cpus
        if headline == "exchange":
            factor *= (max(rate.value, 1.0) if rate.error < SURE_RATE else 1.0) / share_of_job(quads, cpus)
        return doubt(watched, self.margin, factor, takes_cpu=headline == "exchange", missed=0.5 * level)

    def _watched(self, quads: Quads, which: tuple[int, ...]) -> Watched:
        """Return how long these were watched, and what they used."""
        lives = [Life(self.targets[one].get("age_s", 0.0), self.targets[one].get("used_s", 0.0)) for one in which]
        age_s = min(one.age_s for one in lives)
        used_s = age_s * sum(one.duty for one in lives) if age_s > 0.0 else 0.0
        nothing: Undisturbed = {"wall_s": [], "cpu_s": []}
        blocks = self._columns(self.document.get("watched", nothing), which)
        if not len(blocks[0]):
            blocks = quads.wall_s.sum(axis=1), quads.x_cpu_s.sum(axis=1)
        running = quads.wall_s[:, ON], quads.x_cpu_s[:, ON]
        unseen = self.document.get("unseen_s", [0.0] * len(self.targets))
        unseen_s = float(sum(unseen[one] for one in which))
        undisturbed = self._columns(self.document["undisturbed"], which)
        return Watched(undisturbed, blocks, running, Life(age_s, used_s), unseen_s)

    def _columns(self, found: Undisturbed, which: tuple[int, ...]) -> tuple[Floats, Floats]:
        wall = np.array(found["wall_s"], dtype=float)
        cpu = np.array(found["cpu_s"], dtype=float).reshape(len(wall), len(self.targets))
        return wall, cpu[:, list(which)].sum(axis=1)

    def _share_of_cpus(self) -> float:
        """Part of its CPUs that the job and what is investigated have together, 0 to 1."""
        columns = self.document["quads"]
        wall_s = float(np.sum(columns["wall_s"])) * max(len(self.job["cpus"]), 1)
        had_s = float(np.sum(columns["job_cpu_s"]) + np.sum(columns["x_cpu_s"]))
        return had_s / wall_s if wall_s > 0.0 else 1.0

    def _headline(self, watched: Watched, which: tuple[int, ...]) -> tuple[Name, str]:
        """Return the estimator that holds here, and why."""
        job = set(self.job["cpus"])
        theirs = [set(self.targets[one]["cpus"]) for one in which]
        wants = self.job["wants_cpus"]
        if wants < BUSY * min(len(job), max(round(wants), 1)):
            return "wall", "the job does not want a processor all the time"
        if watched.used_s + watched.unseen_s < _LEAST_CPU_S:
            return "own", "it uses no CPU time"
        if not any(job & cpus for cpus in theirs):
            return "own", "it never runs on a CPU of the job"
        if not all(cpus <= job for cpus in theirs) or wants < BUSY * len(job):
            return "wall", "it may run on the job's CPUs and on others"
        return "exchange", "it runs on the job's CPUs, and the job takes all that it can get"

    @property
    def warnings(self) -> list[Notice]:
        """Warnings of this result."""
        found: list[Notice] = list(self.document["warnings"])
        for one in self.costs[: len(self.targets)]:
            found += _warnings_of(one)
        has = self._share_of_cpus()
        if has < SHARED and self.job["wants_cpus"] >= BUSY * len(self.job["cpus"]):
            message = f"others take {1 - has:.0%} of the job's CPUs"
            whole = self.costs[-1]
            if (
                whole.headline == "exchange"
                and not (whole.waits or whole.is_beyond)
                and math.isfinite(whole.best.value)
            ):
                least = 100 * whole.best.value * whole.best.part
                message += f": if these get part of what {whole.name} leaves, it costs down to {least:.2g} %"
            hint = "repeat on an idle host" + ("; the wall-time estimate is not usable here" if has < STARVED else "")
            found.append(warning("busy-host", message, hint))
        if self.job["progress"] == "cpu":
            message = "progress is the job's CPU time, which shows time taken from it but no slowdown"
            found.append(warning("cpu-progress", message, "name a counter of its work: --progress"))
        if self.job["block_s"] > 0.05 + 1e-9:
            message = f"the job's progress moves so seldom that blocks take {1e3 * self.job['block_s']:.0f} ms"
            found.append(warning("coarse-progress", message, "a finer counter knows sooner: --progress"))
        return found


def _duty(watched: Watched) -> Duty:
    """Return the duty of the undisturbed part or, where the session saw few bursts, of all of it.

    Over the whole session, work that is missed while it is stopped is done later, or lost: then only the time in which
    it ran counts.
    """
    wall, cpu = watched.undisturbed
    if not len(wall):
        return Duty(math.nan, 0.0)
    found = Duty.of(wall, cpu)
    if not watched.used_s > 0.0 or (watched.bursts >= FEW_BURSTS and found.bursts >= LEAST_BURSTS):
        return found
    return Duty.of_few(*watched.between, watched.bursts)


def _warnings_of(one: CostOf) -> list[Notice]:
    found: list[Notice] = []
    if one.catches_up > CATCHING_UP:
        message = f"{one.name} does missed work after each stop: {100 * duty_while_on(one.quads):.2f} % of a CPU "
        message += f"between stops, {100 * one.duty.value:.2f} % when left alone"
        hint = "the headline is corrected for that; the estimates `wall` and `available` are too large"
        found.append(warning("catching-up", message, hint))
    if one.headline == "wall" and "others" in one.why:
        message = f"{one.name} may run on the job's CPUs and on others: only wall sees all that it costs"
        found.append(
            warning(
                "roaming",
                message,
                "bound to one CPU (`taskset -c`), what it costs a job that shares its CPU is known sooner",
            )
        )
    on, off = (float(one.quads.x_cpu_s[:, label].sum()) for label in (ON, OFF))
    if len(one.quads) and on > _LEAST_CPU_S and off > LEAKS * on:
        message = f"{one.name} used {off / on:.0%} as much CPU time while it was stopped as while it ran"
        found.append(warning("not-stopped", message, "name all of its processes: cgroup:PATH, or another --of"))
    if one.waits:
        message = f"the job made no progress while {one.name} was stopped"
        found.append(warning("needed", message, "slow it down, move it or give it more workers, and measure the job"))
    return found
