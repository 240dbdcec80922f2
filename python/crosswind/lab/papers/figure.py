"""A figure of a paper as a grid of runs (`crosswind.Grid`): what each point sets, and the experiment that it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from crosswind import Experiment, Point
from crosswind.documents import Document, Params
from crosswind.lab.engine import build_digest

Setting = tuple[Params, Document]
"""What a point of a figure sets, and the experiment that it is."""


@dataclass(frozen=True)
class Figure:
    """A figure, each point of it with as many seeds as it has repetitions.

    Attributes
    ----------
    id, title : str
        Such as figure-2.
    settings : list of Setting
        Its points.
    kind : {"farm", "streams"}
        What is run.
    repetitions : int
        Runs of each point.
    seed : int or None
        Of the first; None: as an experiment that names none.
    """

    id: str
    title: str
    settings: list[Setting]
    kind: str
    repetitions: int = 1
    seed: int | None = None

    @property
    def name(self) -> str:
        """What its runs are called."""
        return f"{self.id}: {self.title}"

    def __len__(self) -> int:
        """How many runs."""
        return len(self.settings) * self.repetitions

    def points(self) -> Iterator[Point]:
        """Yield every run."""
        number = 0
        for params, description in self.settings:
            seed = {} if self.seed is None else {"seed": self.seed}
            for point in Experiment.from_dict({**seed, "repetitions": self.repetitions, **description}).points():
                yield replace(point, number=number, params=dict(params))
                number += 1

    def digest(self, on: str) -> str:
        """Return what identifies these runs, the build included."""
        parts = {"on": on, "settings": self.settings, "seed": self.seed, "build": build_digest()}
        parts["repetitions"] = self.repetitions
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def key(params: Mapping[str, Any]) -> str:
    """Return what a point sets as a text, by which its runs are found."""
    return json.dumps(params, sort_keys=True)
