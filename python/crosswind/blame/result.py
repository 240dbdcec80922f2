"""The result of blame: what each cause costs, alone and with others, and what aligning them would save."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crosswind import _core
from crosswind.blame.shares import (
    MOST_SHARED,
    Floats,
    Leading,
    alone,
    coalitions,
    cost_estimate,
    drawn_coalitions,
    drawn_share,
    leading,
    removed,
    shapley,
)
from crosswind.blame.variants import ALIGNED, KEPT
from crosswind.documents import Row
from crosswind.errors import DescriptionError, Notice, warning
from crosswind.files.atomic import read_json, write_json
from crosswind.files.tabular import Tabular
from crosswind.platform import as_html_table
from crosswind.run.results import ProgramRun, Runs
from crosswind.statistics.digits import in_seconds, part_of, plain
from crosswind.statistics.interval import MeanInterval, mean_interval
from crosswind.tables import Column, Table

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class CauseCost:
    """What one cause costs: seconds of makespan, means over seeds with 95 % intervals.

    Attributes
    ----------
    cause : str
        Its name.
    alone : MeanInterval
        Makespan with this cause only, less the undisturbed one.
    removed : MeanInterval
        What is saved when it is taken away from all.
    shared : MeanInterval or None
        Its Shapley value, which shares out what causes do together: exact up to 6 causes, beyond estimated from drawn
        orders. None in files of more than 6 causes that hold no such runs (version 0.2.0).
    part : float or None
        `shared` of what all causes cost together; the parts sum to 1. None where the causes cost nothing, or `shared`
        is None.
    """

    cause: str
    alone: MeanInterval
    removed: MeanInterval
    shared: MeanInterval | None
    part: float | None

    @property
    def best(self) -> MeanInterval:
        """What to quote: the share, or, where it is unknown, what removing the cause saves."""
        return self.shared or self.removed


@dataclass(frozen=True)
class Blame(Tabular):
    """Which cause of a disturbance costs how much, from paired runs with and without it.

    Attributes
    ----------
    causes : list of str
        In the order of the disturbance.
    runs : Runs
        Every run that was made; `params` say which causes were left, and whether all were aligned.
    """

    causes: list[str]
    runs: Runs[ProgramRun]

    @classmethod
    def load(cls, path: str | Path) -> Blame:
        """Read a `blame.json`.

        Raises
        ------
        DescriptionError
            When it is none, or holds too few runs to say anything.
        """
        return cls.from_dict(read_json(path, "blame", SCHEMA_VERSION, "`crosswind blame -o` writes one"), str(path))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], file: str = "blame.json") -> Blame:
        """Make it of the content of a `blame.json`: the runs are read, everything else follows from them."""
        runs = {name: document.get(name) for name in ("schema_version", "experiment", "on", "digest", "runs")}
        text = json.dumps({"kind": "program", **runs}).encode()
        found = cls(_causes_of(document, file), Runs.from_dict(json.loads(_core.read_result("runs", text, file))))
        for place, run in enumerate(found.runs):
            _refuse_another_disturbance(run, place, found.causes, file)
        if not found.seeds:
            message = f"{file}: no seed has all its runs"
            raise DescriptionError(message, "blame", "`crosswind blame EXPERIMENT.toml -o FILE --resume` continues it")
        return found

    @property
    def experiment(self) -> str:
        """Name of the experiment."""
        return self.runs.experiment

    @cached_property
    def _makespans(self) -> dict[int, dict[tuple[int, bool], float]]:
        """Makespan by seed and variant."""
        places = {cause: k for k, cause in enumerate(self.causes)}
        found: dict[int, dict[tuple[int, bool], float]] = {}
        for run in self.runs:
            coalition = sum(1 << places[cause] for cause in run.params[KEPT])
            found.setdefault(run.seed, {})[coalition, bool(run.params[ALIGNED])] = run.makespan_s
        return found

    @cached_property
    def seeds(self) -> list[int]:
        """The seeds that have all their runs."""
        return self._shared_seeds or self._complete_seeds

    @cached_property
    def _complete_seeds(self) -> list[int]:
        """The seeds with the runs that every seed has."""
        needed = {(coalition, False) for coalition in coalitions(len(self.causes))} | {(self._all_causes, True)}
        return [seed for seed, variants in sorted(self._makespans.items()) if needed <= set(variants)]

    @cached_property
    def _shared_seeds(self) -> list[int]:
        """Those of them that also have the runs of their drawn orders."""
        n = len(self.causes)
        return [
            seed
            for seed in self._complete_seeds
            if all((one, False) in self._makespans[seed] for one in drawn_coalitions(n, seed))
        ]

    @property
    def is_shared_out(self) -> bool:
        """Whether each cause has a share, so that the shares sum to the whole cost."""
        return bool(self._shared_seeds)

    @cached_property
    def _costs(self) -> dict[int, Floats]:
        variants = coalitions(len(self.causes))
        return {c: np.array([self._makespans[seed][c, False] for seed in self.seeds]) for c in variants}

    def _share(self, cause: int) -> Floats:
        """Return a cause's share by seed, or what removing it saves where no share is known."""
        n = len(self.causes)
        if n <= MOST_SHARED:
            return shapley(self._costs, cause, n)
        if not self.is_shared_out:
            return removed(self._costs, cause, n)
        shares = []
        for seed in self.seeds:
            costs = {c: seconds for (c, aligned), seconds in self._makespans[seed].items() if not aligned}
            shares.append(drawn_share(costs, cause, n, seed))
        return np.array(shares)

    @property
    def _all_causes(self) -> int:
        return (1 << len(self.causes)) - 1

    @property
    def makespan(self) -> MeanInterval:
        """With all causes, s."""
        return mean_interval(self._costs[self._all_causes])

    @property
    def undisturbed(self) -> MeanInterval:
        """With none, s."""
        return mean_interval(self._costs[0])

    @property
    def cost(self) -> MeanInterval:
        """What all causes cost together, s."""
        return cost_estimate(self._costs[self._all_causes] - self._costs[0])

    @property
    def aligned(self) -> MeanInterval:
        """Makespan with every cause at the same times on all the ranks that it strikes, s."""
        return mean_interval(self._aligned)

    @property
    def unaligned(self) -> MeanInterval:
        """What it costs that the causes strike different ranks at different times, s."""
        return mean_interval(self._costs[self._all_causes] - self._aligned)

    @cached_property
    def _aligned(self) -> Floats:
        return np.array([self._makespans[seed][self._all_causes, True] for seed in self.seeds])

    @property
    def aligned_cost(self) -> MeanInterval:
        """What all causes would cost if they were aligned, s."""
        return cost_estimate(self._aligned - self._costs[0])

    @property
    def together(self) -> MeanInterval:
        """What the causes cost together beyond the sum of each alone, s: below 0 they hide behind each other."""
        each = sum(alone(self._costs, k) for k in range(len(self.causes)))
        return mean_interval(self._costs[self._all_causes] - self._costs[0] - each)

    @cached_property
    def by_cause(self) -> list[CauseCost]:
        """What each cause costs, in the order of the disturbance."""
        n, whole = len(self.causes), self.cost.mean
        found = []
        for k, cause in enumerate(self.causes):
            saved = cost_estimate(removed(self._costs, k, n))
            shared = cost_estimate(self._share(k)) if self.is_shared_out else None
            part = shared.mean / whole if shared is not None and whole > 0.0 else None
            found.append(CauseCost(cause, cost_estimate(alone(self._costs, k)), saved, shared, part))
        return found

    @property
    def leading(self) -> Leading:
        """Which causes cost most."""
        return leading({cause: self._share(k) for k, cause in enumerate(self.causes)})

    @property
    def below_the_noise(self) -> list[CauseCost]:
        """Causes whose cost is less than half of its interval's half-width, where there are several."""
        found = [one for one in self.by_cause if 4.0 * abs(one.best.mean) < one.best.high - one.best.low]
        return found if len(found) > 1 and len(self.seeds) > 1 else []

    @property
    def below_together(self) -> MeanInterval:
        """What the causes below the noise cost together: the sum of their costs, s."""
        names = {one.cause for one in self.below_the_noise}
        costs = [self._share(k) for k, cause in enumerate(self.causes) if cause in names]
        return cost_estimate(np.sum(costs, axis=0))

    @property
    def warnings(self) -> list[Notice]:
        """Warnings of this result."""
        warnings = list(self.runs.warnings)
        if len(self.seeds) == 1:
            hint = "--seeds 5 gives intervals; the same --out with --resume keeps these runs"
            warnings.append(warning("blame-one-seed", "one seed: how far chance moves the figures is not known", hint))
        alike = [one.cause for one in self.by_cause if one.best.alike]
        if alike:
            message = f"all {len(self.seeds)} seeds gave the same cost: {', '.join(alike)}"
            hint = "their intervals assume that other seeds may differ by the whole cost; more --seeds tell"
            warnings.append(warning("blame-alike", message, hint))
        unknown = [one.cause for one in self.by_cause if not one.best.excludes_zero]
        if len(self.seeds) > 1 and unknown:
            message = f"not distinguishable from 0: {', '.join(unknown)}"
            warnings.append(warning("blame-not-told", message, "more --seeds, or a longer program"))
        if not self.is_shared_out:
            message = f"no shares: the runs that share out {len(self.causes)} causes are missing"
            hint = (
                "`crosswind blame EXPERIMENT.toml -o FILE --resume` adds them; what removals save need not sum to 100 %"
            )
            warnings.append(warning("blame-many-causes", message, hint))
        return warnings

    def summary(self) -> dict[str, object]:
        """Return the content of `blame.json`: what `crosswind blame --json` prints."""
        runs = self.runs.summary()
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "blame",
            **{name: runs[name] for name in ("experiment", "on", "digest") if name in runs},
            "seeds": self.seeds,
            "causes": self.causes,
            "makespan_s": _ends(self.makespan),
            "undisturbed_s": _ends(self.undisturbed),
            "cost_s": _ends(self.cost),
            "together_s": _ends(self.together),
            "aligned_s": _ends(self.aligned),
            "unaligned_s": _ends(self.unaligned),
            "by_cause": [
                {
                    "cause": one.cause,
                    "part": one.part,
                    "shared_s": _ends(one.shared) if one.shared else None,
                    "removed_s": _ends(one.removed),
                    "alone_s": _ends(one.alone),
                }
                for one in self.by_cause
            ],
            "warnings": self.warnings,
            "runs": runs["runs"],
        }

    def save(self, path: str | Path) -> None:
        """Write a `blame.json`; an existing file is replaced only once the new one is complete."""
        write_json(self.summary(), path)

    def tables(self) -> list[Table]:
        """Return what each cause costs: those below the noise together, in the last row."""
        columns = [
            Column("cause", numeric=False),
            Column("share", term="blame-share"),
            Column("slowdown" if self.is_shared_out else "removing it saves", term="interval-seeds"),
            Column("costs", "s", "blame-share"),
            Column("removed saves", "s", "removed-cost"),
            Column("alone costs", "s", "alone-cost"),
        ]
        below, bare = self.below_the_noise, self.undisturbed
        rows = [
            [one.cause, *_costs(one.part, one.best, bare), in_seconds(one.removed), in_seconds(one.alone)]
            for one in sorted(self.by_cause, key=lambda one: -one.best.mean)
            if one not in below
        ]
        if below:
            parts = [one.part for one in below if one.part is not None]
            costs = _costs(sum(parts) if parts else None, self.below_together, bare)
            rows.append([f"{len(below)} causes below the noise, together", *costs, "", ""])
        found = Table("What each cause costs", columns, rows, first=(columns[2].head, "cause"))
        return [found if self.is_shared_out else found.part((0, 2, 4, 5))]  # nothing sums to 100 %

    def to_arrow(self) -> pa.Table:
        """Return one row per cause, s of makespan."""
        rows = []
        for one in self.by_cause:
            row: Row = {"cause": one.cause, "part": one.part}
            for name, found in (("shared", one.shared), ("removed", one.removed), ("alone", one.alone)):
                row |= {f"{name}_s": found and found.mean, f"{name}_low_s": found and found.low}
                row |= {f"{name}_high_s": found and found.high}
            rows.append(row)
        return pa.Table.from_pylist(rows)

    def __repr__(self) -> str:
        cost = f"{len(self.causes)} causes cost {self.cost.mean:.4g} s"
        return f"Blame({self.experiment!r}, {cost}, {len(self.seeds)} seeds)"

    def _repr_html_(self) -> str:
        return as_html_table(f"{self.experiment}: what each cause costs", self.to_arrow().to_pylist())


