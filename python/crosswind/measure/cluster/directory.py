"""The directory of a measured cluster: a measurement per visit, what was asked for, and what came of it.

`cluster.json` says which cluster, arguments, hosts and links; `AT DIRECTION PEER.parquet` is one visit that is
complete; `links.toml`, and `platform.toml` where a tree was given, are what all of them tell.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from crosswind.errors import DescriptionError
from crosswind.measure.cluster.pairs import Visit
from crosswind.measurement import Measurement
from crosswind.output import writable
from crosswind.stored import made, read_json, replaced, write_json

NAME = "cluster.json"
KIND = "measured-cluster"
DESCRIBED = ("links", "platform")
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Directory:
    """Where the measurements of a cluster lie.

    Attributes
    ----------
    path : Path
    arguments : dict
        Of every measurement.
    measurements : dict
        Those that are complete, by visit.
    """

    path: Path
    arguments: dict[str, Any]
    measurements: dict[Visit, Measurement] = field(default_factory=dict)

    @classmethod
    def taken_up(
        cls,
        path: str | Path,
        cluster: str,
        arguments: Mapping[str, Any],
        visits: Iterable[Visit],
        resume: bool,
        force: bool,
    ) -> Directory:
        """Make a directory, or take up what lies there.

        Raises
        ------
        DescriptionError
            When it cannot be made, holds measurements of another cluster or with other arguments, or, unless forced,
            descriptions that no measurement wrote.
        """
        found = cls(made(path), dict(json.loads(json.dumps(arguments))))
        index = found.path / NAME
        writable(index, KIND, force=force, of={"cluster": cluster})
        for kind in DESCRIBED:
            writable(found.path / f"{kind}.toml", kind, force=force)
        if not index.exists():
            _refuse_foreign(found.path, force)
            return found
        if not resume:
            for visit in visits:
                found.file(visit).unlink(missing_ok=True)
            return found
        content = read_json(index, KIND, SCHEMA_VERSION, "name another directory")
        there = content["arguments"]
        failed = {(one["at"], one["peer"], one["direction"]) for one in content.get("failed", [])}
        differing = [
            name for name in sorted({*there, *found.arguments}) if there.get(name) != found.arguments.get(name)
        ]
        for visit in visits:
            if found.file(visit).exists() and (visit.at, visit.peer, visit.direction) not in failed:
                if differing:
                    shown = "; ".join(f"{n} is {there.get(n)} there, {found.arguments.get(n)} now" for n in differing)
                    hint = "give the same arguments, another directory, or --no-resume to measure it all again"
                    message = f"{found.path}: holds measurements with other arguments: {shown}"
                    raise DescriptionError(message, "cluster-differs", hint)
                found.measurements[visit] = Measurement.load(found.file(visit))
        return found

    def file(self, visit: Visit) -> Path:
        """Return where the measurement of a visit lies; names of hosts may have any characters."""
        return self.path / f"{quote(visit.at, safe='')} {visit.direction} {quote(visit.peer, safe='')}.parquet"

    def keep(self, visit: Visit, content: bytes) -> None:
        """Keep what a visit found."""
        file = self.file(visit)
        with replaced(file) as new:
            new.write(content)
        self.measurements[visit] = Measurement.load(file)

    def write_index(self, **content: Any) -> None:
        """Write what was asked for and what came of it."""
        write_json(
            {"schema_version": SCHEMA_VERSION, "kind": KIND, "arguments": self.arguments, **content}, self.path / NAME
        )


def _refuse_foreign(path: Path, force: bool) -> None:
    """Refuse to replace descriptions in a directory that no measurement made."""
    there = next((file for kind in DESCRIBED if (file := path / f"{kind}.toml").exists()), None)
    if there is not None and not force:
        message = f"{path}: holds a {there.name} that no measurement wrote, and it would be replaced"
        raise DescriptionError(message, "other-kind", "name another directory, or replace it with --force")
