"""Runs made again from their `runs.json`, and whether every number is the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from crosswind import _core
from crosswind.documents import Params
from crosswind.errors import DescriptionError
from crosswind.experiment import Experiment, Point
from crosswind.run.results import AnyRun, Runs

if TYPE_CHECKING:
    from distributed import Client

Verdict = Literal["same", "different"]
_WORDS = frozenset({"warnings", "message"})
"""For people; a version may warn of more, or write otherwise."""


@dataclass(frozen=True)
class Difference:
    """A value that is not the same.

    Attributes
    ----------
    params : dict
        What the sweep set in the run: dotted path -> value.
    seed : int
        Of the run.
    field : str
        Such as `makespan_s` or `nodes[2].busy_s`; `run`: the run itself.
    recorded, now : number, str, bool or None
        The value in the file, and that of the new run; None where it is missing.
    """

    params: Params
    seed: int
    field: str
    recorded: Any
    now: Any


@dataclass(frozen=True)
class Rerun:
    """The outcome of running a file of runs again.

    Attributes
    ----------
    recorded, now : Runs
        Those of the file, and the new ones of the same points and seeds.
    points : int
        Runs that the whole experiment makes; more than `recorded` has where it was interrupted.
    values : int
        How many values were compared.
    differences : list of Difference
        In the order of the file.
    added : list of str
        Fields that only the new runs have; they are not compared.
    """

    recorded: Runs[Any]
    now: Runs[Any]
    points: int
    values: int
    differences: list[Difference]
    added: list[str]

    @property
    def verdict(self) -> Verdict:
        """`same`: every value in the file came out again, to the last bit; otherwise `different`."""
        return "different" if self.differences else "same"

    @property
    def versions(self) -> list[str]:
        """The versions that made the recorded runs."""
        return list(self.recorded.provenance["versions"]) if self.recorded.provenance else []

    @property
    def same_version(self) -> bool:
        """Whether the recorded runs were made by this version only."""
        return self.versions == [_core.__version__]

    def to_dict(self) -> dict[str, object]:
        """Return the verdict and every difference, as `crosswind run --again --json` prints it."""
        return {
            "schema_version": 1,
            "kind": "rerun",
            "verdict": self.verdict,
            "experiment": self.recorded.experiment,
            "versions": self.versions,
            "version": _core.__version__,
            "runs": len(self.recorded),
            "points": self.points,
            "values": self.values,
            "added": self.added,
            "differences": [vars(one) for one in self.differences],
        }


def run_again(
    path: str | Path,
    *,
    workers: int | str | Client | None = None,
    out: str | Path | None = None,
    force: bool = False,
    allow_code: bool = False,
    progress: Callable[[float, str], None] | None = None,
) -> Rerun:
    """Run a simulated `runs.json` again, from what it holds, and compare every number.

    Parameters
    ----------
    path : path
        The file of runs. Files that its experiment names are inside; those above 16 MB and recordings are needed.
    workers : int, str or distributed.Client, optional
        As for `crosswind.run`.
    out : path, optional
        Where the new runs are written.
    force : bool
        Replace a file of another kind or experiment in `out`.
    allow_code : bool
        Run the policies in Python that the file holds; they run with the caller's rights.
    progress : callable, optional
        As for `crosswind.run`.

    Returns
    -------
    Rerun
        With the verdict and the differences.

    Raises
    ------
    DescriptionError
        When the file has no provenance or no runs, or holds a policy in Python without `allow_code`; when its runs were
        not simulated: measurements never repeat exactly.

    Examples
    --------
    >>> import tempfile
    >>> from crosswind.run.grid import run
    >>> root = {"name": "r", "compute_per_s": 2.0}
    >>> alone = {"schema_version": 1, "name": "alone", "node": [root]}
    >>> farm = {"kind": "farm", "tasks": 600, "task_size_mb": 1.0, "task_work": 1.0}
    >>> description = {"schema_version": 1, "name": "one", "platform": alone, "workload": farm}
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     file = Path(directory) / "runs.json"
    ...     _ = run(Experiment.from_dict(description), out=file)
    ...     run_again(file).verdict
    'same'
    """
    from crosswind.run.grid import run_grid, workers_for

    recorded = Runs.load(path)
    if recorded.on != "sim":
        message = f"{path} has runs {recorded.on!r}: measurements never repeat exactly"
        raise DescriptionError(message, "not-simulated", "run the experiment again, and compare: crosswind report A B")
    if recorded.provenance is None:
        message = f"{path} holds no experiment: `map`, or an earlier version of Crosswind, wrote it"
        raise DescriptionError(message, "no-provenance", "run its experiment with -o; that file can be run again")
    if not recorded:
        raise DescriptionError(f"{path} holds no runs: there is nothing to compare", "no-runs", "run its experiment")
    experiment = Experiment.from_provenance(recorded.provenance, Path(path).parent)
    if experiment.name != recorded.experiment:
        message = f"{path} says that its runs are of {recorded.experiment!r}; the experiment it holds is"
        raise DescriptionError(
            f"{message} {experiment.name!r}", "runs-differ", "the file was changed after it was made"
        )
    if (own := experiment.own_policies) and not allow_code:
        message = f"{path} holds a policy in Python, {own[0]!r}, which would run with your rights"
        raise DescriptionError(message, "code", "if you trust the file: --allow-code (allow_code=True)")
    workers = workers_for(experiment, workers)
    grid = _RecordedPoints(experiment, recorded)
    now = run_grid(grid, workers=workers, out=out, force=force, progress=progress, provenance=experiment.provenance())
    return _compared(recorded, now, len(experiment))


class _RecordedPoints:
    """The points of an experiment of which there are runs."""

    def __init__(self, experiment: Experiment, recorded: Runs[Any]) -> None:
        self._experiment = experiment
        self._known = {_key(run.params, run.seed) for run in recorded}
        self.name, self.kind = experiment.name, experiment.kind

    def __len__(self) -> int:
        return len(self._known)

    def points(self) -> Iterator[Point]:
        return (point for point in self._experiment.points() if _key(point.params, point.seed) in self._known)

    def digest(self, on: str) -> str:
        return self._experiment.digest(on)


def _key(params: Mapping[str, Any], seed: int) -> str:
    return json.dumps([params, seed], sort_keys=True)


def _compared(recorded: Runs[Any], now: Runs[Any], points: int) -> Rerun:
    new: dict[str, AnyRun] = {_key(run.params, run.seed): run for run in now}
    differences: list[Difference] = []
    values, added = 0, dict[str, None]()
    known = set[str]()
    for old in recorded:
        key = _key(old.params, old.seed)
        again = new.get(key)
        if again is None or key in known:  # a run that stands there twice narrows intervals
            said = "in the file" if again is None else "in the file again"
            differences.append(Difference(old.params, old.seed, "run", said, None))
            continue
        known.add(key)
        then, found = dict(_leaves(old.summary())), dict(_leaves(again.summary()))
        values += len(then)
        then |= _lengths(old.summary())
        found |= _lengths(again.summary())
        differences += [
            Difference(old.params, old.seed, name, value, found.get(name))
            for name, value in then.items()
            if name not in found or not _is_same(value, found[name])
        ]
        added.update(dict.fromkeys(name for name in found if name not in then and not name.endswith(".length")))
    return Rerun(recorded, now, points, values, differences, list(added))


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two values are the same: numbers by value (1 is 1.0), everything else by kind as well.

    Examples
    --------
    >>> _is_same(1, 1.0), _is_same(0.1 + 0.2, 0.3), _is_same(1, True), _is_same("1", 1)
    (True, False, False, False)
    """
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other)]
    return bool(one == other) and (all(numbers) or type(one) is type(other))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value of an entry of `runs.json` with its path.

    Examples
    --------
    >>> list(_leaves({"a": 1, "nodes": [{"busy_s": 2.5}], "warnings": [{"code": "x"}]}))
    [('a', 1), ('nodes[0].busy_s', 2.5)]
    """
    if isinstance(value, Mapping):
        for name, below in value.items():
            if name not in _WORDS:
                yield from _leaves(below, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for place, below in enumerate(value):
            yield from _leaves(below, f"{path}[{place}]")
    else:
        yield path, value


def _lengths(value: Any, path: str = "") -> dict[str, int]:
    """Return how long each list of an entry is: nodes that were taken out leave no value to compare.

    Examples
    --------
    >>> _lengths({"a": 1, "nodes": [{"busy_s": 2.5}], "warnings": [{"code": "x"}]})
    {'nodes.length': 1}
    """
    found: dict[str, int] = {}
    if isinstance(value, Mapping):
        for name, below in value.items():
            if name not in _WORDS:
                found |= _lengths(below, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        found[f"{path}.length"] = len(value)
        for place, below in enumerate(value):
            found |= _lengths(below, f"{path}[{place}]")
    return found
