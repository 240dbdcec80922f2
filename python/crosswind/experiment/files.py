"""The files that an experiment names, each read once: platforms, tasks, disturbances, GOAL files, recordings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from crosswind import _core
from crosswind.disturbance import Disturbance
from crosswind.documents import Document
from crosswind.errors import DescriptionError
from crosswind.experiment.amounts import amounts_of
from crosswind.experiment.embedded import content_of, embedded
from crosswind.experiment.own_policy import PREFIX, OwnPolicy, file_of
from crosswind.files.reading import read_bytes
from crosswind.files.recorded import files_of, read_recorded
from crosswind.platform import Platform

Read = TypeVar("Read")


class Files:
    """Reads what an experiment names, relative to its directory, and identifies its content.

    Parameters
    ----------
    directory : path
        Where relative paths count from.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._platforms: dict[str, Platform] = {}
        self._disturbances: dict[str, Disturbance] = {}
        self._contents: dict[str, bytes] = {}
        self._amounts: dict[str, list[float]] = {}
        self._recordings: dict[str, tuple[_core.RecordedRanks, str]] = {}
        self._expected: dict[str, str] = {}
        self._changed: tuple[str, Platform] | None = None
        self.paths: set[Path] = set()
        """Every file that was read."""

    def platform(self, source: str | Document, fields: Mapping[str, Any] | None = None) -> Platform:
        """Return a platform that is given inline or by its file's path, with fields of its nodes replaced."""
        platform = self._described(self._platforms, source, "platform", Platform.load, Platform.from_dict)
        if not fields:
            return platform
        key = json.dumps([source, fields])
        if self._changed is None or self._changed[0] != key:  # repetitions of a point follow one another
            self._changed = key, platform.with_fields(fields)
        return self._changed[1]

    def fill_processor(self, description: Document) -> None:
        """Put a platform's interference rates into `network.processor`, where that names a platform."""
        network = description.get("network")
        processor = network.get("processor") if isinstance(network, dict) else None
        if not processor or "platform" not in processor:
            return
        path, name = processor.pop("platform"), processor.pop("node", None)
        nodes = {node["name"]: node for node in self.platform(path).nodes if "parent" in node}
        if name is None and len(nodes) == 1:
            (name,) = nodes
        if name not in nodes:
            said = "is missing" if name is None else f"is {json.dumps(name)}"
            message = f"network.processor.node {said}; {path} has {', '.join(nodes) or 'none'} below its root"
            raise DescriptionError(message, "no-such-node", "name one of them")
        for field in ("ir_send_s_per_mb", "ir_receive_s_per_mb"):
            processor[field] = nodes[name].get(field, 0.0)

    def disturbance(self, source: str | Document | None) -> Disturbance | None:
        """Return a disturbance that is given inline or by its file's path; None for none."""
        if source is None:
            return None
        if not isinstance(source, str):
            return Disturbance.from_dict(source)  # part of the experiment, whose identity covers it
        return self._described(self._disturbances, source, "disturbance", Disturbance.load, Disturbance.from_dict)

    def content(self, file: str | None, field: str) -> bytes | None:
        """Return the bytes of a file that `field` names; None for none."""
        if file is None:
            return None
        if file not in self._contents:
            with self._named(field):
                content = read_bytes(self.directory / file)
            self._refuse_another(file, hashlib.sha256(content).hexdigest())
            self._contents[file] = content
            self.paths.add(self.directory / file)
        return self._contents[file]

    def fill_values(self, workload: Document) -> None:
        """Put the amounts of a file into each distribution of a farm's workload that names one."""
        for name, amount in workload.items():
            if isinstance(amount, dict) and isinstance(file := amount.get("file"), str):
                workload[name] = {"distribution": "empirical", "values": self.amounts(file, f"workload.{name}.file")}

    def amounts(self, file: str, field: str) -> list[float]:
        """Return the amounts in a file that `field` names."""
        if file not in self._amounts:
            self._amounts[file] = amounts_of(str(self.directory / file), self.content(file, field) or b"")
        return self._amounts[file]

    def own_policy(self, order: str | None) -> OwnPolicy | None:
        """Return the policy of the user's own that an order names; None for an order that is built in."""
        if order is None or not order.startswith(PREFIX):
            return None
        content = self.content(file_of(order), "policy.order")
        return OwnPolicy(order, Path(self.absolute(file_of(order))), content or b"")

    def recording(self, file: str, field: str) -> _core.RecordedRanks:
        """Return the recorded program in a file, or in the files of a directory, that `field` names."""
        if file not in self._recordings:
            path = self.directory / file
            with self._named(field):
                files, digest = read_recorded([path])
            self._refuse_another(file, digest)
            try:
                self._recordings[file] = _core.RecordedRanks(files, digest), digest
            except DescriptionError as error:
                hint = error.hint or f"`crosswind blame {path}` says more"
                raise DescriptionError(f"{path} cannot be run again: {error}", error.code, hint) from None
            self.paths.update(files_of(path))
        return self._recordings[file][0]

    def absolute(self, file: str) -> str:
        """Return where a named file is."""
        return str((self.directory / file).resolve())

    def provenance(self) -> Document:
        """Return the content of all that was read, as `runs.json` keeps it; a recording's digest only."""
        described: dict[str, Mapping[str, Platform | Disturbance]]
        described = {"platforms": self._platforms, "disturbances": self._disturbances}
        parts: Document = {
            name: {path: one.to_dict() for path, one in sorted(known.items()) if not _is_inline(path)}
            for name, known in described.items()
        }
        files = {path: embedded(content) for path, content in self._contents.items()}
        files |= {path: {"sha256": digest} for path, (_, digest) in self._recordings.items()}
        return {name: part for name, part in (parts | {"files": dict(sorted(files.items()))}).items() if part}

    def restore(self, provenance: Mapping[str, Any]) -> None:
        """Take files from what `provenance` returned, so that they are not read again.

        Raises
        ------
        DescriptionError
            When a content is damaged. A file of which there is only the digest is compared with it when it is read.
        """
        self._platforms |= {path: Platform.from_dict(one) for path, one in provenance.get("platforms", {}).items()}
        for path, one in provenance.get("disturbances", {}).items():
            self._disturbances[path] = Disturbance.from_dict(one)
        for path, entry in provenance.get("files", {}).items():
            if (content := content_of(path, entry)) is not None:
                self._contents[path] = content
            else:
                self._expected[path] = entry["sha256"]

    def _refuse_another(self, file: str, digest: str) -> None:
        if self._expected.get(file, digest) != digest:
            message = f"{self.directory / file} is not the file that the runs were made from: its SHA-256 differs"
            raise DescriptionError(message, "another-file", "put the file of then in its place")

    def parts(self) -> Document:
        """Return the identity of all that was read, in terms that JSON has."""
        parts: Document = {"platforms": {key: one.to_dict() for key, one in sorted(self._platforms.items())}}
        parts["tasks"] = {f: hashlib.sha256(content).hexdigest() for f, content in sorted(self._contents.items())}
        if self._recordings:
            parts["recordings"] = {file: digest for file, (_, digest) in sorted(self._recordings.items())}
        if self._disturbances:
            parts["disturbances"] = {key: one.to_dict() for key, one in sorted(self._disturbances.items())}
        return parts

    def _described(
        self,
        known: dict[str, Read],
        source: str | Document,
        field: str,
        load: Callable[[Path], Read],
        from_dict: Callable[[Document], Read],
    ) -> Read:
        key = source if isinstance(source, str) else json.dumps(source, sort_keys=True)
        if key not in known:
            if isinstance(source, str):
                with self._named(field):
                    known[key] = load(self.directory / source)
                self.paths.add(self.directory / source)
            else:
                known[key] = from_dict(source)
        return known[key]

    @contextmanager
    def _named(self, field: str) -> Iterator[None]:
        """Say which field names a missing file."""
        try:
            yield
        except DescriptionError as error:
            if error.code == "no-file" and error.hint is None:
                error.hint = f"the experiment names it as {field}; paths count from the experiment's file"
            raise


def _is_inline(key: str) -> bool:
    """Whether a key of what was read is a whole table, rather than the path of a file."""
    return key.startswith("{")
