"""Experiment: a workload, what it runs on or under, a policy, and the values to sweep (`experiment.toml`).

Three kinds: a *farm* of tasks over a platform, a *program* of parallel ranks under a disturbance, and *streams* of
messages of two classes through network interfaces.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from crosswind import _core
from crosswind.description import Description, as_json
from crosswind.documents import Document, Params
from crosswind.errors import DescriptionError
from crosswind.experiment.files import Files
from crosswind.experiment.goal_binary import goal_text, is_binary_goal
from crosswind.experiment.own_policy import own_policies
from crosswind.experiment.point import FarmPoint, Point, ProgramPoint, StreamsPoint
from crosswind.platform import as_html_table

__all__ = ["Experiment", "FarmPoint", "Kind", "Point", "ProgramPoint", "StreamsPoint"]

Kind = Literal["farm", "program", "streams"]
"""What is run: tasks over a tree of nodes, one parallel program, or streams of messages."""


class Experiment(Description[_core.Experiment]):
    """What to run, where, under which policy, and which values to try. Made by `load`, `from_toml` or `from_dict`.

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

    _KIND = "experiment"
    _CORE = _core.Experiment

    def __init__(self, checked: _core.Experiment, directory: Path | None = None, files: Files | None = None) -> None:
        super().__init__(checked)
        self._files = files or Files(directory or Path())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an `experiment.toml`; the files that it names count from its directory.

        Raises
        ------
        DescriptionError
            With file, line, column, field, value, unit and permitted range of the first thing that is wrong.
        """
        return cls(super().load(path)._checked, Path(path).parent)

    @classmethod
    def from_toml(cls, text: str, file: str | None = None, directory: str | Path | None = None) -> Self:
        """Check an experiment given as TOML text; files that it names count from `directory` (default: here)."""
        return cls(super().from_toml(text, file)._checked, Path(directory) if directory else None)

    @classmethod
    def from_dict(cls, description: Mapping[str, Any], directory: str | Path | None = None) -> Self:
        """Check an experiment given as a dictionary with the fields of `experiment.toml`."""
        return cls(super().from_dict(description)._checked, Path(directory) if directory else None)

    @classmethod
    def from_provenance(cls, provenance: Mapping[str, Any], directory: str | Path | None = None) -> Self:
        """Return the experiment that runs were made from (`Runs.provenance`), with the files that it names.

        Parameters
        ----------
        provenance : mapping
            What `provenance` returned.
        directory : path, optional
            Where files are looked for of which the provenance has only the digest.

        Raises
        ------
        DescriptionError
            When this version does not permit the experiment, or a content is damaged.
        """
        experiment = cls.from_dict(provenance["experiment"], directory)
        experiment._files.restore(provenance)
        return experiment

    def provenance(self) -> Document:
        """Return the version, the experiment and the content of its files: all that runs are made from.

        Raises
        ------
        DescriptionError
            When a file cannot be read.
        """
        self.check_files()
        return {"versions": [_core.__version__], "experiment": self.to_dict(), **self._files.provenance()}

    @property
    def directory(self) -> Path:
        """Where the files that it names are looked for."""
        return self._files.directory

    @property
    def kind(self) -> Kind:
        """What is run."""
        kind: Kind = self.to_dict()["workload"]["kind"]
        return kind

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
            checked = checked.fixed(path, as_json(value, path))
        return Experiment(checked, files=self._files)

    @property
    def own_policies(self) -> list[str]:
        """The policies of the user's own that it names, as `python:FILE:CLASS`; they are simulated only."""
        return own_policies(self.to_dict())

    @property
    def is_drawn(self) -> bool:
        """Whether a simulated run depends on the seed: of a farm with drawn tasks or failures, or an own policy."""
        if self.kind != "farm" or self.own_policies:
            return True
        description = self.to_dict()
        if description.get("failure"):
            return True
        swept = [value for values in description.get("sweep", {}).values() for value in values]
        tasks = [*description["workload"].values(), *swept]
        return any(isinstance(value, Mapping) and "distribution" in value for value in tasks)

    def once(self) -> Experiment:
        """Return the experiment with one repetition of each point."""
        description = self.to_dict()
        if description.get("repetitions", 1) == 1:
            return self
        once = Experiment.from_dict({**description, "repetitions": 1})
        return Experiment(once._checked, files=self._files)

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
            for name, value in description.get(section, {}).items()
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
        pairs, text = self._checked.point(number)
        params: Params = dict(json.loads(pairs))
        description = json.loads(text)
        workload = description["workload"]
        if workload["kind"] == "streams":
            self._files.fill_processor(description)
            return StreamsPoint(number, params, description)
        if workload["kind"] == "program":
            disturbance = self._files.disturbance(description.get("disturbance"))
            goal, recording = self._program(workload)
            return ProgramPoint(number, params, description, disturbance, goal, recording)
        platform = self._files.platform(description["platform"], description.get("platform_fields"))
        file = workload.get("tasks_file")
        tasks = self._files.content(file, "workload.tasks_file")
        if file is not None:
            workload["tasks_file"] = self._files.absolute(file)
        self._files.fill_values(workload)
        own = self._files.own_policy(description.get("policy", {}).get("order"))
        return FarmPoint(number, params, description, platform, tasks, own)

    def check_files(self) -> None:
        """Read every file that the experiment names, so that a missing one is found before anything runs.

        Raises
        ------
        DescriptionError
            For the first that cannot be read.
        """
        description = self.to_dict()
        sweep = description.get("sweep", {})
        if self.kind == "streams":
            for network in [description.get("network"), *sweep.get("network", [])]:
                self._files.fill_processor({"network": network})
            for source in sweep.get("network.processor.platform", []):
                self._files.platform(source)
            return
        if self.kind == "program":
            for source in sweep.get("disturbance", [description.get("disturbance")]):
                self._files.disturbance(source)
            workload = description["workload"]
            for file in sweep.get("workload.parameters.file", [_file_of(workload)]):
                self._program({**workload, "parameters": {"file": file}})
            return
        fixed = description.get("platform_fields", {})
        swept = [(path, value) for path, values in sweep.items() if path.startswith("node[") for value in values]
        for source in sweep.get("platform", [description["platform"]]):
            self._files.platform(source, fixed)
            for path, value in swept:
                self._files.platform(source, {**fixed, path: value})
        for order in self.own_policies:
            if (policy := self._files.own_policy(order)) is not None:
                policy.load()
        for file in sweep.get("workload.tasks_file", [description["workload"].get("tasks_file")]):
            self._files.content(file, "workload.tasks_file")
        self._check_amounts(description["workload"], sweep)

    def _check_amounts(self, workload: Mapping[str, Any], sweep: Mapping[str, Any]) -> None:
        """Read every file of amounts, swept ones too."""
        given = {f"workload.{name}": amount for name, amount in workload.items() if f"workload.{name}" not in sweep}
        swept = [(path, value) for path, values in sweep.items() if path.startswith("workload.") for value in values]
        for path, value in [*given.items(), *swept]:
            file = value.get("file") if isinstance(value, Mapping) else value if path.endswith(".file") else None
            if isinstance(file, str) and f"{path}.file" not in sweep:
                self._files.amounts(file, path if path.endswith(".file") else f"{path}.file")

    @property
    def files(self) -> set[Path]:
        """Every file that the experiment names; errors as of `check_files`."""
        self.check_files()
        return set(self._files.paths)

    def digest(self, on: str) -> str:
        """Return the identity of this experiment with its files: hexadecimal SHA-256."""
        self.check_files()
        parts: Document = {"on": on, "experiment": self.to_dict(), **self._files.parts()}
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _program(self, workload: Mapping[str, Any]) -> tuple[str | None, _core.RecordedRanks | None]:
        """Return the text of a GOAL file, or a recording, where the program is one."""
        field, file = "workload.parameters.file", _file_of(workload)
        if file is not None and workload["program"] == "recorded":
            return None, self._files.recording(file, field)
        content = self._files.content(file, field)
        if content is not None and is_binary_goal(content):
            return goal_text(content, f"{field}, {file},"), None
        try:
            return (None if content is None else content.decode()), None
        except UnicodeDecodeError as error:
            message = f"{field} is {file}: byte {error.start + 1} is no UTF-8"
            raise DescriptionError(message, "no-text", "a GOAL file is text") from None


def _file_of(workload: Mapping[str, Any]) -> str | None:
    """Return the file that a program reads; only the programs `goal` and `recorded` have one."""
    file: str | None = (workload.get("parameters") or {}).get("file")
    return file
