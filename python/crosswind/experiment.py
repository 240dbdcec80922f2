"""Experiment: a platform, a workload, a policy, and the values to sweep (`experiment.toml`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosswind import _core
from crosswind.errors import DescriptionError
from crosswind.platform import Platform, as_html_table, read_bytes


@dataclass(frozen=True)
class Point:
    """One run of an experiment: what the sweep set, the platform, and everything else.

    Attributes
    ----------
    number : int
        Place in the grid, from 0.
    params : dict
        Dotted path -> value, in the order of the file.
    description : dict
        The experiment without a sweep; its `seed` is this run's.
    platform : Platform
        The tree of nodes, read.
    tasks_csv : bytes or None
        Content of the workload's `tasks_file`, read.
    """

    number: int
    params: dict[str, Any]
    description: dict[str, Any]
    platform: Platform
    tasks_csv: bytes | None

    @property
    def seed(self) -> int:
        """Seed of everything drawn at random."""
        return int(self.description["seed"])

    @property
    def json(self) -> str:
        """The description as JSON."""
        return json.dumps(self.description)


class Experiment:
    """What to run, on what, decided by whom, and which values to try. Made by `load`, `from_toml` or `from_dict`.

    Examples
    --------
    >>> root = {"name": "r", "compute_per_s": 2.0}
    >>> farm = {"kind": "farm", "tasks": 10, "task_size_mb": 1.0, "task_work": 1.0}
    >>> alone = {"schema_version": 1, "name": "alone", "node": [root]}
    >>> sweep = {"policy.order": ["planned", "arrival"], "workload.task_work": [1, 5]}
    >>> experiment = Experiment.from_dict(
    ...     {"schema_version": 1, "name": "e", "platform": alone, "workload": farm, "sweep": sweep}
    ... )
    >>> len(experiment), next(experiment.points()).params
    (4, {'policy.order': 'planned', 'workload.task_work': 1})
    """

    def __init__(self, checked: _core.Experiment, directory: Path | None = None) -> None:
        self._checked = checked
        self._directory = directory or Path()
        self._platforms: dict[str, Platform] = {}
        self._task_files: dict[str, bytes] = {}

    @classmethod
    def load(cls, path: str | Path) -> Experiment:
        """Read an `experiment.toml`; the files that it names count from its directory.

        Raises
        ------
        DescriptionError
            With file, line, column, field, value, unit and permitted range of the first thing that is wrong.
        """
        return cls(_core.Experiment.from_toml(read_bytes(path), str(path)), Path(path).parent)

    @classmethod
    def from_toml(cls, text: str, file: str = "experiment.toml", directory: str | Path | None = None) -> Experiment:
        """Check an experiment given as TOML text; files that it names count from `directory` (default: here)."""
        return cls(_core.Experiment.from_toml(text.encode(), file), Path(directory) if directory else None)

    @classmethod
    def from_dict(cls, description: Mapping[str, Any], directory: str | Path | None = None) -> Experiment:
        """Check an experiment given as a dictionary with the fields of `experiment.toml`."""
        try:
            text = json.dumps(description, allow_nan=False)
        except (TypeError, ValueError) as error:
            hint = "numbers must be finite, and every value a number, a string, a list or a dict"
            raise DescriptionError(f"experiment: {error}", "description", hint) from None
        return cls(_core.Experiment.from_json(text.encode(), "experiment"), Path(directory) if directory else None)

    @property
    def name(self) -> str:
        """What people call it."""
        return str(self.to_dict()["name"])

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `experiment.toml` as a dictionary, defaults filled in."""
        description: dict[str, Any] = json.loads(self._checked.to_json())
        return description

    def fixed(self, values: Mapping[str, Any]) -> Experiment:
        """Return the experiment with fields set for every run; what its sweep says about them is dropped.

        Parameters
        ----------
        values : mapping
            Dotted path, such as `policy.order`, to value.

        Raises
        ------
        DescriptionError
            When there is no such field, or the value is not permitted.
        """
        checked = self._checked
        for path, value in values.items():
            checked = checked.fixed(path, json.dumps(value))
        return Experiment(checked, self._directory)

    def __len__(self) -> int:
        """How many runs the sweep and the repetitions make."""
        return len(self._checked)

    def __repr__(self) -> str:
        return f"Experiment({self.name!r}, {len(self)} runs)"

    def _repr_html_(self) -> str:
        description = self.to_dict()
        rows = [
            {"field": f"{section}.{name}", "value": json.dumps(value)}
            for section in ("workload", "policy", "execution")
            for name, value in description[section].items()
        ]
        rows += [{"field": f"sweep {path}", "value": json.dumps(v)} for path, v in description.get("sweep", {}).items()]
        return as_html_table(f"{self.name}: {len(self)} runs", rows)

    def points(self) -> Iterator[Point]:
        """Yield every run: the product of the swept values, the last path fastest, within each its repetitions.

        Raises
        ------
        DescriptionError
            When a platform's or a tasks' file cannot be read, or values that are right alone are wrong together.
        """
        for number in range(len(self)):
            yield self.point(number)

    def point(self, number: int) -> Point:
        """Return the run of a number, from 0."""
        params, text = self._checked.point(number)
        description = json.loads(text)
        platform = self._platform(description["platform"])
        file = description["workload"].get("tasks_file")
        tasks = self._tasks(file)
        if file is not None:
            description["workload"]["tasks_file"] = str((self._directory / file).resolve())
        return Point(number, dict(json.loads(params)), description, platform, tasks)

    def check_files(self) -> None:
        """Read every file that the experiment names, so that a missing one is found before anything runs.

        Raises
        ------
        DescriptionError
            For the first that cannot be read.
        """
        description = self.to_dict()
        sweep = description.get("sweep", {})
        for source in sweep.get("platform", [description["platform"]]):
            self._platform(source)
        for file in sweep.get("workload.tasks_file", [description["workload"].get("tasks_file")]):
            self._tasks(file)

    def digest(self, on: str) -> str:
        """Return what tells this experiment, with its files, from every other: hexadecimal SHA-256."""
        self.check_files()
        parts: dict[str, Any] = {"on": on, "experiment": self.to_dict()}
        parts["platforms"] = {source: platform.to_dict() for source, platform in sorted(self._platforms.items())}
        parts["tasks"] = {f: hashlib.sha256(content).hexdigest() for f, content in sorted(self._task_files.items())}
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _platform(self, source: str | dict[str, Any]) -> Platform:
        key = source if isinstance(source, str) else json.dumps(source, sort_keys=True)
        if key not in self._platforms:
            if isinstance(source, str):
                with self._named("platform"):
                    self._platforms[key] = Platform.load(self._directory / source)
            else:
                self._platforms[key] = Platform.from_dict(source)
        return self._platforms[key]

    def _tasks(self, file: str | None) -> bytes | None:
        if file is None:
            return None
        if file not in self._task_files:
            with self._named("workload.tasks_file"):
                self._task_files[file] = read_bytes(self._directory / file)
        return self._task_files[file]

    @contextmanager
    def _named(self, field: str) -> Iterator[None]:
        """Say which field named a file that is not there."""
        try:
            yield
        except DescriptionError as error:
            if error.code == "no-file" and error.hint is None:
                error.hint = f"the experiment names it as {field}; paths count from the experiment's file"
            raise
