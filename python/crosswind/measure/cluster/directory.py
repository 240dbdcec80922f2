"""The directory of a measured cluster: a measurement per visit, the request, and the outcome.

`cluster.json` says which cluster, arguments, hosts and links; `AT DIRECTION PEER.parquet` is one visit that is
complete; `links.toml`, and `platform.toml` where a tree was given, are what all of them tell.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from crosswind.documents import Arguments
from crosswind.errors import DescriptionError
from crosswind.files.atomic import made, read_json, replaced, write_json
from crosswind.files.output import ANOTHER, writable
from crosswind.measure.cluster.pairs import Visit
from crosswind.measurement import Measurement

NAME = "cluster.json"
KIND = "measured-cluster"
DESCRIBED = ("links", "platform")
REPLACE = "--no-resume --force"
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
    arguments: Arguments
    measurements: dict[Visit, Measurement] = field(default_factory=dict)

    @classmethod
    def taken_up(
        cls,
        path: str | Path,
        hosts: Iterable[str],
        arguments: Mapping[str, Any],
        visits: Sequence[Visit],
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
        writable(index, KIND, force=force)
        for kind in DESCRIBED:
            writable(found.path / f"{kind}.toml", kind, force=force)
        if not index.exists():
            _refuse_foreign(found.path, force)
            return found
        there = {visit for visit in visits if found.file(visit).exists()}
        if resume or not force:
            content = read_json(index, KIND, SCHEMA_VERSION, f"name another directory, or {REPLACE}")
            failed = {(one["at"], one["peer"], one["direction"]) for one in content.get("failed", [])}
            whole = {visit for visit in there if (visit.at, visit.peer, visit.direction) not in failed}
            found._refuse_another(content, hosts, force, bool(whole))
            if resume:
                found.measurements.update(
                    (visit, Measurement.load(found.file(visit))) for visit in visits if visit in whole
                )
                return found
        for visit in there:
            found.file(visit).unlink()
        return found

    def _refuse_another(self, index: Mapping[str, Any], hosts: Iterable[str], force: bool, measured: bool) -> None:
        """Refuse what was measured of other hosts, and, where some of it would count, with other arguments."""
        others = list(index.get("hosts", {}))
        if others and not force and not set(others) & set(hosts):
            message = f"{self.path}: holds measurements of another cluster, with the hosts {', '.join(others[:5])}"
            raise DescriptionError(message, ANOTHER, "name another directory, or replace it with --force")
        then, now = index["arguments"], self.arguments
        differing = [name for name in sorted({*then, *now}) if then.get(name) != now.get(name)]
        if differing and measured:
            shown = "; ".join(f"{name} is {then.get(name)} there, {now.get(name)} now" for name in differing)
            hint = f"give the same arguments, another directory, or {REPLACE} to measure it all again"
            message = f"{self.path}: holds measurements with other arguments: {shown}"
            raise DescriptionError(message, "cluster-differs", hint)

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
        """Write the request and the outcome."""
        write_json(
            {"schema_version": SCHEMA_VERSION, "kind": KIND, "arguments": self.arguments, **content}, self.path / NAME
        )


def _refuse_foreign(path: Path, force: bool) -> None:
    """Refuse to replace descriptions in a directory that no measurement made."""
    there = next((file for kind in DESCRIBED if (file := path / f"{kind}.toml").exists()), None)
    if there is not None and not force:
        message = f"{path}: holds a {there.name} that no measurement wrote, and it would be replaced"
        raise DescriptionError(message, "other-kind", "name another directory, or replace it with --force")
