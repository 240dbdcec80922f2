"""What it costs at scale: the recorded intervals of each target as a disturbance of a parallel program.

An interval takes from its rank what a CPU second of its target costs the job (the exchange rate), so that slow-down
counts too. Ranks have the same daemons at other times, or, aligned, at the same ones; `crosswind.blame` runs both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crosswind.cost.result import Cost
from crosswind.disturbance import Disturbance
from crosswind.documents import Document
from crosswind.errors import DescriptionError

if TYPE_CHECKING:
    from crosswind.blame.result import Blame
    from crosswind.run.grid import Progress

Program = tuple[str, Document]
SEEDS = 5
DEFAULTS: Mapping[str, Document] = {"bsp": {"dimensions": 0, "allreduce": "none", "barrier": True}}
HINT = "such as bsp:work_s=0.0071,iterations=500"


@dataclass(frozen=True)
class AtScale:
    """What the targets cost a parallel program, each of whose ranks has them on its processor.

    Attributes
    ----------
    ranks : int
        How many ranks.
    program : str
        Its kind.
    blame : Blame
        The runs with and without each target, and with all aligned.
    """

    ranks: int
    program: str
    blame: Blame

    @property
    def cost(self) -> float:
        """What all cost, as a share of the undisturbed makespan."""
        return self.blame.cost.mean / self.blame.undisturbed.mean

    @property
    def aligned_cost(self) -> float:
        """What they would cost if they ran at the same times on all ranks."""
        return self.blame.aligned_cost.mean / self.blame.undisturbed.mean

    @property
    def title(self) -> str:
        """What was simulated."""
        return f"{self.program} on {self.ranks:,} ranks, simulated with the recorded intervals"

    @property
    def rows(self) -> list[list[str]]:
        """Table: what, how much."""
        bare = self.blame.undisturbed.mean
        rows = [
            ["all cost, each rank at its own times", self._share(self.blame.cost.mean, self.blame.cost.high)],
            ["aligned over the ranks", self._share(self.blame.aligned_cost.mean, self.blame.aligned_cost.high)],
        ]
        if len(self.blame.causes) > 1:
            rows += [[f"  {one.cause}", f"{100 * one.best.mean / bare:.2f} %"] for one in self.blame.by_cause]
        return rows

    def _share(self, mean: float, high: float) -> str:
        bare = self.blame.undisturbed.mean
        return f"{100 * mean / bare:.2f} % ± {100 * (high - mean) / bare:.2g}"

    def to_dict(self) -> dict[str, object]:
        """Return the figures."""
        return {
            "ranks": self.ranks,
            "program": self.program,
            "cost": self.cost,
            "aligned_cost": self.aligned_cost,
            "blame": self.blame.summary(),
        }


def parsed_program(text: str) -> Program:
    """Return kind and parameters of a program as it is written.

    Raises
    ------
    DescriptionError
        When it is none.

    Examples
    --------
    >>> parsed_program("bsp:work_s=0.0071,iterations=500")
    ('bsp', {'work_s': 0.0071, 'iterations': 500})
    """
    kind, _, rest = text.partition(":")
    parameters: Document = {}
    for pair in filter(None, rest.split(",")):
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise DescriptionError(f"--program is {text!r}; {pair!r} is not NAME=VALUE", "program", HINT)
        parameters[name.strip()] = _value(value.strip())
    if not kind:
        raise DescriptionError(f"--program is {text!r}; it must be KIND:NAME=VALUE,...", "program", HINT)
    return kind, parameters


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)


def disturbance(found: Cost) -> Disturbance:
    """Return the recorded intervals of all targets, lengthened to what they cost, as a disturbance of kind recorded.

    Raises
    ------
    DescriptionError
        When the session kept no intervals, or none of them costs anything.
    """
    recorded = found.document.get("intervals")
    if not recorded:
        hint = "measure again with --ranks, or intervals=True"
        raise DescriptionError("the session kept no intervals of its targets", "no-intervals", hint)
    sources = []
    for number, (one, intervals) in enumerate(zip(found.costs, recorded["of"], strict=False)):
        duty = one.taken_duty.value
        lasting = _lengthened(intervals, one.best.value / duty if duty > 0.0 else 0.0, recorded["length_s"])
        if lasting:
            sources.append(
                {
                    "kind": "recorded",
                    "length_s": recorded["length_s"],
                    "causes": [f"{number + 1} {one.names[0]}"],
                    "cpu": [{"cpu": 0, "intervals": lasting}],
                }
            )
    if not sources:
        raise DescriptionError("none of the targets costs the job anything, so there is nothing to scale", "no-cost")
    return Disturbance.from_dict({"schema_version": 1, "name": "recorded intervals of the targets", "source": sources})


def _lengthened(intervals: Sequence[Sequence[float]], factor: float, length_s: float) -> list[list[float]]:
    """Return intervals with durations multiplied by a factor, none beyond the start of the next."""
    ends = [start for start, _ in intervals[1:]] + [length_s]
    lasting = [
        [start, min(factor * duration, end - start), 0]
        for (start, duration), end in zip(intervals, ends, strict=True)
        if factor > 0.0
    ]
    return [one for one in lasting if one[1] > 0.0]


def at_scale(
    found: Cost, ranks: int, program: Program, *, seeds: int = SEEDS, progress: Progress | None = None
) -> AtScale:
    """Simulate a parallel program whose every rank has these targets on its processor.

    Parameters
    ----------
    found : Cost
        Measured with `intervals=True`.
    ranks : int
        Ranks, at least 2.
    program : (str, dict)
        Kind and parameters, as of `workload` in `experiment.toml`.
    seeds : int
        Simulations of each variant, at least 1.
    progress : callable, optional
        Called with the fraction done (0 to 1) and a message.

    Raises
    ------
    DescriptionError
        When the program is none, or there is nothing to scale.
    """
    from crosswind.blame import blame

    return AtScale(ranks, program[0], blame(_experiment(found, ranks, program), seeds=seeds, progress=progress))


def _experiment(found: Cost, ranks: int, program: Program) -> Any:
    from crosswind.experiment import Experiment

    kind, parameters = program
    workload = {
        "kind": "program",
        "program": kind,
        "ranks": ranks,
        "parameters": DEFAULTS.get(kind, {}) | parameters,
    }
    names = " and ".join(target["name"] for target in found.targets)
    description = {"schema_version": 1, "name": f"{kind} beside {names}", "workload": workload}
    return Experiment.from_dict(description | {"disturbance": disturbance(found).to_dict()})