def _costs(part: float | None, found: MeanInterval, bare: MeanInterval) -> list[str]:
    return ["" if part is None else f"{plain(100 * part, 2)} %", part_of(found, bare), in_seconds(found)]


def _causes_of(document: Mapping[str, Any], file: str) -> list[str]:
    causes = document.get("causes")
    named = isinstance(causes, list) and all(isinstance(cause, str) for cause in causes)
    if not named or not causes or len(set(causes)) != len(causes):
        message = f"{file}: causes is {causes!r}; it must be a list of different names"
        raise DescriptionError(message, "shape", "`crosswind blame -o` writes one")
    return list(causes)


def _refuse_another_disturbance(run: ProgramRun, place: int, causes: list[str], file: str) -> None:
    """Refuse a run whose parameters are not those of a blame of these causes."""
    kept, aligned = run.params.get(KEPT), run.params.get(ALIGNED)
    unknown = [cause for cause in kept if cause not in causes] if isinstance(kept, list) else [kept]
    if unknown or not isinstance(aligned, bool):
        field, value = (KEPT, kept) if unknown else (ALIGNED, aligned)
        allowed = f"of {', '.join(causes)}" if unknown else "true or false"
        message = f"{file}: runs[{place}].params.{field} is {value!r}; it must be {allowed}"
        raise DescriptionError(message, "shape", "`crosswind blame -o` writes one")


class Store:
    """Keeps runs that are under way in a `blame.json`: complete as far as they go, and taken up again (`grid.Store`).

    Parameters
    ----------
    causes : list of str
        Of the disturbance.
    """

    kind = "blame"

    def __init__(self, causes: list[str]) -> None:
        self._causes = causes

    def load(self, path: Path) -> Runs[ProgramRun]:
        """Return the runs in a file."""
        document = read_json(path, "blame", SCHEMA_VERSION, "name another file, or run without --resume")
        runs = {name: document.get(name) for name in ("schema_version", "experiment", "on", "digest", "runs")}
        text = json.dumps({"kind": "program", **runs}).encode()
        return Runs.from_dict(json.loads(_core.read_result("runs", text, str(path))))

    def save(self, runs: Runs[ProgramRun], path: Path) -> None:
        """Write the runs so far, and what they say once a seed has all of its runs."""
        found = Blame(self._causes, runs)
        if found.seeds:
            found.save(path)
        else:
            write_json({**runs.summary(), "kind": "blame", "causes": self._causes}, path)


def _ends(found: MeanInterval) -> dict[str, float | None]:
    low, high = (end if np.isfinite(end) else None for end in (found.low, found.high))
    return {"mean": found.mean, "low": low, "high": high}
