"""The runs that blame needs: one program, one seed after the other, under one part of a disturbance after the other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace

from crosswind.blame.shares import coalitions, drawn_coalitions
from crosswind.disturbance import Disturbance
from crosswind.documents import Params
from crosswind.errors import DescriptionError
from crosswind.experiment import Experiment, ProgramPoint

KEPT, ALIGNED = "causes", "aligned"
"""Identity of a variant: the causes that were left, and whether all were aligned."""


class Variants:
    """A grid (`crosswind.run.grid.Grid`) of the same point without some causes, for several seeds.

    Parameters
    ----------
    experiment : Experiment
        Of kind program, with a disturbance and no sweep.
    seeds : int
        How many seeds, at least 1: the experiment's own and those that follow.

    Raises
    ------
    DescriptionError
        When there is nothing to blame, or more than one thing.
    """

    kind = "program"

    def __init__(self, experiment: Experiment, seeds: int) -> None:
        self.name = experiment.name
        self._point, self._whole = _the_one_point(experiment)
        self._experiment = experiment
        self.causes = self._whole.causes
        if not self.causes:
            raise DescriptionError(f"disturbance {self._whole.name!r} has no source", "blame", "add a [[source]]")
        if seeds < 1:
            raise DescriptionError(f"seeds is {seeds}; it must be at least 1", "argument")
        self._seeds = seeds
        self._variants = [self._without_others(coalition) for coalition in coalitions(len(self.causes))]
        self._variants.append(({KEPT: self.causes, ALIGNED: True}, self._whole.aligned()))

    def __len__(self) -> int:
        """How many runs: variants times seeds."""
        return (len(self._variants) + len(self._drawn(self._point.seed))) * self._seeds

    def points(self) -> Iterator[ProgramPoint]:
        """Yield every run, all variants of a seed together, so that the first seed is there early."""
        number = 0
        for turn in range(self._seeds):
            seed = self._point.seed + turn
            description = {**self._point.description, "seed": seed}
            for params, disturbance in [*self._variants, *self._drawn(seed)]:
                yield replace(
                    self._point, number=number, params=params, description=description, disturbance=disturbance
                )
                number += 1

    def digest(self, on: str) -> str:
        """Return what identifies these runs; more seeds of the same are added to the same file."""
        parts = {"blame": self._experiment.digest(on), "causes": self.causes}
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _drawn(self, seed: int) -> list[tuple[Params, Disturbance]]:
        return [self._without_others(coalition) for coalition in drawn_coalitions(len(self.causes), seed)]

    def _without_others(self, coalition: int) -> tuple[Params, Disturbance]:
        kept = [cause for k, cause in enumerate(self.causes) if coalition >> k & 1]
        return {KEPT: kept, ALIGNED: False}, self._whole.keeping(kept)


def _the_one_point(experiment: Experiment) -> tuple[ProgramPoint, Disturbance]:
    if experiment.kind != "program":
        message = (
            f"experiment {experiment.name!r} is of kind {experiment.kind}; blame is of a program under a disturbance"
        )
        raise DescriptionError(
            message, "blame", 'workload.kind = "program" and a disturbance: docs/guides/disturbances.md'
        )
    points = len(experiment) // int(experiment.to_dict()["repetitions"])
    if points != 1:
        message = f"blame is of one point; the sweep of {experiment.name!r} makes {points}"
        raise DescriptionError(message, "blame", "reduce it to one: --set PATH=VALUE for each swept field")
    point = experiment.point(0)
    assert isinstance(point, ProgramPoint)
    if point.disturbance is None:
        message = f"experiment {experiment.name!r} has no disturbance: there is nothing to blame"
        raise DescriptionError(message, "blame", 'name one: disturbance = "disturbance.toml"')
    return point, point.disturbance
