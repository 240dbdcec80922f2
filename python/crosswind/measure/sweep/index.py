"""`sweep.json`: what a sweep's directory holds and how it came about, so that it can be taken up again."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from crosswind.documents import Arguments
from crosswind.errors import DescriptionError
from crosswind.files.atomic import write_json
from crosswind.files.reading import json_of
from crosswind.measure.sweep.kinds import Kind, Value, checked, kind_of

NAME = "sweep.json"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Index:
    """The content of `sweep.json`.

    Attributes
    ----------
    swept : str
        What is swept.
    values : list
        The values in the order in which they are measured: shuffled by the seed.
    arguments : dict
        Every other argument of the measurements, as JSON.
    seed : int
        Of the order, and of each measurement.
    host : dict
        name, cpu and kernel of the measured host: points of two hosts are not one sweep.
    """

    swept: str
    values: list[Value]
    arguments: Arguments
    seed: int
    host: dict[str, str]
    schema_version: int = SCHEMA_VERSION

    @classmethod
    def load(cls, directory: Path) -> Index:
        """Read the index of a directory.

        Raises
        ------
        DescriptionError
            When there is none, or it is not one of this version.
        """
        path = directory / NAME
        if not path.exists():
            hint = f"`crosswind measure sweep footprint -o {directory}` makes one"
            raise DescriptionError(f"{directory}: holds no sweep (no {NAME})", "no-sweep", hint)
        content = json_of(path, "no-sweep")
        version = content.get("schema_version") if isinstance(content, dict) else None
        if version != SCHEMA_VERSION:
            raise DescriptionError(f"{path}: schema_version is {version}; this build reads {SCHEMA_VERSION}", "version")
        try:
            index = cls(**{name: value for name, value in content.items() if name != "kind"})
            checked(kind_of(index.swept), index.values)
        except TypeError as error:
            raise DescriptionError(f"{path}: is no index of a sweep: {error}", "no-sweep") from None
        return index

    def save(self, directory: Path) -> None:
        """Write the index; an existing one is replaced only once the new one is complete."""
        write_json({"schema_version": self.schema_version, "kind": "sweep"} | asdict(self), directory / NAME)

    def file(self, directory: Path, value: Value) -> Path:
        """Return where the measurement of a value lies."""
        argument = kind_of(self.swept).argument
        shown = f"{value:08d}" if isinstance(value, int) else re.sub(r"[^\w.=-]+", "_", value)
        return directory / f"{argument}-{shown}.parquet"

    def taken_up_by(self, asked: Index, directory: Path) -> Index:
        """Return the index with the values of `asked` added; those that are here already keep their place.

        Raises
        ------
        DescriptionError
            When anything but the values differs, naming what.
        """
        differing = [
            f"{what} is {_shown(there)} there, {_shown(here)} now"
            for what, there, here in _pairs(self, asked)
            if there != here
        ]
        if differing:
            hint = "give the same arguments, another directory, or replace it: `--no-resume --force`"
            message = f"{directory}: holds a sweep with other arguments: {'; '.join(differing)}"
            raise DescriptionError(message, "sweep-differs", hint)
        new = [value for value in asked.values if value not in self.values]
        return replace(self, values=self.values + new)


def _pairs(there: Index, here: Index) -> Iterable[tuple[str, Any, Any]]:
    yield "swept", there.swept, here.swept
    yield "seed", there.seed, here.seed
    for group, a, b in (("", there.arguments, here.arguments), ("host ", there.host, here.host)):
        for name in sorted(a.keys() | b.keys()):
            yield group + name, a.get(name), b.get(name)


def _shown(value: Any) -> str:
    return "the default" if value is None else json.dumps(value)


SECRETS = ("token", "tls")
"""Arguments that stand in no file."""


def new_index(kind: Kind, values: Iterable[Value] | None, arguments: Arguments, host: Mapping[str, Any]) -> Index:
    """Return the index of a sweep that begins now.

    The order is shuffled by the seed: the speed of a machine drifts over minutes (a prototype saw 6 % over two hours),
    and in ascending order the drift would look like an effect of the value.
    """
    order = checked(kind, kind.values if values is None else list(values))
    seed = int(arguments.get("seed", 1))
    random.Random(seed).shuffle(order)
    others = {name: value for name, value in arguments.items() if name not in (kind.argument, "seed", *SECRETS)}
    facts = {name: str(host[name]) for name in ("name", "cpu", "kernel")}
    return Index(kind.name, order, json.loads(json.dumps(others, default=_as_json)), seed, facts)


def _as_json(value: Any) -> Any:
    if callable(value):
        return f"{getattr(value, '__module__', '?')}.{getattr(value, '__qualname__', repr(value))}"
    return str(value) if isinstance(value, Path) else list(value)
