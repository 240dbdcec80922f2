"""The files that an experiment names, each read once: platforms, tasks, disturbances, GOAL files, recordings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from crosswind import _core
from crosswind.disturbance import Disturbance
from crosswind.errors import DescriptionError
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
        self._recordings: dict[str, tuple[_core.RecordedRanks, str]] = {}
        self.paths: set[Path] = set()
        """Every file that was read."""

    def platform(self, source: str | dict[str, Any]) -> Platform:
        """Return a platform that is given inline or by its file's path."""
        return self._described(self._platforms, source, "platform", Platform.load, Platform.from_dict)

    def fill_processor(self, description: dict[str, Any]) -> None:
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

    def disturbance(self, source: str | dict[str, Any] | None) -> Disturbance | None:
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
                self._contents[file] = read_bytes(self.directory / file)
            self.paths.add(self.directory / file)
        return self._contents[file]

    def recording(self, file: str, field: str) -> _core.RecordedRanks:
        """Return the recorded program in a file, or in the files of a directory, that `field` names."""
        if file not in self._recordings:
            path = self.directory / file
            with self._named(field):
                files, digest = read_recorded([path])
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

    def parts(self) -> dict[str, Any]:
        """Return the identity of all that was read, in terms that JSON has."""
        parts: dict[str, Any] = {"platforms": {key: one.to_dict() for key, one in sorted(self._platforms.items())}}
        parts["tasks"] = {f: hashlib.sha256(content).hexdigest() for f, content in sorted(self._contents.items())}
        if self._recordings:
            parts["recordings"] = {file: digest for file, (_, digest) in sorted(self._recordings.items())}
        if self._disturbances:
            parts["disturbances"] = {key: one.to_dict() for key, one in sorted(self._disturbances.items())}
        return parts

    def _described(
        self,
        known: dict[str, Read],
        source: str | dict[str, Any],
        field: str,
        load: Callable[[Path], Read],
        from_dict: Callable[[dict[str, Any]], Read],
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
