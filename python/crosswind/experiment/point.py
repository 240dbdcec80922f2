"""One run of an experiment: what the sweep set, and everything else that the run needs."""

from __future__ import annotations

import json
from dataclasses import dataclass

from crosswind import _core
from crosswind.disturbance import Disturbance
from crosswind.documents import Document, Params
from crosswind.errors import DescriptionError
from crosswind.experiment.own_policy import OwnPolicy
from crosswind.platform import Platform


@dataclass(frozen=True)
class Point:
    """What every kind of run has.

    Attributes
    ----------
    number : int
        Place in the grid, from 0.
    params : dict
        Dotted path -> value, in the order of the file.
    description : dict
        The experiment without a sweep; its `seed` is this run's.
    """

    number: int
    params: Params
    description: Document

    @property
    def seed(self) -> int:
        """Seed of everything drawn at random."""
        return int(self.description["seed"])

    @property
    def json(self) -> str:
        """The description as JSON."""
        return json.dumps(self.description)


@dataclass(frozen=True)
class FarmPoint(Point):
    """A farm of tasks over a tree of nodes.

    Attributes
    ----------
    platform : Platform
        The tree of nodes, read.
    tasks_csv : bytes or None
        Content of the workload's `tasks_file`, read.
    policy : OwnPolicy or None
        The policy of the user's own, read; None where the order is built in.
    """

    platform: Platform
    tasks_csv: bytes | None
    policy: OwnPolicy | None = None


@dataclass(frozen=True)
class ProgramPoint(Point):
    """A parallel program of many ranks.

    Attributes
    ----------
    disturbance : Disturbance or None
        What takes the processors away, read; None where nothing does.
    goal : str or None
        Content of the GOAL file of a program `goal`, read.
    recording : RecordedRanks or None
        What a program `recorded` has been recorded to do, read.
    """

    disturbance: Disturbance | None
    goal: str | None
    recording: _core.RecordedRanks | None = None

    def __getstate__(self) -> Document:
        """Return what travels to another process; a recording does not."""
        if self.recording is not None:
            message = "a recorded program is simulated on this machine only"
            raise DescriptionError(message, "argument", "leave out --workers dask:")
        return self.__dict__


@dataclass(frozen=True)
class StreamsPoint(Point):
    """Messages of two classes among hosts on one switch; it names no file."""
