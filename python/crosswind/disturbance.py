"""Disturbance: when the processors of a parallel program's ranks are away, and why (`disturbance.toml`)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from crosswind import _core
from crosswind.description import Description
from crosswind.files.intervals import whole
from crosswind.files.reading import read_bytes
from crosswind.files.tabular import Plotted


class Disturbance(Description[_core.Disturbance], Plotted):
    """A sum of sources, each with a cause; the same file is simulated, injected, and recorded.

    Fields, units and ranges of a source are those of `disturbance.toml` (docs/reference/files.md).

    Examples
    --------
    >>> cron = {"kind": "daemon", "cause": "cron", "interval_s": 60, "duration_s": 0.005}
    >>> disturbance = Disturbance.from_dict({"schema_version": 1, "name": "quiet", "source": [cron]})
    >>> disturbance.causes
    ['cron']
    """

    _KIND = "disturbance"
    _CORE = _core.Disturbance

    @classmethod
    def _content(cls, path: str | Path) -> bytes:
        return whole(read_bytes(path), path)

    @property
    def causes(self) -> list[str]:
        """The causes, each once, in the order of the file: the units of blame."""
        return list(self._checked.causes())

    def keeping(self, causes: Iterable[str]) -> Disturbance:
        """Return the disturbance with no causes but these; each keeps the times that it has beside the others."""
        kept, checked = set(causes), self._checked
        for cause in self.causes:
            if cause not in kept:
                checked = checked.without(cause)
        return Disturbance(checked)

    def without(self, *causes: str) -> Disturbance:
        """Return the disturbance without some causes.

        Raises
        ------
        DescriptionError
            When there is no such cause.
        """
        checked = self._checked
        for cause in causes:
            checked = checked.without(cause)
        return Disturbance(checked)

    def aligned(self) -> Disturbance:
        """Return the disturbance with every cause at the same times on all the ranks that it strikes."""
        return Disturbance(self._checked.aligned())

    def to_toml(self) -> str:
        """Return the content of `disturbance.toml`."""
        return self._checked.to_toml()

    def __repr__(self) -> str:
        return f"Disturbance({self.name!r}, {', '.join(self.causes)})"
