"""What a session came to: estimates, headline, verdict and shares. Everything follows from the counted quads."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from crosswind.cost.estimate import NAMES, Duty, Estimate, Name, duty_while_on, estimate, exchange_rate, slow_down
from crosswind.cost.looks import Looks
from crosswind.cost.quads import FIELDS, OFF, ON, Quads, contrasts
from crosswind.cost.verdict import Verdict, judge
from crosswind.errors import Told, warning
from crosswind.files.stored import write_json
from crosswind.files.tabular import Plotted

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

    @property
    def name(self) -> str:
        """What it is called."""
        return " + ".join(self.names)

    @property
    def best(self) -> Estimate:
        """The headline's estimate."""
        return self.estimates[self.headline]

    @property
    def slower(self) -> Estimate | None:
        """By how much the job is slower while it has the processor; None where that cannot be told apart."""
        if self.headline == "exchange":
            return slow_down(self.quads, self.taken_duty)
        return self.estimates["own"] if self.headline == "own" else None

    @property
    def taken(self) -> float | None:
        """CPU time taken from the job, as a share; None where that cannot be told apart."""
        return {"exchange": self.taken_duty.value, "own": 0.0}.get(self.headline)

    @property
    def exchange_rate(self) -> Estimate:
        """Seconds of the job lost per CPU second."""
        return exchange_rate(self.quads)

    @property
    def catches_up(self) -> float:
        """Duty while it may run over undisturbed duty; NaN where it has none."""
        return duty_while_on(self.quads) / self.duty.value if self.duty.value > 0 else math.nan

    def to_dict(self) -> dict[str, Any]:
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

    document: dict[str, Any] = field(repr=False)

    @classmethod
    def load(cls, path: str | Path) -> Cost:
        """Read a `cost.json`.

        Raises
        ------
        DescriptionError
            When it is none, or with the first field that is wrong.
        """
        from crosswind.cost.shape import CostShape
        from crosswind.files.shape import read_shaped

        return cls(read_shaped(path, KIND, SCHEMA_VERSION, HINT, CostShape))

    def save(self, path: str | Path) -> None:
        """Write it as a `cost.json`, with its figures beside what was counted."""
        write_json(self.document | {"result": finite(self._figures())}, path)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures and the circumstances, without the counted quads."""
        left_out = ("quads", "undisturbed", "result", "intervals")
        return {k: v for k, v in self.document.items() if k not in left_out} | self._figures()

    def _figures(self) -> dict[str, Any]:
        return {
            "outcome": self.verdict.outcome,
            "sentence": self.sentence,
            "measured_s": self.measured_s,
            "costs": [one.to_dict() for one in self.costs],
            "shares": self.shares,
            "warnings": self.warnings,
        }

    @property
    def margin(self) -> float:
        """What is still tolerated, as a share."""
        return float(self.document["margin"])

    @property
    def targets(self) -> list[dict[str, Any]]:
        """What was investigated: text, name, how it was held, CPUs."""
        found: list[dict[str, Any]] = self.document["of"]
        return found

    @property
    def job(self) -> dict[str, Any]:
        """The job: name, progress, unit, CPUs."""
        found: dict[str, Any] = self.document["job"]
        return found

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
        said = f"{whole.name} {whole.verdict.sentence}" if whole.verdict.is_known else whole.verdict.sentence
        slower = whole.slower
        if whole.headline == "exchange" and slower is not None:
            said += f" ({100 * whole.taken_duty.value:.2f} % CPU taken, {100 * slower.value:+.2f} % slower)"
        return said

    @property
    def shares(self) -> dict[str, float]:
        """What each target costs of all, in company: alone, and an equal part of what they do only together.

        For two targets that is Shapley's value. Empty for one.
        """
        if len(self.targets) < 2:
            return {}
        *alone, whole = (one.best.value for one in self.costs)
        together = (whole - sum(alone)) / len(alone)
        names = [one.names[0] for one in self.costs[:-1]]
        return {f"{k + 1}. {name}": value + together for k, (name, value) in enumerate(zip(names, alone, strict=True))}

    def quads_of(self, contrast: int) -> Quads:
        """Return what was counted of one contrast."""
        columns = self.document["quads"]
        which = np.array(columns["contrast"], dtype=int) == contrast
        return Quads(*(np.array(columns[name], dtype=float).reshape(-1, 2)[which] for name in FIELDS))

    def _cost_of(self, number: int, which: tuple[int, ...]) -> CostOf:
        quads, duty = self.quads_of(number), self._duty(which)
        headline, why = self._headline(quads, duty, which)
        per_cpu = duty.of_each(len(self.job["cpus"]) or 1)
        estimates: dict[Name, Estimate] = {name: estimate(quads, name, per_cpu) for name in NAMES}
        looks = self.looks
        level = looks.level() if looks.taken else 0.05
        names = tuple(self.targets[one]["name"] for one in which)
        texts = tuple(self.targets[one]["text"] for one in which)
        verdict = judge(estimates[headline], self.margin, level, self.measured_s)
        return CostOf(names, texts, quads, duty, per_cpu, estimates, headline, why, verdict, level)

    def _share_of_cpus(self) -> float:
        """Part of its CPUs that the job and what is investigated have together, 0 to 1."""
        columns = self.document["quads"]
        wall_s = float(np.sum(columns["wall_s"])) * max(len(self.job["cpus"]), 1)
        had_s = float(np.sum(columns["job_cpu_s"]) + np.sum(columns["x_cpu_s"]))
        return had_s / wall_s if wall_s > 0.0 else 1.0

    def _duty(self, which: tuple[int, ...]) -> Duty:
        undisturbed = self.document["undisturbed"]
        wall = np.array(undisturbed["wall_s"], dtype=float)
        cpu = np.array(undisturbed["cpu_s"], dtype=float).reshape(len(wall), -1)[:, list(which)].sum(axis=1)
        return Duty.of(wall, cpu) if len(wall) else Duty(math.nan, 0.0)

    def _headline(self, quads: Quads, duty: Duty, which: tuple[int, ...]) -> tuple[Name, str]:
        """Return the estimator that holds here, and why."""
        job = set(self.job["cpus"])
        theirs = [set(self.targets[one]["cpus"]) for one in which]
        wants = self.job["wants_cpus"]
        if wants < BUSY * min(len(job), max(round(wants), 1)):
            return "wall", "the job does not want a processor all the time"
        if float(quads.x_cpu_s[:, ON].sum()) < _LEAST_CPU_S or not duty.value > 0.0:
            return "own", "it uses no CPU time"
        if not any(job & cpus for cpus in theirs):
            return "own", "it never runs on a CPU of the job"
        if not all(cpus <= job for cpus in theirs) or wants < BUSY * len(job):
            return "wall", "it may run on the job's CPUs and on others"
        return "exchange", "it runs on the job's CPUs, and the job takes all that it can get"

    @property
    def warnings(self) -> list[Told]:
        """What to keep in mind when trusting the figures."""
        found: list[Told] = list(self.document["warnings"])
        for one in self.costs[: len(self.targets)]:
            found += _warnings_of(one)
        has = self._share_of_cpus()
        if has < STARVED and self.job["wants_cpus"] >= BUSY * len(self.job["cpus"]):
            message = f"the job has {has:.0%} of its CPUs: others take the rest, also from what is investigated"
            found.append(warning("busy-host", message, "measure while less goes on; wall hardly tells anything here"))
        if self.job["progress"] == "cpu":
            message = "progress is the job's CPU time: what is taken is seen, but not what is slowed"
            found.append(warning("cpu-progress", message, "name a counter of its work: --progress"))
        if self.job["block_s"] > 0.05 + 1e-9:
            message = f"the job's progress moves so seldom that blocks take {1e3 * self.job['block_s']:.0f} ms"
            found.append(warning("coarse-progress", message, "a finer counter knows sooner: --progress"))
        return found


def _warnings_of(one: CostOf) -> list[Told]:
    found: list[Told] = []
    if one.catches_up > CATCHING_UP:
        message = f"{one.name} catches up: its duty is {100 * duty_while_on(one.quads):.2f} % while it may run, "
        message += f"{100 * one.duty.value:.2f} % undisturbed"
        hint = "exchange is scaled to the undisturbed duty; wall and available are too large"
        found.append(warning("catching-up", message, hint))
    if one.headline == "wall" and "others" in one.why:
        message = f"{one.name} may run on the job's CPUs and on others: only wall sees all that it costs"
        found.append(warning("roaming", message, "bind both to one CPU (`taskset -c`) to know sooner"))
    on, off = (float(one.quads.x_cpu_s[:, label].sum()) for label in (ON, OFF))
    if len(one.quads) and on > _LEAST_CPU_S and off > LEAKS * on:
        message = f"{one.name} used {off / on:.0%} as much CPU time while it was stopped as while it ran"
        found.append(warning("not-stopped", message, "name all of its processes: cgroup:PATH, or another --of"))
    if len(one.quads) >= 3 and one.best.value + one.best.half_width() < -0.05:
        message = f"the job is slower while {one.name} is stopped: it needs it"
        found.append(warning("needed", message, "what the job waits for has no cost that stopping it could show"))
    return found


def finite(value: Any) -> Any:
    """Return figures with None for what is not finite, which JSON has no word for.

    Examples
    --------
    >>> finite({"error": math.inf, "of": [1.0, math.nan]})
    {'error': None, 'of': [1.0, None]}
    """
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
